"""Profiler command lines, and a profiler that is missing or refuses."""

import stat
from pathlib import Path

import pytest
from click.testing import CliRunner

from simfa.errors import InstrumentError
from simfa.instrument.commands import capture
from simfa.instrument.profilers import NCU_METRICS, ncu_commands, nsys_commands, run_commands
from simfa.measure.metric_table import COUNTERS, DESCRIBING

TARGET = ["python", "-m", "target"]


def test_nsys_profiles_and_exports(tmp_path: Path) -> None:
    profile, export = nsys_commands(TARGET, tmp_path / "plain.nsys-rep")
    assert profile[:2] == ["nsys", "profile"]
    assert {"--trace=cuda,nvtx", "--cuda-graph-trace=node", f"--output={tmp_path / 'plain'}"} <= set(profile)
    assert profile[-len(TARGET) :] == TARGET
    assert export[:3] == ["nsys", "export", "--type=sqlite"]
    assert f"--output={tmp_path / 'plain.sqlite'}" in export


def test_ncu_keeps_the_report_and_prints_raw_csv(tmp_path: Path) -> None:
    profile, read = ncu_commands(TARGET, tmp_path / "plain.ncu-rep", warm_up=7, cache_control="all")
    told = {"--clock-control=none", "--cache-control=all", "--launch-skip=7", "--launch-count=1", "--import-source=no"}
    assert told <= set(profile)
    assert profile[-len(TARGET) :] == TARGET
    assert {"--page=raw", "--csv", "--print-units=base", f"--log-file={tmp_path / 'plain.csv'}"} <= set(read)


def test_unknown_cache_control_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InstrumentError, match="expected none or all"):
        ncu_commands(TARGET, tmp_path / "x.ncu-rep", warm_up=0, cache_control="some")


def test_every_metric_is_one_the_ingester_reads() -> None:
    read = {name for counter in COUNTERS for term in counter.terms for name in term.names} | set(DESCRIBING)
    assert set(NCU_METRICS) <= read


def test_every_column_of_a_hopper_report_can_be_filled() -> None:
    filled = {
        counter.column
        for counter in COUNTERS
        if all(any(name in NCU_METRICS for name in term.names) for term in counter.terms[:2])
    }
    assert {"duration_ns", "elapsed_cycles", "sm_clock_hz", "dram_read_bytes", "dram_write_bytes", "l2_bytes"} <= filled


@pytest.fixture
def profiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Return a function that puts a made-up profiler on an otherwise empty PATH."""
    monkeypatch.setenv("PATH", str(tmp_path))

    def install(name: str, script: str) -> None:
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    return install


def test_a_missing_profiler_is_one_clear_message(profiler) -> None:
    with pytest.raises(InstrumentError, match="nsys is not on PATH"):
        run_commands([["nsys", "profile"]])


def test_no_permission_for_counters_is_told(profiler) -> None:
    profiler("ncu", "echo '==ERROR== ERR_NVGPUCTRPERM'; exit 1")
    with pytest.raises(InstrumentError, match="ask the administrator"):
        run_commands([["ncu"]])


def test_a_failing_profiler_s_last_words_are_kept(profiler) -> None:
    profiler("nsys", "echo one; echo 'no such target' >&2; exit 3")
    with pytest.raises(InstrumentError, match=r"nsys failed with code 3:\n(.*\n)*no such target"):
        run_commands([["nsys", "profile"], ["nsys", "export"]])


def test_dry_run_prints_commands_that_run_the_plain_kernel(tmp_path: Path) -> None:
    arguments = ["--seqlen", "256", "--heads-q", "4", "--causal", "--library", str(tmp_path), "--profile", "nsys"]
    done = CliRunner().invoke(capture, [*arguments, "--dry-run", "-o", str(tmp_path / "x.nsys-rep")])
    assert done.exit_code == 0, done.output
    first, second = done.output.strip().splitlines()
    assert "-m simfa capture --batch 1 --seqlen-q 256 --seqlen-kv 256 --heads-q 4 --heads-kv 4" in first
    assert "--causal" in first and "--plain-only" in first
    assert second.startswith("nsys export")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ([], "missing option '-o'"),
        (["--profile", "ncu"], "missing option '-o'"),
        (["--profile", "ncu", "-o", "x.txt"], "ends in .ncu-rep"),
        (["--profile", "nsys", "--dry-run", "-o", "x.nsys-rep"], "needs --library"),
        (["--repeats", "3", "-o", "x.salog"], "3 is not in the range"),
    ],
)
def test_wrong_usage_is_a_usage_error(flags: list[str], message: str) -> None:
    done = CliRunner().invoke(capture, ["--seqlen", "256", "--heads-q", "4", *flags])
    assert done.exit_code == 2
    assert message in done.output


def test_a_missing_profiler_is_told_before_anything_is_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("simfa.instrument.capture_command.build_pair", lambda *_, **__: pytest.fail("built"))
    done = CliRunner().invoke(
        capture, ["--seqlen", "256", "--heads-q", "4", "--profile", "ncu", "-o", str(tmp_path / "x.ncu-rep")]
    )
    assert isinstance(done.exception, InstrumentError)
    assert "ncu is not on PATH" in str(done.exception)
