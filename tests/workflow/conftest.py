"""Runs Snakemake on the project's workflow in a temporary folder."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
Snakemake = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def root_folder() -> Path:
    return ROOT


@pytest.fixture
def snakemake(tmp_path: Path) -> Snakemake:
    """Return a function that runs `snakemake all`; the finished process holds both streams in its stdout."""

    def run(*arguments: str, config: str = "ci") -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-P", "-m", "snakemake", "all", "--cores", "2"]
        command += ["--snakefile", str(ROOT / "workflow/Snakefile"), "--directory", str(tmp_path)]
        command += ["--configfile", str(ROOT / f"config/{config}.yaml"), "--quiet", "host", *arguments]
        environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path / "cache")}
        return subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            env=environment,
            cwd=tmp_path,
        )

    return run


@pytest.fixture
def hopper_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return a function that makes the workflow believe in a Hopper GPU, nvcc, CuPy and the profilers it names.

    For plans only: the programs print what `simfa doctor` asks them and nothing else.
    """

    def pretend(*profilers: str) -> None:
        programs = tmp_path / "node" / "bin"
        programs.mkdir(parents=True)
        outputs = {"nvidia-smi": "NVIDIA H100 80GB HBM3, 9.0, 570.86.15, 81559"}
        outputs["nvcc"] = "Cuda compilation tools, release 13.0, V13.0.88"
        outputs |= dict.fromkeys(profilers, "Version 2025.1.1")
        for name, text in outputs.items():
            (programs / name).write_text(f"#!/bin/sh\necho '{text}'\n")
            (programs / name).chmod(0o755)
        (programs.parent / "lib").mkdir()
        (programs.parent / "lib" / "libcudart_static.a").touch()
        modules = tmp_path / "modules"
        modules.mkdir()
        (modules / "cupy.py").touch()
        monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
        monkeypatch.setenv("PYTHONPATH", str(modules))
        monkeypatch.setenv("CUDA_HOME", str(programs.parent))

    return pretend
