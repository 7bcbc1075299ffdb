"""The table of skipped tests, and its verdicts."""

import runpy
from pathlib import Path

import pytest

SCRIPT = runpy.run_path(str(Path(__file__).parents[1] / "skip_table.py"))


def junit(tmp_path: Path, reason: str | None) -> Path:
    """Write a JUnit file of one test, skipped for `reason`."""
    skip = f'<skipped type="pytest.skip" message="{reason}">x</skipped>' if reason else ""
    path = tmp_path / "junit.xml"
    path.write_text(
        f'<testsuites><testsuite><testcase classname="a" name="t">{skip}</testcase></testsuite></testsuites>'
    )
    return path


@pytest.mark.parametrize(
    ("reason", "code", "text"),
    [
        (None, 0, "no test was skipped"),
        ("needs surely-no-such-tool: to do things", 0, "surely-no-such-tool is not here"),
        ("needs python3", 1, "WRONG: python3 is installed"),
        ("needs xdist", 1, "WRONG: xdist is installed"),
        ("needs pytest-xdist", 1, "WRONG: pytest-xdist is installed"),
        ("on a whim", 1, "WRONG: the reason does not say"),
    ],
)
def test_verdict(tmp_path, capsys, reason, code, text) -> None:
    assert SCRIPT["main"](junit(tmp_path, reason)) == code
    assert text in capsys.readouterr().out
