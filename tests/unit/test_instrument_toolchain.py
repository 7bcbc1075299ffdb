"""Finding nvcc and the disassembler: versions, places, and what is said when they are not there."""

import stat
from pathlib import Path

import pytest

from simfa.errors import InstrumentError
from simfa.instrument import toolchain
from simfa.instrument.toolchain import find_disassembler, find_nvcc


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Leave no tool to be found; return a folder whose bin/ is `$CUDA_HOME/bin`."""
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    monkeypatch.setattr(toolchain, "TOOLKIT_BIN", tmp_path / "no-toolkit")
    monkeypatch.setattr(toolchain.importlib.metadata, "files", lambda name: [])
    (tmp_path / "bin").mkdir()
    return tmp_path


def program(path: Path, output: str) -> Path:
    path.write_text(f"#!/bin/sh\n/bin/cat <<'TEXT'\n{output}\nTEXT\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def nvcc_says(version: str) -> str:
    return f"nvcc: NVIDIA (R) Cuda compiler driver\nCuda compilation tools, release {version}, V{version}.88"


def test_nvcc_is_found_with_version_and_library(alone: Path) -> None:
    program(alone / "bin/nvcc", nvcc_says("13.0"))
    (alone / "lib64").mkdir()
    (alone / "lib64/libcudart_static.a").touch()
    found = find_nvcc()
    assert (found.version, found.build) == ((13, 0), "13.0.88")
    assert found.library_dir == alone / "lib64"


def test_a_script_on_path_is_asked_where_the_toolkit_is(alone: Path) -> None:
    real = alone / "elsewhere"
    (real / "lib").mkdir(parents=True)
    (real / "lib/libcudart_static.a").touch()
    program(alone / "bin/nvcc", nvcc_says("12.8") + f"\n#$ _HERE_={real}/bin")
    assert find_nvcc().library_dir == real / "lib"


def test_no_nvcc_names_the_packages(alone: Path) -> None:
    with pytest.raises(InstrumentError, match=r"no nvcc found; .*pip install nvidia-cuda-nvcc"):
        find_nvcc()


def test_an_old_nvcc_is_refused(alone: Path) -> None:
    program(alone / "bin/nvcc", nvcc_says("12.2"))
    with pytest.raises(InstrumentError, match=r"nvcc 12\.2\.88 is too old for FA3; expected 12\.3 or later"):
        find_nvcc()


def test_nvcc_without_its_run_time_is_refused(alone: Path) -> None:
    program(alone / "bin/nvcc", nvcc_says("13.0"))
    with pytest.raises(InstrumentError, match=r"no libcudart_static\.a beside it"):
        find_nvcc()


def test_another_program_of_that_name_is_refused(alone: Path) -> None:
    program(alone / "bin/nvcc", "hello")
    with pytest.raises(InstrumentError, match="this is not nvcc"):
        find_nvcc()


def test_tools_of_installed_packages_are_found(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class File:
        def __init__(self, path: Path) -> None:
            self.name, self._path = path.name, path

        def locate(self) -> Path:
            return self._path

    site = alone / "site-packages/nvidia/cu13/bin"
    site.mkdir(parents=True)
    tools = {f"nvidia-cuda-{name}": program(site / name, "V13.5.37") for name in ("cuobjdump", "nvdisasm")}
    monkeypatch.setattr(toolchain.importlib.metadata, "files", lambda name: [File(tools[name])])
    found = find_disassembler()
    assert (found.nvdisasm, found.build) == (site / "nvdisasm", "13.5.37")


@pytest.mark.parametrize(("there", "missing"), [("nvdisasm", "cuobjdump"), ("cuobjdump", "nvdisasm")])
def test_a_missing_disassembler_names_the_packages(alone: Path, there: str, missing: str) -> None:
    program(alone / "bin" / there, "V13.5.37")
    with pytest.raises(InstrumentError, match=f"no {missing} found; run `pip install nvidia-cuda-nvdisasm"):
        find_disassembler()
