"""Pricing a table file: chunks in, chunks out, nothing half-written."""

import csv
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple

import msgspec
import numpy as np

from simfa.analytical.machine import Machine
from simfa.analytical.table import OUTPUT_COLUMNS, Column, default_tile, evaluate
from simfa.analytical.table_input import DELIMITERS, Chunk, Reject, pyarrow, read_chunks
from simfa.errors import AnalyticalError
from simfa.files import atomic_write

CHUNK_ROWS = 65_536


class Outcome(NamedTuple):
    """What `price_table` did: rows written, and the rows it could not price."""

    rows: int
    rejected: int


def count_rows(source: Path) -> int:
    """Return about how many rows a table file has, for a progress line; 0 for a file that cannot be read."""
    try:
        if source.suffix.lower() == ".parquet":
            return int(pyarrow().parquet.ParquetFile(source).metadata.num_rows)
        with source.open("rb") as handle:
            return sum(block.count(b"\n") for block in iter(lambda: handle.read(1 << 20), b""))
    except (AnalyticalError, OSError, ValueError):
        return 0


def price_table(
    source: Path,
    target: Path,
    machine: Machine,
    policy: str,
    rejects: Path | None = None,
    chunk_rows: int = CHUNK_ROWS,
    progress: Callable[[int], None] | None = None,
) -> Outcome:
    """Read calls from `source`, write them with the model's columns to `target`, holding one chunk at a time.

    Formats follow the suffixes `.csv`, `.tsv`, `.parquet`. Without `rejects` the first bad row raises
    `AnalyticalError` naming file, line and column, and nothing is written; with it, bad rows are collected there (CSV)
    and the rest is priced. `progress` is told how many rows are done, chunk by chunk.
    """
    suffix = target.suffix.lower()
    if suffix not in (*DELIMITERS, ".parquet"):
        raise AnalyticalError(f"{target}: expected a name ending in .csv, .tsv or .parquet")
    for written in (target, rejects):
        if written is not None and source.exists() and written.exists() and written.samefile(source):
            raise AnalyticalError(f"{written}: is the input table too; write to another file")
    rows = 0
    refused: list[Reject] = []
    header: list[str] = []
    with atomic_write(target, "wb") as handle, _Writer(handle, suffix) as writer:
        for chunk in read_chunks(source, chunk_rows):
            header = list(chunk.columns)
            chunk = chunk.without(_without_tile(chunk, machine))
            if chunk.rejects and rejects is None:
                raise AnalyticalError(_message(source, chunk.rejects[0]))
            refused += chunk.rejects
            if chunk.rows:
                writer.write({**chunk.columns, **evaluate(chunk.columns, machine, policy)}, target)
                rows += chunk.rows
            if progress is not None:
                progress(rows + len(refused))
        if not rows:
            writer.empty([*header, *OUTPUT_COLUMNS])
    if rejects is not None:
        _write_rejects(rejects, header, refused)
    return Outcome(rows, len(refused))


def _without_tile(chunk: Chunk, machine: Machine) -> dict[int, tuple[str, str]]:
    """Return rows whose head dimension has no tile in the machine's kernel, where the table gives none."""
    if "tile_m" in chunk.columns:
        return {}
    dims = chunk.columns["head_dim"]
    unknown = [dim for dim in np.unique(dims).tolist() if default_tile(dim, machine) is None]
    reason = f"has no tile in kernel {machine.kernel}; add a column tile_m"
    return {index: ("head_dim", f"{dims[index]} {reason}") for index in np.flatnonzero(np.isin(dims, unknown)).tolist()}


def _message(source: Path, reject: Reject) -> str:
    place = "row" if source.suffix.lower() == ".parquet" else "line"
    return f"{source} {place} {reject.line}, column {reject.column}: {reject.reason}"


def _write_rejects(path: Path, header: list[str], refused: list[Reject]) -> None:
    """Write line, column, reason and the cells of every rejected row; remove an old file when there are none."""
    if not refused:
        path.unlink(missing_ok=True)
        return
    with atomic_write(path) as handle:
        writer = csv.writer(handle, lineterminator="\n")
        writer.writerow(["line", "column", "reason", *header])
        writer.writerows([reject.line, reject.column, reject.reason, *reject.cells] for reject in refused)


class _Writer:
    """Writes chunks of columns as text or Parquet; the header comes with the first chunk."""

    def __init__(self, handle: IO[Any], suffix: str) -> None:
        self._handle, self._suffix = handle, suffix
        self._encoder = msgspec.json.Encoder()
        self._begun = False
        self._parquet: Any = None

    def __enter__(self) -> "_Writer":
        return self

    def __exit__(self, *_: object) -> None:
        if self._parquet is not None:
            self._parquet.close()

    def write(self, columns: Mapping[str, Column], target: Path) -> None:
        """Append rows."""
        if self._suffix == ".parquet":
            self._write_parquet(columns, target)
            return
        if not self._begun:
            self.empty(list(columns))
        # One JSON array a line, with its brackets and quotes removed: a third of the time of the csv module. Cells are
        # numbers and fixed words, so nothing needs quoting; integers beyond 64 bits go in as text.
        cells = [(column.astype(str) if column.dtype == object else column).tolist() for column in columns.values()]
        body = self._encoder.encode_lines(list(zip(*cells, strict=True)))
        body = body[1:-2].replace(b"]\n[", b"\n").replace(b'"', b"") + b"\n"
        delimiter = DELIMITERS[self._suffix].encode()
        self._handle.write(body if delimiter == b"," else body.replace(b",", delimiter))

    def empty(self, names: list[str]) -> None:
        """Write a header alone."""
        if self._suffix == ".parquet":
            arrow = pyarrow()
            arrow.parquet.write_table(arrow.table({name: arrow.array([]) for name in names}), self._handle)
            return
        self._handle.write(DELIMITERS[self._suffix].join(names).encode() + b"\n")
        self._begun = True

    def _write_parquet(self, columns: Mapping[str, Column], target: Path) -> None:
        arrow = pyarrow()
        for name, column in columns.items():
            if column.dtype == object and max(column) >= 2**63:
                raise AnalyticalError(f"{target}: {name} needs more than 64 bits in a row; write .csv or .tsv instead")
        arrays = {
            name: column.astype(np.int64) if column.dtype == object else column for name, column in columns.items()
        }
        table = arrow.table(arrays)
        if self._parquet is None:
            self._parquet = arrow.parquet.ParquetWriter(self._handle, table.schema)
        self._parquet.write_table(table)
