"""The counter table: which counter fills a column, under which definition, and what is said when none does."""

from decimal import Decimal
from pathlib import Path

import pytest

from simfa.measure.launch import MEASURED
from simfa.measure.metric_table import COUNTERS, DEVICE, DIMENSIONS, REQUESTS, UNIFIED, memory_of
from simfa.measure.quantity import Absent, Reading, exactly, read_cell
from simfa.measure.resolve import agree, columns


def cells(*rows: tuple[str, str, str]) -> dict[str, Reading | Absent]:
    return {name: read_cell(value, unit) for name, unit, value in rows}


SM_SIDE = (
    ("l1tex__m_xbar2l1tex_read_bytes.sum", "byte", "1000"),
    ("l1tex__m_l1tex2xbar_write_bytes.sum", "byte", "200"),
)
DSHARED = (
    ("l1tex__m_xbar2l1tex_read_bytes_mem_dshared.sum", "byte", "30"),
    ("l1tex__m_l1tex2xbar_write_bytes_mem_dshared.sum", "byte", "4"),
)
FROM_SM = (("lts__t_sectors_srcunit_tex.sum", "sector", "20"),)
ALL_OPS = (("lts__t_sectors_op_read.sum", "sector", "3"), ("lts__t_sectors_op_write.sum", "sector", "1"))
FROM_SM_OPS = tuple((name.replace("sectors", "sectors_srcunit_tex"), unit, value) for name, unit, value in ALL_OPS)
ALL = (("lts__t_bytes.sum", "byte", "9000"),)


@pytest.mark.parametrize(
    ("rows", "amount", "definition"),
    [
        (SM_SIDE + DSHARED + FROM_SM + ALL, 1166, "sm_side"),
        (FROM_SM + ALL, 640, "lts_from_sm"),
        (SM_SIDE[:1] + FROM_SM, 640, "lts_from_sm"),
        (ALL, 9000, "lts_all"),
        (ALL_OPS, 128, "lts_all"),
        (FROM_SM_OPS + ALL, 128, "lts_from_sm"),
    ],
)  # fmt: skip
def test_best_l2_counter_with_its_definition(
    rows: tuple[tuple[str, str, str], ...], amount: int, definition: str
) -> None:
    found = columns(cells(*rows), DEVICE)
    assert (found.values["l2_bytes"], found.values["l2_definition"]) == (amount, definition)


def test_shared_memory_that_could_not_be_taken_off_is_flagged() -> None:
    assert "l2_distributed_shared_memory_not_taken_off" in columns(cells(*SM_SIDE), DEVICE).flags
    assert not columns(cells(*SM_SIDE, *DSHARED), DEVICE).flags


@pytest.mark.parametrize(
    ("names", "unit", "factor"),
    [
        (("dram__bytes_read.sum", "dram__bytes_write.sum"), "byte", 1),
        (("dram__bytes_op_read.sum", "dram__bytes_op_write.sum"), "byte", 1),
        (("dram__sectors_read.sum", "dram__sectors_write.sum"), "sector", 32),
    ],
)
def test_dram_spellings_of_hopper_and_blackwell(names: tuple[str, str], unit: str, factor: int) -> None:
    found = columns(cells((names[0], unit, "700"), (names[1], unit, "50")), DEVICE).values
    assert [found[f"dram_{way}_bytes"] for way in ("read", "write", "total")] == [
        700 * factor,
        50 * factor,
        750 * factor,
    ]


SYSMEM = (
    ("dram__bytes_read.sum", "byte", "n/a"),
    ("dram__bytes_write.sum", "byte", "n/a"),
    ("lts__d_sectors_fill_sysmem.sum", "sector", "1000"),
    ("lts__t_sectors_aperture_sysmem_op_write.sum", "sector", "10"),
)


def test_gb10_takes_the_sysmem_counters_and_says_so() -> None:
    found = columns(cells(*SYSMEM), memory_of("NVIDIA GB10", "12.1"))
    assert (found.values["dram_read_bytes"], found.values["dram_write_bytes"]) == (32_000, 320)
    assert found.values["dram_total_bytes"] == 32_320
    assert {"dram_read_is_l2_fill_from_sysmem", "dram_write_is_l2_write_to_sysmem"} <= set(found.flags)
    assert found.counters["dram_read_bytes"] == "32 x lts__d_sectors_fill_sysmem.sum"


@pytest.mark.parametrize("memory", [DEVICE, None])
def test_sysmem_counters_are_no_dram_elsewhere(memory: str | None) -> None:
    found = columns(cells(*SYSMEM), memory)
    assert "dram_read_bytes" not in found.values
    assert "n/a" in found.reasons["dram_read_bytes"]
    assert "lts__d_sectors_fill_sysmem.sum" in found.reasons["dram_read_bytes"]
    assert ("--gpu" in found.reasons["dram_read_bytes"]) == (memory is None)


def test_l2_fill_stands_in_for_dram_reads_only() -> None:
    found = columns(cells(("lts__d_sectors_fill_device.sum", "sector", "5")), DEVICE)
    assert found.values["dram_read_bytes"] == 160
    assert "dram_write_bytes" not in found.values
    assert "dram_total_bytes" not in found.values
    assert "dram_read_is_l2_fill" in found.flags


def test_total_without_split_leaves_the_split_missing() -> None:
    found = columns(cells(("dram__bytes.sum", "byte", "77")), DEVICE)
    assert found.values["dram_total_bytes"] == 77
    assert {"dram_read_bytes", "dram_write_bytes"} <= found.reasons.keys()


def test_details_page_estimate_is_flagged_with_both_roundings() -> None:
    found = columns(cells(("Memory Throughput", "Gbyte/s", "2.00"), ("Duration", "us", "10.00")), DEVICE)
    assert found.values["dram_total_bytes"] == 20_000
    low, high = found.quantisation["dram_total_bytes"]
    assert low == pytest.approx(1.995 * 9.995 * 1000)
    assert high == pytest.approx(2.005 * 10.005 * 1000)
    assert "dram_total_is_rate_times_duration" in found.flags


@pytest.mark.parametrize("column", REQUESTS)
def test_a_column_without_counter_says_what_to_collect(column: str) -> None:
    found = columns({}, DEVICE)
    assert column not in found.values
    assert REQUESTS[column].split(" ")[0].split(",")[0] in found.reasons[column]


def test_nan_is_a_reason_never_zero() -> None:
    found = columns(cells(("gpu__time_duration.sum", "ns", "nan")), DEVICE)
    assert "duration_ns" not in found.values
    assert "nan" in found.reasons["duration_ns"]


def test_what_is_taken_off_cannot_make_traffic_negative() -> None:
    rows = (
        ("l1tex__m_xbar2l1tex_read_bytes.sum", "byte", "10"),
        ("l1tex__m_l1tex2xbar_write_bytes.sum", "byte", "1"),
        *DSHARED,
    )
    found = columns(cells(*rows), DEVICE)
    assert "l2_bytes" not in found.values
    assert "l2_definition" not in found.values


@pytest.mark.parametrize(("rate", "agrees"), [("100.0", True), ("102.4", False), ("97.6", False)])
def test_rate_times_duration_checks_the_prefixes(rate: str, agrees: bool) -> None:
    rows = (
        ("gpu__time_duration.sum", "us", "10.000"),
        ("dram__bytes_read.sum", "Kbyte", "1000.000"),
        ("dram__bytes_read.sum.per_second", "Gbyte/s", rate),
    )
    assert ("bytes_disagree_with_rate" not in columns(cells(*rows), DEVICE).flags) == agrees


def test_cells_of_one_metric_must_agree() -> None:
    exact, rounded, other = read_cell("10342", "ns"), read_cell("10.34", "us"), read_cell("11.00", "us")
    assert agree([rounded, exact]) == exact == agree([exact, rounded, Absent("nan")])
    assert isinstance(agree([exact, other]), Absent)
    assert agree([Absent("nan")]) == Absent("nan")


def test_memory_kind_by_name_or_capability() -> None:
    assert memory_of("NVIDIA GB10", None) == memory_of(None, "12.1") == memory_of("NVIDIA Thor", None) == UNIFIED
    assert memory_of("NVIDIA H800", "12.1") == memory_of(None, "9.0") == DEVICE
    assert memory_of(None, None) is None


def test_every_measured_column_has_counters_and_every_counter_a_meaning() -> None:
    assert {counter.column for counter in COUNTERS} == set(MEASURED) == set(REQUESTS)
    assert all(counter.meaning and counter.terms for counter in COUNTERS)
    assert all((counter.column == "l2_bytes") == bool(counter.definition) for counter in COUNTERS)


def test_the_documentation_lists_every_counter() -> None:
    page = (Path(__file__).parents[2] / "docs" / "ingest.md").read_text(encoding="utf-8")
    assert [name for name in sorted(DIMENSIONS) if f"`{name}`" not in page] == []


def test_exact_values_have_no_interval() -> None:
    assert columns({"Duration": exactly(Decimal(5), "time")}, DEVICE).quantisation == {}
