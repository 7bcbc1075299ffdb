"""CUDA-core work: its price, and the one server that the warpgroups of an SM share."""

from collections import deque
from collections.abc import Callable
from fractions import Fraction
from math import ceil

from simfa.hardware import CudaCore
from simfa.isa import Bubbles


def work_cycles(bubbles: Bubbles, spec: CudaCore) -> int:
    """Return the cycles of work of one BUBBLES, rounded up once."""
    if bubbles.kind == "cycles":
        return bubbles.cycles
    if bubbles.kind == "epilogue":
        terms = [(bubbles.elements, spec.epilogue_per_cycle)]
    else:
        terms = [
            (bubbles.elements, spec.exp_per_cycle),
            (bubbles.elements, spec.max_per_cycle),
            (bubbles.elements, spec.scale_per_cycle),
            (bubbles.elements, spec.sum_per_cycle),
            (bubbles.elements, spec.convert_per_cycle),
            (bubbles.masked, spec.mask_per_cycle),
            (bubbles.rescale, spec.rescale_per_cycle),
        ]
    return ceil(sum(Fraction(count, rate) for count, rate in terms if rate))


class Job:
    """Work of one BUBBLES in the server; `finish(cycle)` wakes its thread."""

    def __init__(self, work: int, finish: Callable[[int], None]) -> None:
        """Take `work` cycles of work, at least 1."""
        self.remaining = work
        self.finish = finish


class CudaCoreServer:
    """The CUDA cores of one SM as one server with quanta; the job in service is at the front of `jobs`."""

    def __init__(self, spec: CudaCore, pipe_free: Callable[[], int], count: Callable[[str], None]) -> None:
        """Start idle; `pipe_free` reads the tensor pipe, `count` notes a path taken."""
        self.spec = spec
        self.pipe_free = pipe_free
        self.count = count
        self.jobs: deque[Job] = deque()
        self.quantum = 0
        self.quantum_end: int | None = None

    def submit(self, job: Job, cycle: int) -> None:
        """Queue a job; an idle server starts it in this cycle."""
        self.jobs.append(job)
        if self.quantum_end is None:
            self._start(cycle)
        else:
            self.count("CUDA-core job queues")

    def step(self, cycle: int) -> None:
        """Phase 3: end the quantum in service and start the next."""
        if self.quantum_end != cycle:
            return
        job = self.jobs.popleft()
        job.remaining -= self.quantum
        self.quantum_end = None
        if job.remaining == 0:
            job.finish(cycle)
        elif self.spec.order == "round_robin":
            self.count("CUDA-core job goes behind" if self.jobs else "CUDA-core job continues alone")
            self.jobs.append(job)
        else:
            self.count("CUDA-core job stays in front" if self.jobs else "CUDA-core job continues alone")
            self.jobs.appendleft(job)
        if self.jobs:
            self._start(cycle)

    def _start(self, cycle: int) -> None:
        """Begin a quantum of the front job."""
        self.quantum = min(self.spec.quantum_cycles, self.jobs[0].remaining)
        length = self.quantum
        if self.spec.register_pressure and self.pipe_free() > cycle:
            self.count("CUDA-core quantum slowed by the tensor pipe")
            length += ceil(self.quantum * self.spec.register_pressure)
        self.quantum_end = cycle + length
