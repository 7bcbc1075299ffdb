"""Equations 1-12 of arXiv:2605.00555, one function each, named by the quantity.

Sizes are Python integers or NumPy integer arrays (broadcast together); bytes and operations come back as exact
integers of the same kind. Where a result would leave 64 bits the arrays carry Python integers instead. Symbols:
B `batch`, L `seqlen_q`, S `seqlen_kv`, G `group_size`, H_KV `heads_kv`, D `head_dim`, P `element_bytes`, T_M `tile_m`
(query rows per CTA), N_SM `sm_count`, O_limit `ctas_per_sm`. Wrong sizes raise `AnalyticalError` with the name.
"""

import functools
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

import numpy as np

from simfa.errors import AnalyticalError

# An `int`, or an integer array. NumPy's arrays and Python's integers share no useful static type.
Whole: TypeAlias = Any
# A `float`, or a float array.
Real: TypeAlias = Any

_Function = TypeVar("_Function", bound=Callable[..., Whole])
_INT64_SAFE = 2.0**62


def whole_number(name: str, value: Whole) -> Whole:
    """Return `value` as positive integers, or raise `AnalyticalError` saying which size is wrong and how."""
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in "iuO":
            raise AnalyticalError(f"{name} has values of type {value.dtype}; expected whole numbers")
        if value.size and value.min() < 1:
            raise AnalyticalError(f"{name} is {value.min()} in one row; expected a positive whole number")
        return value
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise AnalyticalError(f"{name} is {value!r}; expected a positive whole number")
    if value < 1:
        raise AnalyticalError(f"{name} is {value}; expected a positive whole number")
    return int(value)


def exact(function: _Function) -> _Function:
    """Make an integer formula check its sizes and stay exact on arrays, whatever their magnitude.

    A float evaluation decides whether 64-bit arithmetic is enough; every intermediate of the formulas here is at most
    the result, because sizes are at least 1.
    """

    @functools.wraps(function)
    def wrapper(**sizes: Whole) -> Whole:
        sizes = {name: whole_number(name, value) for name, value in sizes.items()}
        if not any(isinstance(value, np.ndarray) for value in sizes.values()):
            return function(**sizes)
        estimate = function(**{name: np.asarray(value, dtype=np.float64) for name, value in sizes.items()})
        wide = bool(np.any(np.asarray(estimate) >= _INT64_SAFE))
        kind = object if wide else np.int64
        return function(**{name: np.asarray(value, dtype=kind) for name, value in sizes.items()})

    return wrapper  # type: ignore[return-value]


def ceil_quotient(dividend: Whole, divisor: Whole) -> Whole:
    """Return the quotient rounded up."""
    return -(-dividend // divisor)


@exact
def total_flops(
    *, batch: Whole, seqlen_q: Whole, seqlen_kv: Whole, group_size: Whole, heads_kv: Whole, head_dim: Whole
) -> Whole:
    """Eq. 1: floating-point operations of both products, 4 B H_KV G L S D."""
    return 4 * batch * heads_kv * group_size * seqlen_q * seqlen_kv * head_dim


@exact
def l2_bytes(
    *,
    batch: Whole,
    seqlen_q: Whole,
    seqlen_kv: Whole,
    group_size: Whole,
    heads_kv: Whole,
    head_dim: Whole,
    tile_m: Whole,
    element_bytes: Whole,
) -> Whole:
    """Eq. 2: bytes all CTAs ask of L2, P B H_KV G D (2 L + ceil(L / T_M) 2 S).

    Q and O count their L rows exactly (TMA does not fetch rows out of range); K/V are read once a query tile.
    """
    rows = 2 * seqlen_q + ceil_quotient(seqlen_q, tile_m) * 2 * seqlen_kv
    return element_bytes * batch * heads_kv * group_size * head_dim * rows


@exact
def dram_ideal_bytes(
    *,
    batch: Whole,
    seqlen_q: Whole,
    seqlen_kv: Whole,
    group_size: Whole,
    heads_kv: Whole,
    head_dim: Whole,
    element_bytes: Whole,
) -> Whole:
    """Eq. 3: DRAM bytes when every tensor moves once, P B D (2 H_KV G L + 2 H_KV S)."""
    return element_bytes * batch * head_dim * (2 * heads_kv * group_size * seqlen_q + 2 * heads_kv * seqlen_kv)


@exact
def kv_head_bytes(*, seqlen_kv: Whole, head_dim: Whole, element_bytes: Whole) -> Whole:
    """Right side of Eq. 4: bytes of one K and one V head, 2 P S D."""
    return 2 * element_bytes * seqlen_kv * head_dim


def l2_fits(*, l2_capacity_bytes: Whole, kv_bytes: Whole) -> Any:
    """Eq. 4: whether L2 holds one K and one V head. Strict: equality does not fit."""
    return l2_capacity_bytes > kv_bytes


@exact
def waves(*, seqlen_q: Whole, group_size: Whole, tile_m: Whole, sm_count: Whole, ctas_per_sm: Whole) -> Whole:
    """Eq. 5: passes over K/V that one group needs, ceil(G ceil(L / T_M) / (N_SM O_limit)), at least 1."""
    return ceil_quotient(group_size * ceil_quotient(seqlen_q, tile_m), sm_count * ctas_per_sm)


@exact
def dram_realistic_bytes(
    *,
    batch: Whole,
    seqlen_q: Whole,
    seqlen_kv: Whole,
    group_size: Whole,
    heads_kv: Whole,
    head_dim: Whole,
    tile_m: Whole,
    element_bytes: Whole,
    sm_count: Whole,
    ctas_per_sm: Whole,
) -> Whole:
    """Eq. 6: DRAM bytes when K/V are read again in every wave. Equals Eq. 3 whenever Eq. 5 gives one wave."""
    passes = ceil_quotient(group_size * ceil_quotient(seqlen_q, tile_m), sm_count * ctas_per_sm)
    base = 2 * element_bytes * batch * heads_kv * group_size * seqlen_q * head_dim
    return base + 2 * element_bytes * batch * heads_kv * seqlen_kv * head_dim * passes


def l2_to_dram_ratio(*, l2: Whole, dram: Whole) -> Real:
    """Eq. 7: L2 bytes over DRAM bytes. The paper divides by Eq. 6 whatever Eq. 4 says."""
    return l2 / dram


@exact
def _long_l2_numerator(
    *,
    batch: Whole,
    seqlen_q: Whole,
    seqlen_kv: Whole,
    group_size: Whole,
    heads_kv: Whole,
    head_dim: Whole,
    element_bytes: Whole,
) -> Whole:
    return 2 * element_bytes * batch * heads_kv * group_size * head_dim * seqlen_q * seqlen_kv


def l2_bytes_long(*, tile_m: Whole, **sizes: Whole) -> Real:
    """Eq. 8: Eq. 2 for long sequences, 2 P B H_KV G D (L / T_M) S, without Q, O and the ceiling."""
    return _long_l2_numerator(**sizes) / whole_number("tile_m", tile_m)


def dram_realistic_bytes_long(*, tile_m: Whole, sm_count: Whole, ctas_per_sm: Whole, **sizes: Whole) -> Real:
    """Eq. 9: Eq. 6 for long sequences, without Q, O and the ceiling; see `long_sequence`."""
    return l2_bytes_long(tile_m=tile_m, **sizes) / (
        whole_number("sm_count", sm_count) * whole_number("ctas_per_sm", ctas_per_sm)
    )


def l2_to_dram_ratio_long(*, sm_count: Whole, ctas_per_sm: Whole) -> Whole:
    """Eq. 10: the limit of Eq. 7, N_SM O_limit. Holds where `long_sequence` does."""
    return whole_number("sm_count", sm_count) * whole_number("ctas_per_sm", ctas_per_sm)


def long_sequence(*, wave_count: Whole, seqlen_q: Whole, seqlen_kv: Whole, group_size: Whole) -> Any:
    """Whether Eq. 9 and 10 are good to about 10 %: W >= 10 and K/V traffic W S >= 10 G L of Q and O.

    Both follow from Eq. 6: the ceiling adds at most 1 to W, and Q and O are to K/V as G L is to W S.
    """
    return (wave_count >= 10) & (wave_count * seqlen_kv >= 10 * group_size * seqlen_q)


def arithmetic_intensity(*, flops: Whole, l2: Whole) -> Real:
    """Eq. 11: FLOP per byte asked of L2."""
    return flops / l2


def arithmetic_intensity_long(*, tile_m: Whole, element_bytes: Whole) -> Real:
    """Eq. 12: the limit of Eq. 11, 2 T_M / P FLOP per byte."""
    return 2 * whole_number("tile_m", tile_m) / whole_number("element_bytes", element_bytes)
