"""How far simulated latencies are from measured ones. Errors are fractions; signs are simulated minus measured."""

import math
import statistics
from collections.abc import Sequence
from typing import Literal, NamedTuple

import msgspec

from simfa.errors import MeasureError
from simfa.summary import Accuracy


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """One case, measured and simulated.

    `reference` says what `measured_us` is: `measured` on hardware, or `synthetic`, the duration that the timing model
    of a synthetic log gives, which `summarize` refuses.
    """

    id: str
    measured_us: float
    simulated_us: float
    seqlen: int
    reference: Literal["measured", "synthetic"] = "measured"

    @property
    def error(self) -> float:
        """Signed relative error: positive when the simulation is too slow."""
        return self.simulated_us / self.measured_us - 1

    @property
    def ape(self) -> float:
        """Absolute relative error (APE as a fraction)."""
        return abs(self.error)


class ErrorFigures(NamedTuple):
    """How many signed errors there are, the mean of their sizes (MAPE), the largest size, their mean (bias)."""

    used: int
    mape: float | None
    max_ape: float | None
    bias: float | None


def error_figures(errors: Sequence[float]) -> ErrorFigures:
    """Return the figures of signed errors; `None` where there are none."""
    if not errors:
        return ErrorFigures(0, None, None, None)
    sizes = [abs(error) for error in errors]
    return ErrorFigures(len(errors), statistics.fmean(sizes), max(sizes), statistics.fmean(errors))


def summarize(comparisons: Sequence[Comparison], excluded: int = 0) -> Accuracy:
    """Return the accuracy over measured cases; raises `MeasureError` when any of them is not a measurement."""
    for comparison in comparisons:
        if comparison.reference != "measured":
            raise MeasureError(
                f"{comparison.id}: its reference is {comparison.reference}; MAPE is against measurements"
            )
        if comparison.measured_us <= 0 or comparison.simulated_us <= 0:
            raise MeasureError(f"{comparison.id}: latencies must be positive to be compared")
    if not comparisons:
        return Accuracy(
            used=0,
            excluded=excluded,
            mape=None,
            max_ape=None,
            bias=None,
            length_trend=None,
            scale=None,
            mape_scaled=None,
        )
    errors = [comparison.error for comparison in comparisons]
    figures = error_figures(errors)
    log_ratios = [math.log(comparison.simulated_us / comparison.measured_us) for comparison in comparisons]
    scale = math.exp(-statistics.fmean(log_ratios))
    return Accuracy(
        used=figures.used,
        excluded=excluded,
        mape=figures.mape,
        max_ape=figures.max_ape,
        bias=figures.bias,
        length_trend=_slope([math.log(comparison.seqlen) for comparison in comparisons], log_ratios),
        scale=scale,
        mape_scaled=statistics.fmean(abs(scale * (1 + error) - 1) for error in errors),
    )


def _slope(x: Sequence[float], y: Sequence[float]) -> float | None:
    """Return the least-squares slope, or None when all `x` are the same."""
    if len(set(x)) < 2:
        return None
    return statistics.linear_regression(x, y).slope
