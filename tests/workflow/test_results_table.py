"""The script that writes the README's results table."""

import runpy
import subprocess
import sys

import msgspec
import pytest

from simfa.errors import ReportError
from simfa.files import write_json
from simfa.measure.cases import load_set
from simfa.measure.results import run_from
from simfa.measure.summary import set_result
from simfa.summary import Summary
from tests.unit.fake_simulator import ten_percent_slow


@pytest.fixture
def script(root_folder):
    return root_folder / "workflow/scripts/results_table.py"


@pytest.fixture
def summary(tmp_path):
    entry = load_set("ncu-1500")
    pairs = [(case, run_from(ten_percent_slow(case), case.id)) for case in entry.cases]
    write_json(tmp_path / "summary.json", Summary(tool_version="0", sets=[set_result(entry, pairs)]))
    return tmp_path / "summary.json"


def test_table_replaces_what_stands_between_the_markers(script, summary, tmp_path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text("# Title\n<!-- results -->\nold figures\n<!-- /results -->\nmore\n")
    for _ in range(2):
        subprocess.run([sys.executable, "-P", str(script), str(summary), str(readme)], check=True)
    text = readme.read_text()
    assert text.startswith("# Title\n<!-- results -->\n| GPU")
    assert text.endswith("<!-- /results -->\nmore\n")
    assert "old figures" not in text
    assert text.count("| +10.0% |") == 12
    assert "| H100 SXM, 1500 MHz | 8 | 4096 | 16 | 128 | full | 1610.00 | 1771.00 | +10.0% |" in text
    assert "`ncu-1500`: **MAPE 10.0%**, largest error 10.0%, bias +10.0%, 12 cases, 0 excluded." in text


@pytest.mark.parametrize("text", ["nothing", "<!-- /results --> <!-- results -->", "<!-- results -->" * 2])
def test_missing_markers(script, text) -> None:
    insert = runpy.run_path(str(script))["insert"]
    with pytest.raises(ReportError, match="expected <!-- results -->"):
        insert(text, "x", "README.md")


def test_wrong_summary_is_one_message(script, tmp_path) -> None:
    (tmp_path / "summary.json").write_bytes(msgspec.json.encode({"sets": 1}))
    command = [sys.executable, "-P", str(script), str(tmp_path / "summary.json"), str(tmp_path / "README.md")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "not a summary.json" in done.stderr
    assert "Traceback" not in done.stderr


def test_missing_document_is_one_message(script, summary, tmp_path) -> None:
    command = [sys.executable, "-P", str(script), str(summary), str(tmp_path / "absent.md")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "absent.md: cannot be read" in done.stderr
    assert "Traceback" not in done.stderr
