"""A release: one version, an sdist that builds the wheel, a citation and a changelog that name the same version."""

import importlib.util
import re
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

import simfa


@pytest.fixture(scope="module")
def wheels(root_folder: Path) -> ModuleType:
    """The script `scripts/wheels.py` as a module."""
    spec = importlib.util.spec_from_file_location("wheels", root_folder / "scripts/wheels.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["wheels"] = module
    spec.loader.exec_module(module)
    return module


def test_one_version(root_folder: Path) -> None:
    project = tomllib.loads((root_folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert simfa.__version__ == project["version"]
    citation = (root_folder / "CITATION.cff").read_text(encoding="utf-8")
    assert re.findall(r"^version: (.*)$", citation, re.MULTILINE) == [project["version"]]
    assert f"license: {project['license']}" in citation
    newest = re.search(r"^## ([\d.]+)", (root_folder / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert newest is not None and newest[1] == project["version"]


def test_wheel_problems_are_seen(wheels: ModuleType, tmp_path: Path) -> None:
    wheel = tmp_path / "simfa-0-cp312-cp312-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name in ("simfa/simulate/core/sm.cpp", "translate/__init__.py", "simfa-0.dist-info/METADATA"):
            archive.writestr(name, "")
    text = "\n".join(wheels.wheel_problems(wheel))
    for word in ("['simfa', 'translate']", "cp312", "sm.cpp is a source", "simfa/py.typed is missing"):
        assert word in text


@pytest.mark.slow
def test_sdist_builds_the_wheel(wheels: ModuleType, root_folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("build", reason="needs build")
    built = wheels.build(tmp_path / "dist")
    assert wheels.wheel_problems(built.wheel) == []
    assert built.wheel.name.startswith(f"simfa-{simfa.__version__}-")
    with tarfile.open(built.sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"LICENSE", "README.md", "Makefile", "mkdocs.yml", "docs/isa.md", "tests/oracle/cases.py"} <= names
    assert not [name for name in names if name.startswith((".venv", "results", "build/", "dist/"))]
    metadata = next(name for name in zipfile.ZipFile(built.wheel).namelist() if name.endswith(".dist-info/METADATA"))
    text = zipfile.ZipFile(built.wheel).read(metadata).decode()
    assert f"Version: {simfa.__version__}\n" in text
    assert (root_folder / "README.md").read_text(encoding="utf-8") in text
