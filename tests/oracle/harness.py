"""Runs a case on the reference and on another engine, and says where they differ."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple, Protocol

from simfa.errors import SimulationError
from simfa.simulate.reference import ReferenceResult, simulate
from tests.oracle.cases import Case
from tests.oracle.coverage import features_of


class EngineResult(Protocol):
    """What both engines return; keys are (cta, role), issues are (cycle, program, flat index)."""

    @property
    def cycles(self) -> int: ...
    @property
    def issues(self) -> Mapping[tuple[int, int], Sequence[Any]]: ...
    @property
    def ends(self) -> Mapping[tuple[int, int], int]: ...
    @property
    def lines(self) -> int: ...
    @property
    def bytes(self) -> int: ...


Engine = Callable[[Case], EngineResult]


def run_reference(case: Case) -> ReferenceResult:
    """Run a case on the reference engine."""
    return simulate(case.trace, case.hardware, memory_latency_cycles=case.memory_latency_cycles)


def run_core(case: Case, threads: int = 1) -> EngineResult:
    """Run a case on the compiled core with ideal memory."""
    from simfa.simulate.engine import run_ideal

    return run_ideal(case.trace, case.hardware, memory_latency_cycles=case.memory_latency_cycles, threads=threads)


def differences(expected: EngineResult, actual: EngineResult) -> list[str]:
    """Return each difference in a reader's words; for the issues of a role only the first."""
    found = []
    for name in ("cycles", "lines", "bytes"):
        if getattr(expected, name) != getattr(actual, name):
            found.append(f"{name}: expected {getattr(expected, name)}, got {getattr(actual, name)}")
    if set(expected.issues) != set(actual.issues) or set(expected.ends) != set(actual.ends):
        found.append(f"roles: expected {sorted(expected.ends)}, got {sorted(actual.ends)}")
        return found
    found += filter(None, (_first_issue(key, expected, actual) for key in sorted(expected.issues)))
    for key, end in sorted(expected.ends.items()):
        if actual.ends[key] != end:
            found.append(f"{_role(key)} ends: expected {end}, got {actual.ends[key]}")
    return found


def differences_from(expected: ReferenceResult, case: Case, engine: Engine) -> list[str]:
    """Return how the engine's result differs; every case ends on the reference, so a hang is a difference."""
    try:
        return differences(expected, engine(case))
    except SimulationError as error:
        return [f"cycles: expected {expected.cycles}, got an error: {error}"]


def _first_issue(key: tuple[int, int], expected: EngineResult, actual: EngineResult) -> str | None:
    """Return the first issue of a role that differs."""
    for number, (ours, theirs) in enumerate(zip_longest(expected.issues[key], actual.issues[key])):
        if ours is None or theirs is None or tuple(ours) != tuple(theirs):
            return f"{_role(key)} issue {number}: expected {_issue(ours)}, got {_issue(theirs)}"
    return None


def _role(key: tuple[int, int]) -> str:
    return f"CTA {key[0]} role {key[1]}"


def _issue(issue: Sequence[Any] | None) -> str:
    return "none" if issue is None else "cycle {}, {} instruction {}".format(*issue)


class Difference(NamedTuple):
    """A case on which two engines disagree."""

    name: str
    found: list[str]


class Comparison:
    """Cases compared so far: coverage, and what differed."""

    def __init__(self, engine: Engine | None) -> None:
        """Compare with `engine`, or only run the reference."""
        self.engine = engine
        self.cases = 0
        self.issues = 0
        self.coverage: Counter[str] = Counter()
        self.different: list[Difference] = []

    def add(self, name: str, case: Case) -> None:
        """Run one case on both engines."""
        expected = run_reference(case)
        self.cases += 1
        self.issues += sum(map(len, expected.issues.values()))
        self.coverage.update(expected.paths)
        self.coverage.update(features_of(case.trace, case.hardware))
        if self.engine is not None:
            found = differences_from(expected, case, self.engine)
            if found:
                self.different.append(Difference(name, found))
