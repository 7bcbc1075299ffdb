"""`simfa validate` around a stand-in simulator."""

import csv
import json

import msgspec
import pytest
from click.testing import CliRunner

from simfa import validate_cli
from simfa.cli import simfa
from simfa.errors import MeasureError
from simfa.files import write_json
from simfa.summary import Summary
from simfa.workload import model_shape
from tests.unit.fake_simulator import statistics, ten_percent_slow


@pytest.fixture
def calls(monkeypatch) -> list[str]:
    """Replace the simulator and return the list of cases it is asked for."""
    asked: list[str] = []

    def predictor(case):
        asked.append(case.id)
        return ten_percent_slow(case)

    monkeypatch.setattr(validate_cli, "simulator", lambda threads, cases, quiet: predictor)
    return asked


def run(*arguments: str, code: int = 0):
    done = CliRunner().invoke(simfa, ["validate", *arguments], catch_exceptions=False)
    assert done.exit_code == code, done.output
    return done


def test_table_shows_each_case_then_the_summary(calls) -> None:
    text = run("--set", "ncu-1500").stdout
    assert len(calls) == 12
    assert text.count("+10.00%") == 13
    assert "MAPE 10.00%, max 10.00%, bias +10.00%, length trend +0.0000, 12 cases, 0 excluded" in text
    assert "one free factor 0.909 leaves MAPE 0.00%" in text


def test_json_is_the_summary(calls) -> None:
    summary = msgspec.json.decode(run("--set", "h20", "--max-seqlen", "2048", "--json").stdout, type=Summary)
    (entry,) = summary.sets
    assert (entry.accuracy.used, entry.accuracy.excluded) == (8, 40)
    assert [case.error for case in entry.cases] == [pytest.approx(0.1)] * 8
    assert not entry.cases[0].clock_stated
    assert "longer than --max-seqlen 2048" in {row.reason for row in entry.excluded}


def test_same_launch_in_two_sets_is_simulated_once(calls) -> None:
    run("--set", "ncu-1500", "--set", "calib")
    assert len(calls) == len(set(calls))
    assert sum(name.startswith("NCU") for name in calls) == 12


def test_outputs(calls, tmp_path) -> None:
    run("--set", "s13", "-o", str(tmp_path / "out"), "--stats", str(tmp_path / "runs"))
    rows = list(csv.DictReader((tmp_path / "out/summary.csv").read_text().splitlines()))
    assert [row["id"] for row in rows] == ["S13-001", "S13-003", "S13-007", "S13-005"]
    assert float(rows[0]["error"]) == pytest.approx(0.1)
    assert (rows[3]["error"], rows[3]["measured_us"]) == ("", "")
    assert "head_dim 80" in rows[3]["excluded_because"]
    assert json.loads((tmp_path / "out/summary.json").read_text())["sets"][0]["accuracy"]["used"] == 3
    assert (tmp_path / "out/summary.json.manifest.json").is_file()
    assert sorted(path.parent.name for path in (tmp_path / "runs").rglob("stats.json")) == calls


def test_join_gives_the_same_summary_as_simulating(calls, tmp_path) -> None:
    direct = run("--set", "s13", "--stats", str(tmp_path / "runs"), "--json").stdout
    assert calls
    calls.clear()
    assert run("--set", "s13", "--results", str(tmp_path / "runs"), "--json").stdout == direct
    assert not calls


def test_join_names_cases_without_a_run(tmp_path) -> None:
    write_json(tmp_path / "stats.json", statistics(model_shape("llama3-8b", 512)))
    with pytest.raises(MeasureError, match=r"no run under .* for S13-001, S13-003, S13-007"):
        run("--set", "s13", "--results", str(tmp_path))


def test_runs_without_a_measurement_are_predictions(calls, tmp_path) -> None:
    run("--set", "s13", "--stats", str(tmp_path))
    (tmp_path / "extra").mkdir()
    write_json(tmp_path / "extra/stats.json", statistics(model_shape("llama3-8b", 512), latency_us=42.0))
    summary = json.loads(run("--set", "s13", "--results", str(tmp_path), "--json").stdout)
    assert [(entry["name"], entry["simulated_us"]) for entry in summary["predictions"]] == [("extra", 42.0)]


def test_logs_are_compared_apart_and_never_in_mape(calls, tmp_path) -> None:
    run("--set", "s13", "--stats", str(tmp_path))
    (tmp_path / "synthetic").mkdir()
    stats = statistics(model_shape("llama3-8b", 512), latency_us=42.0, log_source="synthetic")
    write_json(tmp_path / "synthetic/stats.json", stats)
    write_json(tmp_path / "synthetic/log.json", {"longest_row_ns": 40_000})
    summary = json.loads(run("--set", "s13", "--results", str(tmp_path), "--json").stdout)
    (entry,) = summary["logs"]
    assert (entry["source"], entry["log_us"], entry["difference"]) == ("synthetic", 40.0, pytest.approx(0.05))
    assert summary["predictions"] == []
    assert summary["sets"][0]["accuracy"]["used"] == 3
    text = run("--set", "s13", "--results", str(tmp_path)).stdout
    assert "their simulation: no measurement and no part of any MAPE" in text


def test_other_gpu_and_single_case(calls) -> None:
    document = json.loads(run("--gpu", "h20", "--case", "NCU-03", "--json").stdout)
    assert calls == ["NCU-03"]
    assert document["sets"][0]["cases"][0]["preset"] == "h20"


def test_unknown_case_is_an_error(calls) -> None:
    with pytest.raises(MeasureError, match="case NCU-99: not among the usable cases"):
        run("--case", "NCU-99")


def test_stats_with_results_is_a_usage_error(tmp_path) -> None:
    assert "--stats writes what is simulated here" in run("--stats", "x", "--results", str(tmp_path), code=2).stderr


@pytest.mark.parametrize("results", [(), ("--case", "NCU-00")])
def test_a_length_that_leaves_no_case_is_refused_with_the_lengths(calls, results) -> None:
    with pytest.raises(MeasureError, match="--max-seqlen 1 leaves no case of ncu-1500; lengths there: 512, 1024, 4096"):
        run("--max-seqlen", "1", *results)
    assert calls == []
