"""When the events of a tile happen: a small dataflow model of one CTA, for the timestamps of synthetic logs.

It prices the events of all roles with preset values: TMA and memory latency, tensor-pipe occupancy, CUDA-core rates,
barrier latencies. It has no caches, no queues and no other CTAs: the loads of a CTA's first tile miss, all others hit.
Its times make timelines and statistics look like a kernel's and never reach the simulator.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from simfa.instrument.costs import Costs
from simfa.instrument.cta_walk import CtaWalk
from simfa.instrument.event_order import loop_bounds
from simfa.kernel import KernelSpec

LONGEST_WALK = 16  # key blocks; longer tiles repeat a turn of the steady loop

Times = npt.NDArray[np.int64]


class TileKind(NamedTuple):
    """What the duration of a tile depends on; a `cold` tile is a CTA's first."""

    key_blocks: int
    masked: int
    cold: bool


class _Walk(NamedTuple):
    """Times of a tile of at most `LONGEST_WALK` blocks, per role, from its start; the next tile's start; the period."""

    events: tuple[Times, ...]
    cycles: int
    period: int


class TimingModel:
    """Timing of the tiles of one kernel on one GPU."""

    def __init__(self, kernel: KernelSpec, costs: Costs) -> None:
        """Start without any walk done."""
        self._kernel = kernel
        self._costs = costs
        self._walks: dict[TileKind, _Walk] = {}

    def cycles(self, kind: TileKind) -> int:
        """Return the cycles from a tile's start on the first consumer to the start of the next."""
        walk, turns = self._walk(kind)
        return walk.cycles + turns * walk.period

    def end(self, kind: TileKind, role: int) -> int:
        """Return the cycle of a role's last event, from the tile's start on the first consumer."""
        walk, turns = self._walk(kind)
        return int(walk.events[role][-1]) + turns * walk.period

    def events(self, kind: TileKind, role: int) -> Times:
        """Return the cycle of each level-2 event that `tile_events` lists, from the tile's start on the first consumer.

        The producer runs ahead: its first times are negative unless the tile is cold.
        """
        walk, turns = self._walk(kind)
        times = walk.events[role]
        if turns == 0:
            return times
        before, length = loop_bounds(self._kernel, role)
        first = before + LONGEST_WALK // 2 * length
        copies = times[first : first + length] + walk.period * np.arange(turns)[:, np.newaxis]
        return np.concatenate([times[:first], copies.reshape(-1), times[first:] + turns * walk.period])

    def _walk(self, kind: TileKind) -> tuple[_Walk, int]:
        """Return the walk of a tile, cut to `LONGEST_WALK` blocks, and how many turns were cut out."""
        key = kind._replace(key_blocks=min(kind.key_blocks, LONGEST_WALK))
        if key not in self._walks:
            self._walks[key] = self._run(key)
        return self._walks[key], kind.key_blocks - key.key_blocks

    def _run(self, kind: TileKind) -> _Walk:
        """Walk through a CTA's first tile if cold, else through a tile that follows its like."""
        load_cycles = self._costs.load_miss if kind.cold else self._costs.load_hit
        cta = CtaWalk(self._kernel, self._costs, kind.key_blocks, kind.masked, load_cycles)
        cta.run(tiles=1 if kind.cold else 2)
        origin = cta.times[1][-1][0]
        events = tuple(np.array(tiles[-1], np.int64) - origin for tiles in cta.times)
        period = 0
        if kind.key_blocks == LONGEST_WALK:
            before, length = loop_bounds(self._kernel, 1)
            first = before + LONGEST_WALK // 2 * length
            period = int(events[1][first + 2 * length] - events[1][first]) // 2
        return _Walk(events, cta.now[1] - origin, period)
