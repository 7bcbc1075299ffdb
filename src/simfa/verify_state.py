"""State of the verifier's untimed execution: how far each role is, what each fill received, who knows what."""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from simfa.isa import Affine, Instruction, Repeat, Slot
from simfa.trace import Program, Ring

Fact = tuple[str, int]  # ring, ordinal: this fill is complete
MOST_AHEAD = 1 << 16


class FlowError(Exception):
    """What is wrong with the instruction being executed."""


class Step(NamedTuple):
    """One execution of one instruction: its flat position in the program, and the iteration of the REPEAT around it."""

    position: int
    instruction: Instruction
    iteration: int

    def value(self, operand: Affine) -> int:
        """Return what an operand is in this iteration."""
        return operand.start + operand.step * self.iteration

    def slot(self, slot: Slot) -> Fact:
        """Return ring and ordinal of a slot in this iteration."""
        return slot.ring, self.value(slot.index)


class Read(NamedTuple):
    """The latest WGMMA of a role that reads a slot."""

    group: int
    step: Step


class Block(NamedTuple):
    """Instructions that run `times` times: a REPEAT, or once: what stands between REPEATs."""

    instructions: Sequence[Instruction]
    times: int
    position: int
    repeated: bool


class Fill:
    """What happened to one fill of a ring in one CTA."""

    def __init__(self) -> None:
        """Start empty, not acquired."""
        self.acquirer: Role | None = None
        self.acquire: Step | None = None
        self.credited = 0
        self.arrivals = 0


class Window:
    """The fills of one ring of one CTA that are not over yet: from `base` on.

    A fill is over when it was filled and released as often as its ring says. Whoever touches it later is wrong, but for
    an MB_WAIT, which passes.
    """

    def __init__(self, ring: Ring) -> None:
        """Start without fills."""
        self.ring = ring
        self.base = 0
        self.acquired = 0
        self.fills: deque[Fill] = deque()

    def fill(self, ordinal: int) -> Fill | None:
        """Return a fill, or None when it is over; raises `FlowError` for one that is far ahead of the oldest."""
        if ordinal < self.base:
            return None
        if ordinal - self.base > MOST_AHEAD:
            raise FlowError(
                f"{self.ring.name}[{ordinal}] is more than {MOST_AHEAD} fills ahead of {self.ring.name}[{self.base}], "
                "which is not over yet"
            )
        while len(self.fills) <= ordinal - self.base:
            self.fills.append(Fill())
        return self.fills[ordinal - self.base]

    def retire(self) -> None:
        """Forget fills that are over."""
        while self.fills:
            fill = self.fills[0]
            whole = fill.acquirer is not None and fill.credited == self.ring.bytes
            if not whole or fill.arrivals != self.ring.releases:
                return
            self.fills.popleft()
            self.base += 1


class Cta:
    """Rings and named barriers of one CTA, and its peer in a cluster of two.

    A signal at a barrier is the set of facts its sender knew.
    """

    def __init__(self, rings: Mapping[str, Ring], signals: Mapping[int, int]) -> None:
        """Start with no fills and with `signals` at the barriers that tell nothing."""
        self.windows = {name: Window(ring) for name, ring in rings.items()}
        self.barriers: dict[int, deque[frozenset[Fact]]] = {
            barrier: deque([frozenset()] * count) for barrier, count in signals.items()
        }
        self.peer: Cta | None = None

    def is_over(self, fact: Fact) -> bool:
        """Return whether a fill is over."""
        return fact[1] < self.windows[fact[0]].base


class Role:
    """One warpgroup: where it is in its program, which groups it committed, what it knows about fills."""

    def __init__(self, cta: Cta, number: int, program: Program) -> None:
        """Start before the first instruction of `program`."""
        self.cta = cta
        self.number = number
        self.program = program
        self.blocks = _blocks_of(program)
        self.block, self.offset, self.iteration = 0, 0, 0
        self.commits = {"WGMMA": 0, "store": 0}
        self.open: dict[str, Step | None] = {"WGMMA": None, "store": None}
        self.completed = -1
        self.known: set[Fact] = set()
        self.released: set[Fact] = set()
        self.reads: dict[Fact, Read] = {}

    @property
    def step(self) -> Step | None:
        """The next instruction to execute, None at the end."""
        if self.block == len(self.blocks):
            return None
        block = self.blocks[self.block]
        return Step(block.position + self.offset, block.instructions[self.offset], self.iteration)

    def advance(self) -> None:
        """Go on to the next instruction."""
        block = self.blocks[self.block]
        self.offset += 1
        if self.offset == len(block.instructions):
            self.offset = 0
            self.iteration += 1
            if self.iteration == block.times:
                self.iteration = 0
                self.block += 1

    def forget(self) -> None:
        """Drop what concerns fills that are over."""
        self.known = {fact for fact in self.known if not self.cta.is_over(fact)}
        self.released = {fact for fact in self.released if not self.cta.is_over(fact)}


def _blocks_of(program: Program) -> list[Block]:
    """Return the program as blocks; instructions between REPEATs are one block."""
    blocks: list[Block] = []
    plain: list[Instruction] = []
    position = 0
    for item in program.body:
        if isinstance(item, Repeat):
            if plain:
                blocks.append(Block(tuple(plain), 1, position - len(plain), False))
                plain = []
            blocks.append(Block(item.body, item.count, position, True))
            position += len(item.body)
        else:
            plain.append(item)
            position += 1
    if plain:
        blocks.append(Block(tuple(plain), 1, position - len(plain), False))
    return blocks
