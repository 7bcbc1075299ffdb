"""The model against published counter readings, each with its tolerance."""

import msgspec
import pytest

from simfa.analytical import traffic
from simfa.analytical.machine import resolve
from simfa.analytical.model import profiled_write_bytes
from simfa.hardware import load_preset
from tests.unit.analytical_cases import counter, plain_kernel, shape_of

GIB = 2**30
SECTOR = 32


@pytest.mark.parametrize("policy", ["paper", "capacity", "lru"])
def test_gb10_cutile_misses(policy: str) -> None:
    row = counter("(cyclic order)", "L2 misses")
    assert row["assumed"] == "heads_q heads_kv dtype"
    answer = traffic(shape_of(row), "gb10", policy)
    assert answer.dram_bytes / SECTOR == pytest.approx(float(row["value"]) * 1e6, rel=0.01)


def test_gb10_runs_one_cta_an_sm() -> None:
    row = counter("(cyclic order)", "L2 misses")
    kernel = traffic(shape_of(row), "gb10").kernel
    two = traffic(shape_of(row), "gb10", "paper", msgspec.structs.replace(kernel, ctas_per_sm=2))
    assert two.dram_bytes / SECTOR == pytest.approx(192.9e6, rel=0.001)


def test_gb10_sawtooth_calibrates_the_effective_capacity() -> None:
    """Calibration, not a check: K/V that every turn keeps, from the sectors read, over 24 MiB."""
    row = counter("(sawtooth order)", "L2 misses")
    assert row["note"].startswith("calibration")
    attention = shape_of(row)
    read = float(row["value"]) * 1e6 * SECTOR / attention.batch
    q = attention.q_bytes // attention.batch
    turns = traffic(attention, "gb10", "paper").waves - 1
    kept = attention.kv_group_bytes - (read - q - attention.kv_group_bytes) / turns
    fraction = load_preset("gb10").provenance["analytical.effective_l2_fraction"]
    assert fraction.status == "calibrated"
    assert kept / (24 * 2**20) == pytest.approx(0.93, abs=0.005)
    assert load_preset("gb10").spec.analytical.effective_l2_fraction == 0.93


def test_gb10_sawtooth_prediction_at_that_capacity() -> None:
    """10 % high: the closed form also keeps Q and O of the wave and waves with two heads; 0.975 would match."""
    attention = shape_of(counter("(sawtooth order)", "L2 misses"))
    sawtooth = msgspec.structs.replace(traffic(attention, "gb10").kernel, kv_order="sawtooth")
    found = [
        traffic(attention, machine, "capacity", sawtooth).dram_read_bytes / SECTOR / 120e6
        for machine in (
            resolve("gb10"),
            resolve(load_preset("gb10", overrides=["analytical.effective_l2_fraction=0.975"])),
        )
    ]
    assert found == [pytest.approx(1.10, abs=0.005), pytest.approx(1.0, abs=0.01)]


def test_gb10_onset_of_misses_is_below_nominal() -> None:
    """20 MiB of K/V is where misses were seen to start: between the model's two edges (two heads in a wave, or one)."""
    row = counter("raw CUDA split-Q", "K+V working set where non-compulsory misses start")
    effective = resolve("gb10").effective_l2_bytes
    assert effective / 2 < float(row["value"]) * 2**20 < effective


def test_cudnn_causal_l2_reads() -> None:
    row = counter("12 forward launches", "L2 read")
    assert row["assumed"] == "batch"
    answer = traffic(shape_of(row), kernel=plain_kernel(schedule="single_tile"))
    read = answer.l2_bytes - answer.dram_write_bytes
    assert 12 * read / GIB == pytest.approx(float(row["value"]), rel=0.01)


@pytest.mark.parametrize(("metric", "tolerance"), [("L2 write", 0.015), ("DRAM read", 0.08), ("DRAM write", 0.08)])
def test_cudnn_other_counters(metric: str, tolerance: float) -> None:
    row = counter("cuDNN sdpa inside llm.c", metric)
    answer = traffic(shape_of(row, lse=True), kernel=plain_kernel(schedule="single_tile"))
    moved = answer.dram_read_bytes if metric == "DRAM read" else answer.dram_write_bytes
    assert 12 * moved / GIB == pytest.approx(float(row["value"]), rel=tolerance)


def test_h200_gqa_dram_traffic() -> None:
    answers = {
        metric: float(counter("TileOPs GqaFwdWsPersistentKernel", metric)["value"])
        if metric != "DRAM read"
        else float(counter("TileOPs GqaFwdWsPersistentKernel (3", metric)["value"])
        for metric in ("DRAM read", "DRAM write", "DRAM total")
    }
    call = shape_of(counter("TileOPs GqaFwdWsPersistentKernel", "DRAM total"))
    answer = traffic(call, "h200-sxm", "lru")
    assert answer.dram_bytes / 1e6 == pytest.approx(answers["DRAM total"], rel=0.10)
    assert answer.dram_read_bytes / 1e6 == pytest.approx(answers["DRAM read"], rel=0.15)
    # The profiler starts cold and does not flush: O that is still in L2 at the end is not written.
    assert answer.dirty_bytes is not None
    written = profiled_write_bytes(call.output_bytes, answer.dirty_bytes)
    assert written / 1e6 == pytest.approx(answers["DRAM write"], rel=0.03)


def test_h200_hit_rate_is_another_observable_on_two_partitions() -> None:
    """Misses are about twice the DRAM reads: a line filled in both halves misses twice."""
    row = counter("TileOPs GqaFwdWsPersistentKernel", "L2 hit rate")
    missed = 1 - traffic(shape_of(row), "h200-sxm").l2_hit_rate
    measured = 1 - float(row["value"]) / 100
    assert measured / missed == pytest.approx(2, abs=0.25)


def test_mi355x_requests() -> None:
    row = counter("head-slow grid", "L2 hits + misses")
    assert row["assumed"] == "heads_kv"
    answer = traffic(shape_of(row), kernel=plain_kernel())
    assert answer.l2_bytes / 128 == pytest.approx(float(row["value"]), rel=0.03)


def test_l4_hit_rate() -> None:
    row = counter("flash_fwd_kernel (FA2", "L2 hit rate")
    answer = traffic(shape_of(row), kernel=plain_kernel())
    assert 100 * answer.l2_hit_rate == pytest.approx(70.0, abs=0.01)
    assert abs(100 * answer.l2_hit_rate - float(row["value"])) < 3


def test_every_reading_names_its_source_and_assumptions() -> None:
    from simfa.analytical.figures import counter_rows

    rows = counter_rows()
    assert len(rows) == 16
    assert all(row["source"].startswith("http") and row["evidence"] for row in rows)
    for row in rows:
        assert set(row["assumed"].split()) <= set(row)
