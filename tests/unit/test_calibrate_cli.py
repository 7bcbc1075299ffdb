"""`simfa calibrate`: what it refuses, what it writes, and its cache."""

import json

import pytest
from click.testing import CliRunner

from simfa import calibrate_cli
from simfa.cli import simfa
from simfa.errors import HardwareError, MeasureError
from simfa.measure.cases import load_set

pytest.importorskip("scipy")


@pytest.fixture
def asked(monkeypatch) -> list[tuple[str, tuple[float, ...]]]:
    """Replace the simulator: latencies are right at a write cost of 1.2 and move with its logarithm."""
    calls: list[tuple[str, tuple[float, ...]]] = []

    def simulator(cases, parameters, cache, threads, *, quiet):
        def simulate(index: int, values: tuple[float, ...]) -> float:
            calls.append((cases[index].id, values))
            return cases[index].latency_us * (0.4 + 0.5 * values[0])

        return simulate

    monkeypatch.setattr(calibrate_cli, "simulator", simulator)
    return calls


def run(*arguments: str) -> str:
    done = CliRunner().invoke(simfa, ["calibrate", *arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_fits_on_the_calib_half_and_reports_the_other(asked) -> None:
    text = run("--parameter", "memory.write_cost", "--check", "h20")
    found = json.loads(run("--parameter", "memory.write_cost", "--check", "h20", "--json"))
    (entry,) = found["parameters"]
    assert entry["fitted"] == pytest.approx(1.2, abs=0.005)
    halves = {case["target"]["id"]: case["target"]["fitted_on"] for case in found["cases"]}
    assert halves == {case.id: case.half == "calib" for case in load_set("ncu-1500").cases}
    assert found["figures"]["valid half"]["fitted"]["mape"] < 0.003
    assert found["figures"]["h20"]["fitted"]["used"] == len(load_set("h20").cases)
    assert "memory.write_cost" in text and "valid half" in text and "h20" in text


def test_each_half_covers_every_head_dimension_and_mask() -> None:
    for half in ("calib", "valid"):
        cases = [case for case in load_set("ncu-1500").cases if case.half == half]
        assert {(case.shape.head_dim, case.shape.causal) for case in cases} == {
            (size, causal) for size in (64, 128) for causal in (False, True)
        }
        assert sorted(case.shape.seqlen_kv for case in cases) == [512, 512, 1024, 1024, 4096, 4096]


def test_output_is_the_json_and_the_same_each_time(asked, tmp_path) -> None:
    run("-o", str(tmp_path / "a.json"))
    run("-o", str(tmp_path / "b.json"))
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    assert json.loads((tmp_path / "a.json").read_text())["runs"] == len(asked) / 2
    assert json.loads((tmp_path / "a.json.manifest.json").read_text())["command"] == "calibrate"


def test_cache_holds_what_was_simulated(tmp_path, monkeypatch) -> None:
    cases = tuple(case for case in load_set("ncu-1500").cases if case.id == "NCU-12")
    parameters = [calibrate_cli.parameter("h100-sxm", "memory.write_cost")]
    ran = []

    def run_once(trace, spec, **options):
        ran.append(spec.memory.write_cost)
        return type("Result", (), {"latency_us": 50.0 * spec.memory.write_cost})()

    monkeypatch.setattr("simfa.simulate.engine.run", run_once)
    for _ in range(2):
        simulate = calibrate_cli.simulator(cases, parameters, str(tmp_path), 1, quiet=True)
        assert simulate(0, (1.25,)) == 62.5
        assert simulate(0, (1.5,)) == 75.0
    assert ran == [1.25, 1.5]
    kept = list(tmp_path.iterdir())
    assert len(kept) == 2
    for file in kept:
        file.write_text("62,5")
    with pytest.raises(MeasureError, match=r"\.json: no latency in us: .*; delete it"):
        simulate(0, (1.25,))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--set", "nowhere"), "measured set 'nowhere' is unknown"),
        (("--parameter", "memory.writes"), "h100-sxm has no value memory.writes; values with a range: "),
        (("--parameter", "l2.slices"), "l2.slices has no range to fit in"),
        (("--parameter", "sm.scheduler"), "sm.scheduler has no range to fit in"),
        (("--set", "s03"), "0 cases to fit 1 values on"),
        (("--set", "s08"), "presets; expected one to fit"),
        (("--max-seqlen", "16"), "--max-seqlen 16 leaves no case of ncu-1500; lengths there: 512, 1024, 4096"),
        (("--check", "h20", "--max-seqlen", "512"), "--max-seqlen 512 leaves no case of h20; lengths there: "),
        (("--clock-law", "--max-seqlen", "16"), "--max-seqlen 16 leaves no case of s01; lengths there: "),
    ],
)
def test_bad_input_says_what_is_wrong(asked, arguments, message) -> None:
    done = CliRunner().invoke(simfa, ["calibrate", *arguments])
    assert isinstance(done.exception, MeasureError | HardwareError)
    assert message in str(done.exception)
    assert not asked


def test_more_than_three_values_are_refused(asked) -> None:
    paths = ("memory.write_cost", "memory.latency_ns", "memory.efficiency", "grid.launch_ns")
    done = CliRunner().invoke(simfa, ["calibrate", *(f"--parameter={path}" for path in paths)])
    assert "4 values to fit; expected 1 to 3" in str(done.exception)
    assert not asked


def test_usage_errors() -> None:
    assert CliRunner().invoke(simfa, ["calibrate", "--max-seqlen", "0"]).exit_code == 2
