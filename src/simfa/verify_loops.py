"""Skips iterations in which the verifier's execution only repeats itself.

When all roles are inside REPEATs and the state is that of an earlier moment but for ordinals and group ids that have
all grown alike, the execution from here on is the one from there on, shifted. So whole periods can be left out, down to
the last iteration, without changing what is found. Long loops then cost no more than short ones.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from simfa import isa
from simfa.isa import Instruction, Slot
from simfa.verify_state import Cta, Fact, Read, Role, Step

_GROUP_OF: dict[type, str] = {
    isa.Wgmma: "WGMMA",
    isa.WgmmaCommit: "WGMMA",
    isa.WgmmaWait: "WGMMA",
    isa.TmaStore: "store",
    isa.TmaCommit: "store",
    isa.TmaWait: "store",
}


class _Moment(NamedTuple):
    """How far everything was when a state occurred."""

    iterations: tuple[int, ...]
    commits: tuple[dict[str, int], ...]
    bases: tuple[dict[str, int], ...]


class LoopSkipper:
    """Remembers the states of one execution, up to their shift, and skips when one comes back."""

    def __init__(self, ctas: Sequence[Cta], roles: Sequence[Role]) -> None:
        """Start without memories."""
        self._ctas, self._roles = ctas, roles
        self._seen: dict[object, _Moment] = {}

    def skip(self) -> None:
        """Leave out whole periods if the present state has occurred before."""
        running = [role for role in self._roles if role.block < len(role.blocks)]
        if not all(role.blocks[role.block].repeated for role in running):
            self._seen.clear()
            return
        state = self._state()
        now = self._moment()
        before = self._seen.setdefault(state, now)
        if before is now:
            return
        grown = [new - old for new, old in zip(now.iterations, before.iterations, strict=True)]
        shifts = [
            {name: new[name] - old[name] for name in new} for new, old in zip(now.bases, before.bases, strict=True)
        ]
        commits = [
            {kind: new[kind] - old[kind] for kind in new} for new, old in zip(now.commits, before.commits, strict=True)
        ]
        if any(shift != shifts[0] for shift in shifts):
            return
        periods = []
        for role, iterations, groups in zip(self._roles, grown, commits, strict=True):
            if role not in running:
                continue
            block = role.blocks[role.block]
            if iterations < 1 or not _moves_along(block.instructions, iterations, shifts[0], groups):
                return
            periods.append((block.times - 1 - role.iteration) // iterations)
        count = min(periods, default=0)
        if count < 1:
            return
        for role, iterations, groups in zip(self._roles, grown, commits, strict=True):
            _move_role(role, count * iterations, {name: count * by for name, by in shifts[0].items()})
            _move_groups(role, {kind: count * by for kind, by in groups.items()})
        for cta in self._ctas:
            _move_cta(cta, {name: count * by for name, by in shifts[0].items()})
        self._seen.clear()

    def _moment(self) -> _Moment:
        return _Moment(
            tuple(role.iteration for role in self._roles),
            tuple(dict(role.commits) for role in self._roles),
            tuple({name: window.base for name, window in cta.windows.items()} for cta in self._ctas),
        )

    def _state(self) -> object:
        """Return all that decides how the execution goes on, ordinals and groups counted from where they are now."""
        return (
            tuple(
                (
                    role.block,
                    role.offset,
                    role.open["WGMMA"] is None,
                    role.open["store"] is None,
                    role.commits["WGMMA"] - role.completed,
                    _relative(role.known, role.cta),
                    _relative(role.released, role.cta),
                    frozenset(
                        (ring, ordinal - role.cta.windows[ring].base, role.commits["WGMMA"] - read.group)
                        for (ring, ordinal), read in role.reads.items()
                    ),
                )
                for role in self._roles
            ),
            tuple(_state_of(cta) for cta in self._ctas),
        )


def _state_of(cta: Cta) -> object:
    return (
        tuple(
            (
                window.acquired - window.base,
                tuple(
                    (fill.acquirer.number if fill.acquirer else None, fill.credited, fill.arrivals)
                    for fill in window.fills
                ),
            )
            for window in cta.windows.values()
        ),
        tuple(
            (barrier, tuple(_relative(facts, cta) for facts in cta.barriers[barrier]))
            for barrier in sorted(cta.barriers)
        ),
    )


def _relative(facts: Iterable[Fact], cta: Cta) -> frozenset[Fact]:
    """Return the facts about fills that are not over, with ordinals counted from the first such fill."""
    return frozenset(
        (ring, ordinal - cta.windows[ring].base) for ring, ordinal in facts if ordinal >= cta.windows[ring].base
    )


def _moves_along(body: Sequence[Instruction], iterations: int, shifts: dict[str, int], groups: dict[str, int]) -> bool:
    """Return whether all slots and groups of a loop grow in `iterations` as the state did."""
    for instruction in body:
        for name in ("slot", "a", "b"):
            slot = getattr(instruction, name, None)
            if isinstance(slot, Slot) and slot.index.step * iterations != shifts[slot.ring]:
                return False
        kind = _GROUP_OF.get(type(instruction))
        if kind is not None and instruction.group.step * iterations != groups[kind]:  # type: ignore[union-attr]
            return False
    return True


def _moved(facts: Iterable[Fact], shifts: dict[str, int]) -> Iterable[Fact]:
    return ((ring, ordinal + shifts[ring]) for ring, ordinal in facts)


def _later(role: Role, step: Step, iterations: int) -> Step:
    """Return a step of the loop that `role` is in as it will be `iterations` later; others stay."""
    if role.block == len(role.blocks):
        return step
    block = role.blocks[role.block]
    inside = block.position <= step.position < block.position + len(block.instructions)
    return step._replace(iteration=step.iteration + iterations) if inside else step


def _move_role(role: Role, iterations: int, shifts: dict[str, int]) -> None:
    """Put a role `iterations` ahead, with what it knows and reads."""
    role.open = {kind: step and _later(role, step, iterations) for kind, step in role.open.items()}
    for window in role.cta.windows.values():
        for fill in window.fills:
            if fill.acquirer is role and fill.acquire is not None:
                fill.acquire = _later(role, fill.acquire, iterations)
    role.known = set(_moved(role.known, shifts))
    role.released = set(_moved(role.released, shifts))
    role.reads = {
        fact: Read(read.group, _later(role, read.step, iterations))
        for fact, read in zip(_moved(role.reads, shifts), role.reads.values(), strict=True)
    }
    role.iteration += iterations


def _move_groups(role: Role, groups: dict[str, int]) -> None:
    """Number the groups of a role from further on."""
    for kind, by in groups.items():
        role.commits[kind] += by
    role.completed += groups["WGMMA"]
    role.reads = {fact: Read(read.group + groups["WGMMA"], read.step) for fact, read in role.reads.items()}


def _move_cta(cta: Cta, shifts: dict[str, int]) -> None:
    """Count the fills of a CTA from further on."""
    for name, window in cta.windows.items():
        window.base += shifts[name]
        window.acquired += shifts[name]
    for barrier, signals in cta.barriers.items():
        cta.barriers[barrier] = type(signals)(frozenset(_moved(facts, shifts)) for facts in signals)
