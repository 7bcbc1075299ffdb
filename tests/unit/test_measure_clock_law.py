"""The sustained-clock law from points whose law is known, by hand."""

import pytest
from click.testing import CliRunner

from simfa import validate_cli
from simfa.cli import simfa
from simfa.errors import MeasureError
from simfa.measure.cases import load_set
from simfa.measure.clock_law import ClockLaw, ClockPoint, clock_points, fit_law, law_table
from simfa.measure.results import run_from
from tests.unit.fake_simulator import ten_percent_slow


def point(share: float, period_ns: float, fitted_on: bool = True) -> ClockPoint:
    return ClockPoint(f"u{share}", share, period_ns, 0.5, fitted_on)


# 0.4 + 0.3 u
EXACT = [point(share, 0.4 + 0.3 * share) for share in (0.2, 0.4, 0.6, 0.8)]


def test_an_exact_law_is_found() -> None:
    assert fit_law(EXACT) == ClockLaw(0.4, 0.3)


def test_valid_points_do_not_move_it() -> None:
    assert fit_law([*EXACT, point(0.9, 5.0, fitted_on=False)]) == ClockLaw(0.4, 0.3)


def test_errors_are_of_latency_and_no_clock_is_above_nominal() -> None:
    # 0.4 + 0.3 x 0.5 = 0.55 ns where 0.5 were measured; at share 0.1 the law's 0.43 ns are below the nominal 0.5.
    assert point(0.5, 0.5).error(ClockLaw(0.4, 0.3)) == pytest.approx(0.1)
    assert point(0.1, 0.5).error(ClockLaw(0.4, 0.3)) == pytest.approx(0.0)


def test_points_come_from_looped_cases() -> None:
    case = load_set("s01").cases[0]
    single = load_set("ncu-1500").cases[0]
    run = run_from(ten_percent_slow(case), case.id)
    (found,) = clock_points([(case, run), (single, run)])
    assert found.period_ns == pytest.approx(1e9 / run.sm_clock_hz / 1.1, rel=1e-4)
    assert (found.tensor_share, found.nominal_ns) == (0.5, 1e9 / run.sm_clock_hz)


@pytest.mark.parametrize("points", [EXACT[:3], [point(0.5, 0.6)] * 4])
def test_too_little_to_fit(points: list[ClockPoint]) -> None:
    with pytest.raises(MeasureError, match="looped cases to fit a clock law on; expected at least 4"):
        fit_law(points)


def test_table_keeps_the_halves_apart() -> None:
    points = [entry._replace(nominal_ns=0.1) for entry in EXACT]
    text = law_table([*points, point(0.5, 0.5, fitted_on=False)], {"exact": ClockLaw(0.4, 0.3)})
    calib, valid = text.splitlines()[-2:]
    assert calib.split()[-4:] == ["0.00%", "0.00%", "+0.00%", "4"]
    assert valid.split()[-4:] == ["10.00%", "10.00%", "+10.00%", "1"]


def test_each_half_of_s01_has_every_head_dimension_and_mask() -> None:
    cases = load_set("s01").cases
    for half in ("calib", "valid"):
        assert len({(case.shape.head_dim, case.shape.causal) for case in cases if case.half == half}) == 6
    assert sum(case.half == "calib" for case in cases) == len(cases) / 2 == 18


def test_command(monkeypatch) -> None:
    # Latencies 10 % above measured at one tensor share for all: no law can be told from that.
    monkeypatch.setattr(validate_cli, "simulator", lambda threads, quiet: ten_percent_slow)
    done = CliRunner().invoke(simfa, ["calibrate", "--clock-law"])
    assert "18 looped cases to fit a clock law on" in str(done.exception)

    def busy(case):
        return ten_percent_slow(case) | {"tensor_utilization": 0.01 * case.shape.head_dim**0.5 * 5}

    monkeypatch.setattr(validate_cli, "simulator", lambda threads, quiet: busy)
    done = CliRunner().invoke(simfa, ["calibrate", "--clock-law"], catch_exceptions=False)
    assert done.exit_code == 0
    assert "fitted" in done.output and "S01-019" in done.output


@pytest.mark.parametrize("flags", [["--results", "."], ["--clock-law", "--json"], ["--clock-law", "--check", "h20"]])
def test_flags_that_do_not_go_together(flags: list[str]) -> None:
    assert CliRunner().invoke(simfa, ["calibrate", *flags]).exit_code == 2
