"""The Python interface: modules by first use, frozen results, pandas views that hold what the results hold."""

import subprocess
import sys
from pathlib import Path

import msgspec
import pandas as pd
import pytest

import simfa
from simfa.errors import SimfaError
from simfa.frames import flat_fields
from simfa.hardware import load_preset
from simfa.kernel import kernel_for
from simfa.pipeline import predict
from simfa.simulate.results import RunResult
from simfa.workload import AttentionShape

SHAPE = AttentionShape(batch=1, seqlen_q=256, seqlen_kv=256, heads_q=2, heads_kv=2, head_dim=128)
EXPORT = Path(__file__).parents[2] / "examples/exports/invented.csv"


@pytest.fixture(scope="module")
def result() -> RunResult:
    return predict(SHAPE)


def test_import_is_light_and_modules_come_when_used() -> None:
    script = (
        "import sys, simfa\n"
        "loaded = [name for name in sys.modules if name.startswith(('numpy', 'pandas', 'msgspec', 'simfa.'))]\n"
        "assert not loaded, loaded\n"
        "assert 'pipeline' in dir(simfa) and 'simfa.pipeline' not in sys.modules\n"
        "simfa.pipeline, simfa.analytical, simfa.measure\n"
        "assert 'numpy' not in sys.modules and 'pandas' not in sys.modules\n"
        "assert callable(simfa.pipeline.predict)\n"
    )
    subprocess.run([sys.executable, "-P", "-c", script], check=True)


def test_other_names_are_not_there() -> None:
    with pytest.raises(AttributeError, match="module 'simfa' has no attribute 'pipelin'"):
        _ = simfa.pipelin


def test_gpu_is_a_name_or_a_loaded_preset(result: RunResult) -> None:
    assert predict(SHAPE, gpu="h100-sxm").cycles == predict(SHAPE, load_preset("h100-sxm")).cycles == result.cycles
    assert predict(SHAPE, gpu="h20").gpu == load_preset("h20").spec.gpu.name


def test_kernel_of_ones_own(result: RunResult) -> None:
    shipped = kernel_for(SHAPE)
    assert predict(SHAPE, kernel=shipped).to_json().keys() == result.to_json().keys()
    assert predict(SHAPE, kernel=shipped).cycles == result.cycles
    small = predict(SHAPE, kernel=msgspec.structs.replace(shipped, tile_n=64))
    # 256 keys are four blocks of 64 or two of 176, whose second one is cut at the end of the tensor: equal traffic.
    assert small.cycles != result.cycles
    assert small.sm_read_bytes == result.sm_read_bytes


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sm_clock_hz": -1.0}, "sm_clock_hz is -1.0; expected a clock above 0"),
        ({"sm_clock_hz": float("nan")}, "sm_clock_hz is nan; expected a clock above 0"),
        ({"threads": 0}, "threads 0, max_cycles None: expected at least 1"),
        ({"max_cycles": -1}, "threads 1, max_cycles -1: expected at least 1"),
        ({"rules": "papers"}, "rules 'papers' are unknown; expected source or paper"),
        ({"kernel": {"tile_m": 0}}, "tile_m of the kernel is 0; expected a positive whole number"),
        ({"kernel": {"stages": -2}}, "stages of the kernel is -2; expected a positive whole number"),
        ({"kernel": {"schedule": "random"}}, "schedule 'random' is unknown; expected one of static, dynamic"),
        ({"kernel": {"stages": 9}}, "stages of a ring is 9; expected 1 to 8"),
    ],
)
def test_bad_arguments_are_named(arguments, message: str) -> None:
    if "kernel" in arguments:
        arguments = {"kernel": msgspec.structs.replace(kernel_for(SHAPE), **arguments["kernel"])}
    with pytest.raises(SimfaError) as error:
        predict(SHAPE, **arguments)
    assert message in str(error.value)


def test_results_are_frozen(result: RunResult) -> None:
    with pytest.raises(AttributeError):
        result.cycles = 0  # type: ignore[misc]
    with pytest.raises(AttributeError):
        simfa.analytical.traffic(SHAPE).flops = 0


def test_frame_of_a_run(result: RunResult) -> None:
    frame = result.to_frame()
    assert len(frame) == 1
    assert {"stall_cycles", "counters", "timeline"}.isdisjoint(frame.columns)
    assert frame.iloc[0].to_dict() == {name: getattr(result, name) for name in frame.columns}
    assert set(frame.columns) == set(result.__struct_fields__) - {"stall_cycles", "counters", "timeline"}


def test_frame_of_stalls_accounts_for_every_cycle(result: RunResult) -> None:
    frame = result.stalls_to_frame()
    ctas = kernel_for(SHAPE).query_blocks(SHAPE) * SHAPE.heads_q
    sums = frame[frame.role != "tensor_pipe"].groupby("role").cycles.sum()
    assert (sums == result.cycles * ctas).all()
    assert frame.groupby("role").share.sum().tolist() == pytest.approx([1.0] * frame.role.nunique())


def test_frames_of_traffic_join() -> None:
    answers = [simfa.analytical.traffic(SHAPE, gpu) for gpu in ("h100-sxm", "h20")]
    frame = pd.concat(answer.to_frame() for answer in answers)
    assert frame["bounds.tensor_us"].tolist() == [answer.bounds.tensor_us for answer in answers]
    assert frame["attention.seqlen_q"].tolist() == [256, 256]
    assert frame["kernel.tile_m"].tolist() == [answer.kernel.tile_m for answer in answers]
    assert flat_fields(answers[0]).keys() == set(frame.columns)


def test_frame_of_measurements() -> None:
    found = simfa.measure.read(EXPORT)
    frame = found.to_frame()
    assert frame.duration_ns.tolist() == [launch.duration_ns for launch in found.launches] == [20000, 21000, 23000]
    assert frame.l2_hit_pct.isna().all()
