"""Untimed execution of tiles: proves that every wait ends, that counters balance and that slots are read when filled.

Every wait is on a counter that only grows, and nobody but the waiter takes from it, so the set of instructions that can
run does not depend on the order in which roles run: one order stands for all. `docs/design/0002-trace-verification.md`
has the argument.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from simfa import isa
from simfa.errors import TraceError
from simfa.isa import Affine, Instruction, Repeat, Slot
from simfa.trace import Program, Ring, TensorMap
from simfa.trace_places import Places, flat_instructions

Fact = tuple[str, int]  # ring, ordinal: this fill is complete


class FlowError(Exception):
    """What is wrong with the instruction being executed."""


class Step(NamedTuple):
    """One execution of one instruction."""

    position: int
    instruction: Instruction
    iteration: int


class Signal(NamedTuple):
    """One BAR_ARRIVE: who sent it and how many facts the sender had learned; None for one left by the prologue."""

    sender: "Role | None"
    learned: int


class Read(NamedTuple):
    """The latest WGMMA of a role that reads a slot."""

    group: int
    step: Step


class Fill:
    """One fill of a ring in one CTA."""

    def __init__(self) -> None:
        """Start empty, not acquired."""
        self.acquirer: Role | None = None
        self.acquire: Step | None = None
        self.credited = 0
        self.arrivals = 0


class Cta:
    """Rings and named barriers of one CTA, and its peer in a cluster of two."""

    def __init__(self, rings: Mapping[str, Ring], signals: Mapping[int, int]) -> None:
        """Start with no fills and `signals` at the barriers."""
        self.rings = rings
        self.fills: dict[str, list[Fill]] = {name: [] for name in rings}
        self.acquired = dict.fromkeys(rings, 0)
        self.barriers = {barrier: deque([Signal(None, 0)] * count) for barrier, count in signals.items()}
        self.peer: Cta | None = None

    def fill(self, ring: str, ordinal: int) -> Fill:
        """Return fill `ordinal` of a ring of this CTA."""
        fills = self.fills[ring]
        while len(fills) <= ordinal:
            fills.append(Fill())
        return fills[ordinal]


class Role:
    """One warpgroup: where it is in its program, which groups it committed, what it knows about fills."""

    def __init__(self, cta: Cta, number: int, program: Program) -> None:
        """Start before the first instruction of `program`."""
        self.cta = cta
        self.number = number
        self.program = program
        self.steps = steps_of(program)
        self.step = next(self.steps, None)
        self.commits = {"WGMMA": 0, "store": 0}
        self.open: dict[str, Step | None] = {"WGMMA": None, "store": None}
        self.completed = -1
        self.known: set[Fact] = set()
        self.learned: list[Fact] = []
        self.heard: dict[Role, int] = {}
        self.reads: dict[Fact, Read] = {}
        self.released: set[Fact] = set()

    def learn(self, fact: Fact) -> None:
        """Know from now on that a fill is complete."""
        if fact not in self.known:
            self.known.add(fact)
            self.learned.append(fact)

    def hear(self, signal: Signal) -> None:
        """Learn what the sender of a signal knew when it sent it."""
        if signal.sender is not None:
            first = self.heard.get(signal.sender, 0)
            for fact in signal.sender.learned[first : signal.learned]:
                self.learn(fact)
            self.heard[signal.sender] = max(first, signal.learned)


def steps_of(program: Program) -> Iterator[Step]:
    """Yield the instructions of a program in the order in which they run."""
    index = 0
    for item in program.body:
        if isinstance(item, Repeat):
            for iteration in range(item.count):
                for offset, instruction in enumerate(item.body):
                    yield Step(index + offset, instruction, iteration)
            index += len(item.body)
        else:
            yield Step(index, item, 0)
            index += 1


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
        reasons: dict[Role, str] = {}
        running = list(self._roles)
        progress = True
        while progress:
            progress = False
            for role in running:
                before = role.step
                reason = self._advance(role)
                progress = progress or role.step is not before
                if reason is not None:
                    reasons[role] = reason
            running = [role for role in running if role.step is not None]
        if running:
            waits = "; ".join(f"{self._place(role, role.step)} waits for ever: {reasons[role]}" for role in running)
            raise TraceError(waits)
        return {barrier: len(signals) for barrier, signals in self._ctas[0].barriers.items()}

    def _advance(self, role: Role) -> str | None:
        """Run a role until it ends (None) or waits (the reason)."""
        while role.step is not None:
            try:
                reason = _EXECUTE[type(role.step.instruction)](self, role, role.step.instruction)
            except FlowError as fault:
                raise TraceError(f"{self._place(role, role.step)}: {fault}") from None
            if reason is not None:
                return reason
            role.step = next(role.steps, None)
        return None

    def _place(self, role: Role, step: Step | None) -> str:
        assert step is not None
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
            for name, fills in cta.fills.items():
                for ordinal, fill in enumerate(fills):
                    self._check_fill(cta.rings[name], ordinal, fill)
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
        if fill.acquirer is None:
            if ring.bytes or fill.arrivals:
                raise TraceError(f"{slot} is used but never acquired; ordinals of a ring must have no gap")
            return
        place = self._place(fill.acquirer, fill.acquire)
        if fill.credited != ring.bytes:
            raise TraceError(f"{place}: {slot} receives {fill.credited} bytes, its ring holds {ring.bytes}")
        if fill.arrivals != ring.releases:
            raise TraceError(f"{place}: {slot} is released {fill.arrivals} times, its ring needs {ring.releases}")

    def _acquire(self, role: Role, instruction: isa.AcquireStage) -> str | None:
        name, ordinal = self._slot(role, instruction.slot)
        cta, ring = role.cta, role.cta.rings[name]
        if ordinal != cta.acquired[name]:
            raise FlowError(
                f"{name}[{ordinal}] after {cta.acquired[name]} fills; expected {name}[{cta.acquired[name]}]"
            )
        if ordinal >= ring.stages:
            freed = cta.fill(name, ordinal - ring.stages).arrivals
            if freed < ring.releases:
                return f"{name}[{ordinal - ring.stages}] was released {freed} of {ring.releases} times"
        fill = cta.fill(name, ordinal)
        fill.acquirer, fill.acquire = role, role.step
        cta.acquired[name] += 1
        return None

    def _load(self, role: Role, instruction: isa.TmaTensor | isa.TmaBulk) -> None:
        name, ordinal = self._slot(role, instruction.slot)
        if role.cta.fill(name, ordinal).acquirer is not role:
            raise FlowError(f"this role has not acquired {name}[{ordinal}]; expected ACQUIRE_STAGE before the copy")
        if isinstance(instruction, isa.TmaBulk):
            self._credit(role.cta, name, ordinal, instruction.bytes)
            return
        size = self._maps[instruction.map].box_bytes
        self._credit(role.cta, name, ordinal, size)
        if instruction.multicast and role.cta.peer is not None:
            self._credit(role.cta.peer, name, ordinal, size)

    @staticmethod
    def _credit(cta: Cta, name: str, ordinal: int, size: int) -> None:
        fill = cta.fill(name, ordinal)
        fill.credited += size
        if fill.credited > cta.rings[name].bytes:
            raise FlowError(
                f"{name}[{ordinal}] receives {fill.credited} bytes so far, its ring holds {cta.rings[name].bytes}"
            )

    def _mb_wait(self, role: Role, instruction: isa.MbWait) -> str | None:
        name, ordinal = self._slot(role, instruction.slot)
        fill, size = role.cta.fill(name, ordinal), role.cta.rings[name].bytes
        if fill.acquirer is None:
            return f"{name}[{ordinal}] is not acquired"
        if fill.credited < size:
            return f"{name}[{ordinal}] received {fill.credited} of {size} bytes"
        role.learn((name, ordinal))
        return None

    def _release(self, role: Role, instruction: isa.ReleaseStage) -> None:
        fact = name, ordinal = self._slot(role, instruction.slot)
        ring = role.cta.rings[name]
        self._demand_known(role, ring, ordinal)
        read = role.reads.pop(fact, None)
        if read is not None and read.group > role.completed:
            raise FlowError(
                f"{name}[{ordinal}] may still be read by WGMMA group {read.group}, which was not waited for"
            )
        role.released.add(fact)
        peer = role.cta.peer if instruction.remote else None
        for cta in (role.cta, peer):
            if cta is not None:
                fill = cta.fill(name, ordinal)
                fill.arrivals += 1
                if fill.arrivals > ring.releases:
                    raise FlowError(
                        f"{name}[{ordinal}] is released more often than the {ring.releases} times of its ring"
                    )

    def _demand_known(self, role: Role, ring: Ring, ordinal: int) -> None:
        if ring.bytes and (ring.name, ordinal) not in role.known:
            raise FlowError(
                f"nothing says that {ring.name}[{ordinal}] has arrived; expected an MB_WAIT of this role before, or a "
                "BAR_WAIT for a role that waited"
            )

    def _wgmma(self, role: Role, instruction: isa.Wgmma) -> None:
        group = self._open(role, "WGMMA", instruction.group)
        assert role.step is not None
        for operand in (instruction.a, instruction.b):
            if isinstance(operand, Slot):
                fact = name, ordinal = self._slot(role, operand)
                ring = role.cta.rings[name]
                self._demand_known(role, ring, ordinal)
                if fact in role.released:
                    raise FlowError(f"{name}[{ordinal}] is read after this role released it")
                if ring.bytes:
                    role.reads[fact] = Read(group, role.step)

    def _open(self, role: Role, kind: str, group: Affine) -> int:
        """Check that an operation goes into the group that is open."""
        number = self._value(role, group)
        if number != role.commits[kind]:
            raise FlowError(f"group {number} after {role.commits[kind]} committed; expected group {role.commits[kind]}")
        role.open[kind] = role.step
        return number

    def _commit(self, role: Role, instruction: isa.WgmmaCommit | isa.TmaCommit) -> None:
        kind = "WGMMA" if isinstance(instruction, isa.WgmmaCommit) else "store"
        self._open(role, kind, instruction.group)
        role.open[kind] = None
        role.commits[kind] += 1

    def _group_wait(self, role: Role, instruction: isa.WgmmaWait | isa.TmaWait) -> None:
        kind = "WGMMA" if isinstance(instruction, isa.WgmmaWait) else "store"
        group = self._value(role, instruction.group)
        if group >= role.commits[kind]:
            raise FlowError(f"waits for {kind} group {group}, but only {role.commits[kind]} are committed")
        if kind == "WGMMA":
            role.completed = max(role.completed, group - instruction.outstanding)

    def _store(self, role: Role, instruction: isa.TmaStore) -> None:
        self._open(role, "store", instruction.group)

    def _bar_arrive(self, role: Role, instruction: isa.BarArrive) -> None:
        signals = role.cta.barriers.setdefault(instruction.barrier, deque())
        signals.append(Signal(role, len(role.learned)))

    def _bar_wait(self, role: Role, instruction: isa.BarWait) -> str | None:
        signals = role.cta.barriers.setdefault(instruction.barrier, deque())
        if len(signals) < instruction.arrivals:
            nobody = "" if instruction.barrier in self._senders else "; nobody arrives at it"
            return f"barrier {instruction.barrier} has {len(signals)} of {instruction.arrivals} signals{nobody}"
        for _ in range(instruction.arrivals):
            signal = signals.popleft()
            if instruction.barrier in self._telling:
                role.hear(signal)
        return None

    def _bubbles(self, role: Role, instruction: isa.Bubbles) -> None:
        """Take no time."""

    @staticmethod
    def _value(role: Role, operand: Affine) -> int:
        assert role.step is not None
        return operand.start + operand.step * role.step.iteration

    def _slot(self, role: Role, slot: Slot) -> Fact:
        return slot.ring, self._value(role, slot.index)


_EXECUTE: dict[type, Callable[[Flow, Role, Any], str | None]] = {
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
