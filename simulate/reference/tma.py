"""The TMA engine of one SM: descriptor cache, FIFO of operations, lines in flight."""

from collections import deque
from collections.abc import Callable

from simfa.hardware import HardwareSpec

At = Callable[[int, Callable[[int], None]], None]


class Operation:
    """One copy in the engine.

    `requests` is the number of lines it asks for, `size` the bytes of them that it moves. `complete(cycle)` is called
    when all are answered, `read(cycle)` when a store's shared memory has been read (None for a load).
    """

    def __init__(
        self, requests: int, size: int, complete: Callable[[int], None], read: Callable[[int], None] | None
    ) -> None:
        """Describe a copy that is not in the engine yet."""
        self.requests = requests
        self.size = size
        self.complete = complete
        self.read = read
        self.eligible = 0
        self.issued = 0
        self.answered = 0


class TmaEngine:
    """Starts operations in order and issues their lines; `at(cycle, action)` plans phase 1 of a later cycle."""

    def __init__(self, hardware: HardwareSpec, latency: int, at: At, count: Callable[[str], None]) -> None:
        """Start empty, with memory that answers a line `latency` cycles after its issue."""
        self.spec = hardware.tma
        self.latency = latency
        self.at = at
        self.count = count
        line, port = hardware.l2.line_bytes, self.spec.issue_bytes_per_cycle
        self.lines_per_cycle = max(1, port // line)
        self.line_interval = max(1, line // port)
        self.recent_maps: list[str] = []
        self.queue: deque[Operation] = deque()
        self.active: Operation | None = None
        self.next_start = 0
        self.next_line = 0
        self.in_flight = 0
        self.lines = 0
        self.bytes = 0

    def enter(self, operation: Operation, map_name: str | None, cycle: int) -> None:
        """Take an operation issued at `cycle`; `map_name` is None for a bulk copy."""
        latency = self.spec.launch_cycles
        if map_name is not None:
            latency += self.spec.tensor_map_cycles + self._descriptor_cycles(map_name)
        operation.eligible = max(cycle + 1, cycle + latency)
        self.queue.append(operation)

    def _descriptor_cycles(self, map_name: str) -> int:
        """Return the cost of looking the map up in the descriptor cache, and make it the most recent one."""
        hit = map_name in self.recent_maps
        self.count("descriptor hit" if hit else "descriptor miss")
        if hit:
            self.recent_maps.remove(map_name)
        self.recent_maps.insert(0, map_name)
        del self.recent_maps[self.spec.descriptor_cache_entries :]
        return 0 if hit else self.spec.descriptor_miss_cycles

    def step(self, cycle: int) -> None:
        """Phase 2: start what can start and issue what can be issued in this cycle."""
        budget = self.lines_per_cycle if cycle >= self.next_line else 0
        while True:
            if self.active is None:
                if not self.queue or cycle < max(self.queue[0].eligible, self.next_start):
                    return
                self._start(self.queue.popleft(), cycle)
                continue
            operation = self.active
            room = self.spec.max_lines_in_flight - self.in_flight
            lines = min(budget, room, operation.requests - operation.issued)
            if lines == 0:
                self.count("line waits for an answer" if room == 0 else "line waits for issue bandwidth")
                return
            budget -= lines
            self._issue(operation, lines, cycle)
            if operation.issued == operation.requests:
                self.active = None
                self.bytes += operation.size
                if operation.read is not None:
                    self._plan(cycle, self.spec.store_read_cycles, operation.read)

    def next_cycle(self, cycle: int) -> int | None:
        """Return the next cycle at which `step` may do something without an arrival, or None."""
        if self.active is not None:
            return max(cycle + 1, self.next_line) if self.in_flight < self.spec.max_lines_in_flight else None
        if self.queue:
            return max(cycle + 1, self.queue[0].eligible, self.next_start)
        return None

    def _start(self, operation: Operation, cycle: int) -> None:
        """Start an operation; one without lines is over as far as the engine is concerned."""
        if cycle == self.next_start > operation.eligible:
            self.count("operation waits for the issue gap")
        self.next_start = cycle + self.spec.issue_gap_cycles
        if self.spec.level == 1 and operation.requests:
            self.active = operation
            return
        self.count("operation without lines" if self.spec.level == 1 else "operation of level 0")
        self._plan(cycle, 0 if self.spec.level == 1 else self.spec.level_0_latency_cycles, operation.complete)
        if operation.read is not None:
            self._plan(cycle, self.spec.store_read_cycles, operation.read)

    def _issue(self, operation: Operation, lines: int, cycle: int) -> None:
        """Send lines of the active operation in this cycle."""
        operation.issued += lines
        self.in_flight += lines
        self.lines += lines
        self.next_line = cycle + self.line_interval if self.line_interval > 1 else 0

        def answer(now: int) -> None:
            self.in_flight -= lines
            operation.answered += lines
            if operation.answered == operation.requests:
                operation.complete(now)

        self.at(cycle + self.latency, answer)

    def _plan(self, cycle: int, delay: int, action: Callable[[int], None]) -> None:
        """Let an action happen `delay` cycles on: now, in phase 2, or in phase 1 of a later cycle."""
        if delay == 0:
            action(cycle)
        else:
            self.at(cycle + delay, action)
