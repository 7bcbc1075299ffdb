"""What a run records: conservation of cycles and bytes, choices by SM, tile and window, and what is refused."""

from itertools import pairwise

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner

from simfa.cli import simfa
from simfa.errors import SimulationError
from simfa.hardware import load_preset
from simfa.kernel import kernel_for
from simfa.pipeline import kernel_trace
from simfa.recording import Recording
from simfa.simulate.engine import run
from simfa.timeline import read_timeline
from simfa.workload import AttentionShape

SHAPE = AttentionShape(batch=1, seqlen_q=768, seqlen_kv=768, heads_q=2, heads_kv=2, head_dim=128, causal=True)
SMALL = load_preset("h100-sxm", [], ["gpu.sm_count=4", "l2.slices=4", "l2.capacity_bytes=1310720"]).spec
TRACE = kernel_trace(SHAPE, kernel_for(SHAPE), SMALL.gpu.sm_count)


def record(**choice):
    return run(TRACE, SMALL, timeline=Recording(**choice))


@pytest.fixture(scope="module")
def whole():
    """A run of four SMs and twelve tiles, all of it recorded."""
    return record(period_cycles=500)


def spans(timeline, name):
    """Return start, end and label of a track's slices."""
    part = timeline.of_track(name)
    return list(zip(part.start_cycle.tolist(), part.end_cycle.tolist(), part.labels(), strict=True))


def test_every_cycle_of_a_role_is_in_one_slice(whole) -> None:
    summed: dict[str, dict[str, int]] = {}
    for sm in range(4):
        for role in ("producer", "consumer1", "consumer2"):
            slices = spans(whole.timeline, f"sm{sm}/{role}")
            assert slices[0][0] == 0 and slices[-1][1] == whole.cycles
            assert all(before[1] == after[0] for before, after in pairwise(slices))
            for start, end, label in slices:
                reasons = summed.setdefault(role, {})
                reasons[label] = reasons.get(label, 0) + end - start
    assert summed == {role: whole.stall_cycles[role] for role in summed}


def test_tensor_slices_are_the_pipe_s_cycles(whole) -> None:
    slices = [part for sm in range(4) for part in spans(whole.timeline, f"sm{sm}/tensor")]
    drained = sum(end - start for start, end, label in slices if label == "drain")
    assert drained == whole.counters["tensor_drain_cycles"]
    assert sum(end - start for start, end, _ in slices) - drained == whole.counters["tensor_busy_cycles"]


def test_only_loads_overlap(whole) -> None:
    for name in whole.timeline.track_name:
        slices = spans(whole.timeline, name)
        touching = all(before[1] <= after[0] for before, after in pairwise(slices))
        assert touching or name.endswith("/tma"), name


def test_stages_alternate_and_fill_with_what_the_tma_loads(whole) -> None:
    timeline = whole.timeline
    loaded = 0
    for name in [name for name in timeline.track_name if "K stage" in name]:
        labels = [label for _, _, label in spans(timeline, name)]
        assert labels == ["loading", "full"] * (len(labels) // 2)
        loaded += len(labels) // 2
    blocks = sum(kernel_for(SHAPE).key_blocks(SHAPE, m_block) for m_block in range(6)) * SHAPE.heads_q
    assert loaded == blocks


def test_counters_add_up_to_the_run_s_figures(whole) -> None:
    timeline = whole.timeline
    rows = dict(zip(timeline.counter_name, timeline.counter_value, strict=True))
    assert timeline.counter_cycle.tolist() == list(range(0, whole.cycles, 500))
    lengths = np.diff(timeline.counter_cycle, append=whole.cycles)
    moved = float((rows["chip/dram_bytes_per_cycle"] * lengths).sum())
    assert moved == pytest.approx(whole.dram_read_bytes + whole.dram_write_bytes, rel=1e-9)
    limit = SMALL.tma.max_lines_in_flight
    of_sms = [rows[f"sm{sm}/lines_in_flight"] for sm in range(4)]
    assert np.array_equal(sum(of_sms), rows["chip/lines_in_flight"])
    assert max(row.max() for row in of_sms) > 0 and max(row.max() for row in of_sms) <= limit
    rate = rows["chip/l2_hit_rate"]
    assert np.isnan(rate[0])  # nothing is launched yet
    assert 0 <= np.nanmin(rate) <= whole.l2_hit_rate <= np.nanmax(rate) <= 1
    assert rows["chip/mshr_entries"].max() <= whole.counters["mshr_peak"] * SMALL.l2.slices


def test_recording_changes_nothing_else(whole) -> None:
    plain = run(TRACE, SMALL)
    assert plain.timeline is None
    drop = {"timeline": None, "host_seconds": 0, "simulated_cycles_per_second": 0}
    assert msgspec.structs.replace(whole, **drop) == msgspec.structs.replace(plain, **drop)


def test_tiles_say_where_each_ran(whole) -> None:
    timeline = whole.timeline
    ran = set(
        zip(timeline.tile_m_block.tolist(), timeline.tile_head.tolist(), timeline.tile_batch.tolist(), strict=True)
    )
    assert ran == {(m_block, head, 0) for m_block in range(6) for head in range(2)}
    for sm in range(4):
        ordinals = timeline.tile_ordinal[timeline.tile_sm == sm]
        assert ordinals.tolist() == list(range(len(ordinals)))


def test_choice_of_sm_is_a_part_of_all(whole) -> None:
    part = record(sms=(2,), period_cycles=500).timeline
    assert part.places() == ["sm2"]
    for name in part.track_name:
        assert spans(part, name) == spans(whole.timeline, name)


def test_choice_of_window_keeps_what_overlaps_whole(whole) -> None:
    part = record(sms=(0,), window=(9000, 9500), period_cycles=100).timeline
    for name in part.track_name:
        kept = [span for span in spans(whole.timeline, name) if span[1] > 9000 and span[0] < 9500]
        assert spans(part, name) == kept, name
    assert part.counter_cycle.tolist() == [9000, 9100, 9200, 9300, 9400]


def test_choice_of_one_tile_finds_its_sm(whole) -> None:
    part = record(tile=(3, 1, 0)).timeline
    assert (part.tile_m_block.tolist(), part.tile_head.tolist()) == ([3], [1])
    (sm,), (ordinal,) = part.tile_sm.tolist(), part.tile_ordinal.tolist()
    assert part.places() == [f"sm{sm}"]
    for role in ("producer", "consumer1", "consumer2"):
        same = whole.timeline.of_track(f"sm{sm}/{role}")
        same = same.chosen(same.arg == ordinal)
        assert np.array_equal(part.of_track(f"sm{sm}/{role}").start_cycle, same.start_cycle)


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"sms": (4,)}, "SM 4 cannot be recorded; the GPU has SMs 0 to 3"),
        ({"tile": (6, 0, 0)}, r"tile \(6, 0, 0\) is not in the trace; expected m_block, head, batch up to \(5, 1, 0\)"),
        ({"limit_slices": 100}, "more than 100 slices; record fewer SMs"),
        ({"window": (5, 5)}, "timeline window"),
    ],
)
def test_what_cannot_be_recorded(choice, message) -> None:
    with pytest.raises(SimulationError, match=message):
        record(**choice)


def simulate(tmp_path, *flags, code=0):
    from simfa.trace_text import write_trace

    path = tmp_path / "t.satrace"
    write_trace(path, TRACE)
    small = ["--set", "gpu.sm_count=4", "--set", "l2.slices=4", "--set", "l2.capacity_bytes=1310720"]
    arguments = ["simulate", str(path), *small, "-o", str(tmp_path / "run"), *flags]
    done = CliRunner().invoke(simfa, arguments, catch_exceptions=False)
    assert done.exit_code == code, done.output
    return done


def test_flags_choose_and_the_file_keeps_it_all(tmp_path, whole) -> None:
    simulate(tmp_path, "--timeline-sm", "1,3", "--timeline-window", "8000:9000", "--timeline-period", "250")
    stored = read_timeline(tmp_path / "run/timeline.npz")
    assert stored.places() == ["sm1", "sm3"]
    direct = record(sms=(1, 3), window=(8000, 9000), period_cycles=250).timeline
    for name in set(stored.__struct_fields__) - {"meta"}:
        assert np.array_equal(
            np.nan_to_num(getattr(stored, name)) if name == "counter_value" else getattr(stored, name),
            np.nan_to_num(getattr(direct, name)) if name == "counter_value" else getattr(direct, name),
        ), name
    assert stored.meta["cycles"] == whole.cycles
    assert stored.meta["shape"]["seqlen_q"] == 768


def test_empty_window_keeps_the_results(tmp_path) -> None:
    with pytest.raises(
        SimulationError, match="no slice lies in the chosen SMs, tiles and cycles; the run ended at cyc"
    ):
        simulate(tmp_path, "--timeline", "1", "--timeline-window", "10000000:10000001")
    assert (tmp_path / "run/stats.json").is_file()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--timeline", "1", "--timeline-sm", "2"), "not both"),
        (("--timeline-window", "1:2"), "needs SMs"),
        (("--timeline-sm", "4-2"), "expected numbers and ranges"),
        (("--timeline-tile", "1,2"), "FIRST:LAST, ordinals"),
        (("--timeline-tile", "3:1"), "the first tile comes after the last"),
        (("--timeline-window", "9:9"), "expected BEGIN:END"),
        (("--timeline", "1", "--timeline-window", f"0:{10**23}"), "expected BEGIN:END"),
        (("--timeline", "1", "--timeline-window", "0:" + "9" * 5000), "expected BEGIN:END"),
        (("--timeline-sm", "0-" + "9" * 5000), "expected numbers and ranges"),
        (("--timeline-tile", f"0:{10**20}"), "FIRST:LAST, ordinals"),
        (("--timeline", f"{10**12}"), "not in the range"),
        (("--timeline", "1", "--timeline-period", f"{10**20}"), "not in the range"),
    ],
)
def test_flags_that_are_wrong(tmp_path, flags, message) -> None:
    assert message in simulate(tmp_path, *flags, code=2).stderr
