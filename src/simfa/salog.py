"""The log file `.salog`: its metadata, a memory-mapped reader and a streaming writer.

Reading, from a file or from memory alike (`LogSource` is what both offer)::

    log = open_log("run.salog")              # LogError when anything is missing or dropped
    log.metadata.shape, log.metadata.kernel  # all that a translation needs besides the records
    log.rows["block"], log.rows["role"]      # row headers (ROW_HEADER_DTYPE), sorted by (block, warp)
    log.records(3)                           # records of row 3 (RECORD_DTYPE), checked, not copied

A row is what one warp wrote. `docs/formats.md` describes the bytes; `simfa.salog_check` has the rules for records.
"""

import os
import struct
from pathlib import Path
from typing import Any, Literal, NoReturn, Protocol

import msgspec
import numpy as np
import numpy.typing as npt

from simfa.errors import LogError, ShapeError
from simfa.events import RECORD_DTYPE
from simfa.files import atomic_write
from simfa.kernel import SCHEDULES, KernelSpec
from simfa.salog_check import RecordRules
from simfa.workload import AttentionShape

MAGIC = b"SIMFALOG"
VERSION = 1
ROW_MAGIC = 0x57524653  # the bytes "SFRW"
ROW_VERSION = 1
ROW_HEADER_DTYPE = np.dtype(
    [
        ("magic", "<u4"),
        ("version", "<u2"),
        ("role", "<u2"),
        ("smid", "<u4"),
        ("block", "<u4"),
        ("warp", "<u4"),
        ("records", "<u4"),
        ("dropped", "<u4"),
        ("zero", "<u4"),
        ("globaltimer_begin", "<u8"),
        ("clock_begin", "<u8"),
        ("globaltimer_end", "<u8"),
        ("clock_end", "<u8"),
    ]
)
ROW_ALIGNMENT = 256
ROWS_ALIGNMENT = 4096
WARPS_PER_WARPGROUP = 4

_PREAMBLE = struct.Struct("<8sHHIQIIII24x")

Records = npt.NDArray[np.void]
RowHeaders = npt.NDArray[np.void]


class LogMetadata(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a log says about itself.

    `source_sha256` is the digest of the kernel's sources, null for a synthetic log, which has a `seed` instead.
    `gpu` is the device's name, or the preset whose values drove the timing model; `sm_clock_hz` is that preset's clock,
    null when captured (the rows' clock pairs tell it). `warps` is `one` when a single warp of each warpgroup logged.
    `ctas_logged` lists the CTAs that were asked to log, null for all. `facts` is free text: compiler, driver, date.

    `tiles` says how a reader learns which tile a CTA ran: `logged` (TILE events), `static` (the static schedule is
    recomputed), or `lost` (a dynamic schedule without TILE events: replay is impossible, a simulated one is not).
    """

    source: Literal["captured", "synthetic"]
    seed: int | None
    level: Literal[1, 2]
    shape: AttentionShape
    kernel: KernelSpec
    kernel_name: str
    source_sha256: str | None
    gpu: str
    sm_clock_hz: float | None
    clock_source: Literal["clock64", "timing model"]
    warps: Literal["all", "one"]
    ctas_logged: tuple[int, ...] | None
    tiles: Literal["logged", "static", "lost"]
    perturbations: tuple[str, ...] = ()
    facts: dict[str, str] = {}

    def __post_init__(self) -> None:
        """Refuse a kernel that cannot exist, with the field's name (`ValueError`)."""
        for name in ("tile_m", "tile_n", "stages", "consumers", "cluster"):
            if getattr(self.kernel, name) < 1:
                raise ValueError(f"kernel.{name} is {getattr(self.kernel, name)}; expected a positive whole number")
        if self.kernel.schedule not in SCHEDULES:
            raise ValueError(f"kernel.schedule is {self.kernel.schedule!r}; expected one of {', '.join(SCHEDULES)}")


def tiles_known(level: int, kernel: KernelSpec) -> Literal["logged", "static", "lost"]:
    """Return `LogMetadata.tiles` for an event level and a kernel."""
    if level >= 2:
        return "logged"
    return "static" if kernel.schedule == "static" else "lost"


def warps_per_cta(kernel: KernelSpec) -> int:
    """Return warps of a CTA: four of the producer warpgroup and four of each consumer warpgroup."""
    return WARPS_PER_WARPGROUP * (1 + kernel.consumers)


def row_bytes_for(records: int) -> int:
    """Return the bytes of a row that holds `records` records: header included, rounded up to 256."""
    used = ROW_HEADER_DTYPE.itemsize + records * RECORD_DTYPE.itemsize
    return -(-used // ROW_ALIGNMENT) * ROW_ALIGNMENT


def capacity_of(row_bytes: int) -> int:
    """Return how many records a row of `row_bytes` bytes holds."""
    return (row_bytes - ROW_HEADER_DTYPE.itemsize) // RECORD_DTYPE.itemsize


class LogSource(Protocol):
    """A log on disk, in memory, or made row by row on demand."""

    @property
    def metadata(self) -> LogMetadata:
        """What the log says about itself."""

    @property
    def ctas(self) -> int:
        """CTAs of the grid, logged or not."""

    @property
    def row_bytes(self) -> int:
        """Bytes of one row, header included; a multiple of 256."""

    @property
    def rows(self) -> RowHeaders:
        """Row headers, shape (rows,), dtype `ROW_HEADER_DTYPE`, sorted by (block, warp)."""

    def records(self, row: int) -> Records:
        """Return the records of one row, shape (rows["records"][row],), dtype `RECORD_DTYPE`."""


class Log:
    """A log whose rows lie in one buffer: a mapped file, or what came back from the GPU.

    `name` stands for the file in messages and `rows_offset` for the place of row 0 in it. The constructor checks the
    row headers, `records` the records of the row it returns; both raise `LogError` with the offset. With
    `allow_truncated` rows that are cut off or that dropped records are accepted, and `truncated` tells.
    """

    def __init__(
        self,
        metadata: LogMetadata,
        buffer: npt.NDArray[np.uint8],
        *,
        ctas: int,
        row_bytes: int,
        name: str,
        rows_offset: int = 0,
        allow_truncated: bool = False,
    ) -> None:
        """Take `buffer`, the bytes from row 0 on, whose last row may be cut short."""
        self.metadata = metadata
        self.ctas = ctas
        self.row_bytes = row_bytes
        self._buffer = buffer
        self._name = name
        self._offset = rows_offset
        whole, rest = divmod(buffer.size, row_bytes)
        count = whole + (rest >= ROW_HEADER_DTYPE.itemsize)
        headers = np.ndarray((count,), ROW_HEADER_DTYPE, buffer, strides=(row_bytes,)).copy()
        self._check_headers(headers, allow_truncated)
        self.truncated = bool(rest) or bool(headers["dropped"].any())
        if rest and count > whole:
            headers["records"][-1] = min(
                int(headers["records"][-1]), (rest - ROW_HEADER_DTYPE.itemsize) // RECORD_DTYPE.itemsize
            )
        headers.flags.writeable = False
        self.rows: RowHeaders = headers
        self._rules = RecordRules(metadata.shape, metadata.kernel, metadata.level)

    def records(self, row: int) -> Records:
        """Return the records of one row as a view of the buffer, after checking them; raises `LogError`."""
        header = self.rows[row]
        start = row * self.row_bytes + ROW_HEADER_DTYPE.itemsize
        stop = start + int(header["records"]) * RECORD_DTYPE.itemsize
        records: Records = self._buffer[start:stop].view(RECORD_DTYPE)
        fault = self._rules.first_fault(records, int(header["role"]))
        if fault is not None:
            self._fail(
                start + fault.record * RECORD_DTYPE.itemsize,
                f"block {header['block']} warp {header['warp']} record {fault.record}: {fault.message}",
            )
        return records

    def _check_headers(self, headers: RowHeaders, allow_truncated: bool) -> None:
        """Refuse headers that no kernel of this log could have written."""
        capacity = capacity_of(self.row_bytes)
        warps = warps_per_cta(self.metadata.kernel)
        key = headers["block"].astype(np.int64) * warps + headers["warp"]
        unsorted = np.zeros(len(headers), bool)
        unsorted[1:] = np.diff(key) <= 0
        rules = [
            (headers["magic"] != ROW_MAGIC, "magic", f"expected row magic {ROW_MAGIC:#x}; the row was never written"),
            (headers["version"] != ROW_VERSION, "version", f"expected row version {ROW_VERSION}"),
            (headers["block"] >= self.ctas, "block", f"expected a block below the grid's {self.ctas} CTAs"),
            (headers["warp"] >= warps, "warp", f"expected a warp below the CTA's {warps}"),
            (headers["role"] != headers["warp"] // WARPS_PER_WARPGROUP, "role", "expected the role warp div 4"),
            (headers["records"] > capacity, "records", f"expected at most the row's {capacity} records"),
            (headers["zero"] != 0, "zero", "expected 0"),
            (unsorted, "warp", "expected rows in rising order of (block, warp), each once"),
        ]
        if not allow_truncated:
            advice = "capture again with larger rows, or insist with --allow-truncated"
            rules.append((headers["dropped"] != 0, "dropped", f"expected no dropped records; {advice}"))
        for wrong, field, message in rules:
            if wrong.any():
                row = int(np.argmax(wrong))
                found = int(headers[field][row])
                shown = f"{found:#x}" if field == "magic" else str(found)
                offset = row * self.row_bytes + int(ROW_HEADER_DTYPE.fields[field][1])  # type: ignore[index]
                self._fail(offset, f"row {row}: {field} is {shown}; {message}")

    def _fail(self, offset: int, message: str) -> NoReturn:
        """Raise a `LogError` that names the file and the offset in it."""
        raise LogError(f"{self._name}: offset {self._offset + offset}: {message}")


def open_log(path: str | os.PathLike[str], *, allow_truncated: bool = False) -> Log:
    """Return the log at `path`, memory-mapped.

    Raises `LogError` with file, offset and expectation for a file that is no log, of another version, cut short or too
    long, or whose rows dropped records. `allow_truncated` accepts missing rows and dropped records.
    """
    name = str(path)

    def fail(offset: int, message: str) -> NoReturn:
        raise LogError(f"{name}: offset {offset}: {message}")

    try:
        size = Path(path).stat().st_size
        with Path(path).open("rb") as handle:
            head = handle.read(_PREAMBLE.size)
            if head[: len(MAGIC)] != MAGIC:
                fail(0, f"expected the magic {MAGIC.decode()}, found {head[: len(MAGIC)]!r}; this is no .salog file")
            if len(head) < _PREAMBLE.size:
                fail(len(head), f"expected a preamble of {_PREAMBLE.size} bytes; the file is cut short")
            _, version, record_bytes, text_bytes, rows_offset, rows, row_bytes, warps, ctas = _PREAMBLE.unpack(head)
            if version != VERSION:
                fail(8, f"expected version {VERSION}, found {version}; capture again with this simfa")
            if record_bytes != RECORD_DTYPE.itemsize:
                fail(10, f"expected {RECORD_DTYPE.itemsize}-byte records, found {record_bytes}")
            if rows_offset % ROWS_ALIGNMENT or rows_offset < _PREAMBLE.size + text_bytes:
                fail(
                    16,
                    f"expected rows after the metadata at a multiple of {ROWS_ALIGNMENT}, found offset {rows_offset}",
                )
            # A spoiled length must not take memory that the file could not fill.
            text = handle.read(min(text_bytes, size))
    except OSError as error:
        raise LogError(f"{name}: cannot be read: {error.strerror or error}") from error
    if row_bytes % ROW_ALIGNMENT or row_bytes == 0:
        fail(28, f"expected rows of a multiple of {ROW_ALIGNMENT} bytes, found {row_bytes}")
    if len(text) < text_bytes:
        fail(_PREAMBLE.size + len(text), f"expected {text_bytes} bytes of metadata; the file is cut short")
    try:
        metadata = msgspec.json.decode(text, type=LogMetadata)
    except (msgspec.MsgspecError, UnicodeDecodeError, ShapeError) as error:
        raise LogError(f"{name}: offset {_PREAMBLE.size}: metadata: {error}; capture again with this simfa") from error
    if warps != warps_per_cta(metadata.kernel):
        fail(32, f"expected {warps_per_cta(metadata.kernel)} warps a CTA for this kernel, found {warps}")
    expected = rows_offset + rows * row_bytes
    if size > expected:
        fail(expected, f"expected the end of the file after {rows} rows, found {size - expected} more bytes")
    if size < expected and not allow_truncated:
        fail(
            size,
            f"expected {rows} rows of {row_bytes} bytes up to offset {expected}; the file is cut short: copy it again, "
            "or insist with --allow-truncated",
        )
    length = max(0, min(size, expected) - rows_offset)
    buffer: Any = np.memmap(path, np.uint8, "r", rows_offset, (length,)) if length else np.zeros(0, np.uint8)
    log = Log(
        metadata,
        buffer,
        ctas=ctas,
        row_bytes=row_bytes,
        name=name,
        rows_offset=rows_offset,
        allow_truncated=allow_truncated,
    )
    log.truncated = log.truncated or size < expected
    return log


def file_bytes(log: LogSource) -> int:
    """Return the size of the file that `write_log` makes of `log`."""
    return _rows_offset(msgspec.json.encode(log.metadata)) + len(log.rows) * log.row_bytes


def _rows_offset(text: bytes) -> int:
    """Return where the rows begin behind a metadata text."""
    return -(-(_PREAMBLE.size + len(text)) // ROWS_ALIGNMENT) * ROWS_ALIGNMENT


def write_log(path: str | os.PathLike[str], log: LogSource) -> None:
    """Write `log` to `path`, one row at a time: memory use does not depend on the log's size.

    Nothing is left behind when the disk fills (`SimfaError`). Raises `LogError` for a row that does not fit.
    """
    text = msgspec.json.encode(log.metadata)
    rows_offset = _rows_offset(text)
    rows, row_bytes = log.rows, log.row_bytes
    preamble = _PREAMBLE.pack(
        MAGIC,
        VERSION,
        RECORD_DTYPE.itemsize,
        len(text),
        rows_offset,
        len(rows),
        row_bytes,
        warps_per_cta(log.metadata.kernel),
        log.ctas,
    )
    with atomic_write(path, "wb") as handle:
        handle.write((preamble + text).ljust(rows_offset, b"\0"))
        for row, header in enumerate(rows):
            records = log.records(row)
            if len(records) != header["records"] or row_bytes_for(len(records)) > row_bytes:
                raise LogError(
                    f"{path}: row {row}: {len(records)} records do not fit a header that says {header['records']} and "
                    f"rows of {row_bytes} bytes"
                )
            handle.write(header.tobytes())
            handle.write(records.tobytes())
            handle.write(bytes(row_bytes - ROW_HEADER_DTYPE.itemsize - records.nbytes))
