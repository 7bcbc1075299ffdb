"""What the caller does to the program's streams, and how it is told to stop: one line or none, no traceback."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

SIMFA = [sys.executable, "-P", "-m", "simfa"]
SHOW = [*SIMFA, "hardware", "show", "h100-sxm"]
PREDICT = [*SIMFA, "predict", "--seqlen", "128", "--heads-q", "1", "--quiet"]


@pytest.mark.parametrize("command", [SHOW, [*PREDICT, "--json"], [*SIMFA, "--help"]])
def test_a_reader_that_has_gone_ends_the_program_quietly(command: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.parametrize("command", [SHOW, [*PREDICT, "--json"], [*SIMFA, "--help"]])
def test_output_that_finds_no_room_is_one_message(command: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "simfa: No space left on device\n")


@pytest.mark.parametrize("closed", [0, 1, 2])
def test_closed_streams_do_not_mix_with_files(closed: int, tmp_path: Path) -> None:
    """Without care a file that is written would get the number of the closed stream, and what is printed with it."""
    command = [*PREDICT, "--json", "-o", str(tmp_path / "run")]
    streams = {1: {"stdout": None}, 2: {"stderr": None}}.get(closed, {})
    done = subprocess.run(
        command,
        preexec_fn=lambda: os.close(closed),
        text=True,
        check=False,
        **({"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | streams),
    )
    assert done.returncode == 0
    written = (tmp_path / "run" / "stats.json").read_text()
    assert written.startswith("{") and written.endswith("}\n")
    if closed != 1:
        assert done.stdout == written
    if closed != 2:
        assert done.stderr == ""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_other_signals_stop_as_cleanly_as_ctrl_c(number: signal.Signals, tmp_path: Path) -> None:
    command = [*SIMFA, "predict", "--seqlen", "65536", "--heads-q", "128", "--head-dim", "128", "--threads", "2"]
    process = subprocess.Popen([*command, "-o", str(tmp_path / "run")], stderr=subprocess.PIPE, text=True)
    try:
        while float(sum(map(int, Path(f"/proc/{process.pid}/stat").read_text().split()[13:15]))) < 150:
            assert process.poll() is None, "the run ended before it could be stopped"
            time.sleep(0.05)
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 128 + number
    assert errors.endswith("simfa: stopped; nothing was left half-written\n") and "Traceback" not in errors
    assert list(tmp_path.iterdir()) == []


def test_a_signal_that_the_caller_ignores_stays_ignored() -> None:
    script = """
import runpy, signal, sys
signal.signal(signal.SIGHUP, signal.SIG_IGN)
sys.argv = ["simfa", "--version"]
try:
    runpy.run_module("simfa", run_name="__main__")
finally:
    print(signal.getsignal(signal.SIGHUP) is signal.SIG_IGN)
"""
    done = subprocess.run([sys.executable, "-P", "-c", script], capture_output=True, text=True, check=False)
    assert done.stdout.endswith("True\n")


def test_what_the_machine_refuses_is_one_message(monkeypatch, capsys) -> None:
    from simfa import cli

    for error, message in [
        (OSError(36, "File name too long", "n" * 5), "simfa: nnnnn: File name too long\n"),
        (MemoryError(), "simfa: this machine has not enough memory for that; ask for something smaller, or for fewer "
         "--threads or --jobs\n"),
    ]:  # fmt: skip

        def refuse(error: BaseException = error, **_: object) -> None:
            raise error

        monkeypatch.setattr(cli.simfa, "main", refuse)
        monkeypatch.setattr(cli, "_drop_output", lambda: None)
        with pytest.raises(SystemExit) as ended:
            cli.main()
        assert (ended.value.code, capsys.readouterr().err) == (1, message)
