"""A log beside a simulated run of the same kernel: what is paired, in which unit, and what is refused."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from simfa.errors import LogError
from simfa.hardware import load_preset
from simfa.instrument.log_compare import CONSUMER_PAIRS, PRODUCER_PAIRS, compare_with_run
from simfa.instrument.log_stats import CONSUMER_SPANS, PRODUCER_SPANS, span_statistics
from simfa.instrument.synthetic import synthesize
from simfa.kernel import kernel_for
from simfa.salog import LogSource
from simfa.workload import AttentionShape

SHAPE = AttentionShape(batch=1, seqlen_q=512, seqlen_kv=512, heads_q=2, heads_kv=2, head_dim=128)
TILES = 8  # 4 query blocks x 2 heads


def a_log(level: int = 2) -> LogSource:
    return synthesize(SHAPE, kernel_for(SHAPE), load_preset("h100-sxm"), level=level)


def a_run(path: Path, **changes: Any) -> Path:
    stalls = {"producer": {"acquire_stage": 80}, "consumer1": {"wait_k": 16}, "consumer2": {"softmax": 24}}
    stalls["consumer2"]["cuda_contention"] = 8
    values = {"shape": SHAPE, "kernel": kernel_for(SHAPE), "stall_cycles": stalls, "counters": {"tiles": TILES}}
    path.write_bytes(msgspec.json.encode({**values, "partial": False, **changes}))
    return path


def test_both_sides_are_cycles_a_tile(tmp_path: Path) -> None:
    log = a_log()
    found = {(line.role, line.spans): line for line in compare_with_run(log, a_run(tmp_path / "stats.json"))}
    assert found[0, "K stage wait + V stage wait"].simulated_cycles == 80 / TILES
    assert found[1, "K wait"].simulated_cycles == 16 / TILES
    assert found[2, "softmax"].simulated_cycles == 32 / TILES
    assert found[2, "K wait"].simulated_cycles == 0
    means = {(entry.role, entry.span): entry for entry in span_statistics(log)}
    # Consumer 1 waits for each of the three K blocks of a tile (512 / 176), consumer 2 for the first.
    assert means[1, "K wait"].count == 3 * TILES
    assert found[1, "K wait"].log_cycles == pytest.approx(3 * means[1, "K wait"].mean_cycles)
    assert found[2, "K wait"].log_cycles == pytest.approx(means[2, "K wait"].mean_cycles)


def test_every_paired_span_is_one_that_logs_have() -> None:
    for pairs, spans in ((PRODUCER_PAIRS, PRODUCER_SPANS), (CONSUMER_PAIRS, CONSUMER_SPANS)):
        assert {name for names, _ in pairs for name in names} <= {span.name for span in spans[2]}


def test_every_reason_is_one_that_the_simulator_books() -> None:
    from simfa.report.attribution import REASONS

    reasons = {reason for pairs in (PRODUCER_PAIRS, CONSUMER_PAIRS) for _, names in pairs for reason in names}
    assert reasons <= set(REASONS)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"shape": msgspec.structs.replace(SHAPE, heads_q=4)}, "compare the same kernel"),
        ({"kernel": kernel_for(SHAPE, "2024-07")}, "FA3 2024-07, the log of"),
        ({"partial": True}, "stopped before its end"),
        ({"counters": {}}, "expected the stats.json"),
        ({"stall_cycles": None}, "expected the stats.json"),
    ],
)
def test_other_runs_are_refused(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(LogError, match=message):
        compare_with_run(a_log(), a_run(tmp_path / "stats.json", **changes))


def test_a_missing_run_and_a_level_1_log_are_refused(tmp_path: Path) -> None:
    with pytest.raises(LogError, match=r"nothing\.json: cannot be read"):
        compare_with_run(a_log(), tmp_path / "nothing.json")
    with pytest.raises(LogError, match="a level-1 log stamps no ends of waits"):
        compare_with_run(a_log(level=1), a_run(tmp_path / "stats.json"))
