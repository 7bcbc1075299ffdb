"""The probed FA3 kernel on a Hopper GPU: everything `python -m simfa.instrument.gpu_check` looks at."""

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from simfa.errors import InstrumentError
from simfa.instrument.gpu import BACKENDS, open_gpu
from simfa.instrument.gpu_check import Session, run_checks
from simfa.instrument.instantiation import parse_kernel
from simfa.instrument.pair import build_pair
from simfa.instrument.session import open_libraries
from simfa.instrument.sources import fetch_release
from simfa.instrument.toolchain import find_nvcc

pytestmark = [pytest.mark.gpu, pytest.mark.slow]


def need(name: str, get: Callable[[], Any]) -> Any:
    """Return what `get` finds, or skip because this machine lacks `name`."""
    try:
        return get()
    except InstrumentError as error:
        pytest.skip(f"needs {name}: {error}")


def test_every_check_passes_or_says_why_it_did_not_run(tmp_path: Path) -> None:
    library = next((name for name in BACKENDS if importlib.util.find_spec(name)), None)
    if library is None:
        pytest.skip(f"needs {BACKENDS[0]}: or {' or '.join(BACKENDS[1:])}, to reach a GPU")
    gpu = need("gpu", open_gpu)
    need("nvcc", find_nvcc)
    sources = need("fa3-sources", fetch_release)
    build_pair(sources, 2, [parse_kernel("hdim128-fp16-full-cluster2")], tmp_path)
    plain, probed = open_libraries(tmp_path)
    need("gpu", plain.sm_count)
    results = {found.name: found for found in run_checks(Session(gpu, plain, probed, tmp_path), print)}
    assert {name: found.reason for name, found in results.items() if found.result == "failed"} == {}
    assert results["records are complete"].result == "passed"
