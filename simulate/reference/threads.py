"""A role of a CTA as a thread of its SM: where it is in its programs, what it waits for, its groups."""

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from simfa.errors import SimulationError
from simfa.isa import MNEMONICS, AcquireStage, Affine
from simfa.simulate.reference.programs import Step
from simfa.simulate.reference.result import Issue
from simfa.simulate.reference.tensor_core import Timing

Member = TypeVar("Member")


class Wait(NamedTuple):
    """A wait instruction: whether its condition holds at a cycle, its two costs, and what its success does.

    `succeed(cycle, earliest)` may wake others, which are then ready at `earliest` at the soonest.
    """

    mnemonic: str
    holds: Callable[[int], bool]
    wait_cycles: int
    wake_cycles: int
    succeed: Callable[[int, int], None]
    missing: Callable[[], str]


class StoreState:
    """Progress of one TMA_STORE: the cycles at which it completed and at which its shared memory had been read."""

    def __init__(self) -> None:
        """Neither has happened."""
        self.completed: int | None = None
        self.read: int | None = None


class Groups(Generic[Member]):
    """Asynchronous groups of one role: members since the last commit, and committed groups over all its tiles."""

    def __init__(self) -> None:
        """Start without groups."""
        self.open: list[Member] = []
        self.committed: list[list[Member]] = []
        self.first_of_tile = 0

    def begin_tile(self) -> None:
        """Let group ids count from 0 again."""
        self.first_of_tile = len(self.committed)

    def check(self, group: int, where: str) -> None:
        """Raise `SimulationError` unless `group` is the id that the next commit gets."""
        expected = len(self.committed) - self.first_of_tile
        if group != expected:
            raise SimulationError(f"{where} names group {group}; the role's next commit in this tile is {expected}")

    def commit(self) -> list[Member]:
        """Seal the open members into the next group and return them."""
        group, self.open = self.open, []
        self.committed.append(group)
        return group

    def up_to(self, group: int) -> list[Member]:
        """Return the members of group `group` of this tile and of all groups before it, or nothing without it."""
        index = self.first_of_tile + group
        if not 0 <= index < len(self.committed):
            return []
        return [member for members in self.committed[: index + 1] for member in members]


class Thread:
    """One role of one CTA."""

    def __init__(self, cta: int, role: int, ready: int, rings: list[str]) -> None:
        """Start before the prologue."""
        self.cta = cta
        self.role = role
        self.ready = ready
        self.program = ""
        self.steps: list[Step] = []
        self.position = 0
        self.tile = -1
        self.tile_edge_due = False
        self.bases = dict.fromkeys(rings, 0)
        self.coordinates: dict[str, tuple[int, ...]] = {"none": (0, 0, 0, 0)}
        self.waiting: Wait | None = None
        self.computing = False
        self.end: int | None = None
        self.wgmmas: Groups[Timing] = Groups()
        self.stores: Groups[StoreState] = Groups()
        self.issues: list[Issue] = []
        self.at_last_acquire: Callable[[int], None] = lambda _cycle: None

    def load(self, program: str, steps: list[Step]) -> None:
        """Point at the first instruction of a program."""
        self.program, self.steps, self.position = program, steps, 0
        self.wgmmas.begin_tile()
        self.stores.begin_tile()

    def has_instruction(self) -> bool:
        """Return whether the present program has an instruction left."""
        return self.position < len(self.steps)

    def acquires_later(self) -> bool:
        """Return whether an ACQUIRE_STAGE of the present program is still to be issued."""
        return any(isinstance(step.instruction, AcquireStage) for step in self.steps[self.position :])

    def is_stopped(self) -> bool:
        """Return whether something else must happen before this thread can go on, or it is done."""
        return self.waiting is not None or self.computing or self.end is not None

    def take(self, cycle: int) -> Step:
        """Issue the next instruction and return it."""
        step = self.steps[self.position]
        self.position += 1
        self.ready = cycle + 1
        self.issues.append(Issue(cycle, self.program, step.flat_index))
        return step

    def fill(self, ring: str, ordinal: int) -> int:
        """Return the absolute fill of an ordinal of this tile."""
        return self.bases[ring] + ordinal

    def where(self, step: Step) -> str:
        """Return the place of a step in a reader's words."""
        mnemonic = MNEMONICS[type(step.instruction)]
        return f"CTA {self.cta} role {self.role}, program {self.program} instruction {step.flat_index} ({mnemonic})"

    def check_group(self, groups: Groups[Timing] | Groups[StoreState], operand: Affine, step: Step) -> None:
        """Raise `SimulationError` unless the operand names the group that is open."""
        groups.check(step.value(operand), self.where(step))
