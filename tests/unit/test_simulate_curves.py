"""Microbenchmarks beside published curves: halves, latencies that follow from the preset, rates within their bounds."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from simfa.cli import simfa
from simfa.errors import SimulationError
from simfa.hardware import HardwareSpec, load_preset
from simfa.simulate.bench_traces import Copy, copy_trace
from simfa.simulate.chase import run_chase
from simfa.simulate.curve_runs import tensor_of
from simfa.simulate.curves import (
    Compared,
    L2BandwidthPoint,
    LatencyPoint,
    MeasuredPoint,
    ProducerPoint,
    TmaBandwidthPoint,
    error_table,
    read_curve,
    thin,
)
from simfa.simulate.engine import run
from simfa.simulate.l2_stream import run_l2_stream
from simfa.simulate.tma_stream import Tensor, run_stream
from simfa.verify import verify

TABLES: dict[str, type[MeasuredPoint]] = {
    "tma_latency_h800_pcie.csv": LatencyPoint,
    "tma_bandwidth_h800_pcie.csv": TmaBandwidthPoint,
    "tma_bandwidth_h100_sxm.csv": ProducerPoint,
    "l2_bandwidth.csv": L2BandwidthPoint,
}
MIB = 1 << 20


def h800(*overrides: str, overlays: tuple[str, ...] = ()) -> HardwareSpec:
    return load_preset("h800-pcie", overlays, overrides).spec


@pytest.mark.parametrize("name", TABLES)
def test_half_of_every_curve_is_kept_for_validation(name: str) -> None:
    points = read_curve(name, TABLES[name])
    calib = [point for point in points if point.split == "calib"]
    assert 0 <= 2 * len(calib) - len(points) <= 2
    assert all(point.source.startswith("https://") for point in points)
    assert len(thin(points, 4)) in range(len(points) // 4, len(points) // 4 + 3)
    assert {point.split for point in thin(points, len(points))} == {"calib", "valid"}


def test_halves_alternate_along_the_axis() -> None:
    points = [point for point in read_curve("tma_latency_h800_pcie.csv", LatencyPoint) if point.method == "tma"]
    assert points == sorted(points, key=lambda point: point.working_set_kib)
    assert [point.split for point in points[:4]] == ["calib", "valid", "calib", "valid"]
    assert {a.split for a in points[::2]} == {"calib"}


def test_rows_that_contradict_themselves_are_left_out() -> None:
    points = read_curve("tma_bandwidth_h800_pcie.csv", TmaBandwidthPoint)
    assert {768, 1280, 1536}.isdisjoint(point.box_bytes for point in points)
    assert len(points) == 104
    for point in points:
        assert tensor_of(point).box_bytes == point.box_bytes


def test_a_damaged_table_is_refused() -> None:
    with pytest.raises(SimulationError, match=r"l2_bandwidth\.csv: not a curve of this version: 'method'"):
        read_curve("l2_bandwidth.csv", LatencyPoint)


def test_errors_are_signed_and_split() -> None:
    def point(simulated: float, split: str) -> Compared:
        return Compared(
            axis={}, group="g", unit="cycles", split=split, measured=100.0, simulated=simulated, counters={}
        )

    table = error_table([point(90, "calib"), point(105, "valid"), point(115, "valid")])
    assert table["all"].mape == pytest.approx(0.1)
    assert table["all"].largest == pytest.approx(0.15)
    assert (table["calib"].bias, table["valid"].points) == (pytest.approx(-0.1), 2)
    assert table["g"] == table["all"]
    assert "valid" not in error_table([point(90, "calib")])


def test_chase_latencies_are_those_of_the_preset() -> None:
    """Near and far hits are half of the lines each: mean round trip, and two cycles to issue and three to go on."""
    hardware = h800(overlays=("no-remote-copy",))
    crossbar = hardware.crossbar
    mean = (crossbar.near_latency_cycles + crossbar.far_latency_cycles) / 2
    hits = run_chase(hardware, working_set_bytes=4 * MIB, method="load", steps=600, warm_passes=1)
    assert hits.memory_share == 0
    assert hits.latency_cycles == pytest.approx(mean + 3, abs=8)
    tma = run_chase(hardware, working_set_bytes=4 * MIB, method="tma", steps=600, warm_passes=1)
    barrier = hardware.mbarrier.wait_cycles - 1 + hardware.mbarrier.wake_cycles
    assert tma.latency_cycles - hits.latency_cycles == pytest.approx(hardware.tma.launch_cycles + barrier, abs=2)
    cold = run_chase(hardware, working_set_bytes=64 * MIB, method="load", steps=900, warm_passes=0)
    assert cold.memory_share == 1
    # Published: 556 near and 744 far.
    assert cold.latency_cycles == pytest.approx((555.5 + 743.7) / 2, rel=0.03)


def test_copies_hide_the_far_side_while_all_lines_fit_near() -> None:
    near = h800().crossbar.near_latency_cycles
    fits = run_chase(h800(), working_set_bytes=8 * MIB, method="load", steps=300, warm_passes=8)
    assert (fits.hop_share, fits.memory_share) == (0, 0)
    assert fits.latency_cycles == pytest.approx(near + 3, abs=1)
    # 36 MiB: the near side holds neither its own lines nor copies; the far ones are found at home.
    beyond = run_chase(h800(), working_set_bytes=36 * MIB, method="load", steps=300, warm_passes=6)
    assert 0.4 < beyond.memory_share < 0.6
    assert 0.4 < beyond.hop_share < 0.6


def test_passes_beyond_what_l2_remembers_cost_nothing() -> None:
    found = [
        run_chase(h800(), working_set_bytes=4 * MIB, method="load", steps=50, warm_passes=passes)
        for passes in (60, 10**12)
    ]
    assert found[0] == found[1]


def test_latency_does_not_depend_on_the_window() -> None:
    """Warmed runs are as repeatable as others: any window and number of threads, the same cycles."""
    lines = np.random.default_rng(5).permutation(4096).astype(np.uint32)
    trace = copy_trace([[[Copy(address=int(line) * 128, length=16) for line in lines[:200]]]] * 2, box_bytes=16)
    verify(trace)
    results = {
        run(trace, h800(), warm=[(0, lines), (113, lines[::2].copy())], threads=threads, window_cycles=window).cycles
        for threads, window in ((1, 0), (1, 7), (2, 0))
    }
    assert len(results) == 1


def test_warming_is_refused_for_an_sm_that_does_not_exist() -> None:
    trace = copy_trace([[[Copy(address=0, length=16)]]], box_bytes=16)
    with pytest.raises(SimulationError, match="no SM 114 to warm L2 for"):
        run(trace, h800(), warm=[(114, np.zeros(1, np.uint32))])


def test_boxes_are_visited_with_the_first_dimension_fastest() -> None:
    tensor = Tensor((32, 16, 8), (16, 8, 4), 4)
    assert (tensor.strides, tensor.box_bytes) == ((128, 2048), 2048)
    corners = [tensor.corner(number) for number in range(9)]
    assert corners[:5] == [(0, 0, 0), (16, 0, 0), (0, 8, 0), (16, 8, 0), (0, 0, 4)]
    assert corners[8] == corners[0]


@pytest.mark.parametrize(
    "tensor",
    [
        Tensor((1 << 30,), (2048,), 1, bulk=True),
        Tensor((1 << 27,), (256,), 8),
        Tensor((16384, 16384), (32, 16), 4),
        Tensor((512, 512, 512), (16, 8, 4), 4),
    ],
)
def test_streams_stay_below_the_peak_of_memory(tensor: Tensor) -> None:
    hardware = h800()
    one = run_stream(hardware, tensor, ctas=114, spread_ns=1240)
    four = run_stream(hardware, tensor, ctas=456, spread_ns=1240)
    assert one.bytes_per_s < four.bytes_per_s < hardware.memory.peak_bytes_per_s
    # One copy at a time: no faster than launch, L2 round trip and memory allow.
    assert one.copy_cycles > hardware.crossbar.near_latency_cycles + hardware.tma.launch_cycles


def test_a_tensor_map_costs_its_setup() -> None:
    hardware = h800("tma.descriptor_miss_cycles=0")
    bulk = run_stream(hardware, Tensor((1 << 30,), (1024,), 1, bulk=True), ctas=114, spread_ns=1240)
    mapped = run_stream(hardware, Tensor((1 << 27,), (128,), 8), ctas=114, spread_ns=1240)
    assert mapped.copy_cycles - bulk.copy_cycles == pytest.approx(hardware.tma.tensor_map_cycles, abs=25)


@pytest.mark.parametrize(("ctas", "warps"), [(115, 1), (570, 1), (228, 3), (8, 5)])
def test_ctas_that_do_not_fit_are_refused(ctas: int, warps: int) -> None:
    tensor = Tensor((1 << 30,), (1024,), 1, bulk=True)
    with pytest.raises(SimulationError, match="expected up to 114 CTAs, or a multiple of that"):
        run_stream(h800(), tensor, ctas=ctas, warps=warps, spread_ns=0)


def test_l2_serves_less_than_its_ports_and_memory_less_than_its_peak() -> None:
    hardware = h800()
    ports = hardware.l2.slices * hardware.l2.bytes_per_cycle_per_slice * hardware.gpu.sm_clock_hz
    fits = run_l2_stream(hardware, working_set_bytes=16 * MIB, lines=60_000, warm_passes=3)
    assert fits.l2_hit_rate == 1
    assert 0.6 * ports < fits.bytes_per_s <= ports
    beyond = run_l2_stream(hardware, working_set_bytes=128 * MIB, lines=60_000, warm_passes=1)
    assert beyond.l2_hit_rate < 0.01
    assert beyond.bytes_per_s < hardware.memory.peak_bytes_per_s


def invoke(*arguments: str) -> str:
    done = CliRunner().invoke(simfa, ["microbench", *arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_latency_command_prints_both_halves_and_writes_the_points(tmp_path: Path) -> None:
    output = tmp_path / "latency.csv"
    arguments = ["tma-latency", "--method", "tma", "--every", "40", "--steps", "300", "-o", str(output)]
    found = json.loads(invoke(*arguments, "--json"))
    rows = list(csv.DictReader(io.StringIO(output.read_text())))
    assert found["gpu"] == "h800-pcie"
    assert len(rows) == len(found["points"]) == found["errors"]["all"]["points"]
    assert {row["split"] for row in rows} == {"calib", "valid"}
    assert float(rows[0]["simulated_cycles"]) == found["points"][0]["simulated"]
    text = invoke(*arguments)
    assert "H800 PCIe 80GB" in text
    assert "calib" in text.splitlines()[-3] or "calib" in text


def test_bandwidth_command_takes_the_preset_of_its_curve(tmp_path: Path) -> None:
    found = json.loads(invoke("tma-bandwidth", "--curve", "h100-sxm", "--every", "44", "--json"))
    assert found["gpu"] == "h100-sxm"
    assert {point["split"] for point in found["points"]} == {"calib", "valid"}
    other = json.loads(invoke("tma-bandwidth", "--every", "104", "--set", "tma.launch_cycles=1000", "--json"))
    assert other["errors"]["bulk"]["bias"] < -0.4


def test_no_point_is_a_usage_error() -> None:
    done = CliRunner().invoke(simfa, ["microbench", "tma-bandwidth", "--min-box-bytes", "100000"])
    assert done.exit_code == 2
    assert "these options leave no measured point" in done.output


def test_shares_of_reads_that_were_not_made_are_absent(tmp_path: Path) -> None:
    """With `tma.level = 0` no line reaches L2: there is no hit rate, which is not one of zero."""
    result = run_l2_stream(h800("tma.level=0"), working_set_bytes=MIB, lines=60_000, warm_passes=0)
    assert (result.l2_hit_rate, result.copy_share) == (None, None)
    table = tmp_path / "l2.csv"
    text = invoke("l2", "--every", "40", "--set", "tma.level=0", "-o", str(table))
    assert text.splitlines()[3].split()[-2:] == ["-", "-"]
    rows = list(csv.DictReader(table.read_text().splitlines()))
    assert {(row["l2_hit_rate"], row["copy_share"]) for row in rows} == {("", "")}
    bandwidth = invoke("tma-bandwidth", "--every", "60", "--set", "tma.level=0", "-o", str(table))
    assert {row["copy_cycles"] for row in csv.DictReader(table.read_text().splitlines())} == {""}
    assert "-100.0%" in bandwidth


@pytest.mark.parametrize("flag", ["--steps", "--warm-passes"])
def test_a_chase_that_no_memory_holds_is_a_usage_error(flag: str) -> None:
    done = CliRunner().invoke(simfa, ["microbench", "tma-latency", flag, "9" * 26])
    assert done.exit_code == 2
    assert f"Invalid value for '{flag}': {'9' * 26} is not in the range" in done.output
