"""The probed FA3 kernel on a Hopper GPU: everything `python -m simfa.instrument.gpu_check` looks at."""

from pathlib import Path

import pytest

from simfa.errors import InstrumentError
from simfa.instrument.gpu import open_gpu
from simfa.instrument.gpu_check import Session, run_checks
from simfa.instrument.instantiation import parse_kernel
from simfa.instrument.pair import build_pair
from simfa.instrument.session import open_libraries
from simfa.instrument.sources import fetch_release

pytestmark = [pytest.mark.gpu, pytest.mark.slow]


def test_every_check_passes_or_says_why_it_did_not_run(tmp_path: Path) -> None:
    try:
        gpu = open_gpu()
        build_pair(fetch_release(), 2, [parse_kernel("hdim128-fp16-full-cluster2")], tmp_path, print)
        plain, probed = open_libraries(tmp_path)
        plain.sm_count()
    except InstrumentError as error:
        pytest.skip(str(error))
    results = {found.name: found for found in run_checks(Session(gpu, plain, probed, tmp_path), print)}
    assert {name: found.reason for name, found in results.items() if found.result == "failed"} == {}
    assert results["records are complete"].result == "passed"
