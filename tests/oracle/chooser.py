"""Where random cases take their decisions from: a seeded generator, or hypothesis, which can shrink them."""

import random
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from hypothesis import strategies as st

Option = TypeVar("Option")


class Chooser(Protocol):
    """Source of decisions; both sources see the same questions in the same order."""

    def integer(self, low: int, high: int) -> int:
        """Return a whole number in [low, high]."""

    def pick(self, options: Sequence[Option]) -> Option:
        """Return one of the options; shrinks towards the first."""

    def chance(self, percent: int) -> bool:
        """Return True in about `percent` of 100 cases; shrinks towards False."""


class SeededChooser:
    """Decisions of `random.Random(seed)`: the same seed gives the same case."""

    def __init__(self, seed: int | str) -> None:
        self.random = random.Random(seed)

    def integer(self, low: int, high: int) -> int:
        return self.random.randint(low, high)

    def pick(self, options: Sequence[Option]) -> Option:
        return options[self.random.randrange(len(options))]

    def chance(self, percent: int) -> bool:
        return self.random.randrange(100) < percent


class HypothesisChooser:
    """Decisions drawn by hypothesis inside a composite strategy."""

    def __init__(self, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
        self.draw = draw

    def integer(self, low: int, high: int) -> int:
        return int(self.draw(st.integers(low, high)))

    def pick(self, options: Sequence[Option]) -> Option:
        return options[self.integer(0, len(options) - 1)]

    def chance(self, percent: int) -> bool:
        return self.integer(0, 99) >= 100 - percent


def subset(chooser: Chooser, options: Sequence[Option], at_least: int = 0) -> list[Option]:
    """Return some of the options in their order, no fewer than `at_least`."""
    chosen = {index for index in range(len(options)) if chooser.chance(50)}
    rest = [index for index in range(len(options)) if index not in chosen]
    while len(chosen) < at_least:
        chosen.add(rest.pop(chooser.integer(0, len(rest) - 1)))
    return [option for index, option in enumerate(options) if index in chosen]


def interleave(chooser: Chooser, chains: Sequence[Sequence[Option]]) -> list[Option]:
    """Return all elements of the chains in a random order that keeps the order within each chain."""
    waiting = [list(reversed(chain)) for chain in chains if chain]
    merged: list[Option] = []
    while waiting:
        chain = chooser.pick(waiting)
        merged.append(chain.pop())
        if not chain:
            waiting.remove(chain)
    return merged
