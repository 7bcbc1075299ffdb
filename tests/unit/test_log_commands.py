"""The commands `simfa synth` and `simfa log` as a user calls them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from simfa.cli import simfa
from simfa.errors import LogError, ShapeError
from simfa.hardware import load_preset

SMALL = ["synth", "--seqlen", "512", "--heads-q", "2"]


def run(*arguments):
    return CliRunner().invoke(simfa, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    target = tmp_path_factory.mktemp("logs") / "run.salog"
    assert run(*SMALL, "-o", target).exit_code == 0
    return target


def test_synth_writes_log_and_manifest(path):
    assert path.stat().st_size > 4096
    manifest = json.loads(path.with_name("run.salog.manifest.json").read_text())
    assert manifest["log_source"] == "synthetic"
    assert (manifest["command"], manifest["seed"], manifest["gpu"]) == ("synth", 0, "h100-sxm")


def test_synth_passes_its_flags_on(tmp_path):
    target = tmp_path / "run.salog"
    flags = ["--causal", "--level", 1, "--seed", 4, "--one-warp", "--ctas", "0-2,5", "--gpu", "h20"]
    result = run(*SMALL, *flags, "--kernel-version", "2025-01", "-o", target)
    assert result.exit_code == 0, result.output
    info = json.loads(run("log", "info", target, "--json").stdout)
    metadata = info["metadata"]
    assert metadata["shape"]["causal"]
    assert metadata["kernel"]["version"] == "2025-01"
    assert (metadata["level"], metadata["seed"], metadata["gpu"]) == (1, 4, "h20")
    assert (metadata["warps"], metadata["ctas_logged"], metadata["tiles"]) == ("one", [0, 1, 2, 5], "lost")
    assert (info["ctas"], info["ctas_with_rows"], info["rows"]) == (78, 4, 12)


def test_info_says_what_a_log_is(path):
    result = run("log", "info", path)
    assert result.exit_code == 0
    lines = dict(line.split(maxsplit=1) for line in result.stdout.splitlines())
    assert lines["source"] == "synthetic, seed 0"
    assert lines["shape"] == "B1 L512 S512 H2/2 D128 full fp16"
    assert lines["rows"].endswith("8 of 132 CTAs")
    facts = json.loads(run("log", "info", path, "--json").stdout)
    # 8 tiles of 3 blocks: producer, four warps of each consumer, and the two events of the store.
    assert facts["records"] == 8 * ((1 + 16 + 1) + 4 * (3 + 50 + 1) + 4 * (2 + 42 + 1) + 2)
    assert (facts["dropped"], facts["truncated"], facts["rows_with_clock_going_backwards"]) == (0, False, 0)


def test_info_tells_how_well_the_clocks_fit_one_timeline(path):
    timeline = json.loads(run("log", "info", path, "--json").stdout)["timeline"]
    clock_hz = load_preset("h100-sxm").spec.gpu.sm_clock_hz
    # A pair is good to a tick of the global timer, and a kernel of some microseconds has hundreds of ticks.
    assert timeline["frequency_hz"] == pytest.approx(clock_hz, rel=1e-3)
    assert timeline["globaltimer_tick_ns"] % 32 == 0
    assert timeline["largest_residual_ns"] <= 32
    assert f"{timeline['sms']} SMs at {clock_hz / 1e6:.1f} MHz" in run("log", "info", path).stdout


def test_info_says_why_there_is_no_timeline(path, tmp_path):
    data = bytearray(Path(path).read_bytes())
    rows = int.from_bytes(data[16:24], "little")
    data[rows + 48 : rows + 56] = bytes(8)  # the end stamp of the global timer: never written
    broken = tmp_path / "broken.salog"
    broken.write_bytes(data)
    result = run("log", "info", broken)
    assert result.exit_code == 0
    assert "timeline     none: row 0: a clock runs backwards" in result.stdout


def test_stats_with_a_run_compares(path, tmp_path):
    result = run("log", "stats", path, "--run", tmp_path)
    assert isinstance(result.exception, LogError)
    assert f"{tmp_path / 'stats.json'}: cannot be read" in str(result.exception)


def test_stats_prints_a_table_or_json(path):
    table = run("log", "stats", path)
    assert table.exit_code == 0
    assert table.stdout.startswith("synthetic log, level 2, SM cycles")
    assert any(line.split()[:4] == ["consumer", "1", "ping-pong", "wait"] for line in table.stdout.splitlines())
    facts = json.loads(run("log", "stats", path, "--json").stdout)
    assert facts["source"] == "synthetic"
    entry = next(entry for entry in facts["spans"] if (entry["role"], entry["span"]) == (2, "QK"))
    assert entry["count"] == 24
    assert 0 < entry["p50_cycles"] <= entry["p95_cycles"]


def test_dump_prints_records_as_lines(path):
    lines = run("log", "dump", path, "--block", 3, "--warp", 11, "--limit", 4).stdout.splitlines()
    assert lines[0].split("\t") == ["block", "warp", "role", "record", "cycle", "event", "stage", "payload", "aux"]
    rows = [line.split("\t") for line in lines[1:]]
    assert [row[:4] for row in rows] == [["3", "11", "2", str(index)] for index in range(4)]
    assert [row[5] for row in rows] == ["KERNEL_BEGIN", "QUERY_EMPTY_ARRIVE", "TILE", "WAIT_Q_START"]
    assert rows[2][6:] == ["3", "0", "0"]
    cycles = [int(row[4]) for row in rows]
    assert 0 <= cycles[0] <= cycles[1] <= cycles[2]


def test_dump_of_a_row_that_is_not_there_is_an_error(path):
    result = run("log", "dump", path, "--block", 99)
    assert isinstance(result.exception, LogError)
    assert "no row of block 99" in str(result.exception)


@pytest.mark.parametrize("command", ["info", "stats", "dump"])
def test_a_truncated_log_needs_insisting(tmp_path, command):
    target = tmp_path / "cut.salog"
    assert run(*SMALL, "--perturb", "truncate=1500", "-o", target).exit_code == 0
    result = run("log", command, target)
    assert isinstance(result.exception, LogError)
    assert "cut.salog: offset" in str(result.exception)
    assert run("log", command, target, "--allow-truncated").exit_code == 0
    if command == "info":
        assert "incomplete" in run("log", "info", target, "--allow-truncated").stdout


@pytest.mark.parametrize(
    "flags",
    [
        ["--ctas", "0-x"],
        ["--ctas", "a"],
        ["--ctas", "0,9-3"],
        ["--perturb", "flood"],
        ["--level", "3"],
        ["--seed", "-1"],
        ["--gpu"],
    ],
)
def test_wrong_usage_exits_with_2_and_writes_nothing(tmp_path, flags):
    assert run(*SMALL, "-o", tmp_path / "run.salog", *flags).exit_code == 2
    assert list(tmp_path.iterdir()) == []


def test_bad_input_writes_nothing(tmp_path):
    result = run(*SMALL, "-o", tmp_path / "run.salog", "--ctas", "1")
    assert isinstance(result.exception, ShapeError)
    result = run(*SMALL, "-o", tmp_path / "run.salog", "--perturb", "truncate=10000000")
    assert isinstance(result.exception, LogError)
    assert list(tmp_path.iterdir()) == []


def test_the_program_prints_one_message_and_exits_with_1(tmp_path):
    target = tmp_path / "run.salog"
    target.write_bytes(b"SIMFALOG")
    done = subprocess.run(
        [sys.executable, "-m", "simfa", "log", "info", str(target)],
        capture_output=True,
        text=True,
        env=os.environ,
        check=False,
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == f"simfa: {target}: offset 8: expected a preamble of 64 bytes; the file is cut short\n"


def test_help_needs_no_numpy():
    script = (
        "import sys\nfrom simfa.cli import simfa\n"
        "for command in (['synth', '--help'], ['log', 'stats', '--help']):\n"
        "    simfa.main(command, standalone_mode=False)\n"
        "sys.exit('numpy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, check=False).returncode == 0
