"""The SM clock that turns cycles into time: the nominal one, or the sustained clock of looped runs."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

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


def sustained_clock_hz(spec: HardwareSpec, shares: Activity, clock_hz: float) -> float:
    """Return the clock in Hz that a part holds while a kernel is repeated, at most `clock_hz`.

    A cycle takes clock.sustained_base_ns and a time for each kind of activity: what a power limit does, if a cycle's
    energy is the sum of these. Empirical: it also holds the age of the kernels it was fitted on.
    """
    clock = spec.clock
    period_ns = (
        clock.sustained_base_ns
        + clock.sustained_tensor_ns * shares.tensor
        + clock.sustained_cuda_ns * shares.cuda
        + clock.sustained_l2_ns * shares.l2
        + clock.sustained_dram_ns * shares.dram
    )
    return 1e9 / max(1e9 / clock_hz, period_ns)


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
