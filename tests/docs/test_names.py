"""What pages name in code spans exists: files, modules and their members, preset values, keys of results, commands."""

import importlib
import re

import pytest

from simfa.cli import COMMANDS
from simfa.hardware import load_preset
from simfa.measure.launch import COLUMNS, SHAPE_COLUMNS
from simfa.simulate.results import RunResult
from simfa.summary import Accuracy, SetResult, Summary
from tests.docs.pages import PAGES, ROOT, code_spans, read

_FOLDERS = (
    "analytical", "benchmarks", "config", "data", "docs", "examples", "instrument", "measure", "report", "scripts",
    "simulate", "src", "tests", "translate", "workflow",
)  # fmt: skip
# Made by a run, a build or a user; not in the tree.
_MADE = ("results/", "build/", "dist/")
_VALUES = load_preset("h100-sxm").provenance
_GROUPS = {path.split(".")[0] for path in _VALUES}


@pytest.mark.parametrize("page", PAGES)
def test_files_exist(page: str) -> None:
    folder = (ROOT / page).parent
    for span in code_spans(read(page)):
        if re.fullmatch(rf"(?:{'|'.join(_FOLDERS)})/[\w./*{{}},-]*", span) and not span.startswith(_MADE):
            pattern = re.sub(r"\{[^}]*\}|\b[A-Z]{2,}\b", "*", span).rstrip("/")
            assert list(ROOT.glob(pattern)) or list(folder.glob(pattern)), f"{page}: `{span}`"


@pytest.mark.parametrize("page", PAGES)
def test_python_names_exist(page: str) -> None:
    for name in re.findall(r"(?<![\w./-])simfa(?:\.[A-Za-z_]\w*)+", " ".join(code_spans(read(page)))):
        if name.endswith((".whl", ".md")):
            continue
        module, *members = name.split(".")
        found = importlib.import_module(module)
        for member in members:
            module = f"{module}.{member}"
            try:
                found = getattr(found, member)
            except AttributeError:
                found = importlib.import_module(module)


@pytest.mark.parametrize("page", PAGES)
def test_preset_values_exist(page: str) -> None:
    for span in code_spans(read(page)):
        if match := re.fullmatch(r"([a-z0-9_]+(?:\.[a-z0-9_]+)+)(?: ?= ?\S+)?", span):
            path = match[1]
            if path.split(".")[0] in _GROUPS and not path.endswith((".md", ".py", ".toml", ".csv")):
                assert path in _VALUES or any(value.startswith(f"{path}.") for value in _VALUES), f"{page}: `{span}`"


def test_readme_lists_every_command() -> None:
    table = read("README.md").split("## Commands")[1].split("\n## ")[0]
    named = {
        word for row in re.findall(r"^\| (`simfa.*?) \|", table, re.MULTILINE) for word in re.findall(r"[\w-]+", row)
    }
    assert set(COMMANDS) - named == set()


def test_result_keys_are_described() -> None:
    text = read("docs/results.md")
    stats = text.split("## `stats.json`")[1].split("\n## ")[0]
    written = {*RunResult.__struct_fields__, "shape", "kernel", "manifest", "clock_model"} - {"timeline"}
    keys = {key for row in re.findall(r"^\| (`.*?) \|", stats, re.MULTILINE) for key in re.findall(r"`(\w+)`", row)}
    assert keys == written
    summary = text.split("## `summary.json`")[1].split("\n## ")[0]
    for struct, left_out in ((Summary, {"tool_version"}), (SetResult, {"name"}), (Accuracy, {"used"})):
        for field in set(struct.__struct_fields__) - left_out:
            assert f"`{field}`" in summary, f"{struct.__name__}.{field}"


def test_columns_of_ingest_are_described() -> None:
    table = read("docs/ingest.md").split("## The table")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row)} == {*COLUMNS, *SHAPE_COLUMNS}
