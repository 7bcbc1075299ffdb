"""What the documents name exists: make targets, commands, files, presets."""

import re
from pathlib import Path

import pytest

from simfa.cli import COMMANDS
from simfa.hardware import overlay_names, preset_names
from simfa.measure.cases import set_names

DOCUMENTS = ("README.md", "CONTRIBUTING.md", "DEVIATIONS.md", "config/README.md", "data/measured/README.md")


@pytest.fixture(params=DOCUMENTS)
def text(request, root_folder: Path) -> str:
    return (root_folder / request.param).read_text(encoding="utf-8")


def test_make_targets_exist(text: str, root_folder: Path) -> None:
    makefile = (root_folder / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, flags=re.MULTILINE))
    named = set(re.findall(r"(?:`|\$ )make ([a-z-]+)", text))
    assert named <= targets


def test_commands_exist(text: str) -> None:
    named = set(re.findall(r"(?:`|\$ )simfa ([a-z-]+)", text))
    assert named <= set(COMMANDS)


def test_sets_presets_and_overlays_exist(text: str) -> None:
    assert set(re.findall(r"--set ([a-z0-9-]+)(?![a-z0-9_.-]*[=.])", text)) <= set(set_names())
    assert set(re.findall(r"--overlay ([a-z0-9-]+)", text)) <= set(overlay_names())
    assert set(re.findall(r"--gpu ([a-z0-9-]+)", text)) <= set(preset_names())


def test_linked_files_exist(text: str, root_folder: Path) -> None:
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", text):
        assert (root_folder / target).exists(), target


def test_makefile_lists_its_phony_targets(root_folder: Path) -> None:
    makefile = (root_folder / "Makefile").read_text(encoding="utf-8")
    (listed,) = re.findall(r"^\.PHONY: (.*)$", makefile, flags=re.MULTILINE)
    targets = re.findall(r"^([a-z-]+):.*##", makefile, flags=re.MULTILINE)
    assert sorted(listed.split()) == sorted(targets)
