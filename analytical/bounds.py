"""Lower bounds of latency: a roofline over tensor cores, exponentials (MUFU), L2 and DRAM, on top of the launch.

No kernel is faster than its busiest resource. Work is dealt in whole tiles, so the busiest SM counts, not the mean.
Amounts may be arrays.
"""

from typing import Any, NamedTuple

from simfa.analytical.attention import Attention
from simfa.analytical.equations import Real, Whole, ceil_quotient
from simfa.analytical.kernels import Kernel
from simfa.analytical.machine import Machine

RESOURCES = ("tensor", "mufu", "l2", "dram", "launch")


class Bounds(NamedTuple):
    """Microseconds that each resource needs by itself, in the order of `RESOURCES`."""

    tensor_us: Real
    mufu_us: Real
    l2_us: Real
    dram_us: Real
    launch_us: Real

    @property
    def latency_us(self) -> Real:
        """The bound: launch plus the largest of the others."""
        return self.launch_us + self._largest()

    @property
    def bound_by(self) -> Any:
        """Name of the largest term."""
        import numpy as np

        if not any(isinstance(value, np.ndarray) for value in self):
            return RESOURCES[self.index(max(self))]
        largest = np.argmax(np.stack(np.broadcast_arrays(*self)), axis=0)
        return np.asarray(RESOURCES)[largest]

    def _largest(self) -> Real:
        import numpy as np

        first, *others = self[:4]
        if not any(isinstance(value, np.ndarray) for value in self):
            return max(self[:4])
        for other in others:
            first = np.maximum(first, other)
        return first


def busiest_sm_scores(attention: Attention, kernel: Kernel, sm_count: int) -> Real:
    """Return scores (tile rows times K/V rows) that the busiest SM computes at least.

    Tiles of equal length are dealt round: ceil(tiles / SMs) of them. Under a mask an SM has at least the mean, and at
    least the longest tile. Rows past L in a tile are computed too; K/V rows count exactly.
    """
    per_sequence = kernel.kv_rows(attention)
    tiles = kernel.sequences(attention) * kernel.query_blocks(attention) * kernel.splits
    if not attention.causal:
        return equal_tile_scores(tiles, kernel.tile_m, attention.seqlen_kv / kernel.splits, sm_count)
    first, last = kernel.kv_range(attention, kernel.query_blocks(attention) - 1)
    mean = kernel.sequences(attention) * per_sequence / sm_count
    return kernel.tile_m * max(mean, (last - first) / kernel.splits)


def equal_tile_scores(tiles: Whole, tile_m: Whole, kv_rows: Real, sm_count: Whole) -> Real:
    """Return scores of the busiest of `sm_count` SMs that share `tiles` equal tiles."""
    return ceil_quotient(tiles, sm_count) * tile_m * kv_rows


def latency_bounds(
    machine: Machine, sm_scores: Real, flops_per_score: Whole, l2_request_bytes: Whole, dram_bytes: Whole
) -> Bounds:
    """Return the time of every resource; `sm_scores` are those of the busiest SM, one exponential each."""
    return Bounds(
        tensor_us=sm_scores * flops_per_score / machine.sm_flop_per_s * 1e6,
        mufu_us=sm_scores / machine.sm_exp_per_s * 1e6 if machine.sm_exp_per_s else 0.0 * sm_scores,
        l2_us=l2_request_bytes / machine.l2_bytes_per_s * 1e6,
        dram_us=dram_bytes / machine.dram_bytes_per_s * 1e6,
        launch_us=machine.launch_us,
    )
