"""The command `simfa translate` as a user calls it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from simfa.cli import simfa
from simfa.errors import LogError
from simfa.trace_text import read_trace
from simfa.verify import verify

SYNTH = ["synth", "--seqlen", "512", "--heads-q", "2"]


def run(*arguments: object) -> Result:
    return CliRunner().invoke(simfa, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("logs") / "run.salog"
    assert run(*SYNTH, "-o", path).exit_code == 0
    return path


def test_a_log_becomes_a_verified_trace_with_a_manifest(log: Path, tmp_path: Path) -> None:
    output = tmp_path / "run.satrace"
    result = run("translate", log, "-o", output)
    assert result.exit_code == 0, result.output
    parsed = read_trace(output)
    verify(parsed.trace, parsed.places)
    manifest = json.loads(output.with_name("run.satrace.manifest.json").read_text())
    assert manifest["inputs"]["log"]["sha256"] == parsed.trace.origin.log_sha256
    assert manifest["log_source"] == parsed.trace.origin.log_source == "synthetic"
    assert manifest["summary"]["tiles"] == 8
    assert "log source" in result.stdout
    assert "synthetic" in result.stdout
    assert "note:" not in result.stdout


def test_json_holds_the_same_facts(log: Path, tmp_path: Path) -> None:
    result = run("translate", log, "-o", tmp_path / "run.satrace", "--rules", "paper", "--json")
    summary = json.loads(result.stdout)
    assert (summary["rules"], summary["cluster"], summary["reconstructed"]) == ("paper", 1, False)
    assert summary["trace_bytes"] == (tmp_path / "run.satrace").stat().st_size


def test_the_same_log_gives_the_same_bytes(log: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "a.satrace", tmp_path / "b.satrace"
    for output in (first, second):
        assert run("translate", log, "-o", output).exit_code == 0
    assert first.read_bytes() == second.read_bytes()


def test_reconstruction_is_said(tmp_path: Path) -> None:
    log = tmp_path / "level1.salog"
    assert run(*SYNTH, "--level", 1, "-o", log).exit_code == 0
    result = run("translate", log, "-o", tmp_path / "run.satrace")
    assert "note: the log lacks events of level 2; they were put where the FA3 source has them" in result.stdout
    assert " reconstructed" in (tmp_path / "run.satrace").read_text().splitlines()[3]


def test_a_log_with_disagreeing_warps_needs_a_flag(tmp_path: Path) -> None:
    log, output = tmp_path / "odd.salog", tmp_path / "run.satrace"
    assert run(*SYNTH, "--perturb", "disagree", "-o", log).exit_code == 0
    result = run("translate", log, "-o", output)
    assert isinstance(result.exception, LogError)
    assert "--allow-disagreement" in str(result.exception)
    assert not output.exists()
    result = run("translate", log, "-o", output, "--allow-disagreement")
    assert result.exit_code == 0, result.output
    assert "note: warps whose rows disagreed" in result.stdout


def test_a_truncated_log_needs_a_flag(log: Path, tmp_path: Path) -> None:
    cut, output = tmp_path / "cut.salog", tmp_path / "run.satrace"
    cut.write_bytes(log.read_bytes()[:-2000])
    with pytest.raises(LogError, match="cut short"):
        simfa.main(["translate", str(cut), "-o", str(output)], standalone_mode=False)
    assert not output.exists()
    result = run("translate", cut, "-o", output, "--allow-truncated", "--schedule", "replay")
    assert result.exit_code == 0, result.output
    whole = tmp_path / "whole.satrace"
    assert run("translate", log, "-o", whole).exit_code == 0
    assert read_trace(output).trace.programs == read_trace(whole).trace.programs


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["translate", "none.salog", "-o", "a.satrace"], 1, "simfa: none.salog: cannot be read"),
        (["translate", "none.salog"], 2, "Missing option '-o'"),
        (["translate", "none.salog", "-o", "a.satrace", "--rules", "none"], 2, "Invalid value for '--rules'"),
    ],
)
def test_exit_codes(arguments: list[str], code: int, message: str, tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "simfa", *arguments], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert result.returncode == code
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_output_folder_that_is_not_there_is_named(log: Path, tmp_path: Path) -> None:
    result = run("translate", log, "-o", tmp_path / "no" / "run.satrace")
    assert result.exit_code == 1
    assert "does not exist; make it first" in str(result.exception)


def test_help_needs_no_numpy() -> None:
    code = (
        "import sys\nfrom click.testing import CliRunner\nfrom simfa.cli import simfa\n"
        "assert CliRunner().invoke(simfa, ['translate', '--help']).exit_code == 0\n"
        "assert not {'numpy', 'pandas'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env=dict(os.environ))
