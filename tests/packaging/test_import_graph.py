"""Who may import whom: the vocabulary imports no stage, a stage imports the vocabulary and its own folder."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
STAGES = ("instrument", "translate", "simulate", "analytical", "measure", "report")
COMPOSERS = (
    "ablate_cli",
    "calibrate_cli",
    "cli",
    "doctor",
    "pipeline",
    "predict_cli",
    "sensitivity_cli",
    "simulator_backend",
    "timeline_cli",
    "validate_cli",
)
GPU_LIBRARIES = {"cupy", "pycuda", "nvtx"}


class Import(NamedTuple):
    """One import of `target` in a file; `lazy` when it stands inside a function or is for type checkers only."""

    target: str
    lazy: bool
    line: int


def imports_of(path: Path) -> Iterator[Import]:
    """Yield every import of a module, relative ones and string arguments of `import_module` included."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    lazy_lines = {
        line
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        or (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = ["." * node.level + (node.module or "")]
            if node.module in (None, "simfa"):
                names = [f"{names[0]}.{alias.name}".replace("..", ".") for alias in node.names]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module") and node.args:
            argument = node.args[0]
            names = [argument.value] if isinstance(argument, ast.Constant) else []
        for name in names:
            yield Import(name, node.lineno in lazy_lines, node.lineno)


def stage_of(target: str) -> str | None:
    """Return the stage an imported name belongs to."""
    parts = target.split(".")
    return parts[1] if len(parts) > 1 and parts[0] == "simfa" and parts[1] in STAGES else None


VOCABULARY = sorted((ROOT / "src/simfa").glob("*.py"))
STAGE_FILES = sorted(path for stage in STAGES for path in (ROOT / stage).rglob("*.py"))


@pytest.mark.parametrize("path", VOCABULARY, ids=lambda path: path.stem)
def test_vocabulary_imports_no_stage(path: Path) -> None:
    for found in imports_of(path):
        if stage_of(found.target):
            assert path.stem in COMPOSERS, f"{path.name}:{found.line} imports {found.target}"
            assert found.lazy, f"{path.name}:{found.line} imports {found.target} outside a function"


@pytest.mark.parametrize("path", STAGE_FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_stage_imports_only_vocabulary_and_itself(path: Path) -> None:
    own = path.relative_to(ROOT).parts[0]
    for found in imports_of(path):
        where = f"{path.relative_to(ROOT)}:{found.line} imports {found.target}"
        assert not found.target.startswith("."), f"{where}; write the full name simfa.{own}..."
        assert found.target.split(".")[0] not in STAGES, f"{where}; write simfa.{found.target}"
        assert stage_of(found.target) in (None, own), where
        assert not any(found.target.startswith(f"simfa.{name}") for name in COMPOSERS if name != "doctor"), where


def test_gpu_libraries_are_imported_lazily_in_one_module() -> None:
    users = {}
    for path in [*VOCABULARY, *STAGE_FILES]:
        for found in imports_of(path):
            if found.target.split(".")[0] in GPU_LIBRARIES:
                assert found.lazy, f"{path.name}:{found.line} imports {found.target} outside a function"
                users[path] = found.target
    assert len(users) <= 1, f"GPU libraries belong in one module, found {users}"


def test_checker_sees_every_form(tmp_path: Path) -> None:
    source = (
        "import simfa.report.html\nfrom simfa.translate import lower\nfrom simfa import measure\nfrom . import x\n"
        "def f():\n    import_module('simfa.simulate._core')\n"
    )
    file = tmp_path / "sample.py"
    file.write_text(source)
    found = list(imports_of(file))
    assert [stage_of(entry.target) for entry in found] == ["report", "translate", "measure", None, "simulate"]
    assert [entry.lazy for entry in found] == [False, False, False, False, True]
    assert found[3].target.startswith(".")
