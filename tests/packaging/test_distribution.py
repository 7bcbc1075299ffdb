"""What an installation of the package contains."""

import importlib.metadata
from pathlib import PurePosixPath

from nanobind.stubgen import StubGen

from simfa.simulate import _core


def installed_files() -> list[PurePosixPath]:
    """Return the files that the distribution recorded, relative to site-packages."""
    return [PurePosixPath(str(path)) for path in importlib.metadata.files("simfa") or []]


def test_exactly_one_top_level_name() -> None:
    # Scripts lie outside site-packages; an editable install adds its import hook.
    names = {path.parts[0].removesuffix(".py") for path in installed_files() if path.parts[0] != ".."}
    names = {name for name in names if not name.endswith((".dist-info", ".pth")) and name != "__pycache__"}
    assert names - {"_editable_skbc_simfa"} == {"simfa"}


def test_no_engine_sources_are_installed() -> None:
    assert not [path for path in installed_files() if path.suffix in (".cpp", ".hpp")]


def test_committed_stub_is_the_generated_one(root_folder) -> None:
    generator = StubGen(module=_core)
    generator.put(_core)
    committed = (root_folder / "simulate/_core.pyi").read_text(encoding="utf-8")
    assert committed == generator.get(), "simulate/_core.pyi is stale: run `make stub`"
