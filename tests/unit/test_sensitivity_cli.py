"""`simfa sensitivity` as a command: files, plot, the folder for the report, and bad input."""

import csv
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from simfa import sensitivity_cli
from simfa.cli import main, simfa
from simfa.files import write_json
from simfa.report.embedded import read_sections
from simfa.studies import Sensitivity
from simfa.summary import Summary

SHAPE = ("--model", "llama3-8b", "--seqlen", "512")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(simfa, ["sensitivity", *SHAPE, *arguments], catch_exceptions=False)


@pytest.fixture
def stand_in(monkeypatch) -> None:
    """A kernel that takes 10 us, its launch, and FLOP over the tensor rate."""

    def simulate_all(shape, version, variants, jobs, meter):
        times = [10 + entry.grid.launch_ns / 1000 + 4096e1 / entry.tensor_core.flop_per_cycle for entry in variants]
        return [(round(1000 * time), time) for time in times]

    monkeypatch.setattr(sensitivity_cli, "simulate_all", simulate_all)


def test_table_files_and_plots(stand_in, tmp_path: Path) -> None:
    paths = {name: str(tmp_path / name) for name in ("s.csv", "s.json", "s.svg", "s.png")}
    done = run("--top", "2", "-o", paths["s.csv"], "-o", paths["s.json"], "--plot", paths["s.svg"])
    assert done.exit_code == 0
    assert done.stdout.index("tensor_core.flop_per_cycle") < done.stdout.index("grid.launch_ns")
    study = msgspec.json.decode((tmp_path / "s.json").read_bytes(), type=Sensitivity)
    rows = list(csv.DictReader((tmp_path / "s.csv").read_text().splitlines()))
    assert len(rows) == len(study.rows) + len(study.unmoved)
    svg = (tmp_path / "s.svg").read_bytes()
    assert b"<svg" in svg
    run("--top", "2", "--plot", paths["s.svg"])
    assert (tmp_path / "s.svg").read_bytes() == svg
    run("--plot", paths["s.png"])
    assert (tmp_path / "s.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "s.png.manifest.json").is_file()
    assert run("--json").stdout == run("--json", "--jobs", "2").stdout


def test_folder_is_what_the_report_shows(stand_in, tmp_path: Path) -> None:
    assert run("--figures", str(tmp_path / "study")).exit_code == 0
    (section,) = read_sections([tmp_path / "study"])
    assert (section.anchor, len(section.figures), len(section.tables)) == ("sensitivity", 1, 2)
    assert section.tables[0].rows[0][0] == "tensor_core.flop_per_cycle"
    write_json(tmp_path / "summary.json", Summary(tool_version="0", sets=[]))
    arguments = ["report", "--summary", str(tmp_path / "summary.json"), "--figures", str(tmp_path / "study")]
    done = CliRunner().invoke(simfa, [*arguments, "-o", str(tmp_path)], catch_exceptions=False)
    assert done.exit_code == 0
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Latency with one preset value moved by 20%" in page
    assert page.count("data:image/svg+xml;base64,") == 1


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--perturbation", "0"), 1, "perturbation 0 moves nothing or turns values negative; expected above 0"),
        (("--perturbation", "1"), 1, "perturbation 1 moves nothing"),
        (("--perturbation", "much"), 2, "'much' is not a valid float"),
        (("--overlay", "no-lcr"), 1, "overlay 'no-lcr' is unknown; did you mean no-lrc?"),
        (("--gpu", "missing.toml"), 1, "missing.toml: cannot be read: No such file or directory"),
        (("--gpu", "gb10"), 1, "is not a Hopper GPU"),
        (("--plot", "s.pdf"), 2, "--plot s.pdf: expected a name ending in .svg or .png"),
        (("--plot", "nowhere/s.svg"), 1, "nowhere/s.svg: folder nowhere does not exist; make it first"),
        (("-o", "s.txt"), 2, "-o s.txt: expected a name ending in .csv or .json"),
        (("--figures", "/dev/null/here"), 1, "/dev/null/here: cannot be made: /dev/null is not a folder"),
        (("--head-dim", "80"), 1, "head_dim 80 is not supported"),
        (("--top", "0"), 2, "0 is not in the range x>=1"),
    ],
)
def test_bad_input_is_named_before_anything_runs(arguments, code, message, monkeypatch, capsys, tmp_path: Path) -> None:
    def never(*_: object) -> None:
        raise AssertionError("simulated")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sensitivity_cli, "simulate_all", never)
    monkeypatch.setattr("sys.argv", ["simfa", "sensitivity", *SHAPE, *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    error = capsys.readouterr().err
    assert (ended.value.code, message in error) == (code, True), error
    assert list(tmp_path.iterdir()) == []


def test_real_runs_do_not_depend_on_jobs(tmp_path: Path, monkeypatch) -> None:
    """A few values of a short shape on the engine: faster tensor cores are faster, a longer launch is longer."""
    from simfa import sensitivity as study

    some = ["tensor_core.flop_per_cycle", "grid.launch_ns"]
    monkeypatch.setattr(study, "value_paths", lambda hardware: iter(some))
    texts = [run("--json", "--jobs", jobs).stdout for jobs in ("1", "2")]
    assert texts[0] == texts[1]
    found = {row.path: row for row in msgspec.json.decode(texts[0], type=Sensitivity).rows}
    tensor, launch = (found[path] for path in some)
    assert tensor.down is not None and tensor.up is not None and launch.up is not None
    assert tensor.down.effect > 0 > tensor.up.effect
    latency_us = msgspec.json.decode(texts[0], type=Sensitivity).latency_us
    assert launch.up.latency_us - latency_us == pytest.approx(0.2 * 3.67, abs=0.002)
