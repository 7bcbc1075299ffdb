"""Whole synthetic logs: tiles, stages over tiles, warps, clocks, determinism, memory."""

import tracemalloc

import numpy as np
import pytest

from simfa.errors import ShapeError
from simfa.events import LEVEL_1_EVENTS, Event
from simfa.hardware import load_preset
from simfa.instrument.synthetic import synthesize
from simfa.kernel import kernel_for
from simfa.salog import open_log, write_log
from simfa.schedule import Tile, static_tiles, tile_order
from simfa.workload import AttentionShape

H100 = load_preset("h100-sxm")
SMALL = load_preset("h100-sxm", overrides=["gpu.sm_count=4"])  # many tiles for each CTA


def shape_of(head_dim=128, causal=False, heads=6, seqlen=768):
    return AttentionShape(
        batch=1, seqlen_q=seqlen, seqlen_kv=seqlen, heads_q=heads, heads_kv=heads, head_dim=head_dim, causal=causal
    )


def log_of(preset=SMALL, level=2, one_warp=True, seed=0, ctas=None, **shape):
    shape = shape_of(**shape)
    return synthesize(shape, kernel_for(shape), preset, level=level, one_warp=one_warp, seed=seed, ctas=ctas)


def tiles_of(records):
    """Return the tiles a row logged."""
    tiles = records[records["event"] == Event.TILE]
    return [Tile(*fields) for fields in tiles[["stage", "payload", "aux"]].tolist()]


CASES = [(head_dim, causal) for head_dim in (64, 128, 256) for causal in (False, True)]


@pytest.mark.parametrize(("head_dim", "causal"), CASES)
def test_every_tile_is_run_once_and_all_roles_agree(head_dim, causal):
    log = log_of(head_dim=head_dim, causal=causal)
    kernel, shape = log.metadata.kernel, log.metadata.shape
    by_cta = {}
    for row, header in enumerate(log.rows):
        tiles = tiles_of(log.records(row))
        assert by_cta.setdefault(int(header["block"]), tiles) == tiles
        if header["role"] == 0:
            loads = log.records(row)["event"] == Event.TMA_Q_ISSUE
            assert log.records(row)["payload"][loads].tolist() == [tile.m_block for tile in tiles]
    assert sorted(tile for tiles in by_cta.values() for tile in tiles) == sorted(tile_order(shape, kernel))
    if kernel.schedule == "static":
        assert by_cta == {cta: list(static_tiles(shape, kernel, 4, cta)) for cta in range(4)}
    else:
        order = {tile: index for index, tile in enumerate(tile_order(shape, kernel))}
        handed = [[order[tile] for tile in by_cta[cta]] for cta in range(4)]
        assert [first for first, *_ in handed] == [0, 1, 2, 3]
        assert all(numbers == sorted(numbers) for numbers in handed)


@pytest.mark.parametrize(("head_dim", "causal"), CASES)
def test_fills_use_the_ring_slots_in_turn_over_all_tiles(head_dim, causal):
    log = log_of(head_dim=head_dim, causal=causal)
    for row, header in enumerate(log.rows):
        records = log.records(row)
        for event in (
            (Event.TMA_K_ISSUE, Event.TMA_V_ISSUE)
            if header["role"] == 0
            else (Event.GEMM_QK_ISSUE, Event.GEMM_PV_ISSUE, Event.RELEASE_K, Event.RELEASE_V)
        ):
            chosen = records[records["event"] == event]
            assert (chosen["stage"] == np.arange(len(chosen)) % 2).all()
            blocks = [
                block
                for tile in tiles_of(records)
                for block in reversed(range(log.metadata.kernel.key_blocks(log.metadata.shape, tile.m_block)))
            ]
            assert chosen["payload"].tolist() == blocks


@pytest.mark.parametrize(("head_dim", "causal"), CASES)
@pytest.mark.parametrize("level", [1, 2])
def test_rows_hold_what_their_headers_say(tmp_path, head_dim, causal, level):
    log = log_of(head_dim=head_dim, causal=causal, level=level, one_warp=False)
    write_log(tmp_path / "run.salog", log)
    opened = open_log(tmp_path / "run.salog")
    assert opened.metadata == log.metadata
    assert opened.rows.tobytes() == log.rows.tobytes()
    for row, header in enumerate(opened.rows):
        times = opened.records(row)["timestamp"].astype(np.int64)
        assert (np.diff(times) >= 0).all()
        assert header["clock_begin"] <= times[0]
        assert times[-1] <= header["clock_end"]


def test_level_1_is_level_2_without_its_extra_events():
    one, two = log_of(level=1), log_of(level=2)
    for row in range(len(one.rows)):
        records = two.records(row)
        kept = records[np.isin(records["event"], list(LEVEL_1_EVENTS))]
        assert one.records(row).tobytes() == kept.tobytes()


def test_warps_of_a_warpgroup_log_alike_with_a_small_skew():
    log = log_of(head_dim=64, one_warp=False)
    store = (Event.TMA_O_ISSUE, Event.TMA_O_WAIT_END)
    skews = set()
    for cta in range(4):
        for role in (1, 2, 3):
            rows = np.flatnonzero((log.rows["block"] == cta) & (log.rows["role"] == role))
            assert len(rows) == 4
            first, *others = (log.records(row) for row in rows)
            for index, other in enumerate(others, start=1):
                if role == 3 and index == 3:
                    assert np.isin(other["event"], store).sum() == 2 * len(tiles_of(other))
                    other = other[~np.isin(other["event"], store)]
                assert (
                    other[["event", "stage", "payload", "aux"]].tolist()
                    == first[["event", "stage", "payload", "aux"]].tolist()
                )
                skew = other["timestamp"].astype(np.int64) - first["timestamp"].astype(np.int64)
                assert (np.abs(skew) < 8).all()
                skews.update(skew.tolist())
    assert len(skews) > 4


def test_same_seed_same_bytes_other_seed_other_times(tmp_path):
    for name, seed in (("a", 5), ("b", 5), ("c", 6)):
        write_log(tmp_path / name, log_of(seed=seed))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    first, other = open_log(tmp_path / "a"), open_log(tmp_path / "c")
    fields = ["event", "stage", "payload", "aux"]
    for row in range(len(first.rows)):
        assert first.records(row)[fields].tolist() == other.records(row)[fields].tolist()
        assert (first.records(row)["timestamp"] != other.records(row)["timestamp"]).any()


def test_ctas_without_a_tile_have_no_rows():
    log = log_of(preset=H100, heads=2, seqlen=512)
    assert log.ctas == 132
    assert np.unique(log.rows["block"]).tolist() == list(range(8))


def test_a_filter_keeps_rows_as_they_were():
    whole, some = log_of(preset=H100), log_of(preset=H100, ctas=[6, 7, 2, 3])
    assert np.unique(some.rows["block"]).tolist() == [2, 3, 6, 7]
    assert some.metadata.ctas_logged == (2, 3, 6, 7)
    for row, header in enumerate(some.rows):
        same = np.flatnonzero((whole.rows["block"] == header["block"]) & (whole.rows["warp"] == header["warp"]))[0]
        assert some.records(row).tobytes() == whole.records(int(same)).tobytes()


@pytest.mark.parametrize(
    ("ctas", "message"),
    [([132], "outside the grid of 132"), ([-1], "outside the grid"), ([3], "without CTA 2"), ([], "at least one")],
)
def test_impossible_filters_are_refused(ctas, message):
    with pytest.raises(ShapeError, match=message):
        log_of(preset=H100, ctas=ctas)


def test_half_a_pair_may_be_logged_without_clusters():
    assert len(log_of(preset=H100, causal=True, ctas=[3]).rows) == 3


def test_coordinates_beyond_a_record_are_refused():
    with pytest.raises(ShapeError, match="query blocks 65537: a log record holds at most 65536"):
        log_of(heads=1, seqlen=65537 * 128)


def test_metadata_say_synthetic_and_what_can_be_replayed():
    metadata = log_of(causal=True, level=1, seed=9).metadata
    assert (metadata.source, metadata.seed, metadata.clock_source) == ("synthetic", 9, "timing model")
    assert "synthetic" in metadata.kernel_name
    assert metadata.source_sha256 is None
    assert metadata.tiles == "lost"
    assert log_of(causal=True, level=2).metadata.tiles == "logged"
    assert log_of(level=1).metadata.tiles == "static"


def test_writing_takes_memory_for_a_row_not_for_the_log(tmp_path):
    peaks = []
    for heads in (4, 64):
        log = log_of(heads=heads, seqlen=1536, level=1)
        tracemalloc.start()
        write_log(tmp_path / "run.salog", log)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    row, size = log.row_bytes, (tmp_path / "run.salog").stat().st_size
    assert size == 4096 + 12 * row
    assert max(peaks) < 6 * row
