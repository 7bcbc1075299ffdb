"""What the machine code of a kernel does: roles, main loops, spills, probe order, where the exponentials went.

Input is nvdisasm's JSON listing; every instruction is 16 bytes. The roles are told apart by reachability from the two
`setmaxnreg` instructions, and the main loops are the innermost loops of a consumer that issue WGMMAs.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from simfa.errors import InstrumentError

INSTRUCTION_BYTES = 16


class Instruction(NamedTuple):
    """One SASS instruction: guard (`@!P0` or empty), opcode with its suffixes, operands as one string."""

    guard: str
    opcode: str
    operands: str


class Function(NamedTuple):
    """One kernel's listing; instruction i lies at byte 16 i."""

    symbol: str
    instructions: tuple[Instruction, ...]


class Loop(NamedTuple):
    """A main loop: instructions `first` to `last`, both included."""

    first: int
    last: int


class Roles(NamedTuple):
    """Instruction indices that only the producer, only the consumers, or neither of the two alone can reach."""

    producer: frozenset[int]
    consumer: frozenset[int]
    shared: frozenset[int]


def parse_listing(text: str | bytes, name: str) -> list[Function]:
    """Return the functions of an `nvdisasm -json` listing; raises `InstrumentError` when it is something else."""
    try:
        _, functions = msgspec.json.decode(text)
        return [
            Function(
                function["function-name"],
                tuple(
                    Instruction(item.get("predicate", ""), item["opcode"], item.get("operands", ""))
                    for item in function["sass-instructions"]
                ),
            )
            for function in functions
        ]
    except (msgspec.DecodeError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise InstrumentError(
            f"{name}: not a listing of `nvdisasm -json` ({error}); use nvdisasm 13 or later"
        ) from error


def is_wgmma(instruction: Instruction) -> bool:
    """Return whether the instruction is a warpgroup matrix multiply."""
    return instruction.opcode.startswith("HGMMA")


def is_clock_read(instruction: Instruction) -> bool:
    """Return whether the instruction reads the 64-bit SM clock: one probe stamp."""
    return instruction.opcode.startswith("CS2R") and "SR_CLOCKLO" in instruction.operands


def is_spill(instruction: Instruction) -> bool:
    """Return whether the instruction moves a register to or from local memory."""
    return instruction.opcode.split(".")[0] in ("STL", "LDL")


def branch_target(instruction: Instruction) -> int | None:
    """Return the index a branch goes to, or None for what is no direct branch."""
    if instruction.opcode.split(".")[0] != "BRA":
        return None
    found = re.search(r"(0x[0-9a-f]+)$", instruction.operands)
    return int(found[1], 16) // INSTRUCTION_BYTES if found else None


def find_roles(instructions: Sequence[Instruction]) -> Roles:
    """Return which instructions belong to the producer and which to the consumers.

    Raises `InstrumentError` when the kernel does not split its registers between the roles.
    """
    starts = {}
    for kind, role in (("USETMAXREG.DEALLOC", "producer"), ("USETMAXREG.TRY_ALLOC", "consumer")):
        found = [i for i, instruction in enumerate(instructions) if instruction.opcode.startswith(kind)]
        if len(found) != 1:
            raise InstrumentError(
                f"{len(found)} {kind} instructions, expected 1; the kernel does not set its registers by role"
            )
        starts[role] = found[0]
    producer = _reachable(instructions, starts["producer"])
    consumer = _reachable(instructions, starts["consumer"])
    everything = frozenset(range(len(instructions)))
    return Roles(producer - consumer, consumer - producer, everything - (producer ^ consumer))


def find_main_loops(instructions: Sequence[Instruction], consumer: frozenset[int]) -> list[Loop]:
    """Return the innermost loops of the consumers that issue WGMMAs, by address.

    Blocks that only retry an mbarrier lie behind the kernel's exit and jump back before it; a backward branch over an
    unconditional exit closes no loop.
    """
    loops = []
    for index in sorted(consumer):
        target = branch_target(instructions[index])
        if target is not None and target <= index:
            body = instructions[target : index + 1]
            ends = any(instruction.opcode == "EXIT" and not instruction.guard for instruction in body)
            if not ends and any(map(is_wgmma, body)):
                loops.append(Loop(target, index))
    return [
        loop
        for loop in loops
        if not any(other != loop and loop.first <= other.first and other.last <= loop.last for other in loops)
    ]


def landmarks(instructions: Sequence[Instruction], loop: Loop) -> list[str]:
    """Return the order of what matters in one turn of a loop.

    Marks are `clock` (a stamp), `mbarrier`, `sync` and `arrive` (named barriers), `qk`, `pv`, `wait 1` and `wait 0`.
    Repeats of one mbarrier's try-wait count once, as do the WGMMAs of one group.
    """
    order: list[str] = []
    groups = iter(("qk", "pv"))
    group = ""
    for instruction in instructions[loop.first : loop.last + 1]:
        mark = ""
        if is_clock_read(instruction):
            mark = "clock"
        elif is_wgmma(instruction):
            # A stamp's clock read may not be moved into a group, so WGMMAs without a landmark between are one group.
            if not order or order[-1] != group:
                group = next(groups, "extra wgmma group")
            mark = group
        elif "TRYWAIT" in instruction.opcode:
            mark = "mbarrier"
        elif instruction.opcode.startswith("BAR.SYNC"):
            mark = "sync"
        elif instruction.opcode.startswith("BAR.ARV"):
            mark = "arrive"
        elif instruction.opcode.startswith("WARPGROUP.DEPBAR"):
            mark = f"wait {int(instruction.operands.rsplit(',', 1)[1], 16)}"
        if mark and (mark in ("clock", "sync", "arrive") or not order or order[-1] != mark):
            order.append(mark)
    return order


def exponentials(instructions: Sequence[Instruction], loop: Loop) -> tuple[int, int]:
    """Return how many exp2 a turn runs between wait<1> and wait<0>, and how many elsewhere."""
    between = elsewhere = 0
    inside = False
    for instruction in instructions[loop.first : loop.last + 1]:
        if instruction.opcode.startswith("WARPGROUP.DEPBAR"):
            inside = instruction.operands.endswith("0x1")
        elif instruction.opcode.startswith("MUFU.EX2"):
            between, elsewhere = (between + 1, elsewhere) if inside else (between, elsewhere + 1)
    return between, elsewhere


def _reachable(instructions: Sequence[Instruction], start: int) -> frozenset[int]:
    """Return every index that control can reach from `start`."""
    seen: set[int] = set()
    pending = [start]
    while pending:
        index = pending.pop()
        if index in seen or index >= len(instructions):
            continue
        seen.add(index)
        instruction = instructions[index]
        target = branch_target(instruction)
        if target is not None:
            pending.append(target)
        # `BRA.DIV UR7, x` and `BRA P1, x` have a condition besides the guard.
        conditional = bool(instruction.guard) or "," in instruction.operands
        if instruction.opcode.split(".")[0] not in ("BRA", "EXIT") or conditional:
            pending.append(index + 1)
    return frozenset(seen)
