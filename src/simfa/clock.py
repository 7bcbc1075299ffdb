"""The time that cycles take: at the nominal SM clock, or launch after launch at the clock a part sustains."""

import math
from collections.abc import Mapping
from typing import Literal, NamedTuple

from simfa.errors import HardwareError
from simfa.hardware import HardwareSpec

ClockModel = Literal["nominal", "sustained"]
CLOCK_MODELS: tuple[ClockModel, ...] = ("nominal", "sustained")
# Reasons of a consumer's cycles in which the CUDA cores work for it.
_CUDA_WORK = ("softmax", "epilogue", "bubble")


class Activity(NamedTuple):
    """Shares of a run: tensor pipes busy, CUDA cores busy, L2 reads over L2's rate, DRAM traffic over DRAM's peak."""

    tensor: float
    cuda: float
    l2: float
    dram: float


def cuda_busy_cycles(stall_cycles: Mapping[str, Mapping[str, int]]) -> int:
    """Return the cycles in which CUDA cores worked, summed over SMs, from the `stall_cycles` of a run."""
    return sum(
        reasons.get(work, 0)
        for role, reasons in stall_cycles.items()
        if role.startswith("consumer")
        for work in _CUDA_WORK
    )


def activity(
    spec: HardwareSpec,
    *,
    cycles: int,
    clock_hz: float,
    tensor_share: float,
    cuda_cycles: int,
    l2_read_bytes: int,
    dram_bytes: int,
) -> Activity:
    """Return the activity of a run of `cycles` at `clock_hz`; shares are over all SMs and the whole run."""
    return Activity(
        tensor=tensor_share,
        cuda=cuda_cycles / (cycles * spec.gpu.sm_count),
        l2=l2_read_bytes / cycles / (spec.l2.slices * spec.l2.bytes_per_cycle_per_slice),
        dram=dram_bytes * clock_hz / cycles / spec.memory.peak_bytes_per_s,
    )


class Repeated(NamedTuple):
    """A launch of a kernel that is repeated without pause: its share of the time, and the clock of its cycles."""

    latency_us: float
    clock_hz: float


def repeated(spec: HardwareSpec, shares: Activity, *, cycles: int, clock_hz: float, clears_counter: bool) -> Repeated:
    """Return what a launch of `cycles` at `clock_hz` takes when the kernel is repeated, and the clock it then has.

    It takes its cycles, and the clearing of its tile counter, at the clock it was simulated at; or longer, if power
    allows no more than a cycle in `sustained_period_ns`. Idle time, the clearing too, is taken to need no power. Raises
    `HardwareError` for values of `clock` that give no finite latency.
    """
    clear_us = clear_ns(spec, clears_counter) / 1e3
    latency_us = max(cycles / clock_hz * 1e6 + clear_us, cycles * sustained_period_ns(spec, shares) / 1e3)
    if not math.isfinite(latency_us):
        raise HardwareError(
            f"clock.sustained_base_ns {spec.clock.sustained_base_ns:g} and its like give no finite latency"
        )
    return Repeated(latency_us, min(clock_hz, cycles / (latency_us - clear_us) * 1e6))


def clear_ns(spec: HardwareSpec, clears_counter: bool) -> float:
    """Return the ns between launches in which a small kernel clears the counter that CTAs draw tiles from."""
    return spec.clock.counter_clear_ns if clears_counter else 0.0


def sustained_period_ns(spec: HardwareSpec, shares: Activity) -> float:
    """Return the ns that power must have for a cycle, on average over launches; 0: no limit.

    clock.sustained_base_ns and a time for each kind of activity: as if the energy of a cycle were the sum of these.
    Empirical: the times also hold the age of the kernels they were fitted on.
    """
    clock = spec.clock
    return (
        clock.sustained_base_ns
        + clock.sustained_tensor_ns * shares.tensor
        + clock.sustained_cuda_ns * shares.cuda
        + clock.sustained_l2_ns * shares.l2
        + clock.sustained_dram_ns * shares.dram
    )


def law_text(spec: HardwareSpec) -> str:
    """Return the law of a part in words."""
    clock = spec.clock
    terms = [
        (clock.sustained_tensor_ns, " x tensor share"),
        (clock.sustained_cuda_ns, " x CUDA-core share"),
        (clock.sustained_l2_ns, " x L2 share"),
        (clock.sustained_dram_ns, " x DRAM share"),
        (clock.sustained_base_ns, ""),
    ]
    shown = [f"{value:.3f}{word}" for value, word in terms if value]
    if not shown:
        return "no limit: the nominal clock"
    return f"1/f = {' + '.join(shown)} ns, empirical, at most the nominal clock"
