"""Latency bounds: by hand, and never above a measured latency."""

import statistics

import pytest

from simfa.analytical import traffic
from simfa.analytical.attention import Attention
from simfa.analytical.machine import resolve
from simfa.hardware import load_preset
from tests.unit.analytical_cases import call, plain_kernel, readings


def test_terms_by_hand() -> None:
    """16 heads of 4096 rows, tiles of 128: 512 tiles, so four on the busiest of 132 SMs."""
    answer = traffic(call(4096, heads_q=16, heads_kv=16), "h100-sxm")
    scores = 4 * 128 * 4096
    assert answer.bounds.tensor_us == pytest.approx(scores * 4 * 128 / 4096 / 1830)
    assert answer.bounds.mufu_us == pytest.approx(scores / 16 / 1830)
    requests = 16 * (2 * 4096 * 256 + 32 * 4096 * 512 // 2)  # K/V once for a cluster of two
    assert answer.bounds.l2_us == pytest.approx(requests / (80 * 64) / 1830)
    assert answer.bounds.dram_us == pytest.approx(16 * 4 * 4096 * 256 / 3.352e6)
    assert answer.bounds.launch_us == 3.67
    assert answer.latency_bound_us == pytest.approx(3.67 + answer.bounds.tensor_us)
    assert answer.bound_by == "tensor"


@pytest.mark.parametrize(
    ("attention", "changes", "expected"),
    [
        (call(4096), [], "tensor"),
        (call(4096), ["cuda_core.exp_per_cycle=2"], "mufu"),
        (call(4096), ["l2.bytes_per_cycle_per_slice=4"], "l2"),
        (call(4096, seqlen_q=1, batch=64), [], "dram"),
        (call(64), [], "launch"),
    ],
)
def test_the_largest_term_binds(attention: Attention, changes: list[str], expected: str) -> None:
    answer = traffic(attention, load_preset("h100-sxm", overrides=changes))
    assert answer.bound_by == expected
    assert answer.latency_bound_us >= max(answer.bounds)


def test_exponentials_at_rate_zero_are_hidden() -> None:
    answer = traffic(call(4096), load_preset("h100-sxm", overrides=["cuda_core.exp_per_cycle=0"]))
    assert answer.bounds.mufu_us == 0


def test_whole_tiles_are_dealt() -> None:
    """132 tiles take one turn, 133 take two."""
    kernel = plain_kernel(128, 128)
    one, two = (traffic(call(128, heads_q=heads, heads_kv=heads), kernel=kernel) for heads in (132, 133))
    assert two.bounds.tensor_us == pytest.approx(2 * one.bounds.tensor_us)


def test_a_mask_needs_at_least_the_mean_and_the_longest_tile() -> None:
    few = traffic(call(8192, heads_q=1, heads_kv=1, causal=True))
    assert few.bounds.tensor_us == pytest.approx(128 * 8192 * 4 * 128 / 4096 / 1830)
    many = traffic(call(8192, heads_q=64, heads_kv=64, causal=True))
    mean = 64 * 128 * sum(128 * (block + 1) for block in range(64)) / 132
    assert many.bounds.tensor_us == pytest.approx(mean * 4 * 128 / 4096 / 1830)


@pytest.fixture(scope="module")
def bound_shares() -> list[float]:
    """Bound over measured latency of every serving row, at the boost clock that no part exceeds."""
    boost = resolve(load_preset("h100-sxm", overrides=["gpu.sm_clock_hz=1.98e9"]))
    shares = []
    for row in readings("fa3_latency_h100_serving.csv"):
        length, dim = int(row["seqlen"]), int(row["head_dim"])
        answer = traffic(
            Attention(
                batch=int(row["batch"]),
                seqlen_q=length,
                seqlen_kv=length,
                heads_q=int(row["heads_q"]),
                heads_kv=int(row["heads_kv"]),
                head_dim=dim,
                value_dim=dim,
                causal=row["causal"] == "1",
            ),
            boost,
        )
        shares.append(answer.latency_bound_us / 1e3 / float(row["latency_ms"]))
    return shares


def test_never_above_a_measured_latency(bound_shares: list[float]) -> None:
    assert len(bound_shares) == 763
    assert max(bound_shares) < 1


def test_close_enough_to_be_useful(bound_shares: list[float]) -> None:
    assert statistics.median(bound_shares) >= 0.42


def test_a_doubled_bound_is_caught(bound_shares: list[float]) -> None:
    assert max(2 * share for share in bound_shares) > 1


def test_clock_scales_sm_terms_only() -> None:
    slow, fast = (
        traffic(call(4096), load_preset("h100-sxm", overrides=[f"gpu.sm_clock_hz={hz}"])) for hz in (1e9, 2e9)
    )
    assert slow.bounds.tensor_us == pytest.approx(2 * fast.bounds.tensor_us)
    assert (slow.bounds.dram_us, slow.bounds.launch_us) == (fast.bounds.dram_us, fast.bounds.launch_us)
