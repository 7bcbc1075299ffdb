"""The real FA3 kernel: fetched, patched, compiled and read back. Minutes of one nvcc job; skipped where that is not.

Sources and builds stay in the user's cache, so only the first run takes long.
"""

from pathlib import Path

import pytest

from simfa.errors import InstrumentError
from simfa.instrument.fidelity import compare, report_plain, report_probed
from simfa.instrument.instantiation import parse_kernel
from simfa.instrument.launcher import Launcher
from simfa.instrument.pair import build_pair, pair_paths
from simfa.instrument.session import open_libraries
from simfa.instrument.sources import fetch_release
from simfa.instrument.toolchain import find_disassembler, find_nvcc
from simfa.workload import model_shape

pytestmark = pytest.mark.slow

KERNEL = parse_kernel("hdim128-fp16-full-cluster2")


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the plain and the level-1 library, or skip with the reason."""
    for name, find in (("nvcc", find_nvcc), ("nvidia-cuda-nvdisasm", find_disassembler)):
        try:
            find()
        except InstrumentError as error:
            pytest.skip(f"needs {name}: {error}")
    try:
        found = fetch_release()
    except InstrumentError as error:
        pytest.skip(f"needs fa3-sources: {error}")
    folder = tmp_path_factory.mktemp("pair")
    build_pair(found, 1, [KERNEL], folder)
    return folder


def test_machine_code_is_what_the_schedule_needs(pair: Path) -> None:
    tools = find_disassembler()
    plain_path, probed_path, level = pair_paths(pair)
    (plain,) = report_plain(plain_path, tools)
    (probed,) = report_probed(probed_path, level, tools, [plain])
    assert plain.problems == probed.problems == ()
    assert plain.wgmma == probed.wgmma == 38
    assert plain.name == KERNEL.name
    difference = compare(plain, probed)
    assert sum(difference.exp2_plain) == sum(difference.exp2_probed) == 90
    if find_nvcc().version == (13, 0):
        assert difference.exp2_plain == (23, 67)
    assert difference.spills["consumer"] == 0


def test_libraries_load_and_tell_what_the_machine_lacks(pair: Path) -> None:
    plain, probed = open_libraries(pair)
    assert (plain.level, probed.level) == (0, 1)
    assert plain.kernels == [KERNEL]
    if plain.device_problem() is None:
        pytest.skip("needs no-gpu: tests/gpu and `make gpu-check` run the kernels here")
    with pytest.raises(InstrumentError, match="no usable GPU"):
        plain.sm_count()
    with pytest.raises(InstrumentError, match="holds the plain kernel and cannot trace"):
        plain.set_trace(None)


def test_a_kernel_that_is_not_inside_is_refused(pair: Path) -> None:
    from simfa.instrument.launcher import Tensors

    launcher = Launcher(pair_paths(pair)[0])
    other = model_shape("llama3-8b", 512, causal=True)
    with pytest.raises(InstrumentError, match="built without this kernel"):
        launcher.run(other, Tensors(0, 0, 0, 0, 0, 1), 132)
