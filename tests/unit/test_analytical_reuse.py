"""Closed-form reuse: passes of a persistent grid, edges, sawtooth, random replacement."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simfa.analytical.model import traffic
from simfa.analytical.reuse import (
    Reuse,
    fits,
    groups_in_flight,
    lockstep_passes,
    random_miss_ratio,
    refetched_bytes,
)
from simfa.errors import AnalyticalError
from simfa.hardware import load_preset
from tests.unit.analytical_cases import (
    GB10_BYTES,
    GB10_SMS,
    H800_BYTES,
    HOPPER_SMS,
    call,
    group,
    plain_kernel,
    repeatable,
    reuse,
)

reuses = st.builds(
    Reuse,
    groups=st.integers(1, 40),
    group_tiles=st.integers(1, 400),
    concurrent=st.integers(1, 300),
    kv_bytes=st.integers(1, 10**8),
    wave_bytes=st.integers(1, 10**7),
    l2_bytes=st.integers(1, 10**8),
)


@repeatable
@given(reuses)
def test_passes_are_the_pairs_of_waves_and_groups(sizes: Reuse) -> None:
    """Tiles in order fill waves; every (wave, group) pair is a pass, and neighbours of a repeated one are counted."""
    tiles = [group for group in range(sizes.groups) for _ in range(sizes.group_tiles)]
    waves = [set(tiles[start : start + sizes.concurrent]) for start in range(0, len(tiles), sizes.concurrent)]
    repeats = [(len(before) > 1) + (len(wave) > 1) for before, wave in itertools.pairwise(waves) for _ in before & wave]
    found = lockstep_passes(sizes)
    assert found.total == sum(map(len, waves))
    assert found.total - sizes.groups == len(repeats) == found.alone + found.beside + found.between
    if sizes.group_tiles >= sizes.concurrent:
        assert [found.alone, found.beside, found.between] == [repeats.count(others) for others in range(3)]


def test_a_boundary_inside_a_wave_costs_a_pass() -> None:
    # Eight heads of 512 tiles on 132 places: 4 waves each by Eq. 5, but seven boundaries fall inside waves.
    sizes = reuse(group(4096, 16, 8), plain_kernel(), HOPPER_SMS, H800_BYTES)
    assert (sizes.group_tiles, lockstep_passes(sizes).total) == (512, 32 + 7)
    aligned = sizes._replace(group_tiles=528)
    assert lockstep_passes(aligned).total == 8 * 4


def test_one_wave_reads_everything_once() -> None:
    sizes = reuse(group(65536, 1), plain_kernel(tile_m=512), HOPPER_SMS, 1)
    for policy in ("paper", "capacity", "random"):
        assert refetched_bytes(policy, sizes) == 0


@pytest.mark.parametrize(
    ("seqlen", "tile_m", "sm_count", "l2_bytes", "expected"),
    [
        (31744, 128, HOPPER_SMS, H800_BYTES, True),
        (32256, 128, HOPPER_SMS, H800_BYTES, False),
        (45056, 64, GB10_SMS, GB10_BYTES, True),
        (47104, 64, GB10_SMS, GB10_BYTES, False),
    ],
)
def test_the_waves_q_and_o_move_the_edge(
    seqlen: int, tile_m: int, sm_count: int, l2_bytes: int, expected: bool
) -> None:
    sizes = reuse(group(seqlen, 2), plain_kernel(tile_m), sm_count, l2_bytes)
    assert fits("paper", sizes)
    assert fits("capacity", sizes) is expected
    assert (refetched_bytes("capacity", sizes) == 0) is expected


def test_edges_by_hand() -> None:
    # K and V 512 B a row, Q and O of a wave 132 x 128 x 512 B = 8,650,752 B; (25e6 - 8650752) / 512 = 31,932.1
    for seqlen, expected in ((31932, True), (31933, False)):
        assert fits("capacity", reuse(group(seqlen, 16), plain_kernel(), HOPPER_SMS, H800_BYTES)) is expected


def test_groups_in_flight_share_l2() -> None:
    # 32 tiles a head: five heads run at once on 132 SMs, and K/V of five must fit beside the wave's Q and O.
    sizes = reuse(group(4096, 1, 8), plain_kernel(), HOPPER_SMS, 10 * 2**20 + 8_650_752)
    assert groups_in_flight(sizes) == 5
    assert not fits("capacity", sizes)
    assert fits("capacity", sizes._replace(l2_bytes=sizes.l2_bytes + 1))
    assert groups_in_flight(sizes._replace(groups=3)) == 3


def test_waves_with_two_groups_read_again_below_the_edge() -> None:
    # 405B at 24K: one head fits beside the wave, two do not.
    sizes = reuse(group(24576, 16, 8), plain_kernel(), HOPPER_SMS, 26_214_400)
    passes = lockstep_passes(sizes)
    short = 2 * sizes.kv_bytes + sizes.wave_bytes - sizes.l2_bytes
    assert fits("capacity", sizes) and 0 < short < sizes.kv_bytes
    assert refetched_bytes("capacity", sizes) == passes.beside * short
    assert refetched_bytes("capacity", sizes._replace(groups=1)) == 0


@repeatable
@given(reuses, st.integers(1, 10**7))
def test_more_capacity_or_less_kv_is_never_worse(sizes: Reuse, step: int) -> None:
    larger, longer = sizes._replace(l2_bytes=sizes.l2_bytes + step), sizes._replace(kv_bytes=sizes.kv_bytes + step)
    for policy in ("paper", "capacity", "random"):
        assert refetched_bytes(policy, larger) <= refetched_bytes(policy, sizes) <= refetched_bytes(policy, longer)
    assert refetched_bytes("capacity", larger, True) <= refetched_bytes("capacity", sizes, True)


@repeatable
@given(reuses)
def test_sawtooth_is_never_worse_and_all_stay_within_all_passes(sizes: Reuse) -> None:
    cyclic, sawtooth = refetched_bytes("capacity", sizes), refetched_bytes("capacity", sizes, sawtooth=True)
    everything = (lockstep_passes(sizes).total - sizes.groups) * sizes.kv_bytes
    assert 0 <= sawtooth <= cyclic <= everything
    assert 0 <= refetched_bytes("random", sizes) <= everything


def test_sawtooth_keeps_what_fits_at_each_turn() -> None:
    sizes = reuse(call(131072, heads_q=1, heads_kv=1, head_dim=64), plain_kernel(64), GB10_SMS, GB10_BYTES)
    turns = 43 - 1
    kept = GB10_BYTES - sizes.wave_bytes
    assert refetched_bytes("capacity", sizes, sawtooth=True) == turns * (sizes.kv_bytes - kept)


@pytest.mark.parametrize("pressure", [1.0001, 1.1, 2.0, 10.0])
def test_random_miss_ratio_is_the_root(pressure: float) -> None:
    miss = float(random_miss_ratio(pressure))
    assert 0 < miss < 1
    assert miss == pytest.approx(1 - math.exp(-miss * pressure), abs=1e-9)


def test_random_never_misses_what_fits() -> None:
    assert random_miss_ratio(np.array([0.1, 1.0, 2.0])).tolist() == [0, 0, pytest.approx(0.7968121, abs=1e-6)]


@repeatable
@given(st.lists(reuses, min_size=1, max_size=5), st.booleans())
def test_arrays_equal_scalars(rows: list[Reuse], sawtooth: bool) -> None:
    columns = Reuse(*(np.array(column) for column in zip(*rows, strict=True)))
    for policy in ("capacity",) if sawtooth else ("paper", "capacity", "random"):
        expected = [refetched_bytes(policy, row, sawtooth) for row in rows]
        assert refetched_bytes(policy, columns, sawtooth).tolist() == expected
        assert np.asarray(fits(policy, columns)).tolist() == [fits(policy, row) for row in rows]


@pytest.mark.parametrize("policy", ["paper", "capacity"])
def test_arrays_beyond_64_bits_are_exact(policy: str) -> None:
    huge = Reuse(2**40, 2**20, 132, 2**30, 2**20, 2**20)
    columns = Reuse(*(np.array([value]) for value in huge))
    assert refetched_bytes(policy, columns)[0] == refetched_bytes(policy, huge) > 2**63


def test_policies_without_a_closed_form_are_refused() -> None:
    sizes = reuse(group(4096, 1), plain_kernel(), HOPPER_SMS, H800_BYTES)
    with pytest.raises(AnalyticalError, match="'lru' has no closed form"):
        refetched_bytes("lru", sizes)
    with pytest.raises(AnalyticalError, match="knows no sawtooth order"):
        refetched_bytes("paper", sizes, sawtooth=True)


def test_capacities_are_preset_values_with_a_source() -> None:
    cases = {
        ("h800-sxm", "paper"): 25_000_000,
        ("h800-sxm-paper", "capacity"): 25_000_000,
        ("h800-sxm", "capacity"): 26_214_400,
        ("gb10", "paper"): 24 * 2**20,
        ("gb10", "capacity"): int(0.93 * 24 * 2**20),
    }
    for (gpu, policy), expected in cases.items():
        assert traffic(call(1024), gpu, policy).effective_l2_bytes == expected
    status = {gpu: load_preset(gpu).provenance["analytical.effective_l2_fraction"].status for gpu, _ in cases}
    assert status == {"h800-sxm": "microbenchmark", "h800-sxm-paper": "paper", "gb10": "calibrated"}


def test_gb10_takes_nothing_from_h100_unmarked() -> None:
    own, base = load_preset("gb10").provenance, load_preset("h100-sxm").provenance
    assert own.keys() == base.keys()
    assert not [path for path in base if own[path] == base[path] and base[path].status != "assumed"]


def test_larger_l2_moves_the_effective_capacity() -> None:
    preset = load_preset("h100-sxm", overrides=["l2.capacity_bytes=104857600"])
    assert traffic(call(1024), preset).effective_l2_bytes == 52_428_800
    assert traffic(call(1024), preset, "paper").effective_l2_bytes == 50_000_000
