"""The simulator behind `simfa sweep`."""

import csv
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from simfa.analytical.sweep import Scalar, SweepPoint, load_sweep
from simfa.cli import simfa
from simfa.errors import SimfaError
from simfa.hardware import load_preset
from simfa.pipeline import predict
from simfa.simulator_backend import evaluate
from simfa.workload import AttentionShape
from tests.unit.analytical_cases import ROOT

GRID = """
backend = "simulator"
points_per_part = 1
[[objectives]]
column = "latency_us"
[[objectives]]
column = "hardware.gpu.sm_count"
[fixed]
hardware.l2.slices = 16
hardware.l2.capacity_bytes = 1310720
workload.heads_q = 2
workload.seqlen = 512
[grid]
hardware.gpu.sm_count = [2, 4]
workload.head_dim = [64, 128]
"""
SMALL: dict[str, Scalar] = {"workload.heads_q": 1, "workload.seqlen": 128}


def test_a_grid_is_simulated_point_by_point(tmp_path: Path) -> None:
    source = tmp_path / "grid.toml"
    source.write_text(GRID)
    outputs = []
    for name in ("one", "two"):
        done = CliRunner().invoke(simfa, ["sweep", str(source), "-o", str(tmp_path / name), "--json"])
        assert done.exit_code == 0, done.output
        outputs.append((tmp_path / name / "points.csv").read_bytes())
    assert outputs[0] == outputs[1]
    rows = list(csv.DictReader(outputs[0].decode().splitlines()))
    points = {(int(row["hardware.gpu.sm_count"]), int(row["workload.head_dim"])): row for row in rows}
    assert set(points) == {(2, 64), (2, 128), (4, 64), (4, 128)}
    shape = AttentionShape(batch=1, seqlen_q=512, seqlen_kv=512, heads_q=2, heads_kv=2, head_dim=128)
    flags = ["gpu.sm_count=4", "l2.slices=16", "l2.capacity_bytes=1310720"]
    alone = predict(shape, load_preset("h100-sxm", overrides=flags))
    row = points[4, 128]
    assert int(row["cycles"]) == alone.cycles and float(row["latency_us"]) == alone.latency_us
    assert int(row["dram_bytes"]) == alone.dram_read_bytes + alone.dram_write_bytes
    for head_dim in (64, 128):
        assert int(points[4, head_dim]["cycles"]) < int(points[2, head_dim]["cycles"])
    assert json.loads(done.output)["points"] == 4
    assert len(list((tmp_path / "one/parts").glob("*.csv"))) == 4


def test_kernel_version_and_rules_reach_the_simulator() -> None:
    fields = SMALL | {"workload.head_dim": 64, "workload.seqlen": 512, "hardware.gpu.sm_count": 2}
    cycles = {
        (version, rules): evaluate(SweepPoint(0, fields | {"kernel.version": version, "rules": rules}))["cycles"]
        for version, rules in (("latest", "source"), ("2024-07", "source"), ("latest", "paper"))
    }
    assert len(set(cycles.values())) == 3


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"policy": "lru"}, "sweep field 'policy' is unknown"),
        ({"kernel.tile_m": 64}, "sweep field 'kernel.tile_m' is unknown; expected one of version"),
        ({"workload.window": 64}, "sweep field 'workload.window' is unknown"),
        ({"workload.head_dim": 96}, "head_dim 96 is not supported"),
        ({"kernel.version": "2023"}, "kernel version '2023' is unknown"),
        ({"rules": "guess"}, "sweep field rules is 'guess'; expected source or paper"),
        ({"hardware.l2.slice": 4}, "l2.slice"),
        ({"hardware.gpu.sm_count": 3}, "odd"),
        ({"gpu": "gb10"}, "not a Hopper GPU"),
    ],
)
def test_what_cannot_run_is_named(fields: dict[str, Scalar], message: str) -> None:
    with pytest.raises(SimfaError) as caught:
        evaluate(SweepPoint(0, SMALL | fields))
    assert message in str(caught.value)


def test_the_shipped_example_shows_what_the_coalescer_saves() -> None:
    sweep = load_sweep(ROOT / "config/sweeps/mshr_or_lrc.toml")
    assert sweep.backend == "simulator" and sweep.part_count() == sweep.size
    merged, plain = (evaluate(point) for point in sweep.points(range(2)))
    assert plain["lrc_merge_rate"] == 0 and plain["l2_read_bytes"] == plain["sm_read_bytes"]
    assert merged["l2_read_bytes"] < plain["l2_read_bytes"]
