"""The tensor pipe of one SM, and the WGMMA groups of one role."""

from typing import NamedTuple

from simfa.hardware import TensorCore
from simfa.isa import Wgmma


class Timing(NamedTuple):
    """One WGMMA in the pipe: cycle at which it leaves the pipe, and cycle at which its result is there."""

    end: int
    done: int


class TensorPipe:
    """A FIFO pipe; `pipe_free` is the cycle from which it can take the next WGMMA."""

    def __init__(self, spec: TensorCore) -> None:
        """Start empty."""
        self.spec = spec
        self.pipe_free = 0
        self.ends: list[int] = []

    def occupancy(self, cycle: int) -> int:
        """Return how many issued WGMMAs have not ended by `cycle`."""
        return sum(end > cycle for end in self.ends)

    def has_room(self, wgmma: Wgmma, cycle: int) -> bool:
        """Return whether the window of the WGMMA's own mode admits one more."""
        window = self.spec.wgmma_window_ss if wgmma.mode == "SS" else self.spec.wgmma_window_rs
        return self.occupancy(cycle) < window

    def next_end(self, cycle: int) -> int | None:
        """Return the first cycle after `cycle` at which a WGMMA ends."""
        return min((end for end in self.ends if end > cycle), default=None)

    def issue(self, wgmma: Wgmma, cycle: int) -> Timing:
        """Put one WGMMA into the pipe."""
        spec = self.spec
        busy = -(-2 * wgmma.m * wgmma.n * wgmma.k // spec.flop_per_cycle) + spec.wgmma_overhead_cycles
        duration = max(spec.wgmma_min_cycles, busy)
        end = max(cycle, self.pipe_free) + duration
        self.pipe_free = end
        self.ends = [other for other in self.ends if other > cycle] + [end]
        return Timing(end, end + (spec.wgmma_tail_ss_cycles if wgmma.mode == "SS" else spec.wgmma_tail_rs_cycles))

    def drain(self, group: list[Timing]) -> None:
        """Keep the pipe idle behind a committed group."""
        if group:
            self.pipe_free = max(self.pipe_free, max(w.end for w in group) + self.spec.group_drain_cycles)
