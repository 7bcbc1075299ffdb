"""Long loops at the price of short ones: the middle of a loop in the events is left out and put back as a REPEAT count.

A tile that visits a thousand blocks does the same a thousand times. `fold` finds the loop in the codes and keeps its
first copies and the last one; lowering jumps its counters over the hole (`ProgramBuilder.skip`); `compress_folded`
lengthens the REPEAT that ends at the hole. What lowering decides by counters it decides alike within a loop:
differently at most for a number of first blocks, which are kept, and for the last one, which is kept too.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from simfa.isa import Instruction, Repeat
from simfa.salog_check import RING_EVENTS
from simfa.translate.builder import Hole, ProgramBuilder
from simfa.translate.compress import compress, instruction_at
from simfa.translate.events import Codes, Step, steps_of
from simfa.translate.runs import runs_of

KEPT_COPIES = 3  # after those that differ: enough to see a loop in the instructions
_RING_EVENTS = np.array(sorted(RING_EVENTS), np.uint32)


class Folded(NamedTuple):
    """Codes without the middle of their loop: `skipped` copies of `period` codes stood at `place`."""

    codes: Codes
    place: int
    period: int
    skipped: int


def fold(codes: Codes, special: int) -> Folded | None:
    """Return `codes` without most copies of their loop, or None when they have none or a short one.

    The first `special` copies, some more, and the last copy are kept.
    """
    events, payloads = codes & 0xFFFF, codes >> 16
    # Blocks of K and V count down in a loop; barriers stay.
    blocks = np.where(np.isin(events, _RING_EVENTS), payloads, 0).astype(np.int64)
    shapes = codes.astype(np.int64) - (blocks << 16)
    # Shorter periods come first, and a run of most codes is the loop.
    runs = runs_of(shapes, blocks[:, np.newaxis])
    run = next((run for run in runs if 2 * run.saved > len(codes)), None)
    kept = special + KEPT_COPIES
    if run is None or run.copies <= kept + 2:
        return None
    skipped = run.copies - kept - 1
    place = run.start + run.period * kept
    rest = codes[place + run.period * skipped :]
    return Folded(np.concatenate([codes[:place], rest]), place, run.period, skipped)


def lower_steps(
    codes: Codes, folded: Folded | None, out: ProgramBuilder, lower_one: Callable[[Step], None]
) -> Hole | None:
    """Lower events one by one into `out`: all of `codes`, or those that `folded` keeps; return the hole left then."""
    if folded is None:
        for step in steps_of(codes):
            lower_one(step)
        return None
    steps = list(steps_of(folded.codes))
    for step in steps[: folded.place - folded.period]:
        lower_one(step)
    mark = out.mark()
    for step in steps[folded.place - folded.period : folded.place]:
        lower_one(step)
    hole = out.skip(mark, folded.skipped)
    for step in steps[folded.place :]:
        lower_one(step)
    return hole


def compress_folded(body: Sequence[Instruction], hole: Hole) -> tuple[Instruction | Repeat, ...] | None:
    """Return a program with REPEATs and with its hole filled, or None when no REPEAT reaches the hole.

    A REPEAT reaches it when less than a copy, the beginning of the next one, lies between.
    """
    before = compress(body[: hole.position])
    repeats = [place for place, item in enumerate(before) if isinstance(item, Repeat)]
    loop = before[repeats[-1]] if repeats else None
    if not isinstance(loop, Repeat) or hole.instructions % len(loop.body):
        return None
    between = before[repeats[-1] + 1 :]
    if between != _copy(loop, loop.count)[: len(between)] or len(loop.body) * loop.count < 2 * hole.instructions:
        return None
    count = loop.count + hole.copies * (hole.instructions // len(loop.body))
    rest = (*_copy(loop, count)[: len(between)], *body[hole.position :])
    while rest[: len(loop.body)] == _copy(loop, count):
        rest = rest[len(loop.body) :]
        count += 1
    return (*before[: repeats[-1]], Repeat(count=count, body=loop.body), *compress(rest))


def _copy(loop: Repeat, iteration: int) -> tuple[Instruction, ...]:
    """Return the instructions of one iteration of a loop."""
    return tuple(instruction_at(instruction, iteration) for instruction in loop.body)
