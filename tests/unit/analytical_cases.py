"""Calls, kernels and published readings that the tests of the analytical model share."""

import csv
from pathlib import Path

from hypothesis import settings

from simfa.analytical.attention import Attention
from simfa.analytical.kernels import Kernel
from simfa.analytical.model import reuse_of
from simfa.analytical.reuse import Reuse

ROOT = Path(__file__).parents[2]

# Repeatable, and independent of how busy the machine is.
repeatable = settings(derandomize=True, deadline=None, max_examples=60)

H800_BYTES = 25_000_000  # the paper's effective L2
GB10_BYTES = 24 * 2**20
GB10_SMS = 48
HOPPER_SMS = 132


def call(
    seqlen: int, *, heads_q: int = 8, heads_kv: int = 8, head_dim: int = 128, batch: int = 1, **changes: object
) -> Attention:
    """Return a square call; `changes` are fields of `Attention`."""
    fields: dict[str, object] = {
        "batch": batch,
        "seqlen_q": seqlen,
        "seqlen_kv": seqlen,
        "heads_q": heads_q,
        "heads_kv": heads_kv,
        "head_dim": head_dim,
        "value_dim": head_dim,
    }
    return Attention(**(fields | changes))


def group(seqlen: int, group_size: int, groups: int = 1) -> Attention:
    """Return a call of `groups` K/V heads with `group_size` query heads each."""
    return call(seqlen, heads_q=groups * group_size, heads_kv=groups)


def plain_kernel(tile_m: int = 128, tile_n: int = 128, **changes: object) -> Kernel:
    """Return a kernel with a given tile."""
    return Kernel(**({"name": "test", "tile_m": tile_m, "tile_n": tile_n} | changes))


def reuse(attention: Attention, kernel: Kernel, sm_count: int, l2_bytes: int) -> Reuse:
    """Return the reuse amounts of a call."""
    return reuse_of(attention, kernel, sm_count, l2_bytes)


def readings(file: str) -> list[dict[str, str]]:
    """Return the rows of a file in `data/measured`."""
    with (ROOT / "data/measured" / file).open(encoding="utf-8", newline="") as handle:
        return list(csv.DictReader(handle))


def counter(kernel: str, metric: str) -> dict[str, str]:
    """Return the one published counter reading of a kernel (part of its name) and metric."""
    found = [row for row in readings("traffic_measured.csv") if kernel in row["kernel"] and row["metric"] == metric]
    assert len(found) == 1, (kernel, metric, len(found))
    return found[0]


def shape_of(row: dict[str, str], **changes: object) -> Attention:
    """Return the call of a counter reading."""
    sizes = {name: int(row[name]) for name in ("batch", "seqlen_q", "seqlen_kv", "heads_q", "heads_kv", "head_dim")}
    return Attention(**(sizes | {"value_dim": sizes["head_dim"], "causal": row["mask"] == "causal"} | changes))
