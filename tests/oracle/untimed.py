"""What a static trace executes, without time: written apart from the reference engine, to check it."""

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

from simfa.hardware import HardwareSpec
from simfa.isa import Affine, Instruction, Repeat, TmaBulk, TmaStore, TmaTensor, Wgmma
from simfa.trace import Program, TensorMap, TileBinding, Trace


class Executed(NamedTuple):
    """One instruction slot: its program, its index in the text, and its operands' place."""

    program: str
    flat_index: int
    instruction: Instruction
    iteration: int
    tile: TileBinding | None


def executed(trace: Trace, cta: int, role: int) -> Iterator[Executed]:
    """Yield everything a role of a static CTA executes, in order."""
    programs = {program.name: program for program in trace.programs}
    prologue = trace.prologue[role]
    if prologue is not None:
        yield from _program(programs[prologue], None)
    for tile in trace.schedule.tiles[cta]:
        yield from _program(programs[trace.tile_kinds[tile.kind].programs[role]], tile)


def _program(program: Program, tile: TileBinding | None) -> Iterator[Executed]:
    index = 0
    for item in program.body:
        if isinstance(item, Repeat):
            for iteration in range(item.count):
                for offset, instruction in enumerate(item.body):
                    yield from _slots(program.name, index + offset, instruction, iteration, tile)
            index += len(item.body)
        else:
            yield from _slots(program.name, index, item, 0, tile)
            index += 1


def _slots(
    program: str, index: int, instruction: Instruction, iteration: int, tile: TileBinding | None
) -> Iterator[Executed]:
    slots = instruction.count if isinstance(instruction, Wgmma) else 1
    for _ in range(slots):
        yield Executed(program, index, instruction, iteration, tile)


def requests(trace: Trace, hardware: HardwareSpec, rank: int, step: Executed) -> int:
    """Return the requests of one instruction, by looking at every byte it copies."""
    instruction = step.instruction
    if hardware.tma.level == 0:
        return 0
    if isinstance(instruction, TmaBulk):
        first = _value(instruction.address, step)
        return _count(hardware, [list(range(first, first + instruction.bytes))])
    if isinstance(instruction, TmaTensor | TmaStore):
        tensor = next(tensor for tensor in trace.maps if tensor.name == instruction.map)
        y = _value(instruction.y, step)
        if isinstance(instruction, TmaTensor) and instruction.multicast:
            y += rank * tensor.box[1]
        place = [a + b for a, b in zip((instruction.x, y, 0, 0, 0), _origin(trace, tensor, step.tile), strict=True)]
        return _count(hardware, list(_rows(tensor, place)))
    return 0


def _value(operand: Affine, step: Executed) -> int:
    return operand.start + operand.step * step.iteration


def _origin(trace: Trace, tensor: TensorMap, tile: TileBinding | None) -> tuple[int, ...]:
    if tensor.origin == "none":
        return (0, 0, 0, 0, 0)
    assert tile is not None and trace.shape is not None and trace.kernel is not None
    if tensor.origin == "query":
        return (0, tile.m_block * trace.kernel.tile_m, tile.head, tile.batch, 0)
    return (0, 0, tile.head * trace.shape.heads_kv // trace.shape.heads_q, tile.batch, 0)


def _rows(tensor: TensorMap, place: list[int]) -> Iterator[list[int]]:
    """Yield the addresses of the bytes of each row of a box that lie inside the tensor."""
    rank = len(tensor.dims)
    for offsets in product(*(range(extent) for extent in reversed(tensor.box[1:]))):
        row = [start + offset for start, offset in zip(place[1:rank], reversed(offsets), strict=True)]
        if any(coordinate >= extent for coordinate, extent in zip(row, tensor.dims[1:], strict=True)):
            continue
        address = tensor.base + sum(map(int.__mul__, row, tensor.strides))
        width = tensor.element_bytes
        columns = [column for column in range(place[0], place[0] + tensor.box[0]) if column < tensor.dims[0]]
        yield [address + column * width + byte for column in columns for byte in range(width)]


def _count(hardware: HardwareSpec, rows: list[list[int]]) -> int:
    """Return how many requests rows of byte addresses make."""
    if not hardware.tma.deduplicate:
        return sum(len({byte // hardware.tma.request_bytes for byte in row}) for row in rows)
    lines = [byte // hardware.l2.line_bytes for row in rows for byte in row]
    return sum(1 for index, line in enumerate(lines) if index == 0 or lines[index - 1] != line)
