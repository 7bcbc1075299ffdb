"""Measured against modelled traffic: like with like, and a reason for everything else."""

import pytest

from simfa.measure.results import run_from, simulated_traffic
from simfa.measure.traffic import MeasuredTraffic, ModelTraffic, compare_traffic, without
from simfa.validate_cli import analytical_traffic
from simfa.workload import model_shape
from tests.unit.fake_simulator import statistics

MODEL = ModelTraffic(
    model="simulator",
    sm_side=900,
    lts_from_sm=500,
    dram_read_bytes=220,
    dram_write_bytes=90,
    dram_total_bytes=310,
)


def measured(definition: str = "sm_side", cache: str = "all", **changes) -> MeasuredTraffic:
    values = {"l2_bytes": 1000.0, "dram_read_bytes": 200.0, "dram_write_bytes": 100.0, "dram_total_bytes": 300.0}
    values |= {"missing": {}} | changes
    return MeasuredTraffic(**values, l2_definition=definition, cache_control=cache)


def by_quantity(found: MeasuredTraffic, model: ModelTraffic = MODEL) -> dict:
    return {entry.quantity: entry for entry in compare_traffic("a", found, [model])}


@pytest.mark.parametrize(("definition", "modelled"), [("sm_side", 900), ("lts_from_sm", 500)])
def test_l2_is_compared_by_definition(definition, modelled) -> None:
    entry = by_quantity(measured(definition))["l2_bytes"]
    assert (entry.modelled_bytes, entry.error) == (modelled, pytest.approx(modelled / 1000 - 1))
    assert (entry.definition, entry.not_compared) == (definition, "")


def test_lookups_of_all_sources_are_like_nothing() -> None:
    entry = by_quantity(measured("lts_all"))["l2_bytes"]
    assert (entry.modelled_bytes, entry.error) == (None, None)
    assert "lts_all counts the lookups of every source" in entry.not_compared
    assert "'mine' is unknown" in by_quantity(measured("mine"))["l2_bytes"].not_compared


def test_dram_directions_and_total() -> None:
    found = by_quantity(measured())
    errors = [found[f"dram_{name}_bytes"].error for name in ("read", "write", "total")]
    assert errors == [pytest.approx(0.1), pytest.approx(-0.1), pytest.approx(310 / 300 - 1)]


@pytest.mark.parametrize("cache", ["none", "unstated", "mixed"])
def test_dram_of_warm_caches_is_not_compared(cache) -> None:
    found = by_quantity(measured(cache=cache))
    assert found["dram_read_bytes"].error is None
    assert f"this launch had cache control {cache}" in found["dram_read_bytes"].not_compared
    assert found["l2_bytes"].error is not None


def test_missing_and_zero_never_give_an_error() -> None:
    found = by_quantity(measured(l2_bytes=None, dram_write_bytes=0.0, missing={"l2_bytes": "no such counter"}))
    assert found["l2_bytes"].not_compared == "not measured: no such counter"
    assert found["dram_write_bytes"].not_compared == "0 bytes measured: there is no relative error"
    assert found["dram_write_bytes"].error is None


def test_a_model_that_lacks_a_quantity_says_why() -> None:
    found = compare_traffic("a", measured(), [without("analytical", "not this shape")])
    assert {entry.not_compared for entry in found} == {"not this shape"}


def test_simulated_stores_count_on_both_sides_of_the_coalescer() -> None:
    stats = statistics(model_shape("llama3-8b", 512))
    # 100 lines of 128 bytes, 80 of them read, for which 50 requests reached L2.
    stats |= {"sm_read_bytes": 80 * 128, "sm_write_bytes": 20 * 128, "l2_read_bytes": 50 * 128}
    stats |= {"dram_read_bytes": 640, "dram_write_bytes": 128}
    found = simulated_traffic(run_from(stats, "a"))
    assert (found.sm_side, found.lts_from_sm) == (100 * 128, 70 * 128)
    assert (found.dram_read_bytes, found.dram_write_bytes, found.dram_total_bytes) == (640, 128, 768)


def test_closed_forms_give_the_sm_side_and_cold_reads() -> None:
    from simfa.measure.cases import MeasuredCase

    case = MeasuredCase(
        id="a",
        source_id="ncu",
        gpu="H100",
        preset="h100-sxm",
        kernel_version="latest",
        sm_clock_hz=None,
        shape=model_shape("llama3-8b", 512),
        latency_us=1.0,
    )
    found = analytical_traffic(case)
    # Q and O: 32 heads x 512 rows x 256 bytes; K and V: 8 heads; each query head's 4 tiles of 128 rows read K and V.
    q_bytes, kv_bytes = 32 * 512 * 256, 2 * 8 * 512 * 256
    assert found.sm_side == 2 * q_bytes + 4 * 4 * kv_bytes
    assert found.dram_read_bytes == q_bytes + kv_bytes
    assert "merging" in str(found.lts_from_sm)
    assert "stays in L2" in str(found.dram_write_bytes)
