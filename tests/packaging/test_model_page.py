"""docs/model.md names every value that the simulator reads, nothing else, and the limits at which it refuses."""

import re
from pathlib import Path

import pytest

from simfa.hardware import load_preset
from simfa.simulate import _core
from simfa.simulate.encode import encode_kernel
from simfa.simulate.engine_config import engine_config
from tests.shapes.streams import multiplying_trace

PRESET = load_preset("h100-sxm")


@pytest.fixture
def page(root_folder: Path) -> str:
    return (root_folder / "docs" / "model.md").read_text(encoding="utf-8")


def _paths() -> set[str]:
    return set(PRESET.provenance)


def test_every_simulated_value_is_explained(page: str) -> None:
    simulated = {path for path in _paths() if not path.startswith("analytical.")}
    assert sorted(path for path in simulated if f"`{path}`" not in page and f"`{path} = " not in page) == []


def test_every_named_value_exists(page: str) -> None:
    groups = "|".join(sorted({path.split(".")[0] for path in _paths()}))
    named = set(re.findall(rf"`((?:{groups})\.[a-z0-9_.]+)", page))
    assert sorted(named - _paths()) == []


def test_links_lead_somewhere(page: str, root_folder: Path) -> None:
    targets = re.findall(r"\]\(([^)#]+)\)", page)
    assert targets
    for target in targets:
        assert (root_folder / "docs" / target).exists(), target


def _limits(page: str) -> list[tuple[str, int, int]]:
    rows = re.findall(r"^\| `([a-z0-9_.]+)` \| (\d+) \| (\d+) \|$", page, flags=re.MULTILINE)
    return [(path, int(least), int(most)) for path, least, most in rows]


def test_limits_are_those_of_the_engine(page: str) -> None:
    rows = _limits(page)
    assert len(rows) >= 15
    for path, least, most in rows:
        for value in (least - 1, most + 1):
            with pytest.raises(ValueError, match=rf"{path} is {value}; expected {least} to {most}"):
                _make_engine(path, value)


def _make_engine(path: str, value: int) -> None:
    """Build an engine for a value that no check of presets has seen."""
    kernel, _, _ = encode_kernel(multiplying_trace(2, groups=1, wgmmas=1, n=8), PRESET.spec)
    config = engine_config(PRESET.spec)
    setattr(config, _FIELDS.get(path, path.split(".")[1]), value)
    _core.Engine(config, kernel)


_FIELDS = {"gpu.sm_count": "sms", "lrc.entries": "lrc_entries", "lrc.max_merges": "lrc_max_merges"}
