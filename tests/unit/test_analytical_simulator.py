"""The closed forms against the simulator on small shapes: the same requests, and the same DRAM traffic off the edge."""

import pytest

from simfa.hardware import load_preset
from tests.unit.third_opinion import CASES, MERGING, Case, opinions, toy_d64, toy_d128

WITHIN = 0.05


@pytest.mark.parametrize("case", CASES)
def test_requests_agree(case: Case) -> None:
    found = opinions(case)
    assert found.run.sm_read_bytes == pytest.approx(found.model_sm_read_bytes, rel=WITHIN)
    assert found.run.l2_read_bytes == pytest.approx(found.model_l2_read_bytes, rel=WITHIN)


@pytest.mark.parametrize("case", [case for case in CASES if not case.edge])
def test_dram_reads_agree_off_the_edge(case: Case) -> None:
    found = opinions(case)
    assert found.run.dram_read_bytes == pytest.approx(found.capacity.dram_read_bytes, rel=WITHIN)
    assert found.run.dram_read_bytes == pytest.approx(found.lru.dram_read_bytes, rel=WITHIN)


def test_the_cases_cover_every_regime_and_multicast() -> None:
    regimes = {opinions(case).capacity.regime for case in CASES if not case.edge}
    assert regimes == {"ideal", "partial", "realistic"}
    assert {opinions(case).capacity.kernel.cluster for case in CASES} == {1, 2}


@pytest.mark.parametrize("case", [toy_d128(1200), toy_d64(400)])
def test_dram_writes_agree_once_only_the_last_wave_stays_in_l2(case: Case) -> None:
    found = opinions(case)
    assert found.run.dram_write_bytes == pytest.approx(found.model_write_bytes, rel=WITHIN)


@pytest.mark.parametrize("case", CASES)
def test_dram_writes_never_exceed_o(case: Case) -> None:
    found = opinions(case)
    assert found.run.dram_write_bytes <= found.capacity.dram_write_bytes
    if found.model_write_bytes == 0:  # but for sets that more lines hash to than they have ways
        assert found.run.dram_write_bytes < 0.01 * found.capacity.dram_write_bytes


def test_a_wrong_capacity_would_be_seen() -> None:
    whole, half = opinions(toy_d128(2400)), opinions(toy_d128(1200))
    assert whole.run.dram_read_bytes != pytest.approx(half.capacity.dram_read_bytes, rel=WITHIN)


def test_the_coalescer_is_the_only_reason_that_requests_of_a_kernel_without_clusters_differ() -> None:
    found = opinions(MERGING)
    line_bytes = load_preset("h100-sxm").spec.l2.line_bytes
    merged = found.run.counters["lrc_merges"] * line_bytes
    assert merged > WITHIN * found.model_l2_read_bytes
    assert found.run.l2_read_bytes + merged == found.run.sm_read_bytes == found.model_sm_read_bytes
    assert found.run.dram_read_bytes == found.capacity.dram_read_bytes
