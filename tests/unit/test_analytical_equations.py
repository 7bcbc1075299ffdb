"""Equations 1-12: hand-computed values, arrays, exactness, properties, bad sizes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simfa.analytical import equations as eq
from simfa.errors import AnalyticalError
from tests.unit.analytical_cases import repeatable

# Llama-3.1 405B at 16K on H800 with 128-row tiles, by hand: 128 query heads, 8 K/V heads, D 128, 2 bytes.
SHAPE = {"batch": 1, "seqlen_q": 16384, "seqlen_kv": 16384, "group_size": 16, "heads_kv": 8, "head_dim": 128}
BYTES = {"element_bytes": 2}
TILE = {"tile_m": 128}
PLACES = {"sm_count": 132, "ctas_per_sm": 1}

sizes = st.integers(1, 2000)
shapes = st.fixed_dictionaries(dict.fromkeys(SHAPE, sizes))


def test_eq_1_flops() -> None:
    assert eq.total_flops(**SHAPE) == 4 * 128 * 2**14 * 2**14 * 2**7 == 17_592_186_044_416


def test_eq_2_l2_bytes() -> None:
    # A head: 16384 rows of Q and O, and 128 tiles that read 16384 rows of K and V; 256 bytes a row.
    assert eq.l2_bytes(**SHAPE, **TILE, **BYTES) == 128 * 256 * (2 * 16384 + 128 * 2 * 16384)


def test_eq_2_counts_whole_tiles_of_kv_and_exact_rows_of_q() -> None:
    shape = SHAPE | {"seqlen_q": 129, "heads_kv": 1, "group_size": 1}
    assert eq.l2_bytes(**shape, **TILE, **BYTES) == 256 * (2 * 129 + 2 * 2 * 16384)


def test_eq_3_ideal_dram_bytes() -> None:
    assert eq.dram_ideal_bytes(**SHAPE, **BYTES) == 256 * 16384 * (2 * 128 + 2 * 8) == 1_140_850_688


def test_eq_4_is_strict() -> None:
    # 48K tokens on GB10: K and V of a head are exactly 24 MiB.
    head = eq.kv_head_bytes(seqlen_kv=49152, head_dim=128, element_bytes=2)
    assert head == 24 * 2**20
    assert not eq.l2_fits(l2_capacity_bytes=24 * 2**20, kv_bytes=head)
    assert eq.l2_fits(l2_capacity_bytes=24 * 2**20 + 1, kv_bytes=head)
    assert not eq.l2_fits(l2_capacity_bytes=25_000_000, kv_bytes=head)
    assert eq.l2_fits(l2_capacity_bytes=25 * 2**20, kv_bytes=head)


@pytest.mark.parametrize(
    ("seqlen", "tile_m", "sm_count", "expected"),
    [
        *((16384, 128, 132, 16), (32768, 128, 132, 32), (49152, 128, 132, 47), (65536, 128, 132, 63)),
        *((16384, 64, 48, 86), (32768, 64, 48, 171), (49152, 64, 48, 256), (65536, 64, 48, 342)),
    ],
)
def test_eq_5_waves(seqlen: int, tile_m: int, sm_count: int, expected: int) -> None:
    assert eq.waves(seqlen_q=seqlen, group_size=16, tile_m=tile_m, sm_count=sm_count, ctas_per_sm=1) == expected


@pytest.mark.parametrize(
    ("seqlen", "tile_m", "sm_count", "gigabytes"),
    [
        *((16384, 128, 132, 2.15), (32768, 128, 132, 6.44), (49152, 128, 132, 12.68), (65536, 128, 132, 21.21)),
        *((16384, 64, 48, 6.85), (32768, 64, 48, 25.10), (49152, 64, 48, 54.76), (65536, 64, 48, 96.10)),
    ],
)
def test_eq_6_realistic_dram_bytes(seqlen: int, tile_m: int, sm_count: int, gigabytes: float) -> None:
    shape = SHAPE | {"seqlen_q": seqlen, "seqlen_kv": seqlen}
    found = eq.dram_realistic_bytes(**shape, **BYTES, tile_m=tile_m, sm_count=sm_count, ctas_per_sm=1)
    assert found == 256 * seqlen * (2 * 128 + 2 * 8 * -(-16 * -(-seqlen // tile_m) // sm_count))
    assert round(found / 1e9, 2) == gigabytes


def test_eq_7_and_its_limit_at_16k() -> None:
    l2 = eq.l2_bytes(**SHAPE, **TILE, **BYTES)
    dram = eq.dram_realistic_bytes(**SHAPE, **TILE, **BYTES, **PLACES)
    assert eq.l2_to_dram_ratio(l2=l2, dram=dram) == pytest.approx(64.5, abs=0.1)
    assert eq.l2_to_dram_ratio_long(**PLACES) == 132
    # Q and O are as large as all passes over K/V here: Eq. 10 is off by two although S is far above L / W.
    assert not eq.long_sequence(wave_count=16, seqlen_q=16384, seqlen_kv=16384, group_size=16)


def test_eq_8_to_10_approach_eq_2_6_and_7() -> None:
    shape = SHAPE | {"seqlen_q": 2**20, "seqlen_kv": 2**20}
    assert eq.long_sequence(wave_count=993, seqlen_q=2**20, seqlen_kv=2**20, group_size=16)
    l2, dram = eq.l2_bytes(**shape, **TILE, **BYTES), eq.dram_realistic_bytes(**shape, **TILE, **BYTES, **PLACES)
    assert eq.l2_bytes_long(**shape, **TILE, **BYTES) == pytest.approx(l2, rel=0.001)
    assert eq.dram_realistic_bytes_long(**shape, **TILE, **BYTES, **PLACES) == pytest.approx(dram, rel=0.02)
    assert eq.l2_to_dram_ratio(l2=l2, dram=dram) == pytest.approx(132, rel=0.02)


@repeatable
@given(st.integers(1, 200), st.integers(1, 200_000), st.integers(1, 200_000), st.sampled_from([1, 2, 4, 8, 16, 64]))
def test_eq_10_is_good_to_ten_percent_where_it_says_so(
    places: int, seqlen_q: int, seqlen_kv: int, group_size: int
) -> None:
    shape = SHAPE | {"seqlen_q": seqlen_q, "seqlen_kv": seqlen_kv, "group_size": group_size}
    where = {"sm_count": places, "ctas_per_sm": 1}
    count = eq.waves(seqlen_q=seqlen_q, group_size=group_size, tile_m=128, **where)
    if eq.long_sequence(wave_count=count, seqlen_q=seqlen_q, seqlen_kv=seqlen_kv, group_size=group_size):
        l2 = eq.l2_bytes(**shape, **TILE, **BYTES)
        dram = eq.dram_realistic_bytes(**shape, **TILE, **BYTES, **where)
        assert places * 0.82 < eq.l2_to_dram_ratio(l2=l2, dram=dram) < places * 1.1


def test_eq_11_and_12_intensity() -> None:
    flops, l2 = eq.total_flops(**SHAPE), eq.l2_bytes(**SHAPE, **TILE, **BYTES)
    assert eq.arithmetic_intensity(flops=flops, l2=l2) == pytest.approx(127.0, abs=0.1)
    assert eq.arithmetic_intensity_long(tile_m=128, element_bytes=2) == 128


@repeatable
@given(shapes, st.integers(1, 256), st.integers(1, 4), st.integers(1, 200))
def test_arrays_equal_scalars(shape: dict[str, int], tile_m: int, element: int, sm_count: int) -> None:
    arguments = shape | {"tile_m": tile_m, "element_bytes": element, "sm_count": sm_count, "ctas_per_sm": 1}
    columns = {name: np.array([value, 1, 7]) for name, value in arguments.items()}
    found = eq.dram_realistic_bytes(**columns)
    assert found.dtype == np.int64
    rows = [{name: int(column[row]) for name, column in columns.items()} for row in range(3)]
    assert found.tolist() == [eq.dram_realistic_bytes(**row) for row in rows]


def test_integers_beyond_2_to_53_and_64_bits_stay_exact() -> None:
    odd = {"batch": 3, "seqlen_q": 2**20 + 1, "seqlen_kv": 2**20 + 3, "group_size": 7, "heads_kv": 5, "head_dim": 129}
    exact = 4 * 3 * (2**20 + 1) * (2**20 + 3) * 7 * 5 * 129
    assert exact > 2**53 and float(exact) != exact
    columns = {name: np.array([value]) for name, value in odd.items()}
    assert eq.total_flops(**odd) == eq.total_flops(**columns)[0] == exact
    huge = columns | {"seqlen_q": np.array([2**40 + 1])}
    found = eq.total_flops(**huge)
    assert found.dtype == object and found[0] == exact // (2**20 + 1) * (2**40 + 1) > 2**63


@repeatable
@given(shapes, st.integers(1, 256), st.integers(1, 4))
def test_one_wave_makes_eq_6_equal_eq_3(shape: dict[str, int], tile_m: int, element: int) -> None:
    places = {"sm_count": shape["group_size"] * shape["seqlen_q"], "ctas_per_sm": 1}
    ideal = eq.dram_ideal_bytes(**shape, element_bytes=element)
    assert eq.dram_realistic_bytes(**shape, tile_m=tile_m, element_bytes=element, **places) == ideal


@repeatable
@given(shapes, st.integers(1, 256), st.sampled_from(["seqlen_q", "seqlen_kv"]))
def test_longer_is_never_less(shape: dict[str, int], tile_m: int, field: str) -> None:
    longer = shape | {field: shape[field] + 1}
    extra = {"tile_m": tile_m, "element_bytes": 2}
    assert eq.total_flops(**longer) > eq.total_flops(**shape)
    assert eq.l2_bytes(**longer, **extra) > eq.l2_bytes(**shape, **extra)
    assert eq.dram_ideal_bytes(**longer, **BYTES) > eq.dram_ideal_bytes(**shape, **BYTES)
    real = eq.dram_realistic_bytes(**shape, **extra, **PLACES)
    assert real >= eq.dram_ideal_bytes(**shape, **BYTES)
    assert eq.dram_realistic_bytes(**longer, **extra, **PLACES) > real


@pytest.mark.parametrize("value", [0, -1, 1.5, 64.0, float("nan"), True, "8", None])
def test_scalars_that_are_no_sizes_are_named(value: object) -> None:
    with pytest.raises(AnalyticalError, match=r"seqlen_q is .*; expected a positive whole number"):
        eq.total_flops(**SHAPE | {"seqlen_q": value})


@pytest.mark.parametrize("column", [np.array([1.0, 2.0]), np.array([1, np.nan]), np.array([3, 0]), np.array([-1])])
def test_arrays_that_are_no_sizes_are_named(column: np.ndarray) -> None:
    with pytest.raises(AnalyticalError, match="head_dim"):
        eq.kv_head_bytes(seqlen_kv=np.array([5]), head_dim=column, element_bytes=2)
