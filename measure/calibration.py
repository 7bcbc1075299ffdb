"""Bounded least squares of a few preset values against measured latencies.

A simulator's response to a small change is uneven: a few cycles move a CTA in front of another and the latency of a
short case by a percent. Derivatives by small differences would fit that. So each value is simulated at both ends and in
the middle of its range, ln(latency) of each case becomes a parabola in each value, and these are fitted.
"""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from simfa.errors import MeasureError

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_PARAMETERS = 3

# (index of the case, value of each parameter) -> latency in us.
Simulate = Callable[[int, tuple[float, ...]], float]


class Parameter(msgspec.Struct, frozen=True):
    """A preset value to fit: its dotted path, its value now, and the ends of the range a source allows."""

    path: str
    value: float
    low: float
    high: float
    whole: bool = False

    @property
    def middle(self) -> float:
        """The middle of the range, a whole number where the value is one."""
        middle = (self.low + self.high) / 2
        return float(round(middle)) if self.whole else middle


class Target(msgspec.Struct, frozen=True):
    """A measured case: its latency in microseconds, and whether constants may be fitted on it."""

    id: str
    measured_us: float
    fitted_on: bool


class FittedParameter(msgspec.Struct, frozen=True, kw_only=True):
    """A parameter after the fit.

    `standard_error` comes from the residuals of the fit and is None where they do not determine it; `at_bound` says
    that the range ended the fit. `sensitivity` is the mean over all cases of |ln(latency at high / latency at low)|.
    """

    parameter: Parameter
    fitted: float
    standard_error: float | None
    at_bound: bool
    sensitivity: float


class CaseFit(msgspec.Struct, frozen=True, kw_only=True):
    """A case before and after: signed errors (simulated / measured - 1), at present values, at the fitted ones, and
    by the parabolas at values fitted without this case.
    """

    target: Target
    error_now: float
    error_fitted: float
    error_left_out: float


class Calibration(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a calibration found; `runs` counts the simulations it asked for."""

    parameters: list[FittedParameter]
    cases: list[CaseFit]
    runs: int


class _Response:
    """ln(latency / measured) of each case as c + sum over parameters of b x + q x^2, x in [-1, 1] over the range."""

    def __init__(self, parameters: Sequence[Parameter], targets: Sequence[Target], simulate: Simulate) -> None:
        """Simulate every case at the middle of all ranges, and at both ends of each."""
        import numpy as np

        self.parameters = parameters
        middle = tuple(parameter.middle for parameter in parameters)

        def logs(values: tuple[float, ...]) -> "NDArray[np.float64]":
            found = [simulate(index, values) / target.measured_us for index, target in enumerate(targets)]
            logarithms: NDArray[np.float64] = np.log(np.array(found))
            return logarithms

        self.centre = logs(middle)
        self.linear = np.zeros((len(targets), len(parameters)))
        self.square = np.zeros((len(targets), len(parameters)))
        self.spread = np.zeros((len(targets), len(parameters)))
        for column, parameter in enumerate(parameters):
            ends = [
                logs((*middle[:column], end, *middle[column + 1 :])) - self.centre
                for end in (parameter.low, parameter.high)
            ]
            x = np.array([self.scaled(column, end) for end in (parameter.low, parameter.high)])
            coefficients = np.linalg.solve(np.stack([x, x**2], axis=1), np.stack(ends))
            self.linear[:, column], self.square[:, column] = coefficients
            self.spread[:, column] = np.abs(ends[1] - ends[0])

    def scaled(self, column: int, value: float) -> float:
        """Return a value as x: 0 in the middle of its range."""
        parameter = self.parameters[column]
        return (value - parameter.middle) / (parameter.high - parameter.low) * 2

    def unscaled(self, x: "NDArray[Any]") -> tuple[float, ...]:
        """Return values from their x, rounded to what a preset would say and kept in their range."""
        values = []
        for parameter, scaled in zip(self.parameters, x.tolist(), strict=True):
            value = parameter.middle + scaled * (parameter.high - parameter.low) / 2
            digits = 0 if parameter.whole else 2 - math.floor(math.log10(parameter.high - parameter.low))
            values.append(min(max(round(value, digits), parameter.low), parameter.high))
        return tuple(values)

    def residuals(self, x: "NDArray[Any]", cases: "NDArray[Any]") -> "NDArray[Any]":
        """Return ln(simulated / measured) of some cases at `x`."""
        found: NDArray[Any] = self.centre[cases] + self.linear[cases] @ x + self.square[cases] @ x**2
        return found


def calibrate(parameters: Sequence[Parameter], targets: Sequence[Target], simulate: Simulate) -> Calibration:
    """Fit `parameters` on the targets that allow it, inside their ranges, and report every target.

    The same input gives the same result. Raises `MeasureError` for no or too many parameters, a range that is none,
    or fewer cases than a fit needs.
    """
    import numpy as np

    fitted_on = np.array([index for index, target in enumerate(targets) if target.fitted_on], dtype=np.int64)
    _check(parameters, len(fitted_on))
    runs: dict[tuple[int, tuple[float, ...]], float] = {}

    def once(index: int, values: tuple[float, ...]) -> float:
        if (index, values) not in runs:
            runs[index, values] = simulate(index, values)
        return runs[index, values]

    response = _Response(parameters, targets, once)
    solution = _solve(response, fitted_on)
    values = response.unscaled(solution)
    everything = np.arange(len(targets))
    cases = []
    for index, target in enumerate(targets):
        others = fitted_on[fitted_on != index] if target.fitted_on else fitted_on
        left_out = response.residuals(_solve(response, others), everything[index : index + 1])[0]
        now = once(index, tuple(parameter.value for parameter in parameters))
        cases.append(
            CaseFit(
                target=target,
                error_now=now / target.measured_us - 1,
                error_fitted=once(index, values) / target.measured_us - 1,
                error_left_out=math.exp(left_out) - 1,
            )
        )
    errors = _standard_errors(response, solution, fitted_on)
    return Calibration(
        parameters=[
            FittedParameter(
                parameter=parameter,
                fitted=values[column],
                standard_error=errors[column],
                at_bound=values[column] in (parameter.low, parameter.high),
                sensitivity=float(response.spread[:, column].mean()),
            )
            for column, parameter in enumerate(parameters)
        ],
        cases=cases,
        runs=len(runs),
    )


def _check(parameters: Sequence[Parameter], cases: int) -> None:
    """Raise `MeasureError` for what cannot be fitted."""
    if not 1 <= len(parameters) <= MOST_PARAMETERS:
        raise MeasureError(f"{len(parameters)} values to fit; expected 1 to {MOST_PARAMETERS}: more fit noise")
    for parameter in parameters:
        if not parameter.low < parameter.high:
            raise MeasureError(f"{parameter.path}: range {parameter.low:g} to {parameter.high:g} is empty")
        if parameter.whole and not parameter.low < parameter.middle < parameter.high:
            raise MeasureError(f"{parameter.path}: range {parameter.low:g} to {parameter.high:g} has no whole middle")
    if cases < len(parameters) + 2:
        raise MeasureError(
            f"{cases} cases to fit {len(parameters)} values on; expected at least {len(parameters) + 2}: "
            "cases of a measured table are fitted on where its column half says calib"
        )


def _solve(response: _Response, cases: "NDArray[Any]") -> "NDArray[Any]":
    """Return the x in [-1, 1] with the least squares of the cases' residuals."""
    import numpy as np

    try:
        from scipy.optimize import least_squares
    except ImportError as error:
        raise MeasureError("calibrate needs scipy; pip install 'simfa[calibrate]'") from error

    start = np.zeros(len(response.parameters))
    found = least_squares(response.residuals, start, bounds=(-1, 1), args=(cases,), xtol=1e-12, ftol=1e-12, gtol=1e-12)
    solution: NDArray[Any] = found.x
    return solution


def _standard_errors(response: _Response, x: "NDArray[Any]", cases: "NDArray[Any]") -> list[float | None]:
    """Return the standard error of each value, from the curvature at `x` and the scatter of the residuals."""
    import numpy as np

    slopes = response.linear[cases] + 2 * response.square[cases] * x
    curvature = slopes.T @ slopes
    if np.linalg.matrix_rank(curvature) < len(x):
        return [None] * len(x)
    residuals = response.residuals(x, cases)
    variance = float(residuals @ residuals) / (len(cases) - len(x))
    spans = np.array([(parameter.high - parameter.low) / 2 for parameter in response.parameters])
    errors = np.sqrt(np.diag(np.linalg.inv(curvature)) * variance) * spans
    return [float(error) for error in errors]
