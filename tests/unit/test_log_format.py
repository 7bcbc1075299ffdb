"""The bytes of a `.salog`, and what a reader refuses."""

import json
import random
import resource
import struct

import numpy as np
import pytest

from simfa.errors import LogError, SimfaError
from simfa.events import RECORD_DTYPE, Event
from simfa.kernel import kernel_for
from simfa.salog import (
    ROW_HEADER_DTYPE,
    ROW_MAGIC,
    Log,
    LogMetadata,
    capacity_of,
    file_bytes,
    open_log,
    row_bytes_for,
    tiles_known,
    warps_per_cta,
    write_log,
)
from simfa.workload import AttentionShape

SHAPE = AttentionShape(batch=1, seqlen_q=256, seqlen_kv=352, heads_q=2, heads_kv=1, head_dim=128)
KERNEL = kernel_for(SHAPE)
METADATA = LogMetadata(
    source="captured",
    seed=None,
    level=1,
    shape=SHAPE,
    kernel=KERNEL,
    kernel_name="kernel",
    source_sha256="0" * 64,
    gpu="a GPU",
    sm_clock_hz=None,
    clock_source="clock64",
    warps="one",
    ctas_logged=None,
    tiles="static",
    facts={"compiler": "some"},
)
ROWS_OFFSET = 4096
ROW_BYTES = 256


class MemoryLog:
    """Two rows, of the producer and of the first consumer of CTA 1."""

    metadata = METADATA
    ctas = 4
    row_bytes = ROW_BYTES

    def __init__(self):
        self.rows = np.zeros(2, ROW_HEADER_DTYPE)
        self.rows["magic"] = ROW_MAGIC
        self.rows["version"] = 1
        self.rows["role"] = [0, 1]
        self.rows["smid"] = 77
        self.rows["block"] = 1
        self.rows["warp"] = [0, 7]
        self.rows["records"] = [2, 3]
        self.rows["clock_begin"] = 1 << 40

    def records(self, row):
        records = np.zeros(int(self.rows["records"][row]), RECORD_DTYPE)
        records["event"] = [[Event.TMA_K_ISSUE] * 2, [Event.WAIT_K_START, Event.GEMM_QK_ISSUE, Event.WAIT_WG_0]][row]
        records["timestamp"] = np.arange(len(records)) + 1000 * row
        records["stage"] = 1
        return records


@pytest.fixture
def path(tmp_path):
    target = tmp_path / "run.salog"
    write_log(target, MemoryLog())
    return target


def patched(path, offset, data):
    """Overwrite bytes of the file."""
    content = bytearray(path.read_bytes())
    content[offset : offset + len(data)] = data
    path.write_bytes(content)
    return path


def test_bytes_are_those_of_the_format_page(path):
    content = path.read_bytes()
    assert content[:8] == b"SIMFALOG"
    version, record, text, offset, rows, row_bytes, warps, ctas = struct.unpack_from("<HHIQIIII", content, 8)
    assert (version, record, offset, rows, row_bytes, warps, ctas) == (1, 16, ROWS_OFFSET, 2, ROW_BYTES, 12, 4)
    assert content[40:64] == bytes(24)
    metadata = json.loads(content[64 : 64 + text])
    assert metadata["source"] == "captured"
    assert metadata["shape"]["seqlen_kv"] == 352
    assert metadata["kernel"]["tile_n"] == 176
    assert not any(content[64 + text : ROWS_OFFSET])
    assert len(content) == ROWS_OFFSET + 2 * ROW_BYTES
    second = ROWS_OFFSET + ROW_BYTES
    assert content[second : second + 4] == b"SFRW"
    assert struct.unpack_from("<HHIIIIII", content, second + 4) == (1, 1, 77, 1, 7, 3, 0, 0)
    assert struct.unpack_from("<QQQQ", content, second + 32) == (0, 1 << 40, 0, 0)
    assert struct.unpack_from("<QHHHH", content, second + 64) == (1000, Event.WAIT_K_START, 1, 0, 0)
    assert not any(content[second + 64 + 3 * 16 :])


def test_reader_returns_what_was_written(path):
    log = open_log(path)
    source = MemoryLog()
    assert log.metadata == METADATA
    assert (log.ctas, log.row_bytes, log.truncated) == (4, ROW_BYTES, False)
    assert log.rows.tobytes() == source.rows.tobytes()
    for row in range(2):
        assert log.records(row).tobytes() == source.records(row).tobytes()


def test_reading_maps_the_file_and_copies_no_records(path):
    records = open_log(path).records(1)
    owner = records
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    assert isinstance(owner, np.memmap)
    assert not records.flags.writeable


def test_writing_a_read_log_gives_the_same_bytes(path, tmp_path):
    write_log(tmp_path / "again.salog", open_log(path))
    assert (tmp_path / "again.salog").read_bytes() == path.read_bytes()
    assert file_bytes(open_log(path)) == path.stat().st_size


def test_a_log_without_rows_is_read(tmp_path):
    source = MemoryLog()
    source.rows = source.rows[:0]
    write_log(tmp_path / "empty.salog", source)
    assert len(open_log(tmp_path / "empty.salog").rows) == 0


def test_rows_in_memory_are_checked_like_a_file(path):
    buffer = np.frombuffer(path.read_bytes()[ROWS_OFFSET:], np.uint8)
    log = Log(METADATA, buffer, ctas=4, row_bytes=ROW_BYTES, name="device rows")
    assert log.records(1)["event"].tolist() == [4, 5, 9]
    with pytest.raises(LogError, match=r"device rows: offset 12: row 0: block is 1; .* below the grid's 1 CTAs"):
        Log(METADATA, buffer, ctas=1, row_bytes=ROW_BYTES, name="device rows")


@pytest.mark.parametrize(
    ("offset", "data", "message"),
    [
        (0, b"ELF", r"offset 0: expected the magic SIMFALOG, found b'ELFFALOG'"),
        (8, b"\2", r"offset 8: expected version 1, found 2"),
        (10, b"\x20", r"offset 10: expected 16-byte records, found 32"),
        (16, struct.pack("<Q", 4000), r"offset 16: expected rows .* multiple of 4096, found offset 4000"),
        (16, struct.pack("<Q", 0), r"offset 16: expected rows after the metadata"),
        (12, struct.pack("<IQ", 0xFFFFFFBF, 1 << 32), r"expected 4294967231 bytes of metadata; the file is cut short"),
        (28, struct.pack("<I", 100), r"offset 28: .* multiple of 256 bytes, found 100"),
        (28, struct.pack("<I", 0), r"offset 28: .* multiple of 256 bytes, found 0"),
        (24, struct.pack("<I", 1), r"offset 4352: expected the end of the file after 1 rows, found 256 more bytes"),
        (24, struct.pack("<I", 3), r"offset 4608: expected 3 rows of 256 bytes up to offset 4864; .*cut short"),
        (32, struct.pack("<I", 16), r"offset 32: expected 12 warps a CTA for this kernel, found 16"),
        (64, b"x", r"offset 64: metadata: "),
        (ROWS_OFFSET, b"\0", r"offset 4096: row 0: magic is 0x57524600; .* never written"),
        (ROWS_OFFSET + 4, b"\7", r"offset 4100: row 0: version is 7"),
        (ROWS_OFFSET + 6, b"\1", r"offset 4102: row 0: role is 1; expected the role warp div 4"),
        (ROWS_OFFSET + 12, b"\4", r"offset 4108: row 0: block is 4; expected a block below the grid's 4 CTAs"),
        (ROWS_OFFSET + 16, b"\x0c", r"offset 4112: row 0: warp is 12; expected a warp below the CTA's 12"),
        (ROWS_OFFSET + 20, b"\x0d", r"offset 4116: row 0: records is 13; expected at most the row's 12 records"),
        (ROWS_OFFSET + 24, b"\5", r"offset 4120: row 0: dropped is 5; .*--allow-truncated"),
        (ROWS_OFFSET + 28, b"\1", r"offset 4124: row 0: zero is 1; expected 0"),
        (ROWS_OFFSET + 12, b"\2", r"offset 4368: row 1: warp is 7; expected rows in rising order"),
    ],
)
def test_wrong_bytes_are_named(path, offset, data, message):
    with pytest.raises(LogError, match=message) as error:
        open_log(patched(path, offset, data))
    assert str(error.value).startswith(f"{path}: ")


def test_no_damage_ends_in_anything_but_a_message(path):
    whole = path.read_bytes()
    chance = random.Random(1)
    text_end = 64 + struct.unpack_from("<I", whole, 12)[0]
    rows = range(ROWS_OFFSET, len(whole))
    refused = 0
    for _ in range(300):
        place = chance.choice([chance.randrange(64), chance.randrange(64, text_end), chance.choice(rows)])
        path.write_bytes(whole)
        patched(path, place, bytes([chance.randrange(256)]))
        try:
            log = open_log(path, allow_truncated=chance.random() < 0.5)
            for row in range(len(log.rows)):
                log.records(row)
        except LogError:
            refused += 1
    assert refused > 100


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b'"gpu"', b'"gpv"', "unknown field `gpv`"),
        (b'"stages":2', b'"stages":0', "kernel.stages is 0; expected a positive whole number"),
        (b'"tile_n":176', b'"tile_n":-76', "kernel.tile_n is -76; expected a positive whole number"),
        (b'"static"', b'"statix"', "kernel.schedule is 'statix'; expected one of static, dynamic, dynamic-in-order"),
        (b'"batch":1', b'"batch":0', "batch is 0; expected a positive whole number"),
        (b'"captured"', b'"measured"', "Invalid enum value 'measured'"),
    ],
)
def test_impossible_metadata_are_refused(path, old, new, message):
    patched(path, path.read_bytes().index(old), new)
    with pytest.raises(LogError, match="offset 64: metadata: ") as error:
        open_log(path)
    assert message in str(error.value)


@pytest.mark.parametrize(("size", "offset"), [(3, 0), (40, 40), (100, 100), (4000, 4000), (4400, 4400), (4607, 4607)])
def test_a_file_cut_short_is_refused_at_its_end(path, size, offset):
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(LogError, match=f"offset {offset}: expected"):
        open_log(path)


@pytest.mark.parametrize(
    ("size", "rows", "records"),
    [(4607, 2, [2, 3]), (4352 + 64 + 35, 2, [2, 2]), (4352 + 64, 2, [2, 0]), (4352 + 63, 1, [2]), (4096, 0, [])],
)
def test_insisting_reads_whole_records_of_a_file_cut_short(path, size, rows, records):
    path.write_bytes(path.read_bytes()[:size])
    log = open_log(path, allow_truncated=True)
    assert log.truncated
    assert len(log.rows) == rows
    assert log.rows["records"].tolist() == records
    assert [len(log.records(row)) for row in range(rows)] == records


def test_insisting_reads_rows_that_dropped_records(path):
    log = open_log(patched(path, ROWS_OFFSET + 24, b"\5"), allow_truncated=True)
    assert log.truncated
    assert log.rows["dropped"].tolist() == [5, 0]


def test_insisting_does_not_excuse_other_faults(path):
    with pytest.raises(LogError, match="row version"):
        open_log(patched(path, ROWS_OFFSET + 4, b"\7"), allow_truncated=True)


def test_a_missing_file_is_bad_input(tmp_path):
    with pytest.raises(LogError, match=r"none\.salog: cannot be read: No such file"):
        open_log(tmp_path / "none.salog")


def test_a_row_that_does_not_fit_its_header_leaves_no_file(tmp_path):
    source = MemoryLog()
    source.records = lambda row: np.zeros(5, RECORD_DTYPE)
    with pytest.raises(LogError, match="row 0: 5 records do not fit a header that says 2"):
        write_log(tmp_path / "run.salog", source)
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_fills_leaves_no_file(tmp_path):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4300, before[1]))
    try:
        with pytest.raises(SimfaError, match=r"run\.salog: cannot be written: File too large"):
            write_log(tmp_path / "run.salog", MemoryLog())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list(tmp_path.iterdir()) == []


def test_rows_are_multiples_of_256_bytes_that_hold_their_records():
    assert [row_bytes_for(records) for records in (0, 12, 13, 28, 29)] == [256, 256, 512, 512, 768]
    assert [capacity_of(size) for size in (256, 512)] == [12, 28]


def test_warps_and_tiles_follow_from_the_kernel():
    three = kernel_for(AttentionShape(batch=1, seqlen_q=192, seqlen_kv=192, heads_q=1, heads_kv=1, head_dim=64))
    causal = kernel_for(
        AttentionShape(batch=1, seqlen_q=192, seqlen_kv=192, heads_q=1, heads_kv=1, head_dim=64, causal=True)
    )
    assert (warps_per_cta(KERNEL), warps_per_cta(three)) == (12, 16)
    assert [tiles_known(level, kernel) for kernel in (three, causal) for level in (1, 2)] == [
        "static",
        "logged",
        "lost",
        "logged",
    ]
