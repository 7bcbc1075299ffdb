"""Counters that explain: their figures over several runs, and the sentence that cites them."""

import pytest

from simfa.explaining import COUNTERS, Observation, explain
from simfa.hardware import load_preset
from simfa.pipeline import predict
from simfa.workload import AttentionShape, model_shape

MEANS = {"wait_v": "waiting for V", "softmax": "computing softmax", "drain": "draining"}
SMALL = AttentionShape(batch=1, seqlen_q=256, seqlen_kv=352, heads_q=2, heads_kv=1, head_dim=128)


def observation(cycles: int, counters: dict[str, int], pipe: dict[str, int]) -> Observation:
    return Observation(cycles, counters, {"tensor_pipe": pipe}, sms=4, slices=2)


BEFORE = observation(
    100, {"tiles": 2, "requests": 20, "l2_read_requests": 20}, {"busy": 300, "wait_v": 60, "drain": 40}
)
AFTER = observation(
    200, {"tiles": 2, "requests": 80, "l2_read_requests": 20}, {"busy": 300, "wait_v": 460, "drain": 40}
)


def test_figures_add_up_over_runs_before_they_are_divided() -> None:
    other = observation(1, {"tiles": 8, "requests": 0}, {})
    assert COUNTERS["requests"].value([BEFORE, other]) == 20 / 10
    assert COUNTERS["requests"].value([observation(1, {"tiles": 0, "requests": 0}, {})]) is None
    peaked = {"slice_requests_peak": 30, "l2_read_requests": 35, "l2_write_requests": 5}
    assert COUNTERS["slice_imbalance"].value([observation(1, peaked, {})]) == 30 * 2 / 40


def test_sentence_cites_the_counter_that_changed_and_the_reason_that_grew() -> None:
    found = explain([BEFORE], [AFTER], ["l2_reads", "requests"], MEANS)
    assert found.sentence == (
        "line requests of the TMA engines for a tile: 10 -> 40 [counters.requests / tiles]; "
        "tensor pipe idle, its warpgroup waiting for V: 15.0% -> 57.5% [stall_cycles.tensor_pipe.wait_v]"
    )
    assert (found.counter, found.before, found.after) == ("counters.requests / tiles", 10, 40)


def test_savings_cite_the_reason_that_shrank() -> None:
    found = explain([AFTER], [BEFORE], [], MEANS)
    assert (
        found.sentence
        == "tensor pipe idle, its warpgroup waiting for V: 57.5% -> 15.0% [stall_cycles.tensor_pipe.wait_v]"
    )
    assert (found.counter, found.before, found.after) == ("stall_cycles.tensor_pipe.wait_v", 0.575, 0.15)


def test_no_effect_says_so_beside_the_counter() -> None:
    found = explain([BEFORE], [BEFORE], ["requests"], MEANS)
    unchanged = "line requests of the TMA engines for a tile: 10 unchanged [counters.requests / tiles]"
    assert found.sentence == f"no effect; {unchanged}"
    assert explain([BEFORE], [BEFORE], [], MEANS).sentence == "no effect"


def test_every_counter_is_one_that_the_engine_counts() -> None:
    for overlays in ([], ["ideal-memory"]):
        preset = load_preset("h100-sxm", overlays)
        result = predict(SMALL, preset).to_json()
        run = Observation(
            result["cycles"],
            result["counters"],
            result["stall_cycles"],
            preset.spec.gpu.sm_count,
            preset.spec.l2.slices,
        )
        values = {name: counter.value([run]) for name, counter in COUNTERS.items()}
        for name in ("tma_limit", "load_wait", "cuda_contention", "mshr_blocked"):
            assert values[name] is not None and 0 <= values[name] <= 1, name


def test_busiest_slice_lies_between_the_mean_and_all() -> None:
    shape = model_shape("llama3-8b", 256)
    for overlay in ("xor", "modulo", "strong"):
        counters = predict(shape, load_preset("h100-sxm", overrides=[f"l2.hash={overlay}"])).counters
        requests = counters["l2_read_requests"] + counters["l2_write_requests"]
        assert requests / 80 <= counters["slice_requests_peak"] <= requests
    # Two slices, and every line an even one: all requests meet at one of the two.
    one_sided = ["l2.hash=modulo", "l2.slices=2", "l2.capacity_bytes=5242880"]
    rows = AttentionShape(batch=1, seqlen_q=128, seqlen_kv=176, heads_q=2, heads_kv=2, head_dim=64)
    counters = predict(rows, load_preset("h100-sxm", overrides=one_sided)).counters
    assert counters["slice_requests_peak"] * 2 == pytest.approx(
        counters["l2_read_requests"] + counters["l2_write_requests"], rel=0.2
    )
