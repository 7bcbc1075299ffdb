"""Confidence intervals from repeated launches: a percentile bootstrap with a fixed seed."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from simfa.summary import Interval

if TYPE_CHECKING:
    import numpy

RESAMPLES = 2000
SEED = 2025
METHOD = f"95 % percentile bootstrap of the median over a case's launches, {RESAMPLES} resamples, seed {SEED}"
_BLOCK = 1 << 20


def error_intervals(
    repeats: Sequence[Sequence[float]], simulated: Sequence[float]
) -> tuple[list[Interval | None], Interval | None]:
    """Return the interval of each case's signed error, and that of the MAPE, as fractions.

    `repeats` are the measured values of each case, `simulated` its one simulated value, in the same unit. A case with
    one launch has no interval, and then the MAPE has none. Launches of one capture share clock, temperature and driver,
    so the intervals hold what repeating shows, nothing else.
    """
    if all(len(values) < 2 for values in repeats):
        return [None] * len(repeats), None
    import numpy

    each: list[Interval | None] = []
    total = numpy.zeros(RESAMPLES)
    for position, (values, value) in enumerate(zip(repeats, simulated, strict=True)):
        if len(values) < 2:
            each.append(None)
            continue
        medians = numpy.concatenate(list(_medians(numpy.asarray(values, dtype=float), position)))
        errors = value / medians - 1
        total += numpy.abs(errors)
        each.append(_interval(errors))
    return each, None if None in each else _interval(total / len(repeats))


def _medians(values: "numpy.ndarray", stream: int) -> "Iterator[numpy.ndarray]":
    """Yield the medians of all resamples, in blocks that bound the memory."""
    import numpy

    generator = numpy.random.Generator(numpy.random.PCG64([SEED, stream]))
    left = RESAMPLES
    while left:
        rows = min(left, max(1, _BLOCK // len(values)))
        chosen = generator.integers(0, len(values), size=(rows, len(values)))
        yield numpy.median(values[chosen], axis=1)
        left -= rows


def _interval(sample: "numpy.ndarray") -> Interval:
    import numpy

    low, high = numpy.quantile(sample, (0.025, 0.975))
    return Interval(float(low), float(high))
