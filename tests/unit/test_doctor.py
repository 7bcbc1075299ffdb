"""`simfa doctor`: reading nvidia-smi, and naming what is missing."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from simfa import doctor
from simfa.cli import simfa
from simfa.errors import InstrumentError
from simfa.instrument import toolchain
from simfa.instrument.toolchain import Nvcc

SMI = "NVIDIA H100 80GB HBM3, 9.0, 570.86.15, 81559\nNVIDIA A100-SXM4-80GB, 8.0, 570.86.15, 81920\n"


def test_parse_gpus() -> None:
    hopper, ampere = doctor.parse_gpus(SMI)
    assert hopper == doctor.Gpu("NVIDIA H100 80GB HBM3", "9.0", "570.86.15", 81559)
    assert hopper.is_hopper
    assert not ampere.is_hopper


def test_parse_gpus_skips_what_is_not_a_gpu() -> None:
    assert doctor.parse_gpus("No devices were found\n\n[N/A], 9.0, [N/A], [N/A]\n") == []


def test_json_says_what_is_installed() -> None:
    done = CliRunner().invoke(simfa, ["doctor", "--json"])
    assert done.exit_code == 0
    findings = json.loads(done.stdout)
    assert findings["core"]
    assert findings["extras"]["test"]["pytest"] == pytest.__version__
    assert set(findings["tools"]) == set(doctor.TOOLS)


HOPPER = "a Hopper GPU (compute capability 9.0)"
LIBRARY = "CuPy, PyCUDA or PyTorch (pip install 'simfa[gpu]')"


@pytest.mark.parametrize(
    ("gpus", "nvcc", "library", "missing"),
    [
        ([], None, False, [HOPPER, "nvcc", LIBRARY]),
        (doctor.parse_gpus(SMI)[1:], "12.8", True, [HOPPER]),
        (doctor.parse_gpus(SMI), None, True, ["nvcc"]),
        (doctor.parse_gpus(SMI), "12.8", False, [LIBRARY]),
        (doctor.parse_gpus(SMI), "12.8", True, []),
    ],
)
def test_capture_needs_hopper_nvcc_and_a_gpu_library(monkeypatch, gpus, nvcc, library, missing) -> None:
    monkeypatch.setattr(doctor, "_gpus", lambda: (gpus, None if gpus else "no driver"))
    monkeypatch.setattr(doctor, "_nvcc_version", lambda: nvcc)
    monkeypatch.setattr(doctor, "_has_gpu_library", lambda: library)
    assert doctor.examine().capture_missing == missing


def test_nvcc_is_the_one_that_builds(monkeypatch) -> None:
    """Found where the build looks, the PyPI packages among them; one that FA3 cannot be built with does not count."""
    nvcc = Nvcc(Path("/elsewhere/nvcc"), (13, 0), "13.0.88", Path("/elsewhere"))
    monkeypatch.setattr(toolchain, "find_nvcc", lambda: nvcc)
    assert doctor.examine().tools["nvcc"] == "13.0"

    def too_old() -> Nvcc:
        raise InstrumentError("nvcc 11.8 is too old")

    monkeypatch.setattr(toolchain, "find_nvcc", too_old)
    assert doctor.examine().tools["nvcc"] is None


def test_missing_engine_is_a_failed_check(monkeypatch) -> None:
    monkeypatch.setattr(doctor, "_core", lambda: (None, "no module; reinstall"))
    done = CliRunner().invoke(simfa, ["doctor"])
    assert done.exit_code == 1
    assert "missing: no module; reinstall" in done.stdout
