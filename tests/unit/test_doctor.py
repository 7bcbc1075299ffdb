"""`simfa doctor`: reading nvidia-smi, and naming what is missing."""

import json

import pytest
from click.testing import CliRunner

from simfa import doctor
from simfa.cli import simfa

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


@pytest.mark.parametrize(
    ("gpus", "nvcc", "missing"),
    [
        ([], None, ["a Hopper GPU (compute capability 9.0)", "nvcc"]),
        (doctor.parse_gpus(SMI)[1:], "12.8", ["a Hopper GPU (compute capability 9.0)"]),
        (doctor.parse_gpus(SMI), None, ["nvcc"]),
        (doctor.parse_gpus(SMI), "12.8", []),
    ],
)
def test_capture_needs_hopper_and_nvcc(monkeypatch, gpus, nvcc, missing) -> None:
    monkeypatch.setattr(doctor, "_gpus", lambda: (gpus, None if gpus else "no driver"))
    monkeypatch.setattr(doctor, "_tool_version", lambda name: nvcc)
    assert doctor.examine().capture_missing == missing


def test_missing_engine_is_a_failed_check(monkeypatch) -> None:
    monkeypatch.setattr(doctor, "_core", lambda: (None, "no module; reinstall"))
    done = CliRunner().invoke(simfa, ["doctor"])
    assert done.exit_code == 1
    assert "missing: no module; reinstall" in done.stdout
