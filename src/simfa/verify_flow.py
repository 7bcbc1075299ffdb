"""Untimed execution of tiles: proves that every wait ends, that counters balance and that slots are read when filled.

Every wait is on a counter that only grows, and nobody but the waiter takes from it, so the set of instructions that can
run does not depend on the order in which roles run: one order stands for all. `docs/design/0002-trace-verification.md`
has the argument.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from simfa import isa
from simfa.errors import TraceError
from simfa.isa import Affine, Slot
from simfa.trace import Program, Ring, TensorMap
from simfa.trace_places import Places, flat_instructions
from simfa.verify_loops import LoopSkipper
from simfa.verify_state import Cta, Fill, FlowError, Read, Role, Step, Window


class Flow:
    """Runs the programs of one CTA, or of the two CTAs of a cluster, for one tile each, until all end or all wait."""

    def __init__(
        self,
        rings: Mapping[str, Ring],
        maps: Mapping[str, TensorMap],
        programs: Sequence[Sequence[Program | None]],
        signals: Mapping[int, int],
        places: Places,
    ) -> None:
        """Set up one CTA for each entry of `programs`; `signals` are the barrier signals present at the start."""
        self._maps = maps
        self._places = places
        self._signals = signals
        self._ctas = [Cta(rings, signals) for _ in programs]
        if len(self._ctas) == 2:
            self._ctas[0].peer, self._ctas[1].peer = self._ctas[1], self._ctas[0]
        self._roles = [
            Role(cta, number, program)
            for cta, row in zip(self._ctas, programs, strict=True)
            for number, program in enumerate(row)
            if program is not None
        ]
        senders: dict[int, set[int]] = {}
        for role in self._roles:
            for flat in flat_instructions(role.program):
                if isinstance(flat.instruction, isa.BarArrive):
                    senders.setdefault(flat.instruction.barrier, set()).add(role.number)
        # A signal tells what its sender knew only where no other role's signal can be taken for it.
        self._telling = {barrier for barrier, roles in senders.items() if len(roles) == 1}
        self._senders = senders

    def run(self) -> dict[int, int]:
        """Run to the end and return the signals left at the first CTA's barriers.

        Raises `TraceError` naming the instruction that is wrong, or every role that waits for ever.
        """
        loops = LoopSkipper(self._ctas, self._roles)
        waits: dict[Role, str] = {}
        progress = True
        while progress:
            progress = False
            waits.clear()
            for role in self._roles:
                steps, wait = self._advance(role)
                progress = progress or steps > 0
                if wait is not None:
                    waits[role] = wait
            for cta in self._ctas:
                for window in cta.windows.values():
                    window.retire()
            for role in self._roles:
                role.forget()
            loops.skip()
        if waits:
            raise TraceError("; ".join(waits.values()))
        return {barrier: len(signals) for barrier, signals in self._ctas[0].barriers.items()}

    def _advance(self, role: Role) -> tuple[int, str | None]:
        """Run a role until it ends or waits; return the number of steps, and what it waits for."""
        count = 0
        while (step := role.step) is not None:
            try:
                wait = _EXECUTE[type(step.instruction)](self, role, step, step.instruction)
            except FlowError as fault:
                raise TraceError(f"{self._place(role, step)}: {fault}") from None
            if wait is not None:
                return count, f"{self._place(role, step)} waits for ever: {wait}"
            role.advance()
            count += 1
        return count, None

    def _place(self, role: Role, step: Step) -> str:
        place = self._places.instruction(role.program.name, step.position, step.instruction)
        return place if step.iteration == 0 else f"{place}, i = {step.iteration}"

    def check_quiescent(self) -> None:
        """Refuse counters that differ from those at the start of the tile; raises `TraceError`."""
        for role in self._roles:
            for kind, step in role.open.items():
                if step is not None:
                    raise TraceError(f"{self._place(role, step)}: its {kind} group is never committed")
            for (ring, ordinal), read in role.reads.items():
                raise TraceError(f"{self._place(role, read.step)}: reads {ring}[{ordinal}] and never releases it")
        for cta in self._ctas:
            for window in cta.windows.values():
                for ordinal, fill in enumerate(window.fills, window.base):
                    self._check_fill(window.ring, ordinal, fill)
            for barrier, signals in cta.barriers.items():
                extra = len(signals) - self._signals.get(barrier, 0)
                if extra:
                    off = f"{abs(extra)} {'more' if extra > 0 else 'fewer'}"
                    raise TraceError(
                        f"{self._first_use(barrier)}: barrier {barrier} receives {off} signals in a tile than its "
                        "BAR_WAITs take; expected equal numbers, or later tiles drift apart"
                    )

    def _first_use(self, barrier: int) -> str:
        for role in self._roles:
            for flat in flat_instructions(role.program):
                if isinstance(flat.instruction, isa.BarArrive | isa.BarWait) and flat.instruction.barrier == barrier:
                    return self._places.instruction(role.program.name, flat.position, flat.instruction)
        raise AssertionError("a barrier whose signals change is used")

    def _check_fill(self, ring: Ring, ordinal: int, fill: Fill) -> None:
        slot = f"{ring.name}[{ordinal}]"
        if fill.acquirer is None or fill.acquire is None:
            if ring.bytes or fill.arrivals:
                raise TraceError(f"{slot} is used but never acquired; ordinals of a ring must have no gap")
            return
        place = self._place(fill.acquirer, fill.acquire)
        if fill.credited != ring.bytes:
            raise TraceError(f"{place}: {slot} receives {fill.credited} bytes, its ring holds {ring.bytes}")
        if fill.arrivals != ring.releases:
            raise TraceError(f"{place}: {slot} is released {fill.arrivals} times, its ring needs {ring.releases}")

    def _acquire(self, role: Role, step: Step, instruction: isa.AcquireStage) -> str | None:
        name, ordinal = step.slot(instruction.slot)
        window = role.cta.windows[name]
        ring = window.ring
        if ordinal != window.acquired:
            raise FlowError(f"{name}[{ordinal}] after {window.acquired} fills; expected {name}[{window.acquired}]")
        freed = window.fill(ordinal - ring.stages) if ordinal >= ring.stages else None
        if freed is not None and freed.arrivals < ring.releases:
            return f"{name}[{ordinal - ring.stages}] was released {freed.arrivals} of {ring.releases} times"
        fill = window.fill(ordinal)
        if fill is not None:
            fill.acquirer, fill.acquire = role, step
        window.acquired += 1
        return None

    def _load(self, role: Role, step: Step, instruction: isa.TmaTensor | isa.TmaBulk) -> None:
        name, ordinal = step.slot(instruction.slot)
        fill = role.cta.windows[name].fill(ordinal)
        if fill is not None and fill.acquirer is not role:
            raise FlowError(f"this role has not acquired {name}[{ordinal}]; expected ACQUIRE_STAGE before the copy")
        if isinstance(instruction, isa.TmaBulk):
            self._credit(role.cta.windows[name], ordinal, instruction.bytes)
            return
        size = self._maps[instruction.map].box_bytes
        self._credit(role.cta.windows[name], ordinal, size)
        if instruction.multicast and role.cta.peer is not None:
            self._credit(role.cta.peer.windows[name], ordinal, size)

    @staticmethod
    def _credit(window: Window, ordinal: int, size: int) -> None:
        fill, ring = window.fill(ordinal), window.ring
        credited = ring.bytes if fill is None else fill.credited
        if credited + size > ring.bytes:
            raise FlowError(
                f"{ring.name}[{ordinal}] receives {credited + size} bytes so far, its ring holds {ring.bytes}"
            )
        if fill is not None:
            fill.credited += size

    def _mb_wait(self, role: Role, step: Step, instruction: isa.MbWait) -> str | None:
        name, ordinal = step.slot(instruction.slot)
        window = role.cta.windows[name]
        fill = window.fill(ordinal)
        if fill is not None and fill.acquirer is None:
            return f"{name}[{ordinal}] is not acquired"
        if fill is not None and fill.credited < window.ring.bytes:
            return f"{name}[{ordinal}] received {fill.credited} of {window.ring.bytes} bytes"
        role.known.add((name, ordinal))
        return None

    def _release(self, role: Role, step: Step, instruction: isa.ReleaseStage) -> None:
        fact = name, ordinal = step.slot(instruction.slot)
        self._demand_known(role, name, ordinal)
        read = role.reads.pop(fact, None)
        if read is not None and read.group > role.completed:
            raise FlowError(
                f"{name}[{ordinal}] may still be read by WGMMA group {read.group}, which was not waited for"
            )
        role.released.add(fact)
        for cta in (role.cta, role.cta.peer if instruction.remote else None):
            if cta is None:
                continue
            window = cta.windows[name]
            fill = window.fill(ordinal)
            if fill is None or fill.arrivals == window.ring.releases:
                raise FlowError(
                    f"{name}[{ordinal}] is released more often than the {window.ring.releases} times of its ring"
                )
            fill.arrivals += 1

    def _demand_known(self, role: Role, name: str, ordinal: int) -> None:
        window = role.cta.windows[name]
        if window.ring.bytes and window.fill(ordinal) is not None and (name, ordinal) not in role.known:
            raise FlowError(
                f"nothing says that {name}[{ordinal}] has arrived; expected an MB_WAIT of this role before, or a "
                "BAR_WAIT for a role that waited"
            )

    def _wgmma(self, role: Role, step: Step, instruction: isa.Wgmma) -> None:
        group = self._open(role, step, "WGMMA", instruction.group)
        for operand in (instruction.a, instruction.b):
            if isinstance(operand, Slot):
                fact = name, ordinal = step.slot(operand)
                window = role.cta.windows[name]
                self._demand_known(role, name, ordinal)
                if fact in role.released:
                    raise FlowError(f"{name}[{ordinal}] is read after this role released it")
                if window.fill(ordinal) is None:
                    raise FlowError(f"{name}[{ordinal}] is read after all {window.ring.releases} releases of its fill")
                if window.ring.bytes:
                    role.reads[fact] = Read(group, step)

    def _open(self, role: Role, step: Step, kind: str, group: Affine) -> int:
        """Check that an operation goes into the group that is open."""
        number = step.value(group)
        if number != role.commits[kind]:
            raise FlowError(f"group {number} after {role.commits[kind]} committed; expected group {role.commits[kind]}")
        role.open[kind] = step
        return number

    def _commit(self, role: Role, step: Step, instruction: isa.WgmmaCommit | isa.TmaCommit) -> None:
        kind = "WGMMA" if isinstance(instruction, isa.WgmmaCommit) else "store"
        self._open(role, step, kind, instruction.group)
        role.open[kind] = None
        role.commits[kind] += 1

    def _group_wait(self, role: Role, step: Step, instruction: isa.WgmmaWait | isa.TmaWait) -> None:
        kind = "WGMMA" if isinstance(instruction, isa.WgmmaWait) else "store"
        group = step.value(instruction.group)
        if group >= role.commits[kind]:
            raise FlowError(f"waits for {kind} group {group}, but only {role.commits[kind]} are committed")
        if kind == "WGMMA":
            role.completed = max(role.completed, group - instruction.outstanding)

    def _store(self, role: Role, step: Step, instruction: isa.TmaStore) -> None:
        self._open(role, step, "store", instruction.group)

    def _bar_arrive(self, role: Role, step: Step, instruction: isa.BarArrive) -> None:
        telling = instruction.barrier in self._telling
        signals = role.cta.barriers.setdefault(instruction.barrier, deque())
        signals.append(frozenset(role.known) if telling else frozenset())

    def _bar_wait(self, role: Role, step: Step, instruction: isa.BarWait) -> str | None:
        signals = role.cta.barriers.setdefault(instruction.barrier, deque())
        if len(signals) < instruction.arrivals:
            nobody = "" if instruction.barrier in self._senders else "; nobody arrives at it"
            return f"barrier {instruction.barrier} has {len(signals)} of {instruction.arrivals} signals{nobody}"
        for _ in range(instruction.arrivals):
            role.known |= signals.popleft()
        return None

    def _bubbles(self, role: Role, step: Step, instruction: isa.Bubbles) -> None:
        """Take no time."""


_EXECUTE: dict[type, Callable[[Flow, Role, Step, Any], str | None]] = {
    isa.TmaTensor: Flow._load,
    isa.TmaBulk: Flow._load,
    isa.MbWait: Flow._mb_wait,
    isa.AcquireStage: Flow._acquire,
    isa.ReleaseStage: Flow._release,
    isa.TmaStore: Flow._store,
    isa.TmaCommit: Flow._commit,
    isa.TmaWait: Flow._group_wait,
    isa.Wgmma: Flow._wgmma,
    isa.WgmmaCommit: Flow._commit,
    isa.WgmmaWait: Flow._group_wait,
    isa.BarArrive: Flow._bar_arrive,
    isa.BarWait: Flow._bar_wait,
    isa.Bubbles: Flow._bubbles,
}
