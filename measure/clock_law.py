"""The sustained-clock law, fitted on looped measurements: time of a cycle against the share of busy tensor pipes."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from simfa.errors import MeasureError
from simfa.measure.calibration_text import figures
from simfa.measure.cases import MeasuredCase
from simfa.measure.results import SimulatedRun
from simfa.measure.summary_text import percent
from simfa.tables import text_table


class ClockPoint(NamedTuple):
    """A looped case: its tensor share, the ns a simulated cycle must have taken, and the ns it takes nominally."""

    id: str
    tensor_share: float
    period_ns: float
    nominal_ns: float
    fitted_on: bool

    def error(self, law: "ClockLaw") -> float:
        """Return the signed error of the latency at the law's clock, which is at most the nominal one."""
        return max(self.nominal_ns, law.base_ns + law.tensor_ns * self.tensor_share) / self.period_ns - 1


class ClockLaw(NamedTuple):
    """ns a cycle = base + tensor x share of busy tensor pipes."""

    base_ns: float
    tensor_ns: float


def clock_points(pairs: Iterable[tuple[MeasuredCase, SimulatedRun]]) -> list[ClockPoint]:
    """Return the looped cases among pairs as points."""
    return [
        ClockPoint(
            case.id,
            run.tensor_utilization,
            case.latency_us * 1e3 / run.cycles,
            1e9 / run.sm_clock_hz,
            case.half == "calib",
        )
        for case, run in pairs
        if case.launches == "looped"
    ]


def fit_law(points: Sequence[ClockPoint]) -> ClockLaw:
    """Return the law with the least squares of relative errors over the points that may be fitted on.

    Raises `MeasureError` for fewer than four, or where all have the same tensor share.
    """
    import numpy as np

    used = [point for point in points if point.fitted_on]
    if len(used) < 4 or len({point.tensor_share for point in used}) < 2:
        raise MeasureError(
            f"{len(used)} looped cases to fit a clock law on; expected at least 4 with different tensor shares: cases "
            "are fitted on where their column half says calib"
        )
    rows = np.array([(1 / point.period_ns, point.tensor_share / point.period_ns) for point in used])
    base, tensor = np.linalg.lstsq(rows, np.ones(len(used)), rcond=None)[0]
    return ClockLaw(round(float(base), 3), round(float(tensor), 3))


def law_table(points: Sequence[ClockPoint], laws: dict[str, ClockLaw]) -> str:
    """Return the laws with MAPE, largest error and bias of either half, then each point under each law."""
    rows = []
    for name, law in laws.items():
        for half, fitted_on in (("calib", True), ("valid", False)):
            found = figures([point.error(law) for point in points if point.fitted_on == fitted_on])
            if found["used"]:
                numbers = [f"{found['mape']:.2%}", f"{found['max_ape']:.2%}", percent(float(found["bias"] or 0))]
                rows.append((name, f"{law.base_ns:g} + {law.tensor_ns:g} u", half, *numbers, str(found["used"])))
    summary = text_table(("law", "ns a cycle", "half", "MAPE", "max", "bias", "used"), rows, right=range(3, 7))
    cases = text_table(
        ("case", "half", "tensor share u", "ns a cycle", *laws),
        [
            (
                point.id,
                "calib" if point.fitted_on else "valid",
                f"{point.tensor_share:.3f}",
                f"{point.period_ns:.4f}",
                *(percent(point.error(law)) for law in laws.values()),
            )
            for point in points
        ],
        right=range(2, 4 + len(laws)),
    )
    return f"{cases}\n\n{summary}"
