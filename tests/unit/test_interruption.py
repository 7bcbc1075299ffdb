"""Ctrl-C in a long run: a clean exit, and no output half written."""

import signal
import subprocess
import sys
import time
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


def _listen_to_ctrl_c() -> None:
    """Undo what shells do to background jobs: a process that starts with SIGINT ignored never sees Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _cpu_seconds(pid: int) -> float:
    """Return the CPU seconds a process has used, from /proc."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / 100
