"""Causal and windowed reuse: sections, prefixes, agreement with the simulated cache."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simfa.analytical import traffic
from simfa.analytical.kernels import fa3_kernel
from simfa.analytical.lru import simulate_lru
from simfa.analytical.masked import masked_refetched_bytes, section_widths, wave_extents
from simfa.errors import AnalyticalError
from tests.unit.analytical_cases import HOPPER_SMS, call, plain_kernel, repeatable

HALF_L2 = 26_214_400


def test_sections_are_powers_of_two_within_32_mib() -> None:
    # 8K tokens, D 128: 4 MiB a K/V head, so eight heads a section; six are left over of fourteen.
    attention = call(8192, heads_q=56, heads_kv=14, causal=True)
    assert section_widths(attention, fa3_kernel(attention)) == [(8, 1), (6, 1)]
    # 24K tokens: 12 MiB a head, so two; 128K: 64 MiB, so one.
    assert section_widths(call(24576, causal=True), fa3_kernel(call(24576, causal=True))) == [(2, 4)]
    assert section_widths(call(131072, causal=True), fa3_kernel(call(131072, causal=True))) == [(1, 8)]


def test_waves_read_shrinking_prefixes() -> None:
    attention = call(8192, heads_q=32, causal=True)  # 64 query blocks of 32 heads: 132 places hold four blocks
    extents = wave_extents(attention, fa3_kernel(attention), 8, HOPPER_SMS)
    assert len(extents) == -(-64 * 32 // HOPPER_SMS) == 16
    assert [extent.last for extent in extents[:3]] == [8192, 8192 - 4 * 128, 8192 - 8 * 128]
    assert {extent.groups for extent in extents} == {8}


def test_refetched_prefixes_by_hand() -> None:
    """One head at 128K and 132 places: 64 MiB never fit until the prefix is short; every pass reads its prefix."""
    attention = call(131072, heads_q=16, heads_kv=1, causal=True)
    kernel = fa3_kernel(attention)
    room = HALF_L2 - HOPPER_SMS * 128 * 512
    tiles = [block for block in reversed(range(1024)) for _ in range(16)]
    longest = [128 * (tiles[start] + 1) for start in range(0, len(tiles), HOPPER_SMS)]
    expected = sum(rows * 512 for rows in longest[1:] if rows * 512 >= room)
    found = masked_refetched_bytes("capacity", attention, kernel, HOPPER_SMS, HALF_L2)
    assert found == expected
    whole = (len(longest) - 1) * attention.kv_group_bytes
    assert 0.4 < found / whole < 0.6  # about half of what the full mask reads


@pytest.mark.parametrize("group_size", [1, 4, 16])
@pytest.mark.parametrize("seqlen", [4096, 8192, 24576, 40960, 65536, 131072])
def test_capacity_agrees_with_the_simulated_cache(group_size: int, seqlen: int) -> None:
    attention = call(seqlen, heads_q=8 * group_size, causal=True)
    kernel = fa3_kernel(attention)
    ideal = attention.q_bytes + attention.kv_bytes + attention.output_bytes
    closed = ideal + masked_refetched_bytes("capacity", attention, kernel, HOPPER_SMS, HALF_L2)
    simulated = ideal + simulate_lru(attention, kernel, HALF_L2, HOPPER_SMS).refetched_bytes
    assert simulated == pytest.approx(closed, rel=0.08)
    if seqlen == 4096:
        assert simulated == closed == ideal


@pytest.mark.parametrize("window", [511, 4095])
def test_a_window_is_read_once(window: int) -> None:
    attention = call(65536, heads_q=64, causal=True, window=window)
    kernel = fa3_kernel(attention)
    for policy in ("capacity", "random"):
        assert masked_refetched_bytes(policy, attention, kernel, HOPPER_SMS, HALF_L2) == 0
    simulated = simulate_lru(attention, kernel, HALF_L2, HOPPER_SMS).refetched_bytes
    assert simulated < 0.01 * attention.kv_bytes


def test_a_window_wider_than_l2_is_read_again() -> None:
    attention = call(262144, heads_q=64, causal=True, window=100_000)
    kernel = fa3_kernel(attention)
    assert masked_refetched_bytes("capacity", attention, kernel, HOPPER_SMS, HALF_L2) > attention.kv_bytes
    assert simulate_lru(attention, kernel, HALF_L2, HOPPER_SMS).refetched_bytes > attention.kv_bytes


@repeatable
@given(st.integers(1, 40_000), st.integers(1, 16), st.integers(1, 8), st.integers(10**6, 10**8), st.integers(0, 10**8))
def test_more_capacity_is_never_worse(seqlen: int, group_size: int, heads: int, l2_bytes: int, step: int) -> None:
    attention = call(seqlen, heads_q=heads * group_size, heads_kv=heads, causal=True)
    kernel = fa3_kernel(attention)
    for policy in ("capacity", "random"):
        smaller, larger = (
            masked_refetched_bytes(policy, attention, kernel, HOPPER_SMS, size) for size in (l2_bytes, l2_bytes + step)
        )
        assert 0 <= larger <= smaller


def test_masking_never_reads_more_from_l2() -> None:
    for seqlen in (1000, 4096, 30000):
        full, causal = traffic(call(seqlen)), traffic(call(seqlen, causal=True))
        assert causal.l2_bytes < full.l2_bytes and causal.flops < full.flops


def test_one_tile_a_cta_has_no_closed_form_beyond_l2() -> None:
    attention, kernel = call(65536, heads_q=32, causal=True), plain_kernel(schedule="single_tile")
    assert masked_refetched_bytes("capacity", call(2048, causal=True), kernel, HOPPER_SMS, HALF_L2) == 0
    with pytest.raises(AnalyticalError, match="no closed form for a mask in single_tile order"):
        masked_refetched_bytes("capacity", attention, kernel, HOPPER_SMS, HALF_L2)
    assert traffic(attention, policy="lru", kernel=kernel).dram_bytes > traffic(attention).dram_bytes


def test_equations_1_to_12_have_no_mask() -> None:
    attention = call(4096, causal=True)
    with pytest.raises(AnalyticalError, match="no causal mask"):
        masked_refetched_bytes("paper", attention, fa3_kernel(attention), HOPPER_SMS, HALF_L2)
    answer = traffic(attention)
    assert answer.dram_realistic_bytes is None and answer.l2_to_dram_ratio is None and answer.kv_passes is None
