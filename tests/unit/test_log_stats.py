"""Durations between events: pairing by hand-made records, and the tables of a whole log."""

import numpy as np
import pytest

from simfa.errors import LogError
from simfa.events import RECORD_DTYPE, Event
from simfa.hardware import load_preset
from simfa.instrument.log_stats import Span, durations, representatives, span_statistics
from simfa.instrument.synthetic import synthesize
from simfa.kernel import kernel_for
from simfa.workload import AttentionShape

SHAPE = AttentionShape(batch=1, seqlen_q=512, seqlen_kv=512, heads_q=2, heads_kv=2, head_dim=128)
PRESET = load_preset("h100-sxm")


def row(*records):
    """Return records of (timestamp, event)."""
    return np.array([(time, event, 0, 0, 0) for time, event in records], RECORD_DTYPE)


K_WAIT = Span("K wait", Event.WAIT_K_START, (Event.WAIT_K_END,))


def test_a_start_pairs_with_the_next_end():
    records = row((5, Event.WAIT_K_START), (9, Event.WAIT_K_END), (10, Event.WAIT_K_START), (30, Event.WAIT_K_END))
    assert durations(records, K_WAIT).tolist() == [4, 20]


def test_a_start_without_an_end_counts_for_nothing():
    records = row((1, Event.WAIT_K_START), (2, Event.WAIT_K_START), (7, Event.WAIT_K_END), (8, Event.WAIT_K_START))
    assert durations(records, K_WAIT).tolist() == [5]


def test_the_nearest_of_several_ends_is_taken():
    span = Span("QK", Event.GEMM_QK_ISSUE, (Event.WAIT_WG_1_END, Event.WAIT_WG_0_END))
    records = row(
        (1, Event.GEMM_QK_ISSUE), (4, Event.WAIT_WG_0_END), (6, Event.GEMM_QK_ISSUE), (9, Event.WAIT_WG_1_END)
    )
    assert durations(records, span).tolist() == [3, 3]


def test_intervals_run_from_one_event_to_the_same():
    span = Span("interval", Event.GEMM_QK_ISSUE, (Event.GEMM_QK_ISSUE,))
    records = row((1, Event.GEMM_QK_ISSUE), (4, Event.WAIT_WG_0), (6, Event.GEMM_QK_ISSUE), (13, Event.GEMM_QK_ISSUE))
    assert durations(records, span).tolist() == [5, 7]


def test_empty_rows_have_no_durations():
    assert durations(row(), K_WAIT).tolist() == []


def test_one_warp_stands_for_its_warpgroup():
    log = synthesize(SHAPE, kernel_for(SHAPE), PRESET, one_warp=False)
    rows = log.rows[representatives(log)]
    assert rows["warp"].tolist() == [0, 7, 11] * 8


def test_counts_are_those_of_the_kernel():
    # 4 query blocks x 2 heads = 8 tiles of 3 blocks (512 / 176).
    log = synthesize(SHAPE, kernel_for(SHAPE), PRESET, one_warp=False)
    counts = {(entry.role, entry.span): entry.count for entry in span_statistics(log)}
    assert counts[0, "K stage wait"] == counts[0, "V stage wait"] == 24
    assert counts[0, "query empty wait"] == counts[0, "O store wait"] == 8
    assert counts[1, "K wait"] == counts[1, "V wait"] == 24
    assert counts[2, "K wait"] == counts[2, "V wait"] == 8
    for role in (1, 2):
        assert counts[role, "QK"] == counts[role, "PV"] == counts[role, "softmax"] == 24
        assert counts[role, "ping-pong wait"] == 16
        assert counts[role, "tile"] == 8
    assert counts[2, "O store"] == 8
    assert (1, "O store") not in counts


def test_level_1_has_only_what_its_starts_allow():
    log = synthesize(SHAPE, kernel_for(SHAPE), PRESET, level=1)
    spans = {entry.span for entry in span_statistics(log)}
    assert spans == {
        "K load interval",
        "K wait and turn",
        "V wait",
        "QK issue to wait",
        "QK rest and softmax",
        "block interval",
    }


def test_quantiles_are_of_all_tiles():
    log = synthesize(SHAPE, kernel_for(SHAPE), PRESET)
    samples = np.concatenate(
        [durations(log.records(row), K_WAIT) for row in representatives(log) if log.rows["role"][row] == 1]
    )
    entry = next(entry for entry in span_statistics(log) if (entry.role, entry.span) == (1, "K wait"))
    ordered = np.sort(samples)
    assert entry.mean_cycles == pytest.approx(samples.sum() / len(samples))
    assert ordered[(len(ordered) - 1) // 2] <= entry.p50_cycles <= ordered[len(ordered) // 2]
    assert entry.p50_cycles <= entry.p95_cycles <= ordered[-1]


def test_time_that_goes_backwards_is_refused():
    log = synthesize(SHAPE, kernel_for(SHAPE), PRESET)
    untouched = log.records

    def records(row):
        copy = untouched(row)
        if row == 1:
            copy["timestamp"][10] = 0
        return copy

    log.records = records
    with pytest.raises(LogError, match="block 0 warp 7 record 10: the clock goes backwards"):
        span_statistics(log)
