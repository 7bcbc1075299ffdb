"""Runs of a sequence that repeat with a period, each copy advancing as the one before."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
MAX_PERIOD = 64


class Run(NamedTuple):
    """Items `start` to `stop` in which each agrees with the one `period` before it."""

    start: int
    stop: int
    period: int

    @property
    def copies(self) -> int:
        """Whole copies in the run."""
        return (self.stop - self.start) // self.period

    @property
    def saved(self) -> int:
        """Lines that a REPEAT saves: all copies but one, without REPEAT and END."""
        return self.period * (self.copies - 1) - 2


def runs_of(shapes: Ints, starts: Ints) -> Iterator[Run]:
    """Yield every longest run of each period up to `MAX_PERIOD`.

    `shapes`, shape (n,), must agree from copy to copy; `starts`, shape (n, columns), must grow by the same in each.
    """
    for period in range(1, min(MAX_PERIOD, len(shapes) // 2) + 1):
        # Place i holds copy c of an item and place i + period copy c + 1. A run ends where these differ in
        # shape, and where the growth between them is not that between copies c - 1 and c.
        (unlike,) = np.nonzero(shapes[period:] != shapes[:-period])
        firsts = np.concatenate([[0], unlike + 1])
        lasts = np.concatenate([unlike, [len(shapes) - period]])
        worthwhile = lasts - firsts >= period
        for first, last in zip(firsts[worthwhile].tolist(), lasts[worthwhile].tolist(), strict=True):
            growth = starts[first + period : last + period] - starts[first:last]
            (changes,) = np.nonzero((growth[period:] != growth[:-period]).any(axis=1))
            for change in (changes + first + period).tolist():
                if change - period >= first:
                    yield Run(first, change + period, period)
                    first = change - period + 1
            yield Run(first, last + period, period)
