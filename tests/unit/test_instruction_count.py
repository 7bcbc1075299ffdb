"""The gate on instruction counts: what passes, what fails, what is skipped and why."""

import json
import shutil
from pathlib import Path

import pytest

from benchmarks import instruction_count
from benchmarks.instruction_count import RECORDED, main, verdict

GCC = "gcc 12.2.0, x86_64"


@pytest.mark.parametrize(
    ("instructions", "good"), [(1000, True), (1050, True), (1051, False), (950, True), (949, False)]
)
def test_counts_may_be_five_percent_off(instructions: int, good: bool) -> None:
    assert verdict(instructions, GCC, {GCC: 1000})[0] == good


def test_another_compiler_is_not_compared() -> None:
    good, text = verdict(5000, "gcc 14.1.0, x86_64", {GCC: 1000})
    assert good
    assert text.startswith("skipped: no count is recorded for gcc 14.1.0, x86_64 (recorded: gcc 12.2.0, x86_64)")


def test_without_valgrind_it_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(instruction_count.shutil, "which", lambda _: None)
    assert main(["no-such-file"]) == 0
    assert capsys.readouterr().out == "instruction count skipped: needs valgrind\n"


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="needs valgrind: to count instructions")
def test_a_program_that_does_not_run_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "no-such-file")]) == 1
    assert "no-such-file cannot be counted: " in capsys.readouterr().out


def test_recorded_counts_are_counts() -> None:
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))
    assert recorded
    assert all(isinstance(value, int) and value > 1_000_000 for value in recorded.values())
