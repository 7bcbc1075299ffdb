"""House rules that a tool can check: file sizes, module lengths, unfinished work."""

import subprocess
from pathlib import Path

import pytest

LENGTH_LIMIT = {".py": 400, ".cpp": 500, ".hpp": 500, ".cu": 500, ".cuh": 500}
# Spelt in pieces so that this file does not contain them.
UNFINISHED = ("TO" + "DO", "FIX" + "ME", "NotImplemented" + "Error")


@pytest.fixture(scope="module")
def sources(root_folder: Path) -> list[Path]:
    """All files of the tree: those git tracks, or everything outside ignored folders in an unpacked archive."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=root_folder, capture_output=True, text=True, check=False)
    if listed.returncode == 0:
        files = [root_folder / line for line in listed.stdout.splitlines()]
    else:
        ignored = {".venv", "build", "results", ".snakemake", "__pycache__", ".ruff_cache", ".mypy_cache"}
        files = [path for path in root_folder.rglob("*") if not ignored & set(path.parts)]
    files = [path for path in files if path.is_file()]
    assert len(files) > 20
    return files


def test_files_are_small(sources: list[Path]) -> None:
    assert not [path for path in sources if path.stat().st_size >= 1 << 20]


def test_modules_are_short(sources: list[Path]) -> None:
    lengths = {
        path: len(path.read_text(encoding="utf-8").splitlines()) for path in sources if path.suffix in LENGTH_LIMIT
    }
    assert not {path: length for path, length in lengths.items() if length > LENGTH_LIMIT[path.suffix]}


def test_nothing_is_marked_unfinished(sources: list[Path]) -> None:
    suffixes = {*LENGTH_LIMIT, ".md", ".toml", ".smk", ".yaml", ".j2", ""}
    for path in sources:
        if path.suffix in suffixes and path.name != "LICENSE":
            text = path.read_text(encoding="utf-8", errors="replace")
            assert not [word for word in UNFINISHED if word in text], path
