"""The sustained-clock law from points whose law is known, by hand."""

from typing import Any

import pytest
from click.testing import CliRunner

from simfa import validate_cli
from simfa.cli import simfa
from simfa.clock import Activity
from simfa.errors import MeasureError
from simfa.measure.cases import MeasuredCase, load_set
from simfa.measure.clock_law import ClockLaw, ClockPoint, clock_points, fit_law, law_table
from simfa.measure.results import run_from
from tests.unit.fake_simulator import ten_percent_slow

LAW = ClockLaw(0.0, Activity(0.4, 0.3, 0.2, 0.1))
SHARES = (
    Activity(0.8, 0.5, 0.2, 0.1),
    Activity(0.5, 0.9, 0.3, 0.4),
    Activity(0.9, 0.4, 0.6, 0.2),
    Activity(0.4, 0.4, 0.3, 0.6),
    Activity(0.7, 0.7, 0.7, 0.1),
    Activity(0.6, 0.2, 0.1, 0.3),
)


def period_ns(shares: Activity) -> float:
    return 0.4 * shares.tensor + 0.3 * shares.cuda + 0.2 * shares.l2 + 0.1 * shares.dram


def point(shares: Activity, time_ns: float, nominal_ns: float = 0.1, fitted_on: bool = True) -> ClockPoint:
    return ClockPoint("P", shares, time_ns, nominal_ns, fitted_on)


EXACT = [point(shares, period_ns(shares)) for shares in SHARES]


def test_an_exact_law_is_found() -> None:
    assert fit_law(EXACT) == LAW


def test_valid_points_do_not_move_it() -> None:
    assert fit_law([*EXACT, point(SHARES[0], 5.0, fitted_on=False)]) == LAW


def test_errors_are_of_latency_and_no_clock_is_above_nominal() -> None:
    busy = Activity(1.0, 0.5, 0.0, 0.0)
    # 0.4 + 0.15 = 0.55 ns where 0.5 were measured; a nominal 0.6 ns is more than the law's 0.55 and 20 % too long.
    assert point(busy, 0.5).error(LAW) == pytest.approx(0.1)
    assert point(busy, 0.5, nominal_ns=0.6).error(LAW) == pytest.approx(0.2)


def test_points_come_from_looped_cases() -> None:
    case = load_set("s01").cases[0]
    single = load_set("ncu-1500").cases[0]
    run = run_from(ten_percent_slow(case), case.id)
    (found,) = clock_points([(case, run), (single, run)])
    assert found.period_ns == pytest.approx(1e9 / run.sm_clock_hz / 1.1, rel=1e-4)
    assert (found.shares.tensor, found.nominal_ns) == (0.5, 1e9 / run.sm_clock_hz)


@pytest.mark.parametrize(
    ("points", "message"),
    [
        (EXACT[:5], "5 looped cases to fit a clock law on; expected at least 6"),
        ([point(SHARES[0], 0.6)] * 8, "8 looped cases that are alike; expected some that differ in what is busy"),
    ],
)
def test_too_little_to_fit(points: list[ClockPoint], message: str) -> None:
    with pytest.raises(MeasureError, match=message):
        fit_law(points)


def test_table_keeps_the_halves_apart() -> None:
    spoiled = point(Activity(1.0, 0.5, 0.0, 0.0), 0.5, fitted_on=False)
    text = law_table([*EXACT, spoiled], {"exact": LAW})
    calib, valid = text.splitlines()[-2:]
    assert "0.4 tensor + 0.3 cuda + 0.2 l2 + 0.1 dram" in calib
    assert calib.split()[-4:] == ["0.00%", "0.00%", "+0.00%", "6"]
    assert valid.split()[-4:] == ["10.00%", "10.00%", "+10.00%", "1"]


def test_each_half_of_s01_has_every_head_dimension_and_mask() -> None:
    cases = load_set("s01").cases
    for half in ("calib", "valid"):
        assert len({(case.shape.head_dim, case.shape.causal) for case in cases if case.half == half}) == 6
    assert sum(case.half == "calib" for case in cases) == len(cases) / 2 == 18


def test_command(monkeypatch) -> None:
    # The stand-in is always as busy, whatever the case.
    monkeypatch.setattr(validate_cli, "simulator", lambda threads, cases, quiet: ten_percent_slow)
    done = CliRunner().invoke(simfa, ["calibrate", "--clock-law", "--max-seqlen", "512"])
    assert "3 looped cases to fit a clock law on" in str(done.exception)

    def busy(case: MeasuredCase) -> dict[str, Any]:
        changes = {"tensor_utilization": case.shape.head_dim / 400, "dram_read_bytes": 10_000 * case.shape.seqlen_kv}
        return ten_percent_slow(case) | changes

    monkeypatch.setattr(validate_cli, "simulator", lambda threads, cases, quiet: busy)
    done = CliRunner().invoke(simfa, ["calibrate", "--clock-law"], catch_exceptions=False)
    assert done.exit_code == 0
    assert "fitted" in done.output and "S01-019" in done.output


@pytest.mark.parametrize("flags", [["--results", "."], ["--clock-law", "--json"], ["--clock-law", "--check", "h20"]])
def test_flags_that_do_not_go_together(flags: list[str]) -> None:
    assert CliRunner().invoke(simfa, ["calibrate", *flags]).exit_code == 2
