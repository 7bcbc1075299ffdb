"""Outputs that cannot be written are refused before anything runs, by every command, and nothing is made."""

import importlib
import os
import sys
from pathlib import Path

import click
import pytest

from simfa import cli
from simfa.cli import main
from simfa.errors import SimfaError
from simfa.outputs import OutputFile, OutputFolder, check_output_file, check_output_folder


def _commands() -> list[tuple[str, click.Command]]:
    """Return all commands with their names, groups followed."""
    found: list[tuple[str, click.Command]] = []

    def follow(name: str, command: click.Command) -> None:
        if isinstance(command, click.Group):
            for inner in command.commands.items():
                follow(f"{name} {inner[0]}", inner[1])
        else:
            found.append((name, command))

    for name, (module, _) in cli.COMMANDS.items():
        follow(name, getattr(importlib.import_module(module), name.replace("-", "_")))
    return found


def test_every_output_of_every_command_is_checked() -> None:
    """Whatever is called --output, --figures, --plot, --stats or --cache and is a name to write has a checked type."""
    writes = {"output", "outputs", "plot", "stats", "cache", "figures"}
    seen = 0
    for name, command in _commands():
        for option in command.params:
            if option.name in writes and isinstance(option.type, click.Path) and not option.type.exists:
                assert isinstance(option.type, OutputFile | OutputFolder), f"{name}: {option.name}"
                seen += 1
    assert seen >= 25


LATE = [
    ("validate", "--set", "ncu-1500", "-o"),
    ("validate", "--stats"),
    ("calibrate", "-o"),
    ("calibrate", "--cache"),
    ("ablate", "--figures"),
    ("ablate", "-o"),
    ("sensitivity", "--seqlen", "512", "--heads-q", "4", "-o"),
    ("sensitivity", "--seqlen", "512", "--heads-q", "4", "--plot"),
    ("sweep", "sweep.toml", "-o"),
    ("microbench", "l2", "-o"),
    ("microbench", "tma-latency", "-o"),
    ("microbench", "tma-bandwidth", "-o"),
    ("predict", "--model", "llama3-8b", "--seqlen", "512", "--timeline", "1", "-o"),
    ("simulate", "run.satrace", "-o"),
    ("figures", "-o"),
]


@pytest.mark.parametrize("arguments", LATE, ids=lambda arguments: " ".join((arguments[0], arguments[-1])))
def test_long_commands_refuse_before_they_run(arguments, monkeypatch, capsys, tmp_path: Path) -> None:
    monkeypatch.setattr("simfa.simulate.engine.run", None)
    monkeypatch.setattr("simfa.pipeline.predict_all", None)
    monkeypatch.chdir(tmp_path)
    for name in ("run.satrace", "sweep.toml", "file"):
        Path(name).write_text("")
    before = sorted(tmp_path.rglob("*"))
    monkeypatch.setattr("sys.argv", ["simfa", *arguments, "file/below.csv"])
    with pytest.raises(SystemExit) as ended:
        main()
    error = capsys.readouterr().err
    assert ended.value.code == 1
    assert error.startswith("simfa: file/below.csv: ") and error.count("\n") == 1, error
    assert sorted(tmp_path.rglob("*")) == before


def test_what_a_file_needs(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "there.json").write_text("old")
    check_output_file(tmp_path / "new.json")
    check_output_file(tmp_path / "there.json")
    for name, message in [
        ("", "the name of an output is empty"),
        ("a\0b", "expected the name of a file or folder"),
        (tmp_path / "none" / "new.json", "none does not exist; make it first"),
        (tmp_path / "there.json" / "new.json", "does not exist; make it first"),
        (tmp_path / "folder", "is a folder; expected the name of a file"),
        (tmp_path / "pipe", "is a device or a pipe"),
        (tmp_path / ("n" * 250), "the name is too long for a file and its manifest"),
        (tmp_path / ("n" * 300), "File name too long"),
    ]:
        with pytest.raises(SimfaError, match=message):
            check_output_file(name)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(SimfaError, match="is read-only or not yours to write in"):
        check_output_file(tmp_path / "new.json")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["folder", "pipe", "there.json"]


def test_what_a_folder_needs(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "run" / "stats.json").mkdir(parents=True)
    (tmp_path / "file").write_text("")
    check_output_folder(tmp_path / "a" / "b" / "c", "stats.json")
    check_output_folder(tmp_path / "run", "timeline.npz")
    for name, message in [
        ("", "the name of an output is empty"),
        (tmp_path / "file", "file is not a folder"),
        (tmp_path / "file" / "a" / "b", "file is not a folder"),
        (tmp_path / "run", r"run/stats\.json: is a folder; expected the name of a file"),
        (tmp_path / "a" / ("n" * 300), "too long"),
    ]:
        with pytest.raises(SimfaError, match=message):
            check_output_folder(name, "stats.json")
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(SimfaError, match=f"folder {tmp_path} is read-only or not yours to write in"):
        check_output_folder(tmp_path / "a" / "b")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["file", "run"]


@pytest.mark.parametrize(
    ("module", "arguments", "message"),
    [
        (
            "matplotlib",
            ("sensitivity", "--seqlen", "512", "--heads-q", "4", "--plot", "t.svg"),
            "the tornado plot needs",
        ),
        (
            "matplotlib",
            ("sensitivity", "--seqlen", "512", "--heads-q", "4", "--figures", "t"),
            "the tornado plot needs",
        ),
        ("matplotlib", ("figures", "-o", "drawings"), "a figure needs"),
        ("scipy", ("calibrate",), "calibrate needs"),
    ],
)
def test_a_missing_package_is_named_before_anything_runs(
    module, arguments, message, monkeypatch, capsys, tmp_path: Path
) -> None:
    monkeypatch.setattr("simfa.simulate.engine.run", None)
    monkeypatch.setattr("simfa.pipeline.predict_all", None)
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["simfa", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    assert capsys.readouterr().err.startswith(f"simfa: {message} {module}; pip install 'simfa[")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("translate", "there", "-o"),
        ("ingest", "there", "-o"),
        ("timeline", "there", "-o"),
        ("analytical", "--table", "there", "-o"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_what_is_read_is_not_overwritten(arguments, monkeypatch, capsys, tmp_path: Path) -> None:
    there, other = tmp_path / "there.csv", tmp_path / "other.csv"
    there.write_text("kept")
    other.symlink_to(there)
    monkeypatch.setattr(
        "sys.argv", ["simfa", *(str(there) if name == "there" else name for name in arguments), str(other)]
    )
    if arguments[0] == "timeline":
        sys.argv += ["--format", "npz"]
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    assert "other.csv: is what is read and would be overwritten; expected another name" in capsys.readouterr().err
    assert there.read_text() == "kept"


def test_a_table_is_not_overwritten_by_its_summary(monkeypatch, capsys, tmp_path: Path) -> None:
    (tmp_path / "summary.csv").write_text("kept")
    monkeypatch.setattr(
        "sys.argv", ["simfa", "validate", "--measured", str(tmp_path / "summary.csv"), "-o", str(tmp_path)]
    )
    with pytest.raises(SystemExit):
        main()
    assert "summary.csv: is what is read and would be overwritten" in capsys.readouterr().err
    assert (tmp_path / "summary.csv").read_text() == "kept"
