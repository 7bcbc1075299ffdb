"""Programs as flat lists of steps, and how many fills of each ring a tile uses."""

from collections.abc import Iterator
from typing import NamedTuple

from simfa.isa import Affine, Instruction, Repeat, Slot, Wgmma
from simfa.trace import Program, Trace


class Step(NamedTuple):
    """One instruction to issue: its index in the text (a REPEAT body counted once) and the iteration it belongs to."""

    flat_index: int
    instruction: Instruction
    iteration: int

    def value(self, operand: Affine) -> int:
        """Return the operand's value in this step's iteration."""
        return operand.start + operand.step * self.iteration


def unroll(program: Program) -> list[Step]:
    """Return the steps of a program in order; a WGMMA with count n gives n steps."""
    steps: list[Step] = []
    index = 0
    for item in program.body:
        body, count = (item.body, item.count) if isinstance(item, Repeat) else ((item,), 1)
        for iteration in range(count):
            for offset, instruction in enumerate(body):
                singles = instruction.count if isinstance(instruction, Wgmma) else 1
                steps += [Step(index + offset, instruction, iteration)] * singles
        index += len(body)
    return steps


def slots(instruction: Instruction) -> Iterator[Slot]:
    """Yield the slots an instruction names."""
    for field in ("slot", "a", "b"):
        operand = getattr(instruction, field, None)
        if isinstance(operand, Slot):
            yield operand


def fills_of_kinds(trace: Trace, steps: dict[str, list[Step]]) -> list[dict[str, int]]:
    """Return, for each tile kind, the fills of each ring that one such tile uses: highest ordinal named plus one."""
    fills_of_kind = []
    for kind in trace.tile_kinds:
        fills = {ring.name: 0 for ring in trace.rings}
        for program in kind.programs:
            for step in steps[program]:
                for slot in slots(step.instruction):
                    fills[slot.ring] = max(fills[slot.ring], step.value(slot.index) + 1)
        fills_of_kind.append(fills)
    return fills_of_kind
