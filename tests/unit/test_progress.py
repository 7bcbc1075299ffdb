"""The progress line: rate and time left, silence where nobody watches, and which commands have one."""

import io
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from measure_exports import NSYS_TRACE, csv_text, trace_row

import simfa.progress
from simfa import watched_process
from simfa.analytical import figure_set
from simfa.cli import simfa as command_line
from simfa.figure_files import FigureFile
from simfa.measure.reader import read
from simfa.progress import Meter, waited_for, watched
from simfa.watched_process import watched_run

CURVES = "simfa.simulate.curve_commands.Meter"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    now = 0.0

    def monotonic(self) -> float:
        self.now += 1.0
        return self.now


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a second pass with every look at the clock."""
    monkeypatch.setattr(simfa.progress, "time", Clock())


@pytest.mark.parametrize(
    ("total", "shown"),
    [(20, "1 rows/s"), (20_000, "1e+03 rows/s"), (2e5, "10 k rows/s"), (2e7, "1 M rows/s"), (2e10, "1 G rows/s")],
)
def test_rate_and_time_left(total: float, shown: str) -> None:
    stream = Terminal()
    with Meter("pricing", total, stream, unit="rows") as meter:
        for second in range(1, 11):
            meter.update(second * total / 20)
    lines = stream.getvalue().split("\r\x1b[K")
    assert lines[-2] == f"pricing:  50%, 10 s left, {shown}".replace("1e+03", "1 k")
    assert lines[-1] == ""
    assert "\x1b[3" not in stream.getvalue()  # no colour, with or without NO_COLOR


def test_a_line_is_wiped_after_an_error() -> None:
    stream = Terminal()
    with pytest.raises(ZeroDivisionError), Meter("run", 10, stream) as meter:
        for second in range(5):
            meter.update(second)
        1 / 0  # noqa: B018
    assert stream.getvalue().endswith("\r\x1b[K")


def test_a_terminal_that_cannot_wipe_gets_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    stream = Terminal()
    with Meter("run", 10, stream) as meter:
        for second in range(9):
            meter.update(second)
    assert stream.getvalue() == ""


def test_reading_tells_how_far_it_is(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(csv_text([NSYS_TRACE, *(trace_row(str(number), "5") for number in range(10_000))]))
    told: list[tuple[str, float]] = []
    read(path, progress=lambda file, share: told.append((file.name, share)))
    shares = [share for _, share in told]
    assert {name for name, _ in told} == {"a.csv"}
    assert shares == sorted(shares)
    assert len(shares) == 2
    assert shares == pytest.approx([0.41, 0.82], abs=0.03)


def test_work_of_unknown_length_shows_the_time_spent() -> None:
    stream = Terminal()
    with Meter("fetching", 0, stream) as meter:
        for _ in range(4):
            meter.update()
    assert stream.getvalue().split("\r\x1b[K")[1:] == [
        "fetching: 2 s so far",
        "fetching: 3 s so far",
        "fetching: 4 s so far",
        "",
    ]


def test_items_are_watched_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    assert list(watched("abcde", "drawing")) == list("abcde")
    assert "drawing:  20%, 8 s left" in terminal.getvalue()


def test_waiting_returns_what_the_work_returns_or_raises() -> None:
    assert waited_for(lambda: 3, "work") == 3
    with pytest.raises(ZeroDivisionError):
        waited_for(lambda: 1 // 0, "work")


@pytest.mark.parametrize(("expected", "shown"), [(0.0, "0 s so far"), (1e-3, " 99%, 0 s left")])
def test_another_program_is_watched(monkeypatch: pytest.MonkeyPatch, expected: float, shown: str) -> None:
    monkeypatch.setattr(simfa.progress, "time", time)
    monkeypatch.setattr(simfa.progress, "QUIET_SECONDS", 0.0)
    monkeypatch.setattr(watched_process, "REDRAW_SECONDS", 0.001)  # an interpreter takes longer to start
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    script = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"
    done = watched_run([sys.executable, "-c", script], "nvcc", expected_seconds=expected)
    assert (done.returncode, done.stdout, done.stderr) == (3, "out\n", "err\n")
    assert f"\r\x1b[Knvcc: {shown}" in terminal.getvalue()
    assert terminal.getvalue().endswith("\r\x1b[K")
    with pytest.raises(FileNotFoundError):
        watched_run(["no-such-program"], "nothing")


def test_an_interrupt_stops_the_watched_program(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = []

    class Interrupted(subprocess.Popen):  # type: ignore[type-arg]
        def communicate(self, *_: object, **__: object) -> tuple[str, str]:
            begun.append(self)
            raise KeyboardInterrupt

    monkeypatch.setattr(subprocess, "Popen", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        watched_run([sys.executable, "-c", "import time; time.sleep(60)"], "work")
    assert begun[0].returncode == -signal.SIGKILL


WRITTEN: list[Callable[[Path], list[str]]] = [
    lambda folder: ["synth", "--head-dim", "64", "--seqlen", "384", "--heads-q", "4", "-o", f"{folder}/a.salog"],
    lambda folder: ["translate", f"{folder}/a.salog", "-o", f"{folder}/a.satrace"],
    lambda folder: ["analytical", "--table", f"{folder}/a.csv", "-o", f"{folder}/b.csv"],
    lambda folder: ["ingest", f"{folder}/nsys.csv"],
    lambda folder: ["log", "info", f"{folder}/a.salog"],
    lambda folder: ["log", "stats", f"{folder}/a.salog"],
    lambda folder: ["log", "dump", f"{folder}/a.salog", "--limit", "1"],
    lambda folder: ["timeline", f"{folder}/a.salog", "--cta", "0", "-o", f"{folder}/a.pftrace"],
    lambda folder: ["figures", "-o", f"{folder}/figures"],
    lambda folder: ["microbench", "tma-latency", "--method", "load", "--every", "99", "--steps", "9"],
    lambda folder: ["microbench", "hbm3", "--pattern", "stream-read"],
]


@pytest.mark.parametrize("quiet", [False, True])
def test_long_commands_have_a_line_and_can_be_quiet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quiet: bool
) -> None:
    begun = []

    class Spy(Meter):
        def update(self, done: float = 0.0, detail: str = "") -> None:
            if not begun or begun[-1] != self._what:
                begun.append(self._what)
            super().update(done, detail)

    for place in ("simfa.watched_log.Meter", "simfa.progress.Meter", "simfa.measure.commands.Meter", CURVES):
        monkeypatch.setattr(place, Spy)
    for name in ("_llc_traffic", "_dram_traffic", "_roofline"):
        monkeypatch.setattr(figure_set, name, lambda _, name=name: FigureFile(name, "", "", ""))
    (tmp_path / "a.csv").write_text("batch,seqlen_q,seqlen_kv,heads_q,heads_kv,head_dim\n" + "1,64,64,8,8,128\n" * 3)
    (tmp_path / "nsys.csv").write_text(csv_text([NSYS_TRACE, *(trace_row(str(n), "5") for n in range(5000))]))
    for arguments in WRITTEN:
        line = [*arguments(tmp_path), *(["--quiet"] if quiet else [])]
        done = CliRunner().invoke(command_line, line, catch_exceptions=False)
        assert done.exit_code == 0, done.output
        assert "\x1b" not in done.output
    assert begun == [
        "writing rows", "translating", "pricing", "reading", "checking rows", "reading rows", "printing rows",
        "reading rows", "writing", "drawing", "tma-latency", "hbm3",
    ]  # fmt: skip
