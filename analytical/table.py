"""The model over columns: many plain calls at once, exact integers, one array operation a quantity."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from simfa.analytical import equations as eq
from simfa.analytical.attention import Attention
from simfa.analytical.bounds import equal_tile_scores, latency_bounds
from simfa.analytical.kernels import Kernel
from simfa.analytical.lru import simulate_lru
from simfa.analytical.machine import Machine
from simfa.analytical.policies import POLICIES
from simfa.analytical.reuse import Reuse, fits, refetched_bytes
from simfa.errors import AnalyticalError

Column = npt.NDArray[Any]

SHAPE_COLUMNS = ("batch", "seqlen_q", "seqlen_kv", "group_size", "num_kv_heads", "head_dim")
HEAD_COLUMNS = ("heads_q", "heads_kv")  # instead of group_size and num_kv_heads
OPTIONAL_COLUMNS = ("tile_m", "element_bytes", "num_sms", "max_ctas_per_sm", "effective_l2_bytes")
INPUT_COLUMNS = (*SHAPE_COLUMNS, *HEAD_COLUMNS, *OPTIONAL_COLUMNS)
OUTPUT_COLUMNS = (
    "flops",
    "l2_bytes",
    "dram_ideal_bytes",
    "kv_head_bytes",
    "l2_fits",
    "waves",
    "dram_realistic_bytes",
    "dram_bytes",
    "regime",
    "l2_to_dram_ratio",
    "l2_to_dram_ratio_regime",
    "arithmetic_intensity",
    "latency_bound_us",
    "bound_by",
)


def missing_columns(given: set[str]) -> list[str]:
    """Return the shape columns that a table with columns `given` lacks."""
    heads = HEAD_COLUMNS if given & set(HEAD_COLUMNS) else ("group_size", "num_kv_heads")
    needed = [name for name in SHAPE_COLUMNS if name not in ("group_size", "num_kv_heads")]
    return [name for name in (*needed, *heads) if name not in given]


def evaluate(columns: Mapping[str, Column], machine: Machine, policy: str) -> dict[str, Column]:
    """Return `OUTPUT_COLUMNS` for integer arrays of equal length; missing optional columns come from `machine`.

    Calls are plain (no mask) and the kernel has no cluster. `policy` as in `traffic`; `lru` simulates each distinct
    row. Raises `AnalyticalError` for non-positive or non-integer sizes.
    """
    if policy not in POLICIES:
        raise AnalyticalError(f"policy {policy!r} is unknown; expected one of {', '.join(POLICIES)}")
    sizes = with_defaults(columns, machine, policy)
    shape = {
        "batch": sizes["batch"],
        "seqlen_q": sizes["seqlen_q"],
        "seqlen_kv": sizes["seqlen_kv"],
        "group_size": sizes["group_size"],
        "heads_kv": sizes["num_kv_heads"],
        "head_dim": sizes["head_dim"],
    }
    tile_m, element = sizes["tile_m"], sizes["element_bytes"]
    places = {"sm_count": sizes["num_sms"], "ctas_per_sm": sizes["max_ctas_per_sm"]}
    flops = eq.total_flops(**shape)
    l2 = eq.l2_bytes(**shape, tile_m=tile_m, element_bytes=element)
    ideal = eq.dram_ideal_bytes(**shape, element_bytes=element)
    kv_head = eq.kv_head_bytes(seqlen_kv=shape["seqlen_kv"], head_dim=shape["head_dim"], element_bytes=element)
    wave_count = eq.waves(seqlen_q=shape["seqlen_q"], group_size=shape["group_size"], tile_m=tile_m, **places)
    realistic = eq.dram_realistic_bytes(**shape, tile_m=tile_m, element_bytes=element, **places)
    reuse = _reuse(sizes, kv_head)
    refetched = _lru(sizes, reuse) if policy == "lru" else refetched_bytes(policy, reuse)
    dram = ideal + refetched
    fitting = fits(policy, reuse)
    tiles = reuse.groups * reuse.group_tiles
    bounds = latency_bounds(
        machine,
        equal_tile_scores(tiles, tile_m, shape["seqlen_kv"], sizes["num_sms"]).astype(np.float64),
        4 * shape["head_dim"],
        l2.astype(np.float64),
        dram.astype(np.float64),
    )
    return {
        "flops": flops,
        "l2_bytes": l2,
        "dram_ideal_bytes": ideal,
        "kv_head_bytes": kv_head,
        "l2_fits": np.where(fitting, "true", "false"),
        "waves": wave_count,
        "dram_realistic_bytes": realistic,
        "dram_bytes": dram,
        "regime": _regimes(policy, fitting, refetched),
        "l2_to_dram_ratio": eq.l2_to_dram_ratio(l2=l2, dram=realistic).astype(np.float64),
        "l2_to_dram_ratio_regime": eq.l2_to_dram_ratio(l2=l2, dram=dram).astype(np.float64),
        "arithmetic_intensity": eq.arithmetic_intensity(flops=flops, l2=l2).astype(np.float64),
        "latency_bound_us": bounds.latency_us,
        "bound_by": bounds.bound_by,
    }


def with_defaults(columns: Mapping[str, Column], machine: Machine, policy: str) -> dict[str, Column]:
    """Return all input columns: heads as group size and K/V heads, and what was missing from the machine."""
    lacking = missing_columns(set(columns))
    if lacking:
        raise AnalyticalError(f"column {lacking[0]} is missing; expected {', '.join(SHAPE_COLUMNS)}")
    sizes = {name: eq.whole_number(name, np.asarray(column)) for name, column in columns.items()}
    if "heads_q" in sizes:
        uneven = np.flatnonzero(sizes["heads_q"] % sizes["heads_kv"])
        if uneven.size:
            row = int(uneven[0])
            raise AnalyticalError(
                f"row {row}: heads_q {sizes['heads_q'][row]} is not a multiple of heads_kv {sizes['heads_kv'][row]}"
            )
        sizes["group_size"], sizes["num_kv_heads"] = sizes["heads_q"] // sizes["heads_kv"], sizes["heads_kv"]
    defaults = {
        "element_bytes": 2,
        "num_sms": machine.sm_count,
        "max_ctas_per_sm": 1,
        "effective_l2_bytes": machine.capacity(policy),
    }
    like = sizes["batch"]
    for name, value in defaults.items():
        sizes.setdefault(name, np.full(like.shape, value, dtype=np.int64))
    if "tile_m" not in sizes:
        sizes["tile_m"] = _default_tiles(sizes["head_dim"], machine)
    return sizes


def default_tile(head_dim: int, machine: Machine) -> int | None:
    """Return the query tile that the preset's kernel uses for a head dimension, or nothing where it has none."""
    call = Attention(batch=1, seqlen_q=1, seqlen_kv=1, heads_q=1, heads_kv=1, head_dim=head_dim, value_dim=head_dim)
    try:
        return machine.default_kernel(call).tile_m
    except AnalyticalError:
        return None


def _default_tiles(head_dim: Column, machine: Machine) -> Column:
    dims, where = np.unique(head_dim, return_inverse=True)
    tiles = [default_tile(dim, machine) for dim in dims.tolist()]
    if None in tiles:
        dim = dims[tiles.index(None)]
        raise AnalyticalError(f"head_dim {dim} has no tile in kernel {machine.kernel}; add a column tile_m")
    return np.asarray(tiles, dtype=np.int64)[where].reshape(head_dim.shape)


def _reuse(sizes: Mapping[str, Column], kv_head: Column) -> Reuse:
    groups = sizes["batch"] * sizes["num_kv_heads"]
    tiles = sizes["group_size"] * eq.ceil_quotient(sizes["seqlen_q"], sizes["tile_m"])
    places = sizes["num_sms"] * sizes["max_ctas_per_sm"]
    tile_bytes = 2 * sizes["element_bytes"] * sizes["tile_m"] * sizes["head_dim"]
    return Reuse(
        groups=groups,
        group_tiles=tiles,
        concurrent=places,
        kv_bytes=kv_head,
        wave_bytes=np.minimum(places, groups * tiles) * tile_bytes,
        l2_bytes=sizes["effective_l2_bytes"],
    )


def _regimes(policy: str, fitting: Column, refetched: Column) -> Column:
    if policy == "paper":
        return np.where(fitting, "ideal", "realistic")
    return np.where(refetched == 0, "ideal", np.where(fitting, "partial", "realistic"))


def _lru(sizes: Mapping[str, Column], reuse: Reuse) -> Column:
    """Simulate each distinct row once."""
    names = (*SHAPE_COLUMNS, *OPTIONAL_COLUMNS)
    known: dict[tuple[int, ...], int] = {}
    refetched = []
    for row in zip(*(sizes[name].tolist() for name in names), strict=True):
        if row not in known:
            known[row] = _lru_row(dict(zip(names, row, strict=True)))
        refetched.append(known[row])
    return np.asarray(refetched, dtype=reuse.kv_bytes.dtype)


def _lru_row(row: Mapping[str, int]) -> int:
    call = Attention(
        batch=row["batch"],
        seqlen_q=row["seqlen_q"],
        seqlen_kv=row["seqlen_kv"],
        heads_q=row["group_size"] * row["num_kv_heads"],
        heads_kv=row["num_kv_heads"],
        head_dim=row["head_dim"],
        value_dim=row["head_dim"],
        qk_bytes=row["element_bytes"],
        v_bytes=row["element_bytes"],
        o_bytes=row["element_bytes"],
    )
    kernel = Kernel(name="table", tile_m=row["tile_m"], tile_n=1, ctas_per_sm=row["max_ctas_per_sm"])
    return simulate_lru(call, kernel, row["effective_l2_bytes"], row["num_sms"]).refetched_bytes
