"""Calibration on fake simulators whose constants are known; expected values are worked out by hand."""

import math

import pytest

from simfa.errors import MeasureError
from simfa.measure.accuracy import error_figures
from simfa.measure.calibration import Calibration, Parameter, Target, calibrate
from simfa.measure.calibration_text import to_json, to_text

pytest.importorskip("scipy")

COST = Parameter("memory.write_cost", 1.0, 1.0, 2.0)
LATENCY = Parameter("memory.latency_ns", 200.0, 100.0, 300.0)
# Case i takes 100 us x cost^slope x exp(share x latency / 1000): a power law and an exponential in the two constants.
SLOPES = (1.0, 0.5, 0.0, 0.2, 0.8, 0.0)
SHARES = (0.0, 1.0, 2.0, 0.5, 0.1, 1.0)


def latency_us(index: int, cost: float, latency_ns: float) -> float:
    return 100.0 * cost ** SLOPES[index] * math.exp(SHARES[index] * latency_ns / 1000)


def targets(cost: float, latency_ns: float, fitted_on: tuple[int, ...] = (0, 1, 2, 3)) -> list[Target]:
    return [Target(f"C{index}", latency_us(index, cost, latency_ns), index in fitted_on) for index in range(6)]


def fit(cost: float, latency_ns: float) -> Calibration:
    return calibrate([COST, LATENCY], targets(cost, latency_ns), lambda index, values: latency_us(index, *values))


def test_known_constants_are_found_from_half_of_the_cases() -> None:
    found = fit(1.25, 160.0)
    cost, latency = found.parameters
    # The parabola through ln at 1, 1.5 and 2 misses ln(1.25) by 0.4 %: that is all that is lost.
    assert cost.fitted == pytest.approx(1.25, abs=0.02)
    assert latency.fitted == pytest.approx(160, abs=5)
    assert not cost.at_bound and not latency.at_bound
    for case in found.cases:
        assert case.error_fitted == pytest.approx(0, abs=0.01)
        assert case.error_left_out == pytest.approx(0, abs=0.01)
    # At present values, 1.0 and 200, case 0 takes 100 us where 125 were measured, case 2 exp(0.4 - 0.32) too long.
    assert found.cases[0].error_now == pytest.approx(100 / 125 - 1)
    assert found.cases[2].error_now == pytest.approx(math.exp(0.08) - 1)


def test_sensitivity_is_the_mean_of_what_a_range_does_to_all_cases() -> None:
    found = fit(1.25, 160.0)
    assert found.parameters[0].sensitivity == pytest.approx(math.log(2) * sum(SLOPES) / 6)
    assert found.parameters[1].sensitivity == pytest.approx(0.2 * sum(SHARES) / 6)


def test_a_constant_outside_its_range_ends_at_the_bound() -> None:
    found = fit(3.0, 160.0)
    assert found.parameters[0].fitted == 2.0
    assert found.parameters[0].at_bound


def test_cases_of_the_valid_half_do_not_move_the_fit() -> None:
    cases = targets(1.25, 160.0)
    spoiled = [case if case.fitted_on else Target(case.id, 10 * case.measured_us, False) for case in cases]
    found = calibrate([COST, LATENCY], spoiled, lambda index, values: latency_us(index, *values))
    assert [entry.fitted for entry in found.parameters] == [entry.fitted for entry in fit(1.25, 160.0).parameters]
    assert found.cases[4].error_fitted == pytest.approx(-0.9, abs=0.005)


def test_a_left_out_case_has_no_part_in_its_own_prediction() -> None:
    # One constant, linear in ln: every case wants cost e^y, and case 3 alone y = 0.3 instead of 0.1.
    parameter = Parameter("p", 1.0, 0.0, 1.0)
    wanted = [Target(f"C{index}", math.exp(0.3 if index == 3 else 0.1), True) for index in range(4)]
    found = calibrate([parameter], wanted, lambda _, values: math.exp(values[0]))
    # Mean of 0.1, 0.1, 0.1, 0.3; without case 3 it is 0.1, so exp(0.1 - 0.3) - 1 for the left-out case.
    assert found.parameters[0].fitted == pytest.approx(0.15, abs=0.005)
    assert found.cases[3].error_left_out == pytest.approx(math.exp(-0.2) - 1, abs=1e-6)
    # Residuals are 0.05 three times and -0.15: a variance of 0.03 / 3, over four cases of slope 1.
    assert found.parameters[0].standard_error == pytest.approx(math.sqrt(0.03 / 3 / 4), rel=1e-6)


def test_a_constant_without_effect_has_no_standard_error() -> None:
    found = calibrate([COST, LATENCY], targets(1.25, 160.0), lambda index, values: latency_us(index, values[0], 160.0))
    assert [entry.standard_error for entry in found.parameters] == [None, None]
    assert found.parameters[1].sensitivity == 0


def test_whole_numbers_stay_whole() -> None:
    asked = set()

    def simulate(index: int, values: tuple[float, ...]) -> float:
        asked.add(values[0])
        return 100 + values[0]

    parameter = Parameter("grid.tile_edge_cycles", 0, 0, 7, whole=True)
    calibrate([parameter], [Target(f"C{index}", 103.4, True) for index in range(3)], simulate)
    assert asked == {0.0, 4.0, 7.0, 3.0}


def test_each_case_is_simulated_once_with_the_same_values() -> None:
    asked: list[tuple[int, tuple[float, ...]]] = []

    def simulate(index: int, values: tuple[float, ...]) -> float:
        asked.append((index, values))
        return latency_us(index, *values)

    found = calibrate([COST, LATENCY], targets(1.25, 160.0), simulate)
    assert (
        len(asked) == len(set(asked)) == found.runs == 6 * 6
    )  # middle, four ends (one is the present values), fitted values


@pytest.mark.parametrize(
    ("parameters", "fitted_on", "message"),
    [
        ([], (0, 1, 2), "0 values to fit; expected 1 to 3"),
        ([COST] * 4, (0, 1, 2), "4 values to fit"),
        ([Parameter("p", 1.0, 2.0, 2.0)], (0, 1, 2), "p: range 2 to 2 is empty"),
        ([Parameter("p", 1.0, 0.0, 1.0, whole=True)], (0, 1, 2), "no whole middle"),
        ([COST], (0, 1), "2 cases to fit 1 values on; expected at least 3"),
    ],
)
def test_what_cannot_be_fitted_is_refused(
    parameters: list[Parameter], fitted_on: tuple[int, ...], message: str
) -> None:
    with pytest.raises(MeasureError, match=message):
        calibrate(parameters, targets(1.0, 200.0, fitted_on), lambda index, values: 1.0)


def test_figures_of_errors() -> None:
    assert error_figures([0.02, -0.04]) == (2, pytest.approx(0.03), 0.04, -0.01)
    assert error_figures([]) == (0, None, None, None)


def test_table_and_json_keep_the_halves_apart() -> None:
    found = fit(1.25, 160.0)
    checked = {"h20": [("H-1", 0.1, -0.02)]}
    text = to_text(found, checked)
    assert "memory.write_cost" in text and "1 to 2" in text
    assert [line.split()[1] for line in text.splitlines() if line.startswith("C")] == ["calib"] * 4 + ["valid"] * 2
    plain = to_json(found, checked)
    assert plain["figures"]["valid half"]["fitted"]["used"] == 2
    assert plain["figures"]["h20"] == {
        "now": {"used": 1, "mape": 0.1, "max_ape": 0.1, "bias": 0.1},
        "fitted": {"used": 1, "mape": 0.02, "max_ape": 0.02, "bias": -0.02},
    }
