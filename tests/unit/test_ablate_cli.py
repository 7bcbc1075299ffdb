"""`simfa ablate` as a command: real runs of a short case, files, and bad input."""

import csv
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from simfa import ablate_cli
from simfa.cli import main, simfa
from simfa.report.embedded import read_sections
from simfa.studies import Ablation
from tests.unit.study_figures import figures, study_of

CASE = ("--cases", "llama3-8b-512", "--gpu", "h800-sxm")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(simfa, ["ablate", *arguments], catch_exceptions=False)


def failure(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *arguments: str) -> tuple[int, str]:
    """Return exit code and message of the command as a process would give them."""
    monkeypatch.setattr("sys.argv", ["simfa", "ablate", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0), capsys.readouterr().err


@pytest.fixture
def stand_in(monkeypatch) -> None:
    monkeypatch.setattr(
        ablate_cli,
        "simulate_all",
        lambda tasks, jobs, meter: [figures(task.case.shape, task.hardware) for task in tasks],
    )


def test_real_overlays_on_a_short_case_whatever_the_jobs(tmp_path: Path) -> None:
    overlays = [word for name in ("no-tma-dedup", "ideal-memory", "64-lines") for word in ("--overlay", name)]
    texts = [run(*CASE, *overlays, "--json", "--jobs", jobs).stdout for jobs in ("1", "3")]
    assert texts[0] == texts[1]
    rows = study_of(msgspec.json.decode(texts[0], type=Ablation), "paper", "h800-sxm")
    assert rows["no-tma-dedup"].slowdown > 1.1
    assert (rows["no-tma-dedup"].after, rows["no-tma-dedup"].before) == (6144, 1536)  # 32-byte pieces of 128-byte lines
    assert rows["ideal-memory"].slowdown < 1
    assert rows["64-lines"].slowdown >= 1


def test_files_are_written_with_manifests(stand_in, tmp_path: Path) -> None:
    outputs = [tmp_path / name for name in ("a.csv", "a.json")]
    done = run("--max-seqlen", "1024", *(word for path in outputs for word in ("-o", str(path))))
    assert done.exit_code == 0
    document = msgspec.json.decode(outputs[1].read_bytes(), type=Ablation)
    assert [(group.name, group.preset, len(group.cases)) for group in document.groups] == [
        ("paper", "h800-sxm-paper", 6),
        ("paper", "h800-sxm", 6),
        ("clean", "h100-sxm", 8),
    ]
    assert len(list(csv.DictReader(outputs[0].read_text().splitlines()))) == 20 * (1 + len(document.overlays))
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "a.csv", "a.csv.manifest.json", "a.json", "a.json.manifest.json"
    ]  # fmt: skip
    first = outputs[1].read_bytes()
    run("--max-seqlen", "1024", "-o", str(outputs[1]))
    assert outputs[1].read_bytes() == first


def test_folder_is_what_the_report_shows(stand_in, tmp_path: Path) -> None:
    assert run("--max-seqlen", "512", "--overlay", "no-lrc", "--figures", str(tmp_path / "study")).exit_code == 0
    (section,) = read_sections([tmp_path / "study"])
    assert (section.anchor, len(section.tables)) == ("ablation", 4)
    paper, _, clean, meanings = section.tables
    assert paper.rows[0][:2] == ["no-lrc", "2.000"]
    assert paper.rows[0][-1].startswith("reads that reach L2 for a tile: 160 -> 320")
    assert clean.headers[4:7] == ["MAPE", "points", "max"]
    assert meanings.rows[0][0] == "no-lrc"
    assert "llama3-70b-512" in paper.caption


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--overlay", "no-lcr"), 1, "overlay 'no-lcr' is unknown; did you mean no-lrc?"),
        (("--overlay", "none.toml"), 1, "none.toml: cannot be read: No such file or directory"),
        (("--gpu", "h80"), 1, "preset 'h80' is unknown"),
        (
            ("--cases", "llama3-9b-512"),
            1,
            "case 'llama3-9b-512' is unknown; expected paper or clean, a pattern, or one",
        ),
        (("--max-seqlen", "100"), 1, "no chosen case has at most 100 tokens; lengths: 512, 1024"),
        (("-o", "study.txt"), 2, "-o study.txt: expected a name ending in .csv or .json"),
        (("-o", "nowhere/study.csv"), 1, "nowhere/study.csv: folder nowhere does not exist; make it first"),
        (("--jobs", "0"), 2, "0 is not in the range x>=1"),
    ],
)
def test_bad_input_is_named_before_anything_runs(arguments, code, message, monkeypatch, capsys, tmp_path: Path) -> None:
    def never(*_: object) -> None:
        raise AssertionError("simulated")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(ablate_cli, "simulate_all", never)
    found, text = failure(capsys, monkeypatch, *arguments)
    assert (found, message in text) == (code, True), text
    assert list(tmp_path.iterdir()) == []
