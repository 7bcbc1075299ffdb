"""A walk through the events of all roles of one CTA that finds when each of them happens.

Every role is a generator over its events. It yields the condition it waits for, or None to touch a shared unit (tensor
pipe, CUDA cores) in order of time, and is resumed with the cycle at which the condition became true.
"""

import heapq
from collections import defaultdict
from collections.abc import Generator

from simfa.events import PRODUCER, Event
from simfa.instrument.costs import Costs
from simfa.instrument.event_order import FIRST_PING_PONG_BARRIER, tile_events
from simfa.kernel import KernelSpec
from simfa.salog_check import BARRIER_EVENTS

Condition = tuple[str, int, int]  # what, its tile or fill or barrier, count of earlier ones
Role = Generator[Condition | None, int, None]


class CtaWalk:
    """One CTA running tiles of one kind; `times[role][tile]` are the times of its events, `now[role]` its own time."""

    def __init__(self, kernel: KernelSpec, costs: Costs, key_blocks: int, masked: int, load_cycles: int) -> None:
        """Start all roles at cycle 0, with the barriers primed as the kernel primes them.

        The first `masked` blocks of a tile are masked. `load_cycles` is the time from a load's issue to its arrival.
        """
        self._kernel = kernel
        self._costs = costs
        self._key_blocks = key_blocks
        self._masked = masked
        self._load_cycles = load_cycles
        self.now = [0] * (1 + kernel.consumers)
        self.times: list[list[list[int]]] = [[] for _ in self.now]
        self._known: dict[Condition, int] = {
            ("query empty", 0, 0): 0,
            ("O stored", -1, 0): 0,
            ("turn", FIRST_PING_PONG_BARRIER, 0): 0,
        }
        for fill in range(-kernel.stages, 0):
            self._known["K empty", fill, 0] = self._known["V empty", fill, 0] = 0
        self._fresh: list[Condition] = []
        self._arrivals: dict[Condition, list[int]] = defaultdict(list)
        self._turns_given = defaultdict(int, {FIRST_PING_PONG_BARRIER: 1})
        self._pipe_free = 0
        self._cores_free = 0

    def run(self, tiles: int) -> None:
        """Run `tiles` tiles one after the other to their end."""
        roles = [self._producer(tiles), *(self._consumer(role, tiles) for role in range(1, len(self.now)))]
        parked: dict[Condition, list[int]] = defaultdict(list)
        ready: list[tuple[int, int, int]] = []  # time, role, answer to its last condition
        for role, steps in enumerate(roles):
            next(steps)
            heapq.heappush(ready, (0, role, 0))
        while ready:
            _, role, answer = heapq.heappop(ready)
            try:
                condition = roles[role].send(answer)
            except StopIteration:
                pass
            else:
                if condition is None:
                    heapq.heappush(ready, (self.now[role], role, 0))
                elif condition in self._known:
                    heapq.heappush(ready, (self.now[role], role, self._known[condition]))
                else:
                    parked[condition].append(role)
            for condition in self._fresh:
                for waiter in parked.pop(condition, []):
                    heapq.heappush(ready, (self.now[waiter], waiter, self._known[condition]))
            self._fresh.clear()
        assert not parked, f"the event order waits for {list(parked)}, which never comes"

    def _steps(self, role: int) -> list[tuple[Event, int]]:
        """Return a tile's events with the fill's ordinal in the tile, or the barrier."""
        records = tile_events(self._kernel, role, self._key_blocks, 2)
        return [
            (Event(code), payload if code in BARRIER_EVENTS else self._key_blocks - 1 - payload)
            for code, payload in zip(records["event"].tolist(), records["payload"].tolist(), strict=True)
        ]

    def _arrive(self, condition: Condition, cycle: int, needed: int = 1) -> None:
        """Note one arrival; the condition is true from the last of the `needed` ones on."""
        arrivals = self._arrivals[condition]
        arrivals.append(cycle)
        if len(arrivals) == needed:
            self._known[condition] = max(arrivals)
            self._fresh.append(condition)

    def _mbarrier(self, role: int, condition: Condition) -> Role:
        """Wait on an mbarrier."""
        reached = yield condition
        self.now[role] = max(self.now[role] + self._costs.mbarrier_wait, reached + self._costs.mbarrier_wake)

    def _named(self, role: int, condition: Condition) -> Role:
        """Wait on a named barrier."""
        reached = yield condition
        self.now[role] = max(self.now[role] + self._costs.named_wait, reached + self._costs.named_wake)

    def _producer(self, tiles: int) -> Role:
        """The producer: it acquires a stage, issues the load and goes on."""
        steps, stages = self._steps(PRODUCER), self._kernel.stages
        yield None
        for tile in range(tiles):
            stamps: list[int] = []
            self.times[PRODUCER].append(stamps)
            for event, ordinal in steps:
                stamps.append(self.now[PRODUCER])
                fill = tile * self._key_blocks + ordinal
                match event:
                    case Event.ACQUIRE_K_START:
                        yield from self._mbarrier(PRODUCER, ("K empty", fill - stages, 0))
                    case Event.ACQUIRE_V_START:
                        yield from self._mbarrier(PRODUCER, ("V empty", fill - stages, 0))
                    case Event.QUERY_EMPTY_WAIT:
                        yield from self._named(PRODUCER, ("query empty", tile, 0))
                    case Event.WAIT_O_START:
                        yield from self._mbarrier(PRODUCER, ("O stored", tile - 1, 0))
                    case Event.TMA_Q_ISSUE:
                        self._load("Q", tile)
                    case Event.TMA_K_ISSUE:
                        self._load("K", fill)
                    case Event.TMA_V_ISSUE:
                        self._load("V", fill)
                    case _:
                        self.now[PRODUCER] += 1

    def _load(self, ring: str, fill: int) -> None:
        """Issue one load; its data arrive later."""
        self._arrive((f"{ring} full", fill, 0), self.now[PRODUCER] + self._load_cycles)
        self.now[PRODUCER] += 1

    def _consumer(self, role: int, tiles: int) -> Role:
        """A consumer: waits, two products a turn, softmax, releases, and the epilogue."""
        costs, consumers = self._costs, self._kernel.consumers
        steps = self._steps(role)
        turns = 0
        groups: list[int] = []  # completion of its WGMMA groups
        yield None
        for tile in range(tiles):
            stamps: list[int] = []
            self.times[role].append(stamps)
            for event, ordinal in steps:
                fill = tile * self._key_blocks + ordinal
                if event in (Event.GEMM_QK_ISSUE, Event.GEMM_PV_ISSUE, Event.SOFTMAX_END):
                    yield None
                if event == Event.SOFTMAX_END:
                    self._softmax(role, ordinal)
                elif event == Event.TMA_O_ISSUE:
                    yield from self._named(role, ("O written", tile, 0))
                elif event == Event.TMA_O_WAIT_END:
                    self.now[role] += costs.store
                    self._arrive(("O stored", tile, 0), self.now[role] + costs.release)
                stamps.append(self.now[role])
                match event:
                    case Event.WAIT_Q_START:
                        yield from self._mbarrier(role, ("Q full", tile, 0))
                    case Event.WAIT_K_START:
                        yield from self._mbarrier(role, ("K full", fill, 0))
                    case Event.WAIT_V_START:
                        yield from self._mbarrier(role, ("V full", fill, 0))
                    case Event.BAR_SYNC_START:
                        yield from self._named(role, ("turn", ordinal, turns))
                        turns += 1
                    case Event.BAR_ARRIVE:
                        self._arrive(("turn", ordinal, self._turns_given[ordinal]), self.now[role] + costs.named_arrive)
                        self._turns_given[ordinal] += 1
                    case Event.GEMM_QK_ISSUE:
                        groups.append(self._product(role, *costs.qk))
                    case Event.GEMM_PV_ISSUE:
                        groups.append(self._product(role, *costs.pv))
                    case Event.WAIT_WG_1:
                        self.now[role] = max(self.now[role] + 1, groups[-2])
                    case Event.WAIT_WG_0:
                        self.now[role] = max(self.now[role] + 1, groups[-1])
                    case Event.RELEASE_K:
                        self._arrive(("K empty", fill, 0), self.now[role] + costs.release, consumers)
                    case Event.RELEASE_V:
                        self._arrive(("V empty", fill, 0), self.now[role] + costs.release, consumers)
                    case Event.QUERY_EMPTY_ARRIVE:
                        self._arrive(("query empty", tile + 1, 0), self.now[role] + costs.named_arrive, consumers)
                    case Event.EPILOGUE_START:
                        self._arrive(("V read", tile, 0), self.now[role] + costs.named_arrive, consumers)
                        yield from self._named(role, ("V read", tile, 0))
                        self.now[role] += costs.epilogue
                        self._arrive(("O written", tile, 0), self.now[role] + costs.named_arrive, consumers)
                self.now[role] += 1

    def _product(self, role: int, count: int, cycles: int) -> int:
        """Issue a group of `count` WGMMAs of `cycles` each; return its completion."""
        costs = self._costs
        start = max(self.now[role], self._pipe_free)
        end = start + count * cycles
        self._pipe_free = end + costs.group_drain
        self.now[role] = max(self.now[role] + count * costs.wgmma_issue, end - costs.wgmma_window * cycles)
        return end + costs.wgmma_tail

    def _softmax(self, role: int, ordinal: int) -> None:
        """Do the softmax of one block on the SM's CUDA cores."""
        costs = self._costs
        work = (costs.softmax if ordinal else costs.first_softmax) + (costs.mask if ordinal < self._masked else 0)
        start = max(self.now[role], self._cores_free) if costs.shared_cores else self.now[role]
        self.now[role] = start + work
        if costs.shared_cores:
            self._cores_free = self.now[role]
