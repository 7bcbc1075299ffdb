"""A second, naive execution of a whole trace in random order, straight from `docs/isa.md`; no timing.

It knows nothing of the verifier: stages are physical, counters are absolute, tiles follow one another without any
common point, and every asynchronous effect happens at a random later moment.
"""

import random
from collections import Counter
from typing import Any

from simfa import isa
from simfa.isa import Affine, Repeat, Slot
from simfa.trace import Trace


class StuckError(Exception):
    """No role can go on."""


class RaceError(Exception):
    """A stage was read or overwritten at a moment at which its contents are not certain."""


def walk(trace: Trace, seed: int) -> None:
    """Run all CTAs to the end in an order drawn from `seed`; raises `StuckError` or `RaceError`."""
    for first in range(0, trace.schedule.ctas, trace.schedule.cluster):
        _Cluster(trace, range(first, first + trace.schedule.cluster), random.Random(seed)).run()


class _Thread:
    def __init__(self, cta: int, role: int, steps: list[tuple[Any, int, dict[str, int], int]]) -> None:
        self.cta, self.role, self.steps, self.position = cta, role, steps, 0
        self.reading: list[tuple[tuple[int, int], tuple[int, str, int]]] = []


class _Cluster:
    def __init__(self, trace: Trace, ctas: range, order: random.Random) -> None:
        self._trace, self._order = trace, order
        self._rings = {ring.name: ring for ring in trace.rings}
        self._boxes = {item.name: item.box_bytes for item in trace.maps}
        self._peers = list(ctas)
        self.credited: Counter[tuple[int, str, int]] = Counter()
        self.expected: set[tuple[int, str, int]] = set()
        self.arrivals: Counter[tuple[int, str, int]] = Counter()
        self.signals: Counter[tuple[int, int]] = Counter()
        self.flying: list[tuple[str, tuple[Any, ...]]] = []
        self.threads = [_Thread(cta, role, self._steps(cta, role)) for cta in ctas for role in range(trace.roles)]

    def _steps(self, cta: int, role: int) -> list[tuple[Any, int, dict[str, int], int]]:
        """All instructions of a role: instruction, iteration, fills of earlier tiles, number of the tile."""
        trace = self._trace
        programs = {program.name: program for program in trace.programs}
        schedule = trace.schedule
        # A dynamic queue may give any tile to any CTA; here every CTA runs its share in turn.
        tiles = schedule.tiles[cta] if schedule.mode == "static" else schedule.tiles[0][cta :: schedule.ctas]
        name = trace.prologue[role]
        steps = _flat(programs[name].body, {}, -1) if name else []
        base: Counter[str] = Counter()
        for number, tile in enumerate(tiles):
            kind = trace.tile_kinds[tile.kind]
            steps += _flat(programs[kind.programs[role]].body, dict(base), number)
            used: Counter[str] = Counter()
            for other in kind.programs:
                for instruction, iteration, _, _ in _flat(programs[other].body, {}, 0):
                    for slot in _slots(instruction):
                        used[slot.ring] = max(used[slot.ring], _value(slot.index, iteration) + 1)
            base.update(used)
        return steps

    def run(self) -> None:
        while any(thread.position < len(thread.steps) for thread in self.threads):
            choices: list[Any] = [thread for thread in self.threads if self._can(thread)]
            choices += range(len(self.flying))
            if not choices:
                raise StuckError
            choice = self._order.choice(choices)
            if isinstance(choice, int):
                self._land(*self.flying.pop(choice))
            else:
                self._execute(choice)

    def _fill(self, thread: _Thread, slot: Slot) -> tuple[str, int]:
        _, iteration, base, _ = thread.steps[thread.position]
        return slot.ring, base.get(slot.ring, 0) + _value(slot.index, iteration)

    def _complete(self, cta: int, ring: str, fill: int) -> bool:
        return (cta, ring, fill) in self.expected and self.credited[cta, ring, fill] == self._rings[ring].bytes

    def _can(self, thread: _Thread) -> bool:
        if thread.position == len(thread.steps):
            return False
        instruction = thread.steps[thread.position][0]
        if isinstance(instruction, isa.AcquireStage):
            name, fill = self._fill(thread, instruction.slot)
            ring = self._rings[name]
            return self.arrivals[thread.cta, name, fill % ring.stages] >= fill // ring.stages * ring.releases
        if isinstance(instruction, isa.MbWait):
            return self._complete(thread.cta, *self._fill(thread, instruction.slot))
        if isinstance(instruction, isa.BarWait):
            return self.signals[thread.cta, instruction.barrier] >= instruction.arrivals
        return True

    def _execute(self, thread: _Thread) -> None:
        instruction, iteration, _, tile = thread.steps[thread.position]
        if isinstance(instruction, isa.AcquireStage):
            self.expected.add((thread.cta, *self._fill(thread, instruction.slot)))
        elif isinstance(instruction, isa.TmaTensor):
            targets = self._peers if instruction.multicast else [thread.cta]
            name, fill = self._fill(thread, instruction.slot)
            for cta in targets:
                self._demand_free(cta, name, fill)
                self.flying.append(("credit", (cta, name, fill, self._boxes[instruction.map])))
        elif isinstance(instruction, isa.ReleaseStage):
            name, fill = self._fill(thread, instruction.slot)
            for cta in self._peers if instruction.remote else [thread.cta]:
                self.flying.append(("arrival", (cta, name, fill % self._rings[name].stages)))
        elif isinstance(instruction, isa.BarArrive):
            self.flying.append(("signal", (thread.cta, instruction.barrier)))
        elif isinstance(instruction, isa.BarWait):
            self.signals[thread.cta, instruction.barrier] -= instruction.arrivals
        elif isinstance(instruction, isa.Wgmma):
            for slot in _slots(instruction):
                name, fill = self._fill(thread, slot)
                if self._rings[name].bytes:
                    if not self._complete(thread.cta, name, fill):
                        raise RaceError(f"{name} fill {fill} is read before it is complete")
                    group = _value(instruction.group, iteration)
                    thread.reading.append(((tile, group), (thread.cta, name, fill)))
        elif isinstance(instruction, isa.WgmmaWait):
            done = (tile, _value(instruction.group, iteration) - instruction.outstanding)
            thread.reading = [entry for entry in thread.reading if entry[0] > done]
        thread.position += 1

    def _demand_free(self, cta: int, ring: str, fill: int) -> None:
        """Nobody may read the stage that a copy now starts to overwrite."""
        stages = self._rings[ring].stages
        for thread in self.threads:
            for _, (place, name, other) in thread.reading:
                if (place, name) == (cta, ring) and other != fill and other % stages == fill % stages:
                    raise RaceError(f"{ring} fill {fill} overwrites fill {other}, which role {thread.role} reads")

    def _land(self, kind: str, what: tuple[Any, ...]) -> None:
        if kind == "credit":
            self.credited[what[:3]] += what[3]
        elif kind == "arrival":
            self.arrivals[what] += 1
        else:
            self.signals[what] += 1


def _slots(instruction: Any) -> list[Slot]:
    fields = ("slot", "a", "b")
    return [value for name in fields if isinstance(value := getattr(instruction, name, None), Slot)]


def _value(operand: Affine, iteration: int) -> int:
    return operand.start + operand.step * iteration


def _flat(body: Any, base: dict[str, int], tile: int) -> list[tuple[Any, int, dict[str, int], int]]:
    steps = []
    for item in body:
        if isinstance(item, Repeat):
            steps += [(inner, iteration, base, tile) for iteration in range(item.count) for inner in item.body]
        else:
            steps.append((item, 0, base, tile))
    return steps
