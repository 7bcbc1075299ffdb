"""The sustained-clock law, fitted on looped measurements: time of a cycle against what is busy in it."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from simfa.clock import Activity, clear_ns
from simfa.errors import MeasureError
from simfa.hardware import load_preset
from simfa.measure.accuracy import error_figures
from simfa.measure.cases import MeasuredCase
from simfa.measure.results import SimulatedRun, activity_of, clears_counter
from simfa.measure.summary_text import FIGURE_HEADERS, figure_cells, percent
from simfa.tables import text_table

LEAST_POINTS = 6  # of a fit of four times


class ClockPoint(NamedTuple):
    """A looped case: its activity, the ns of a launch over its cycles as measured, and at the nominal clock."""

    id: str
    shares: Activity
    period_ns: float
    nominal_ns: float
    fitted_on: bool

    def error(self, law: "ClockLaw") -> float:
        """Return the signed error of the latency at the law's clock, which is at most the nominal one."""
        return (
            max(
                self.nominal_ns,
                law.base_ns + sum(time * share for time, share in zip(law.times_ns, self.shares, strict=True)),
            )
            / self.period_ns
            - 1
        )


class ClockLaw(NamedTuple):
    """ns a cycle = base + sum of the times of an `Activity`'s shares."""

    base_ns: float
    times_ns: Activity


def looped(cases: Iterable[MeasuredCase]) -> list[MeasuredCase]:
    """Return the looped cases; raises `MeasureError` where too few of them may be fitted on."""
    found = [case for case in cases if case.launches == "looped"]
    _check_count(sum(case.half == "calib" for case in found))
    return found


def _check_count(fitted_on: int) -> None:
    if fitted_on < LEAST_POINTS:
        raise MeasureError(
            f"{fitted_on} looped cases to fit a clock law on; expected at least {LEAST_POINTS}: cases are fitted on "
            "where their column half says calib"
        )


def clock_points(pairs: Iterable[tuple[MeasuredCase, SimulatedRun]]) -> list[ClockPoint]:
    """Return the looped cases among pairs as points."""
    return [
        ClockPoint(
            case.id,
            activity_of(case, run),
            case.latency_us * 1e3 / run.cycles,
            1e9 / run.sm_clock_hz + clear_ns(load_preset(case.preset).spec, clears_counter(case)) / run.cycles,
            case.half == "calib",
        )
        for case, run in pairs
        if case.launches == "looped"
    ]


def fit_law(points: Sequence[ClockPoint]) -> ClockLaw:
    """Return the law without base whose relative errors over the points that may be fitted on have the least squares.

    Raises `MeasureError` for fewer than six, or where their shares do not tell the times apart.
    """
    import numpy as np

    used = [point for point in points if point.fitted_on]
    rows = np.array([[share / point.period_ns for share in point.shares] for point in used]).reshape(
        -1, len(Activity._fields)
    )
    _check_count(len(used))
    if np.linalg.matrix_rank(rows) < len(Activity._fields):
        raise MeasureError(f"{len(used)} looped cases that are alike; expected some that differ in what is busy")
    times = np.linalg.lstsq(rows, np.ones(len(used)), rcond=None)[0]
    return ClockLaw(0.0, Activity(*(round(float(time), 3) for time in times)))


def law_table(points: Sequence[ClockPoint], laws: dict[str, ClockLaw]) -> str:
    """Return the laws with MAPE, largest error and bias of either half, then each point under each law."""
    rows = []
    for name, law in laws.items():
        for half, fitted_on in (("calib", True), ("valid", False)):
            found = error_figures([point.error(law) for point in points if point.fitted_on == fitted_on])
            if found.used:
                rows.append((name, _law_text(law), half, *figure_cells(found)))
    summary = text_table(("law", "ns a cycle", "half", *FIGURE_HEADERS), rows, right=range(3, 7))
    cases = text_table(
        ("case", "half", "tensor", "CUDA", "L2", "DRAM", "ns a cycle", *laws),
        [
            (
                point.id,
                "calib" if point.fitted_on else "valid",
                *(f"{share:.3f}" for share in point.shares),
                f"{point.period_ns:.4f}",
                *(percent(point.error(law)) for law in laws.values()),
            )
            for point in points
        ],
        right=range(2, 7 + len(laws)),
    )
    return f"{cases}\n\n{summary}"


def _law_text(law: ClockLaw) -> str:
    """Return a law as one cell."""
    terms = [f"{time:g} {name}" for time, name in zip(law.times_ns, Activity._fields, strict=True)]
    return " + ".join([f"{law.base_ns:g}", *terms] if law.base_ns else terms)
