"""Finds the loops in a flat instruction list and writes them as REPEATs.

A run of `count` copies of `period` instructions becomes a REPEAT when corresponding instructions agree in everything
but operands that grow by the same amount from copy to copy.
"""

import bisect
import functools
import heapq
import operator
from collections.abc import Callable, Iterable, Sequence

import msgspec
import numpy as np

from simfa.isa import Affine, Instruction, Repeat, Slot
from simfa.translate.runs import Ints, Run, runs_of

MAX_MOVING = 3  # operands that may advance: slots a and b and the group of a WGMMA
_MOVING = (Affine, Slot)


def compress(body: Sequence[Instruction]) -> tuple[Instruction | Repeat, ...]:
    """Return `body` with its loops as REPEATs; executing both gives the same instructions in the same order."""
    result: list[Instruction | Repeat] = []
    position = 0
    for run in _choose(runs_of(*_shapes(body))):
        result.extend(body[position : run.start])
        result.append(_repeat(body, run))
        position = run.start + run.period * run.copies
    result.extend(body[position:])
    return tuple(result)


def expand(body: Sequence[Instruction | Repeat]) -> tuple[Instruction, ...]:
    """Return the instructions that `body` runs, REPEATs unrolled: the inverse of `compress`."""
    result: list[Instruction] = []
    for item in body:
        if isinstance(item, Repeat):
            for iteration in range(item.count):
                result.extend(instruction_at(instruction, iteration) for instruction in item.body)
        else:
            result.append(item)
    return tuple(result)


def _shapes(body: Sequence[Instruction]) -> tuple[Ints, Ints]:
    """Return a number for what must agree in each instruction, and the starts of what may advance, shape (n, 3)."""
    numbers: dict[tuple[object, ...], int] = {}
    shapes = np.zeros(len(body), np.int64)
    starts = np.zeros((len(body), MAX_MOVING), np.int64)
    for position, instruction in enumerate(body):
        fixed: list[object] = [type(instruction)]
        column = 0
        for value in _values_of(type(instruction))(instruction):
            if isinstance(value, _MOVING):
                ring, index = value if isinstance(value, Slot) else (None, value)
                fixed.append(ring)
                starts[position, column] = index.start
                column += 1
            else:
                fixed.append(value)
        shapes[position] = numbers.setdefault(tuple(fixed), len(numbers))
    return shapes, starts


@functools.cache
def _values_of(kind: type[Instruction]) -> Callable[[Instruction], tuple[object, ...]]:
    """Return a function that gives all fields of an instruction of this type as a tuple."""
    names = kind.__struct_fields__
    getter = operator.attrgetter(*names)
    return getter if len(names) > 1 else lambda instruction: (getter(instruction),)


def _choose(runs: Iterable[Run]) -> list[Run]:
    """Return runs that do not overlap, in the order of the program.

    The most saving run is chosen first, then the shortest period, then the earliest. A run that overlaps chosen ones
    goes back with the part of it that is free.
    """
    queue = [(-run.saved, run.period, run) for run in runs if run.saved > 0]
    heapq.heapify(queue)
    chosen: list[Run] = []
    while queue:
        _, _, run = heapq.heappop(queue)
        free = _free_part(run, chosen)
        if free == run:
            bisect.insort(chosen, run)
        elif free.saved > 0:
            heapq.heappush(queue, (-free.saved, free.period, free))
    return chosen


def _free_part(run: Run, chosen: Sequence[Run]) -> Run:
    """Return the longest part of a run that no whole copy of a chosen run covers."""
    best, start = Run(run.start, run.start, run.period), run.start
    for other in chosen:
        stop = min(other.start, run.stop)
        if stop - start > best.stop - best.start:
            best = Run(start, stop, run.period)
        start = max(start, other.start + other.period * other.copies)
    if run.stop - start > best.stop - best.start:
        best = Run(start, run.stop, run.period)
    return best


def _repeat(body: Sequence[Instruction], run: Run) -> Repeat:
    """Return the REPEAT of a run."""
    instructions = []
    for offset in range(run.period):
        first, second = body[run.start + offset], body[run.start + run.period + offset]
        changes: dict[str, object] = {}
        for name in first.__struct_fields__:
            value, after = getattr(first, name), getattr(second, name)
            if isinstance(value, Slot):
                changes[name] = Slot(value.ring, Affine(value.index.start, after.index.start - value.index.start))
            elif isinstance(value, Affine):
                changes[name] = Affine(value.start, after.start - value.start)
        instructions.append(msgspec.structs.replace(first, **changes) if changes else first)
    return Repeat(count=run.copies, body=tuple(instructions))


def instruction_at(instruction: Instruction, iteration: int) -> Instruction:
    """Return an instruction with the operands of one iteration."""
    changes: dict[str, object] = {}
    for name in instruction.__struct_fields__:
        value = getattr(instruction, name)
        if isinstance(value, Slot):
            changes[name] = Slot(value.ring, Affine(value.index.start + value.index.step * iteration))
        elif isinstance(value, Affine):
            changes[name] = Affine(value.start + value.step * iteration)
    return msgspec.structs.replace(instruction, **changes) if changes else instruction
