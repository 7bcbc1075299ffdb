"""From a role's list of actions to its program: loops, peeled iterations, and the group ids that follow from order."""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from simfa.isa import Affine, Instruction, Repeat, TmaCommit, WgmmaCommit
from tests.oracle.chooser import Chooser

Family = Literal["wgmma", "store"]


class Place(NamedTuple):
    """Where an action is written: the (first) iteration it serves, whether a REPEAT advances it, its groups.

    `commits` counts the commits of its family before it in this tile, `step` how many a REPEAT's body makes.
    """

    iteration: int
    repeated: bool
    commits: int
    step: int

    def affine(self, start: int, step: int) -> Affine:
        """Return `start + step * iteration` as the operand of this place."""
        return Affine(start + step * self.iteration, step if self.repeated else 0)

    def group(self, behind: int = 0) -> Affine:
        """Return the id of the next commit less `behind`."""
        return Affine(self.commits - behind, self.step if self.repeated else 0)


Writer = Callable[[Place], Instruction | None]


class Action(NamedTuple):
    """One instruction of one role in each iteration of a segment.

    `write` returns the instruction for a place, or None where it makes no sense yet. With `lag` 1 the action of
    iteration j is taken in iteration j + 1. `leader` actions are left out of the program of rank 1.
    """

    role: int
    write: Writer
    lag: int = 0
    leader: bool = False
    family: Family | None = None
    commits: bool = False


def always(instruction: Instruction) -> Writer:
    """Return what writes the same instruction everywhere."""
    return lambda _place: instruction


class ProgramWriter:
    """Writes one role's program for one tile."""

    def __init__(self, chooser: Chooser) -> None:
        self.chooser = chooser
        self.body: list[Instruction | Repeat] = []
        self.commits: dict[Family, int] = {"wgmma": 0, "store": 0}
        self.open: dict[Family, bool] = {"wgmma": False, "store": False}

    def segment(self, actions: Sequence[Action], count: int) -> None:
        """Write `count` iterations: one by one, or a REPEAT over those that have all actions."""
        lag = max((action.lag for action in actions), default=0)
        first, last = lag, count
        if actions and first < last and self.chooser.chance(75):
            first += self.chooser.pick([0, 0, 1]) if first + 1 < last else 0
            last -= self.chooser.pick([0, 0, 1]) if first + 1 < last else 0
            self._iterations(actions, count, range(first))
            self._repeat(actions, first, last - first)
            self._iterations(actions, count, range(last, count + lag))
        else:
            self._iterations(actions, count, range(count + lag))

    def finish(self) -> tuple[Instruction | Repeat, ...]:
        """Commit what is open and return the body."""
        if self.open["wgmma"]:
            self.body.append(WgmmaCommit(group=Affine(self.commits["wgmma"])))
        if self.open["store"]:
            self.body.append(TmaCommit(group=Affine(self.commits["store"])))
        return tuple(self.body)

    def _iterations(self, actions: Sequence[Action], count: int, iterations: range) -> None:
        for iteration in iterations:
            present = [action for action in actions if 0 <= iteration - action.lag < count]
            self.body += self._instructions(present, iteration, {})

    def _repeat(self, actions: Sequence[Action], first: int, count: int) -> None:
        steps = dict.fromkeys(self.commits, 0)
        for action in actions:
            if action.commits and action.family is not None:
                steps[action.family] += 1
        body = self._instructions(actions, first, steps)
        if body:
            self.body.append(Repeat(count=count, body=tuple(body)))
        for family, step in steps.items():
            self.commits[family] += step * (count - 1)

    def _instructions(self, actions: Sequence[Action], iteration: int, steps: dict[Family, int]) -> list[Instruction]:
        """Return one iteration's instructions; `steps` is empty outside a REPEAT."""
        instructions = []
        for action in actions:
            family = action.family
            commits, step = (0, 0) if family is None else (self.commits[family], steps.get(family, 0))
            instruction = action.write(Place(iteration - action.lag, bool(steps), commits, step))
            if instruction is None:
                continue
            instructions.append(instruction)
            if family is not None and action.commits:
                self.commits[family] += 1
                self.open[family] = False
            elif family is not None and not type(instruction).__name__.endswith("Wait"):
                self.open[family] = True
        return instructions
