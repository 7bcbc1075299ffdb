"""The cycle loop: phases 1-4 of every SM, tiles handed to CTAs, and the end or hang of a kernel."""

import heapq
from collections import Counter
from collections.abc import Callable

from simfa.errors import SimulationError
from simfa.hardware import HardwareSpec
from simfa.simulate.reference.check import check
from simfa.simulate.reference.programs import fills_of_kinds, unroll
from simfa.simulate.reference.result import ReferenceResult
from simfa.simulate.reference.sm import Sm
from simfa.simulate.reference.threads import Thread
from simfa.trace import TileBinding, Trace
from simfa.units import ns_to_cycles


def simulate(
    trace: Trace, hardware: HardwareSpec, *, memory_latency_cycles: int, max_cycles: int | None = None
) -> ReferenceResult:
    """Return when each instruction of `trace` issues on `hardware` if every line takes `memory_latency_cycles`.

    The rules are those of `docs/isa.md`. Raises `SimulationError` for a trace or latency that cannot run, for a kernel
    that hangs (naming each stuck role and what it waits for), and for one that is not over by cycle `max_cycles`.
    """
    engine = Engine(trace, hardware, memory_latency_cycles)
    return engine.run(max_cycles)


class Tiles:
    """The tiles of one CTA as far as they are known; `closed` when there will be no more."""

    def __init__(self, tiles: list[TileBinding], closed: bool) -> None:
        """Start with the tiles known at launch."""
        self.known = tiles
        self.closed = closed


class Engine:
    """All state of one run."""

    def __init__(self, trace: Trace, hardware: HardwareSpec, latency: int) -> None:
        """Put every CTA on its SM, ready at the launch cycle."""
        check(trace, hardware, latency)
        self.trace = trace
        self.hardware = hardware
        self.steps = {program.name: unroll(program) for program in trace.programs}
        self.fills_of_kind = fills_of_kinds(trace, self.steps)
        self.paths: Counter[str] = Counter()
        self.arrivals: list[tuple[int, int, Callable[[int], None]]] = []
        self.arrivals_planned = 0
        self.launch = ns_to_cycles(hardware.grid.launch_ns, hardware.gpu.sm_clock_hz)
        schedule = trace.schedule
        self.sms = [Sm(cta, trace, hardware, latency, self.at, self._count) for cta in range(schedule.ctas)]
        for first in range(0, schedule.ctas, schedule.cluster):
            cluster = self.sms[first : first + schedule.cluster]
            for sm in cluster:
                sm.cluster = cluster
        if schedule.mode == "static":
            self.tiles = [Tiles(list(tiles), True) for tiles in schedule.tiles]
        else:
            queue = schedule.tiles[0]
            self.tiles = [Tiles(list(queue[cta : cta + 1]), cta >= len(queue)) for cta in range(schedule.ctas)]
        self.next_entry = schedule.ctas
        for sm in self.sms:
            for thread, prologue in zip(sm.threads, trace.prologue, strict=True):
                thread.ready = self.launch
                if prologue is not None:
                    thread.load(prologue, self.steps[prologue])

    def at(self, cycle: int, action: Callable[[int], None]) -> None:
        """Let `action(cycle)` happen in phase 1 of a later cycle."""
        heapq.heappush(self.arrivals, (cycle, self.arrivals_planned, action))
        self.arrivals_planned += 1

    def _count(self, path: str) -> None:
        self.paths[path] += 1

    def run(self, max_cycles: int | None) -> ReferenceResult:
        """Run to the end; both SMs of a pair, and indeed all SMs, finish a phase before the next begins."""
        cycle: int | None = self.launch
        while cycle is not None:
            if max_cycles is not None and cycle > max_cycles:
                raise SimulationError(f"the kernel is not over at cycle {max_cycles}:\n{self._unfinished()}")
            while self.arrivals and self.arrivals[0][0] == cycle:
                heapq.heappop(self.arrivals)[2](cycle)
            for sm in self.sms:
                sm.tma.step(cycle)
            for sm in self.sms:
                sm.cuda_cores.step(cycle)
            for sm, tiles in zip(self.sms, self.tiles, strict=True):
                for thread in sm.threads:
                    self._next_program(thread, tiles, cycle)
                sm.issue(cycle)
            last, cycle = cycle, self.next_cycle(cycle)
        return self._result(last)

    def next_cycle(self, cycle: int) -> int | None:
        """Return the next cycle in which anything can happen: no unit acts before its own answer to this question."""
        cycles = [self.arrivals[0][0]] if self.arrivals else []
        for sm in self.sms:
            for candidate in (sm.tma.next_cycle(cycle), sm.cuda_cores.quantum_end, sm.next_issue(cycle)):
                if candidate is not None:
                    cycles.append(candidate)
        return min(cycles, default=None)

    def _next_program(self, thread: Thread, tiles: Tiles, cycle: int) -> None:
        """Move a thread that is through with its program to its next tile, or end it."""
        while not (thread.is_stopped() or thread.ready > cycle or thread.has_instruction()):
            if thread.tile_edge_due:
                thread.tile_edge_due = False
                self._count("tile edge")
                thread.ready += self.hardware.grid.tile_edge_cycles
            elif thread.tile + 1 < len(tiles.known):
                self._begin_tile(thread, tiles, cycle)
            elif tiles.closed:
                thread.end = cycle
            else:
                self._count("tile waits for its grant")
                return

    def _begin_tile(self, thread: Thread, tiles: Tiles, cycle: int) -> None:
        """Bind a thread to its next tile; role 0 asks for the one after it at its last ACQUIRE_STAGE, or now."""
        if thread.tile >= 0:
            for ring, fills in self.fills_of_kind[tiles.known[thread.tile].kind].items():
                thread.bases[ring] += fills
        thread.tile += 1
        thread.ready = max(thread.ready, cycle)
        thread.tile_edge_due = thread.role >= 1
        binding = tiles.known[thread.tile]
        thread.coordinates = self._coordinates(binding)
        program = self.trace.tile_kinds[binding.kind].programs[thread.role]
        thread.load(program, self.steps[program])
        if thread.role == 0 and not tiles.closed:
            thread.at_last_acquire = lambda now: self._request(tiles, now)
            if not thread.acquires_later():
                thread.at_last_acquire(cycle)

    def _request(self, tiles: Tiles, cycle: int) -> None:
        """Hand out the queue's next entry; calls come in order of (cycle, CTA)."""
        entry = self.next_entry
        self.next_entry += 1
        queue = self.trace.schedule.tiles[0]

        def grant(_now: int) -> None:
            self._count("tile granted" if entry < len(queue) else "queue empty")
            if entry < len(queue):
                tiles.known.append(queue[entry])
            else:
                tiles.closed = True

        self.at(cycle + self.hardware.grid.tile_fetch_cycles, grant)

    def _coordinates(self, tile: TileBinding) -> dict[str, tuple[int, ...]]:
        """Return what each origin of a tensor map adds for a tile, for dimensions 0-3."""
        coordinates: dict[str, tuple[int, ...]] = {"none": (0, 0, 0, 0)}
        shape, kernel = self.trace.shape, self.trace.kernel
        if shape is not None and kernel is not None:
            coordinates["query"] = (0, tile.m_block * kernel.tile_m, tile.head, tile.batch)
            coordinates["kv"] = (0, 0, tile.head // shape.group_size, tile.batch)
        return coordinates

    def _result(self, last: int) -> ReferenceResult:
        threads = [thread for sm in self.sms for thread in sm.threads]
        ends = {(thread.cta, thread.role): thread.end for thread in threads if thread.end is not None}
        if len(ends) < len(threads):
            raise SimulationError(f"the kernel hangs at cycle {last}:\n{self._unfinished()}")
        return ReferenceResult(
            cycles=max(*ends.values(), *(sm.last_store_completion for sm in self.sms)),
            issues={(thread.cta, thread.role): thread.issues for thread in threads},
            ends=ends,
            lines=sum(sm.tma.lines for sm in self.sms),
            bytes=sum(sm.tma.bytes for sm in self.sms),
            paths=dict(sorted(self.paths.items())),
        )

    def _unfinished(self) -> str:
        """Return a line for each role that is not done: where it is and what it waits for."""
        lines = []
        for sm in self.sms:
            for thread in sm.threads:
                if thread.end is None:
                    lines.append(f"  {_where(thread)} {_reason(thread)}")
        return "\n".join(lines)


def _where(thread: Thread) -> str:
    """Return the place of the instruction that holds a thread up: the wait it is in, or the next one."""
    position = thread.position - 1 if thread.waiting or thread.computing else thread.position
    if position < len(thread.steps):
        return thread.where(thread.steps[position])
    return f"CTA {thread.cta} role {thread.role}, behind program {thread.program or '(none)'}"


def _reason(thread: Thread) -> str:
    """Return what a thread waits for."""
    if thread.waiting is not None:
        return f"waits for {thread.waiting.missing()}"
    if thread.computing:
        return "waits for the CUDA cores"
    if thread.has_instruction():
        return f"is ready at cycle {thread.ready}"
    return "waits for a tile"
