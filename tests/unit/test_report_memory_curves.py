"""Figures of the memory hierarchy: drawn from tables, embedded in the report, nothing else taken."""

from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from simfa.cli import simfa
from simfa.errors import ReportError
from simfa.figure_files import FigureIndex, index_path
from simfa.files import write_json
from simfa.report.memory_curves import CurvePoint, mape, read_table
from simfa.summary import Summary

LATENCY = """method,working_set_mib,measured_cycles,simulated_cycles,error,split,group
tma,1,369,369,0,calib,to 25 MiB
tma,64,740,777,0.05,valid,above 50 MiB
load,1,264,261,-0.011,calib,to 25 MiB
"""
BANDWIDTH = """kind,box,ctas,measured_gb_per_s,simulated_gb_per_s,error,split,group
bulk,1024,114,200,180,-0.1,calib,bulk
3d,16x16x16,228,1900,1957,0.03,valid,3d
"""


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    (tmp_path / "latency.csv").write_text(LATENCY)
    (tmp_path / "off.csv").write_text(LATENCY.replace("369,369", "369,447"))
    (tmp_path / "bandwidth.csv").write_text(BANDWIDTH)
    (tmp_path / "few.csv").write_text(BANDWIDTH.replace(",180,", ",100,"))
    return tmp_path


def draw(folder: Path, *more: str) -> int:
    arguments = ["memory-figures", "--latency", f"{folder}/latency.csv", "--bandwidth", f"{folder}/bandwidth.csv"]
    done = CliRunner().invoke(simfa, [*arguments, *more, "-o", f"{folder}/figures"], catch_exceptions=False)
    return done.exit_code


def test_three_figures_with_their_findings(tables: Path) -> None:
    mshr = ("--mshr", f"192={tables}/few.csv", "--mshr", f"256={tables}/bandwidth.csv")
    assert draw(tables, "--latency-off", f"{tables}/off.csv", *mshr) == 0
    index = msgspec.json.decode(index_path(tables / "figures").read_bytes(), type=FigureIndex)
    assert [entry.file for entry in index.figures] == ["tma_latency.svg", "mshr.svg", "tma_bandwidth.svg"]
    captions = [entry.caption for entry in index.figures]
    assert "MAPE 2.0% over 3 points" in captions[0]
    assert "the least MAPE is at 256" in captions[1]
    assert "largest error -10.0% (bulk 1024, 114 CTAs)" in captions[2]
    before = (tables / "figures" / "tma_latency.svg").read_bytes()
    assert draw(tables, "--latency-off", f"{tables}/off.csv", *mshr) == 0
    assert (tables / "figures" / "tma_latency.svg").read_bytes() == before


def test_equal_tables_are_called_flat(tables: Path) -> None:
    table = f"{tables}/bandwidth.csv"
    assert draw(tables, "--mshr", f"192={table}", "--mshr", f"384={table}") == 0
    index = msgspec.json.decode(index_path(tables / "figures").read_bytes(), type=FigureIndex)
    assert "the curve is flat" in index.figures[1].caption


def test_the_report_shows_both_folders_of_figures(tables: Path) -> None:
    assert draw(tables) == 0
    write_json(tables / "summary.json", Summary(tool_version="0", sets=[]))
    arguments = ["report", "--summary", f"{tables}/summary.json", "-o", str(tables)]
    done = CliRunner().invoke(simfa, [*arguments, "--figures", f"{tables}/figures"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    page = (tables / "report.html").read_text(encoding="utf-8")
    assert "Memory hierarchy beside measured curves" in page
    assert page.count("data:image/svg+xml;base64,") == 2
    assert "The analytical model" not in page


def test_mean_of_absolute_errors() -> None:
    assert mape([CurvePoint({}, 100, 90), CurvePoint({}, 100, 130)]) == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("simulated_cycles", "other", "expected method, working_set_mib, measured_UNIT and simulated_UNIT"),
        ("369,369", "369,many", r"line 2: not a number"),
        ("740,777", "0,777", "expected points with measurements above zero"),
    ],
)
def test_foreign_tables_are_refused(tables: Path, old: str, new: str, message: str) -> None:
    (tables / "latency.csv").write_text(LATENCY.replace(old, new))
    with pytest.raises(ReportError, match=message):
        read_table(tables / "latency.csv", ("method", "working_set_mib"))


def test_missing_table_and_wrong_pair(tables: Path) -> None:
    with pytest.raises(ReportError, match=r"none\.csv: cannot be read"):
        read_table(tables / "none.csv", ("method",))
    assert draw(tables, "--mshr", "many=x.csv") == 2
