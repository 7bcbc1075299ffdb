"""The SM clock that turns cycles into time: the nominal one, or the sustained clock of looped runs."""

from typing import Literal

from simfa.hardware import HardwareSpec

ClockModel = Literal["nominal", "sustained"]
CLOCK_MODELS: tuple[ClockModel, ...] = ("nominal", "sustained")


def sustained_clock_hz(spec: HardwareSpec, tensor_share: float, clock_hz: float) -> float:
    """Return the clock in Hz that a part holds while a kernel is repeated, at most `clock_hz`.

    A cycle takes clock.sustained_base_ns + clock.sustained_tensor_ns * `tensor_share`, the fraction of cycles in which
    the tensor pipes work. The law is empirical: it mixes the power limit with the age of the kernels it was fitted on.
    """
    period_ns = spec.clock.sustained_base_ns + spec.clock.sustained_tensor_ns * tensor_share
    return 1e9 / max(1e9 / clock_hz, period_ns)


def law_text(spec: HardwareSpec) -> str:
    """Return the law of a part in words."""
    clock = spec.clock
    if not clock.sustained_base_ns and not clock.sustained_tensor_ns:
        return "no limit: the nominal clock"
    return (
        f"1/f = {clock.sustained_base_ns:.3f} + {clock.sustained_tensor_ns:.3f} x tensor share ns, empirical, "
        "at most the nominal clock"
    )
