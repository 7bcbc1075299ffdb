"""Capture from end to end against a GPU that is not there: plan, run, check, compact, write."""

from pathlib import Path

import msgspec
import numpy as np
import pytest

from simfa import salog
from simfa.errors import InstrumentError, LogError
from simfa.events import Event
from simfa.files import json_bytes, sha256_of
from simfa.instrument.capture import capture, device_state, overheads
from simfa.instrument.instantiation import instantiation_for
from simfa.instrument.row_plan import plan_rows
from simfa.instrument.session import Latencies, small_shape
from simfa.kernel import kernel_for
from simfa.workload import AttentionShape
from tests.unit.fake_gpu import SMS, FakeGpu, FakeLauncher


def shape(**changes) -> AttentionShape:
    sizes = {"batch": 1, "seqlen_q": 512, "seqlen_kv": 512, "heads_q": 4, "heads_kv": 2, "head_dim": 128}
    return AttentionShape(**(sizes | changes))


FULL = shape()
CAUSAL = shape(causal=True)


@pytest.fixture
def run(tmp_path: Path):
    """Return a function that captures a shape with made-up kernels and gives back log and report."""

    def captured(wanted: AttentionShape, level: int = 2, gpu: FakeGpu | None = None, **flags):
        gpu = gpu or FakeGpu()
        spoil, wrong_by = flags.pop("spoil", None), flags.pop("wrong_by", 0.0)
        library = tmp_path / "libsimfa_fa3.so"
        library.write_bytes(b"library")
        manifest = {"source_sha256": "ab", "source": "made up", "nvcc": "13.0.88", "library_sha256": sha256_of(library)}
        library.with_name(library.name + ".manifest.json").write_bytes(json_bytes(manifest))
        kernels = [instantiation_for(wanted)]
        plain = FakeLauncher(gpu, 0, kernels)
        probed = FakeLauncher(gpu, level, kernels, path=library, spoil=spoil, wrong_by=wrong_by)
        return capture(gpu, plain, probed, wanted, **flags)

    return captured


@pytest.mark.parametrize(
    ("wanted", "level"),
    [(FULL, 1), (FULL, 2), (CAUSAL, 1), (CAUSAL, 2), (shape(head_dim=64), 2), (shape(head_dim=256, dtype="bf16"), 1)],
    ids=lambda value: value.describe() if isinstance(value, AttentionShape) else f"level {value}",
)
def test_a_captured_log_is_written_and_read_back(run, tmp_path: Path, wanted: AttentionShape, level: int) -> None:
    log, report = run(wanted, level)
    path = tmp_path / "run.salog"
    salog.write_log(path, log)
    again = salog.open_log(path)
    assert again.metadata.source == "captured"
    assert again.metadata.shape == wanted
    assert again.metadata.seed is None
    assert len(again.rows) == report.rows
    counted = sum(len(again.records(row)) for row in range(len(again.rows)))
    assert counted == sum(report.events.values())
    assert report.events["GEMM_QK_ISSUE"] == report.events["GEMM_PV_ISSUE"]
    assert ("TILE" in report.events) == (level == 2)
    assert report.clock["globaltimer_tick_ns"] == 32
    assert report.kernel == instantiation_for(wanted).name


def test_idle_ctas_are_left_out_and_counted(run) -> None:
    few = shape(seqlen_q=256, seqlen_kv=256)
    log, report = run(few)
    tiles = 2 * 4
    assert report.idle_ctas == SMS - tiles
    assert len(np.unique(log.rows["block"])) == tiles


def test_rows_of_the_file_are_no_longer_than_needed(run) -> None:
    log, _ = run(CAUSAL)
    longest = int(log.rows["records"].max())
    assert log.row_bytes == salog.row_bytes_for(longest)
    assert log.row_bytes < plan_rows(CAUSAL, kernel_for(CAUSAL), 2, SMS).row_bytes


def test_a_cta_filter_logs_those_and_no_others(run) -> None:
    log, _ = run(FULL, ctas=[2, 3])
    assert sorted(set(log.rows["block"].tolist())) == [2, 3]
    assert log.metadata.ctas_logged == (2, 3)


def test_half_a_cluster_is_refused(run) -> None:
    with pytest.raises(Exception, match="without CTA 3 of its cluster"):
        run(FULL, ctas=[2])


def test_one_warp_of_each_warpgroup(run) -> None:
    log, _ = run(FULL, one_warp=True)
    assert sorted(set(log.rows["warp"].tolist())) == [0, 7, 11]
    assert log.metadata.warps == "one"


def test_latencies_and_overheads_are_told(run) -> None:
    _, report = run(FULL, gpu=FakeGpu((9.0, 100.0, 9.0, 103.0, 112.0)))
    assert report.latency_us == {"plain_us": 100.0, "probe_idle_us": 103.0, "probe_active_us": 112.0}
    assert report.overhead_percent == pytest.approx({"probe_idle": 3.0, "probe_active": 12.0})
    assert overheads(Latencies(50.0, 50.0, 75.0)) == pytest.approx({"probe_idle": 0.0, "probe_active": 50.0})


def test_a_wrong_kernel_is_refused(run) -> None:
    with pytest.raises(InstrumentError, match=r"the probed kernel is wrong on .*largest error"):
        run(FULL, wrong_by=0.01)


def test_a_kernel_that_gives_nan_is_refused(run) -> None:
    with pytest.raises(InstrumentError, match="largest error nan"):
        run(FULL, wrong_by=float("nan"))


def test_dropped_records_are_an_error(run) -> None:
    with pytest.raises(LogError, match=r"dropped is \d+; expected no dropped records"):
        run(FULL, row_records=20)


def test_a_row_that_was_never_written_is_an_error(run) -> None:
    def spoil(rows: np.ndarray, _: int) -> None:
        rows[5] = 0

    with pytest.raises(LogError, match="the row was never written"):
        run(FULL, spoil=spoil)


def test_an_event_the_kernel_cannot_have_logged_there_is_an_error(run) -> None:
    def spoil(rows: np.ndarray, _: int) -> None:
        rows[1, 64 + 16 * 3 + 8] = Event.SOFTMAX_END  # event of record 3 of the first consumer warp

    with pytest.raises(InstrumentError, match=r"block 0 warp 4: record 3 is SOFTMAX_END .*, expected TILE"):
        run(FULL, spoil=spoil)


def test_a_wrong_stage_is_an_error(run) -> None:
    def spoil(rows: np.ndarray, _: int) -> None:
        place = next(at for at in range(64, rows.shape[1], 16) if rows[1, at + 8] == Event.GEMM_QK_ISSUE)
        rows[1, place + 10] ^= 1

    with pytest.raises(InstrumentError, match=r"GEMM_QK_ISSUE \(stage 1.*, expected GEMM_QK_ISSUE \(stage 0"):
        run(FULL, spoil=spoil)


def test_too_few_repeats_are_refused(run) -> None:
    with pytest.raises(InstrumentError, match="too few for a median"):
        run(FULL, repeats=5)


def test_a_library_without_the_kernel_names_the_build_command(run) -> None:
    gpu = FakeGpu()
    launcher = FakeLauncher(gpu, 0, [instantiation_for(CAUSAL)])
    with pytest.raises(InstrumentError, match="simfa instrument build --kernel hdim128-fp16-full-cluster2"):
        capture(gpu, launcher, launcher, FULL)


@pytest.mark.parametrize("head_dim", [64, 128, 256])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("blocks", [1, 2])
def test_the_small_shape_runs_the_same_kernel(head_dim: int, causal: bool, blocks: int) -> None:
    length = blocks * (192 if head_dim == 64 else 128)
    wanted = shape(head_dim=head_dim, causal=causal, seqlen_q=length, seqlen_kv=1024)
    small = small_shape(wanted)
    assert instantiation_for(small) == instantiation_for(wanted)
    assert small.seqlen_kv % kernel_for(small).tile_n
    assert small.group_size > 1


def test_device_state_is_empty_without_a_driver(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert device_state() == {}


def test_the_report_is_plain_json(run) -> None:
    _, report = run(FULL)
    assert msgspec.json.decode(json_bytes(report))["level"] == 2
