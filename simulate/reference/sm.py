"""One SM with its CTA: the frontend that picks threads, and what each instruction does when it issues."""

from collections.abc import Callable

from simfa.hardware import HardwareSpec
from simfa.isa import (
    MNEMONICS,
    AcquireStage,
    BarArrive,
    BarWait,
    Bubbles,
    MbWait,
    ReleaseStage,
    Slot,
    TmaBulk,
    TmaCommit,
    TmaStore,
    TmaTensor,
    TmaWait,
    Wgmma,
    WgmmaCommit,
    WgmmaWait,
)
from simfa.simulate.reference.barriers import RingState
from simfa.simulate.reference.cuda_core import CudaCoreServer, Job, work_cycles
from simfa.simulate.reference.programs import Step
from simfa.simulate.reference.requests import Request, asked_bytes, requests_of_rows, rows_of_box
from simfa.simulate.reference.tensor_core import TensorPipe
from simfa.simulate.reference.threads import StoreState, Thread, Wait
from simfa.simulate.reference.tma import At, Operation, TmaEngine
from simfa.trace import TensorMap, Trace


class Sm:
    """The units of one SM. `cluster` are the SMs of its cluster by rank, itself included."""

    def __init__(
        self, cta: int, trace: Trace, hardware: HardwareSpec, latency: int, at: At, count: Callable[[str], None]
    ) -> None:
        """Put CTA `cta` on its SM; `at` plans phase 1 of a later cycle, `count` notes a path taken."""
        self.hardware = hardware
        self.at = at
        self.count = count
        self.rank = cta % trace.schedule.cluster
        self.cluster: list[Sm] = [self]
        self.maps = {tensor.name: tensor for tensor in trace.maps}
        self.rings = {ring.name: RingState(ring) for ring in trace.rings}
        self.signals: dict[int, int] = {}
        self.pipe = TensorPipe(hardware.tensor_core)
        self.tma = TmaEngine(hardware, latency, at, count)
        self.cuda_cores = CudaCoreServer(hardware.cuda_core, lambda: self.pipe.pipe_free, count)
        self.threads = [Thread(cta, role, 0, list(self.rings)) for role in range(trace.roles)]
        self.last_issued: int | None = None
        self.last_store_completion = 0

    # Frontend

    def issue(self, cycle: int) -> None:
        """Phase 4: issue up to `sm.issue_width` instructions."""
        for _ in range(self.hardware.sm.issue_width):
            thread = self._pick([thread for thread in self.threads if self._can_issue(thread, cycle)])
            if thread is None:
                return
            self.last_issued = thread.role
            self._execute(thread, thread.take(cycle), cycle)

    def _can_issue(self, thread: Thread, cycle: int) -> bool:
        """Return whether the thread can take a slot of this cycle."""
        if thread.is_stopped() or thread.ready > cycle or not thread.has_instruction():
            return False
        if self._is_refused(thread, cycle):
            self.count("thread passed over: WGMMA window full")
            return False
        return True

    def _is_refused(self, thread: Thread, cycle: int) -> bool:
        """Return whether the thread's next instruction is a WGMMA that finds its window full."""
        instruction = thread.steps[thread.position].instruction
        return isinstance(instruction, Wgmma) and not self.pipe.has_room(instruction, cycle)

    def _pick(self, candidates: list[Thread]) -> Thread | None:
        """Return the thread that the scheduler prefers among those that can issue, in role order."""
        if not candidates:
            return None
        last = self.last_issued
        if last is not None and self.hardware.sm.scheduler == "gto":
            return next((thread for thread in candidates if thread.role == last), candidates[0])
        if last is not None and self.hardware.sm.scheduler == "lrr":
            return next((thread for thread in candidates if thread.role > last), candidates[0])
        return candidates[0]

    def next_issue(self, cycle: int) -> int | None:
        """Return the next cycle at which a thread may go on without an arrival, or None."""
        cycles: list[int | None] = []
        for thread in self.threads:
            if thread.is_stopped():
                continue
            if thread.ready > cycle:
                cycles.append(thread.ready)
            elif thread.has_instruction():
                cycles.append(self.pipe.next_end(cycle) if self._is_refused(thread, cycle) else cycle + 1)
        return min((c for c in cycles if c is not None), default=None)

    # Waiting and waking

    def wake(self, cycle: int, cause: str, earliest: int) -> None:
        """Wake every thread whose condition holds now; none is ready before `earliest`."""
        for thread in self.threads:
            wait = thread.waiting
            if wait is not None and wait.holds(cycle):
                self.count(f"{wait.mnemonic} blocked, woken by {cause}")
                thread.waiting = None
                thread.ready = max(earliest, cycle + wait.wake_cycles)
                wait.succeed(cycle, earliest)

    def _wait(self, thread: Thread, wait: Wait, cycle: int) -> None:
        """Pass a wait whose condition holds, or block the thread."""
        if wait.holds(cycle):
            self.count(f"{wait.mnemonic} immediate")
            thread.ready = cycle + wait.wait_cycles
            wait.succeed(cycle, cycle + 1)
        else:
            thread.waiting = wait

    def _execute(self, thread: Thread, step: Step, cycle: int) -> None:
        """Do what an instruction does when it issues at `cycle`; the thread is ready at `cycle + 1` by default."""
        instruction = step.instruction
        self.count(MNEMONICS[type(instruction)])
        if isinstance(instruction, AcquireStage) and not thread.acquires_later():
            thread.at_last_acquire(cycle)
        match instruction:
            case AcquireStage() | MbWait():
                self._wait(thread, self._ring_wait(thread, step, instruction), cycle)
            case ReleaseStage():
                self._release(thread, step, instruction, cycle)
            case BarArrive():
                self._arrive(instruction, cycle)
            case BarWait():
                self._wait(thread, self._barrier_wait(instruction), cycle)
            case TmaTensor():
                self._load_tensor(thread, step, instruction, cycle)
            case TmaBulk():
                self._load_bulk(thread, step, instruction, cycle)
            case TmaStore():
                self._store(thread, step, instruction, cycle)
            case TmaCommit():
                thread.check_group(thread.stores, instruction.group, step)
                thread.stores.commit()
            case TmaWait():
                self._wait(thread, self._store_wait(thread, step, instruction), cycle)
            case Wgmma():
                thread.check_group(thread.wgmmas, instruction.group, step)
                self.count(f"WGMMA {instruction.mode} {'queues' if self.pipe.pipe_free > cycle else 'starts at once'}")
                thread.wgmmas.open.append(self.pipe.issue(instruction, cycle))
                thread.ready = cycle + self.hardware.tensor_core.wgmma_issue_cycles
            case WgmmaCommit():
                thread.check_group(thread.wgmmas, instruction.group, step)
                self.pipe.drain(thread.wgmmas.commit())
            case WgmmaWait():
                self._wgmma_wait(thread, step, instruction, cycle)
            case Bubbles():
                self._compute(thread, instruction, cycle)

    # Rings and barriers

    def _ring_wait(self, thread: Thread, step: Step, instruction: AcquireStage | MbWait) -> Wait:
        """Return the wait of ACQUIRE_STAGE or MB_WAIT."""
        state, fill = self._ring_and_fill(thread, step, instruction.slot)
        hardware = self.hardware
        if isinstance(instruction, MbWait):
            return Wait(
                mnemonic="MB_WAIT",
                holds=lambda _: state.is_complete(fill),
                wait_cycles=hardware.mbarrier.wait_cycles,
                wake_cycles=hardware.mbarrier.wake_cycles,
                succeed=lambda _cycle, _earliest: None,
                missing=lambda: state.missing_data(fill),
            )

        def expect(cycle: int, earliest: int) -> None:
            state.expected.add(fill)
            self.wake(cycle, "expectation, phase 4" if earliest > cycle else "expectation, phase 1", earliest)

        barrier = hardware.mbarrier if state.ring.empty == "mbarrier" else hardware.named_barrier
        return Wait(
            mnemonic=f"ACQUIRE_STAGE {state.ring.empty}",
            holds=lambda _: state.is_free(fill),
            wait_cycles=barrier.wait_cycles,
            wake_cycles=barrier.wake_cycles,
            succeed=expect,
            missing=lambda: state.missing_release(fill),
        )

    def _ring_and_fill(self, thread: Thread, step: Step, slot: Slot) -> tuple[RingState, int]:
        """Return the ring a slot names and its absolute fill."""
        return self.rings[slot.ring], thread.fill(slot.ring, step.value(slot.index))

    def _release(self, thread: Thread, step: Step, instruction: ReleaseStage, cycle: int) -> None:
        """Send an arrival to the own stage, and with `remote` to that of the cluster's other CTA."""
        ring = instruction.slot.ring
        state, fill = self._ring_and_fill(thread, step, instruction.slot)
        mbarrier = self.hardware.mbarrier
        local = mbarrier.arrive_cycles if state.ring.empty == "mbarrier" else self.hardware.named_barrier.arrive_cycles
        for sm in self.cluster:
            if sm is self or instruction.remote:
                delay = local if sm is self else mbarrier.remote_arrive_cycles
                cause = "release" if sm is self else "remote release"
                self.count(f"RELEASE_STAGE {state.ring.empty} sends {cause}")
                self.at(cycle + max(1, delay), sm._arrival(ring, fill, cause))

    def _arrival(self, ring: str, fill: int, cause: str) -> Callable[[int], None]:
        """Return the action of a release that reaches this SM."""

        def arrive(now: int) -> None:
            self.rings[ring].release(fill)
            self.wake(now, cause, now)

        return arrive

    def _arrive(self, instruction: BarArrive, cycle: int) -> None:
        """Send a signal to a named barrier."""

        def signal(now: int) -> None:
            self.signals[instruction.barrier] = self.signals.get(instruction.barrier, 0) + 1
            self.wake(now, "signal", now)

        self.at(cycle + max(1, self.hardware.named_barrier.arrive_cycles), signal)

    def _barrier_wait(self, instruction: BarWait) -> Wait:
        """Return the wait of BAR_WAIT, which consumes its signals when it succeeds."""
        barrier, arrivals = instruction.barrier, instruction.arrivals

        def consume(_cycle: int, _earliest: int) -> None:
            self.signals[barrier] -= arrivals

        return Wait(
            mnemonic="BAR_WAIT",
            holds=lambda _: self.signals.get(barrier, 0) >= arrivals,
            wait_cycles=self.hardware.named_barrier.wait_cycles,
            wake_cycles=self.hardware.named_barrier.wake_cycles,
            succeed=consume,
            missing=lambda: f"named barrier {barrier}: {self.signals.get(barrier, 0)} of {arrivals} signals",
        )

    # TMA

    def _requests(self, thread: Thread, tensor: TensorMap, x: int, y: int) -> list[Request]:
        """Return what a box of a tensor map asks for; `x` and `y` are relative to the tile's origin."""
        rank = len(tensor.dims)
        origin = thread.coordinates[tensor.origin]
        first = [sum(pair) for pair in zip((*origin, 0), (x, y, 0, 0, 0), strict=True)]
        return requests_of_rows(rows_of_box(tensor, first[:rank]), self.hardware)

    def _load_tensor(self, thread: Thread, step: Step, instruction: TmaTensor, cycle: int) -> None:
        """Enter a load of one box; with `multicast` each rank loads its own rows for the whole cluster."""
        tensor = self.maps[instruction.map]
        y = step.value(instruction.y)
        receivers = [self]
        if instruction.multicast:
            self.count(f"TMA_TENSOR multicast in a cluster of {len(self.cluster)}")
            y += self.rank * tensor.box[1]
            receivers = self.cluster
        _, fill = self._ring_and_fill(thread, step, instruction.slot)
        complete = self._credit(receivers, instruction.slot.ring, fill, tensor.box_bytes)
        requests = self._requests(thread, tensor, instruction.x, y)
        size = asked_bytes(requests, self.hardware) * len(receivers)
        operation = Operation(len(requests), size, complete, None)
        self.tma.enter(operation, tensor.name, cycle)

    def _load_bulk(self, thread: Thread, step: Step, instruction: TmaBulk, cycle: int) -> None:
        """Enter a load of a run of bytes."""
        rows = iter([(step.value(instruction.address), instruction.bytes)])
        _, fill = self._ring_and_fill(thread, step, instruction.slot)
        complete = self._credit([self], instruction.slot.ring, fill, instruction.bytes)
        requests = requests_of_rows(rows, self.hardware)
        operation = Operation(len(requests), asked_bytes(requests, self.hardware), complete, None)
        self.tma.enter(operation, None, cycle)

    def _credit(self, receivers: list["Sm"], ring: str, fill: int, size: int) -> Callable[[int], None]:
        """Return the action of a load that completes: its bytes arrive in all receiving CTAs."""

        def credit(now: int) -> None:
            for sm in receivers:
                sm.rings[ring].credit(fill, size)
                sm.wake(now, "credit" if sm is self else "multicast credit", now)

        return credit

    def _store(self, thread: Thread, step: Step, instruction: TmaStore, cycle: int) -> None:
        """Enter a store of one box into the role's open store group."""
        thread.check_group(thread.stores, instruction.group, step)
        tensor = self.maps[instruction.map]
        state = StoreState()
        thread.stores.open.append(state)

        def complete(now: int) -> None:
            state.completed = now
            self.last_store_completion = now
            self.wake(now, "store completion", now)

        def read(now: int) -> None:
            state.read = now
            self.wake(now, "shared-memory read", now)

        requests = self._requests(thread, tensor, instruction.x, step.value(instruction.y))
        size = asked_bytes(requests, self.hardware)
        self.tma.enter(Operation(len(requests), size, complete, read), tensor.name, cycle)

    def _store_wait(self, thread: Thread, step: Step, instruction: TmaWait) -> Wait:
        """Return the wait of TMA_WAIT."""
        group = step.value(instruction.group) - instruction.outstanding
        stores = thread.stores.up_to(group)

        def holds(_: int) -> bool:
            return all((store.read if instruction.read else store.completed) is not None for store in stores)

        return Wait(
            mnemonic="TMA_WAIT read" if instruction.read else "TMA_WAIT",
            holds=holds,
            wait_cycles=1,
            wake_cycles=0,
            succeed=lambda _cycle, _earliest: None,
            missing=lambda: f"store group {group} of its tile",
        )

    # Tensor core and CUDA cores

    def _wgmma_wait(self, thread: Thread, step: Step, instruction: WgmmaWait, cycle: int) -> None:
        """Wait for the last result of a WGMMA group and all before it; the cycle of that is known."""
        group = step.value(instruction.group) - instruction.outstanding
        completion = max((wgmma.done for wgmma in thread.wgmmas.up_to(group)), default=cycle)
        wait = Wait(
            mnemonic="WGMMA_WAIT",
            holds=lambda now: now >= completion,
            wait_cycles=1,
            wake_cycles=0,
            succeed=lambda _cycle, _earliest: None,
            missing=lambda: f"WGMMA group {group} of its tile",
        )
        self._wait(thread, wait, cycle)
        if completion > cycle:
            self.at(completion, lambda now: self.wake(now, "tensor core", now))

    def _compute(self, thread: Thread, instruction: Bubbles, cycle: int) -> None:
        """Spend CUDA-core work privately or in the SM's server."""
        work = work_cycles(instruction, self.hardware.cuda_core)
        self.count(f"BUBBLES {instruction.kind}" if work else "BUBBLES without work")
        if work == 0:
            return
        if self.hardware.cuda_core.sharing == "private":
            thread.ready = cycle + work
            return

        def finish(now: int) -> None:
            thread.computing = False
            thread.ready = now

        thread.computing = True
        self.cuda_cores.submit(Job(work, finish), cycle)
