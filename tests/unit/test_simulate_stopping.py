"""Long runs: progress on a terminal and nowhere else, a quick and clean stop, statistics of what was simulated."""

import io
import itertools
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

import simfa.progress
from simfa.hardware import load_preset
from simfa.kernel import kernel_for
from simfa.pipeline import kernel_trace, predict
from simfa.progress import Meter
from simfa.simulate import engine
from simfa.simulate.engine import Progress
from simfa.simulate.run_files import RunMeter
from simfa.workload import AttentionShape

SHAPE = AttentionShape(batch=1, seqlen_q=512, seqlen_kv=512, heads_q=8, heads_kv=8, head_dim=128, causal=True)
# Minutes of simulation; its trace is made in a moment.
LONG = ["predict", "--seqlen", "65536", "--heads-q", "128", "--head-dim", "128"]


class _Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


class _Clock:
    """Stands in for `time` in simfa.progress."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


def _meter(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, *, quiet: bool = False) -> str:
    """Return what a meter writes in ten seconds of which half the work is done at five."""
    clock = _Clock()
    monkeypatch.setattr(simfa.progress, "time", clock)
    meter = Meter("run", 10.0, stream, quiet=quiet)
    for second in range(10):
        clock.now = 100.0 + second
        meter.update(float(second), "detail")
    meter.close()
    return stream.getvalue()


def test_meter_draws_on_a_terminal_after_two_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = _meter(monkeypatch, _Terminal()).split("\r\x1b[K")
    assert drawn[0] == ""
    assert drawn[1] == "run:  20%, 8 s left, detail"
    assert drawn[4] == "run:  50%, 5 s left, detail"
    assert drawn[-1] == "", "the line is wiped"


def test_meter_of_several_runs_counts_them_all(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, stream = _Clock(), _Terminal()
    monkeypatch.setattr(simfa.progress, "time", clock)
    monkeypatch.setattr("sys.stderr", stream)
    meter = RunMeter("validate", 8.0)
    with meter.part("short", 2.0):
        clock.now += 1.0
        meter.update(Progress(cycles=5_000, tiles_begun=1, tiles=2, seconds=1.0))
    with meter.part("long", 6.0):
        clock.now += 2.0
        meter.update(Progress(cycles=20_000, tiles_begun=1, tiles=3, seconds=2.0))
    # Nothing in the first two seconds; then 2 of 8 and a third of 6 are done, in 3 s.
    assert stream.getvalue() == "\r\x1b[Kvalidate:  50%, 3 s left, long, cycle 20,000, 10 k cycles/s\r\x1b[K"


def test_meter_is_silent_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _meter(monkeypatch, io.StringIO()) == ""
    assert _meter(monkeypatch, _Terminal(), quiet=True) == ""


def _run_on_terminal(folder: Path) -> tuple[subprocess.Popen[bytes], int]:
    """Start a long prediction whose stderr is a terminal; return the process and the terminal's other end."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "simfa", *LONG, "-o", str(folder)],
        stdout=subprocess.DEVNULL,
        stderr=theirs,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    os.close(theirs)
    return process, ours


def test_ctrl_c_stops_within_a_fifth_of_a_second(tmp_path: Path) -> None:
    """The limit is on the process's own time, so that a busy machine does not fail it."""
    process, terminal = _run_on_terminal(tmp_path / "run")
    shown = b""
    deadline = time.monotonic() + 120
    try:
        while b"k cycles/s" not in shown:
            assert time.monotonic() < deadline, shown
            shown += os.read(terminal, 4096)
        before = _cpu_seconds(process.pid)
        process.send_signal(signal.SIGINT)
        _, status, usage = os.wait4(process.pid, 0)
    finally:
        process.kill()
    process.returncode = os.waitstatus_to_exitcode(status)
    rest = os.read(terminal, 4096)
    os.close(terminal)
    assert process.returncode == 130
    assert usage.ru_utime + usage.ru_stime - before < 0.2
    assert shown.startswith(b"\r\x1b[KB1 L65536 S65536 H128/128 D128 full fp16:   0%, ")
    assert rest.endswith(b"simfa: stopped; nothing was left half-written\r\n")
    assert not (tmp_path / "run").exists()


def _cpu_seconds(pid: int) -> float:
    """Return the CPU seconds a process has used, from /proc, to a hundredth."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_the_engine_looks_up_often() -> None:
    """Chunks of a busy chip end soon, however the load of the chip changes: the longest is measured, in CPU time."""
    shape = AttentionShape(batch=1, seqlen_q=8192, seqlen_kv=8192, heads_q=32, heads_kv=32, head_dim=128, causal=False)
    hardware = load_preset("h100-sxm").spec
    trace = kernel_trace(shape, kernel_for(shape), hardware.gpu.sm_count)
    looks: list[float] = []
    engine.run(trace, hardware, max_cycles=150_000, progress=lambda _: looks.append(time.process_time()))
    assert len(looks) > 5
    assert max(after - before for before, after in itertools.pairwise(looks)) < 0.05


@pytest.mark.parametrize("max_cycles", [1, 5000, 6716, 7000, 15_000])
def test_a_stopped_run_is_partial_and_adds_up(max_cycles: int) -> None:
    result = predict(SHAPE, max_cycles=max_cycles)
    assert result.partial
    assert result.cycles == max_cycles
    assert result.tflops is None
    ctas = 32  # 4 query blocks x 8 heads
    for role, reasons in result.stall_cycles.items():
        assert sum(reasons.values()) == ctas * max_cycles, role
    assert result.tensor_utilization <= 1


def test_a_limit_beyond_the_end_changes_nothing() -> None:
    whole, limited = predict(SHAPE), predict(SHAPE, max_cycles=10**9)
    assert not limited.partial
    assert limited.cycles == whole.cycles
    assert limited.stall_cycles == whole.stall_cycles
    assert limited.counters == whole.counters


def test_figures_of_a_stopped_run_grow_with_its_limit() -> None:
    cycles = predict(SHAPE).cycles
    results = [predict(SHAPE, max_cycles=limit) for limit in range(7000, cycles, (cycles - 7000) // 6)]
    for name in ("lines", "sm_read_bytes", "dram_read_bytes"):
        values = [getattr(result, name) for result in results]
        assert values == sorted(values), name
        assert values[-1] > values[0], name


def test_stopped_statistics_on_the_command_line(tmp_path: Path) -> None:
    command = [sys.executable, "-P", "-m", "simfa", *LONG, "--max-cycles", "8000", "-o", str(tmp_path)]
    process = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "8,000 (stopped before the end)" in process.stdout
    assert process.stderr == ""
    assert msgspec.json.decode((tmp_path / "stats.json").read_bytes())["partial"] is True
