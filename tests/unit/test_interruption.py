"""Ctrl-C in a long run and at start-up: a clean exit, no traceback, and no output half written."""

import contextlib
import fcntl
import os
import pty
import signal
import subprocess
import sys
import termios
import time
from importlib.metadata import entry_points
from pathlib import Path

import pytest


@pytest.mark.slow
def test_ctrl_c_stops_a_simulation_cleanly(tmp_path: Path) -> None:
    command = [sys.executable, "-P", "-m", "simfa", "predict", "--model", "llama3.1-405b", "--seqlen", "65536"]
    process = subprocess.Popen(
        [*command, "-o", str(tmp_path / "run")], stderr=subprocess.PIPE, text=True, preexec_fn=_listen_to_ctrl_c
    )
    try:
        # Past start-up: the engine runs.
        while _cpu_seconds(process.pid) < 4:
            assert process.poll() is None, "the run ended before it could be stopped"
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert "simfa: stopped; nothing was left half-written" in errors
    assert "Traceback" not in errors
    assert not (tmp_path / "run").exists() or list((tmp_path / "run").iterdir()) == []


@pytest.mark.parametrize("start", [["-m", "simfa"], ["-c", "from simfa.__main__ import main; main()"]])
def test_ctrl_c_while_the_program_starts_leaves_no_traceback(tmp_path: Path, start: list[str]) -> None:
    # Stands before the library that every start imports first, and takes its time.
    (tmp_path / "click.py").write_text("import time\nprint('importing', flush=True)\ntime.sleep(60)\n")
    mine, its = pty.openpty()
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    process = subprocess.Popen(
        [sys.executable, *start], stdin=its, stdout=its, stderr=its, env=environment, cwd=tmp_path,
        start_new_session=True, preexec_fn=_own_the_terminal,
    )  # fmt: skip
    os.close(its)
    try:
        shown = _read_until(mine, "importing\r\n")
        os.write(mine, b"\x03")
        shown += _read_until(mine, None)
        assert process.wait(timeout=60) == 130, shown
    finally:
        process.kill()
        os.close(mine)
    assert shown == "importing\r\n^Csimfa: stopped; nothing was left half-written\r\n"


def test_the_installed_program_starts_there_too() -> None:
    (found,) = entry_points(group="console_scripts", name="simfa")
    assert found.value == "simfa.__main__:main"


def _own_the_terminal() -> None:
    """Make the terminal that is standard input the one whose Ctrl-C this process gets."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    _listen_to_ctrl_c()


def _read_until(terminal: int, text: str | None) -> str:
    """Return what a terminal shows up to a text, or to its end."""
    shown = ""
    with contextlib.suppress(OSError):  # how Linux tells that the other side has closed
        while text is None or text not in shown:
            shown += os.read(terminal, 1000).decode()
    return shown


def _listen_to_ctrl_c() -> None:
    """Undo what shells do to background jobs: a process that starts with SIGINT ignored never sees Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _cpu_seconds(pid: int) -> float:
    """Return the CPU seconds a process has used, from /proc."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / 100
