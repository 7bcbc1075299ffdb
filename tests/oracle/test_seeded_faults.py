"""Mistakes put into a copy of the core: each one must be noticed by the comparison with the reference."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.oracle.faults import CORE, FAULTS, NO_FAULT, Fault, seed_faults

ROOT = CORE.parents[1]


def copy_of_core(folder: Path) -> Path:
    return Path(shutil.copytree(CORE, folder / "core", ignore=shutil.ignore_patterns("tests")))


def test_every_fault_fits_the_core_in_one_place(tmp_path: Path) -> None:
    core = copy_of_core(tmp_path)
    seed_faults(core)
    for number, fault in enumerate(FAULTS, 1):
        assert (core / fault.file).read_text(encoding="utf-8").count(f"== {number})") == fault.wrong.count("FAULT")
    assert len({fault.name for fault in FAULTS}) == len(FAULTS) >= 10


def test_a_fault_whose_place_is_gone_is_told_by_name(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"fault 'gone': sm\.cpp has 0 of 'no such code', expected 1"):
        seed_faults(copy_of_core(tmp_path), [Fault("gone", "sm.cpp", "no such code", "FAULT")])


@pytest.mark.slow
def test_every_fault_is_caught_and_the_right_core_is_not(tmp_path: Path) -> None:
    pytest.importorskip("nanobind", reason="needs nanobind: the headers that bindings are built with")
    if shutil.which("cmake", path=str(Path(sys.executable).parent)) is None and shutil.which("cmake") is None:
        pytest.skip("needs cmake: to build a copy of the core")
    command = [sys.executable, "-m", "tests.oracle.faults", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    caught = {line["fault"]: line for line in map(json.loads, done.stdout.splitlines())}
    assert [name for name, catch in caught.items() if catch["program"] is None] == [NO_FAULT]
    assert set(caught) == {NO_FAULT, *(fault.name for fault in FAULTS)}
    assert done.returncode == 0
