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
