"""Nsight Compute CSV: pages of every year, mixed logs, odd cells."""

from pathlib import Path

import pytest
from measure_exports import (
    DETAILS_12,
    DETAILS_15,
    DETAILS_20,
    DETAILS_21,
    FA3_NCU,
    HOPPER,
    HOPPER_VALUES,
    SUMMARY,
    csv_text,
    details,
    details_rows,
    load,
    one,
    raw_rows,
    said,
    with_log,
)

from simfa.errors import MeasureError

NVTX = ("thread Domain:Push/Pop_Range:PL_Type:PL_Value", "Id:Domain:Start/Stop_Range:PL_Type")


@pytest.mark.parametrize("columns", [DETAILS_12, DETAILS_15, DETAILS_20, DETAILS_21], ids=len)
def test_details_page_of_every_year(tmp_path: Path, columns: tuple[str, ...]) -> None:
    found = load(tmp_path, with_log(details(columns)))
    launch = one(found)
    assert {key: getattr(launch, key) for key in HOPPER_VALUES} == HOPPER_VALUES
    assert (found.format, found.tool) == ("ncu-csv-details", "ncu")
    assert (launch.kernel, launch.kernel_demangled, launch.stream) == ("device_kernel", FA3_NCU, 7)
    assert launch.grid == ((132, 1, 1) if len(columns) > 15 else None)
    assert found.sources[0].skipped_lines == 6
    assert found.warnings == ()


def test_raw_page_with_nvtx_and_thousands_of_columns(tmp_path: Path) -> None:
    many = [*HOPPER, *((f"smsp__counter_{i}.sum", "furlong", "x,y") for i in range(3000))]
    launch = one(load(tmp_path, with_log(csv_text(raw_rows(many, NVTX)))))
    assert {key: getattr(launch, key) for key in HOPPER_VALUES} == HOPPER_VALUES
    assert (launch.grid, launch.block, launch.device) == ((132, 1, 1), (384, 1, 1), 0)


def test_raw_page_describes_the_launch(tmp_path: Path) -> None:
    rows = [*HOPPER, ("device__attribute_display_name", "", "NVIDIA H800"), ("launch__stream_id", "", "13")]
    rows += [(f"launch__cluster_dim_{axis}", "", size) for axis, size in zip("xyz", "211", strict=True)]
    rows += [(f"launch__grid_dim_{axis}", "", size) for axis, size in zip("xyz", ("1,024", "2", "1"), strict=True)]
    table = raw_rows(rows, Stream="", Grid_Size="")
    found = load(tmp_path, csv_text(table))
    launch = one(found)
    assert (launch.cluster, launch.grid, launch.stream, launch.gpu) == ((2, 1, 1), (1024, 2, 1), 13, "NVIDIA H800")
    assert found.gpu == "NVIDIA H800"


def test_details_labels_and_a_label_with_two_meanings(tmp_path: Path) -> None:
    rows = [
        ("DRAM Frequency", "Ghz", "2.62"),
        ("SM Frequency", "Ghz", "1.50"),
        ("Elapsed Cycles", "cycle", "457,680"),
        ("Memory Throughput", "%", "34.5"),
        ("Memory Throughput", "Gbyte/s", "233.69"),
        ("Duration", "us", "305.12"),
        ("L2 Hit Rate", "%", "90.70"),
    ]
    launch = one(load(tmp_path, details(metrics=rows)))
    assert (launch.duration_ns, launch.elapsed_cycles, launch.sm_clock_hz) == (305_120, 457_680, 1_500_000_000)
    assert launch.quantisation["duration_ns"] == (305_115, 305_125)
    assert launch.dram_total_bytes == pytest.approx(233.69 * 305_120)
    assert launch.l2_hit_pct == 90.7
    assert launch.dram_read_bytes is None


def test_sections_repeat_a_metric_without_summing_it(tmp_path: Path) -> None:
    rows = [("Duration", "us", "305.12"), ("Duration", "us", "305.12"), ("Duration", "ns", "305,118")]
    launch = one(load(tmp_path, details(metrics=rows)))
    assert launch.duration_ns == 305_118
    assert "duration_ns" not in launch.quantisation


def test_contradicting_rows_are_null_with_both_values(tmp_path: Path) -> None:
    launch = one(load(tmp_path, details(metrics=[("Duration", "us", "305.12"), ("Duration", "us", "1.00")])))
    assert launch.duration_ns is None
    assert "305120" in launch.missing["duration_ns"]
    assert "no_values" in launch.flags


def test_breakdown_rows_do_not_replace_the_metric(tmp_path: Path) -> None:
    rows = details_rows(
        DETAILS_21, [("L2 Hit Rate", "%", "90.70"), ("L2 Hit Rate", "%", "12.00"), ("Duration", "us", "5.00")]
    )
    label = DETAILS_21.index("Body Item Label")
    rows[1][label] = rows[2][label] = "L2 Cache"
    launch = one(load(tmp_path, csv_text([DETAILS_21, *rows])))
    assert launch.l2_hit_pct == 90.7
    assert launch.duration_ns == 5000


def test_summary_gives_one_flagged_row_per_kernel(tmp_path: Path) -> None:
    rows = []
    for name, grid in (("flash_fwd_kernel", "(64, 1, 1)"), ("flash_fwd_kernel", "(128, 1, 1)")):
        for metric, unit, value in HOPPER:
            rows.append(
                [
                    "1",
                    "python",
                    "host",
                    name,
                    "1",
                    "7",
                    "(384, 1, 1)",
                    grid,
                    "0",
                    "9.0",
                    "5",
                    "x",
                    metric,
                    unit,
                    "1",
                    "9e15",
                    value,
                ]
            )
    found = load(tmp_path, with_log(csv_text([SUMMARY, *rows])))
    assert found.format == "ncu-csv-summary"
    assert [launch.grid for launch in found.launches] == [(64, 1, 1), (128, 1, 1)]
    assert [launch.launch_id for launch in found.launches] == ["0", "1"]
    assert all(launch.duration_ns == 305_120 and launch.flags == ("summary", "mean_of=5") for launch in found.launches)


def test_summary_over_all_kernels_is_refused(tmp_path: Path) -> None:
    columns = [name for name in SUMMARY if name != "Kernel Name"]
    with pytest.raises(MeasureError, match="Kernel Name"):
        load(tmp_path, csv_text([columns, ["1"] * len(columns)]))


def test_all_nan_kernel_stays_with_reasons(tmp_path: Path) -> None:
    good = details_rows()
    bad = details_rows(metrics=[(name, unit, "nan") for name, unit, _ in HOPPER], ID="1", Grid_Size="")
    found = load(tmp_path, csv_text([DETAILS_20, *good, *bad]))
    launch = found.launches[1]
    assert "no_values" in launch.flags
    assert all(getattr(launch, key) is None for key in HOPPER_VALUES)
    assert "nan" in launch.missing["duration_ns"]
    assert any("no value" in warning for warning in found.warnings)
    assert found.launches[0].duration_ns == 305_120


def test_only_all_l2_lookups_warns_of_the_overcount(tmp_path: Path) -> None:
    found = load(tmp_path, details(metrics=[("lts__t_sectors.sum", "sector", "100")]))
    assert (one(found).l2_bytes, one(found).l2_definition) == (3200, "lts_all")
    assert any("over-counts" in warning for warning in found.warnings)


def test_concatenated_tables_keep_equal_ids_apart(tmp_path: Path) -> None:
    second = details(metrics=[("gpu__time_duration.sum", "ns", "7")])
    found = load(tmp_path, with_log(details()) + with_log(second))
    assert [launch.launch_id for launch in found.launches] == ["0", "0#2"]
    assert [launch.duration_ns for launch in found.launches] == [305_120, 7]


def test_processes_and_skipped_ids(tmp_path: Path) -> None:
    rows = [*details_rows(ID="12"), *details_rows(ID="5"), *details_rows(ID="5", Process_ID="77")]
    found = load(tmp_path, csv_text([DETAILS_20, *rows]))
    assert [launch.launch_id for launch in found.launches] == ["5", "12", "5#2"]


def test_program_output_is_taken_out(tmp_path: Path) -> None:
    lines = details().splitlines()
    noise = ['"unclosed quote of a program', "1, 2, 3", "epoch 3 loss 0.1", '"0","cut off', "", "=========="]
    mixed = [
        lines[0],
        *(part for pair in zip(noise, lines[1:], strict=False) for part in pair),
        *lines[1 + len(noise) :],
    ]
    found = load(tmp_path, "Done." + "\n".join(mixed) + "\n")
    launch = one(found)
    assert {key: getattr(launch, key) for key in HOPPER_VALUES} == HOPPER_VALUES
    assert any("2 rows dropped" in warning for warning in found.warnings)


def test_rule_texts_may_run_over_lines(tmp_path: Path) -> None:
    rows = details_rows()
    rows.insert(1, rows.pop())
    rows[1][DETAILS_20.index("Rule Description")] = 'first\nsecond, "third"\nfourth'
    found = load(tmp_path, csv_text([DETAILS_20, *rows]))
    assert {key: getattr(one(found), key) for key in HOPPER_VALUES} == HOPPER_VALUES
    assert found.warnings == ()


def test_malformed_number_drops_its_row_and_lists_the_line(tmp_path: Path) -> None:
    rows = [("gpu__time_duration.sum", "ns", "12x4"), *HOPPER[1:]]
    found = load(tmp_path, details(metrics=rows))
    assert one(found).duration_ns is None
    assert one(found).elapsed_cycles == 457_680
    assert "line 2" in one(found).missing["duration_ns"]
    assert "rows_dropped" in one(found).flags
    assert any("line 2" in warning and "12x4" in warning for warning in found.warnings)


def test_malformed_number_in_a_raw_row_drops_that_launch(tmp_path: Path) -> None:
    good = raw_rows()
    bad = raw_rows([("gpu__time_duration.sum", "ns", "12x4"), *HOPPER[1:]], ID="1")
    found = load(tmp_path, csv_text([*good, bad[2]]))
    assert one(found).launch_id == "0"
    assert any("line 4" in warning and "12x4" in warning for warning in found.warnings)


@pytest.mark.parametrize("value", ["1,23", "1.234,5", "1234,567"])
def test_ambiguous_comma_is_an_error_naming_the_cell(tmp_path: Path, value: str) -> None:
    with pytest.raises(MeasureError, match=r"export.txt:2: metric 'Duration'.*ambiguous") as caught:
        load(tmp_path, details(metrics=[("Duration", "us", value)]))
    assert value in str(caught.value)
    with pytest.raises(MeasureError, match=r"export.txt:3: column 'gpu__time_duration.sum'.*ambiguous"):
        load(tmp_path, csv_text(raw_rows([("gpu__time_duration.sum", "us", value)])))


def test_unknown_unit_stops_only_for_counters_that_are_read(tmp_path: Path) -> None:
    assert one(load(tmp_path, details(metrics=[*HOPPER, ("Speed", "furlong", "3")])))
    with pytest.raises(MeasureError, match="unit 'furlong'"):
        load(tmp_path, details(metrics=[("Duration", "furlong", "3")]))


def test_raw_page_without_units_is_refused(tmp_path: Path) -> None:
    header, _, row = raw_rows()
    with pytest.raises(MeasureError, match="row of units"):
        load(tmp_path, csv_text([header, row]))


def test_short_raw_row_is_dropped_and_reported(tmp_path: Path) -> None:
    header, units, row = raw_rows()
    found = load(tmp_path, csv_text([header, units, row[:-3], row]))
    assert one(found).duration_ns == 305_120
    assert any("line 3" in warning for warning in found.warnings)


def test_header_without_rows_is_empty_not_wrong(tmp_path: Path) -> None:
    with pytest.raises(MeasureError, match="no whole launch under its header"):
        load(tmp_path, details().splitlines()[0] + "\n")


def test_control_options_are_stated_by_log_or_user(tmp_path: Path) -> None:
    text = "ncu --clock-control none --cache-control=all -o x python bench.py\n" + details()
    launch = one(load(tmp_path, text))
    assert (launch.clock_control, launch.cache_control, launch.flags) == ("none", "all", ())
    launch = one(load(tmp_path, details(), stated=said(clock_control="base", gpu="NVIDIA H800")))
    assert (launch.clock_control, launch.gpu, launch.cache_control) == ("base", "NVIDIA H800", None)
    assert launch.flags == ("gpu_stated", "clock_control_stated")


def test_gb10_by_capability_or_by_statement(tmp_path: Path) -> None:
    rows = [
        ("dram__bytes_read.sum", "byte", "n/a"),
        ("lts__d_sectors_fill_sysmem.sum", "sector", "1000"),
        ("lts__t_sectors_aperture_sysmem_op_write.sum", "sector", "10"),
    ]
    assert one(load(tmp_path, details(metrics=rows, CC="12.1"))).dram_total_bytes == 32_320
    assert one(load(tmp_path, details(metrics=rows, CC="9.0"))).dram_total_bytes is None
    assert one(load(tmp_path, details(DETAILS_15, rows))).dram_total_bytes is None
    assert one(load(tmp_path, details(DETAILS_15, rows), stated=said(gpu="NVIDIA GB10"))).dram_total_bytes == 32_320


def test_nothing_private_is_copied(tmp_path: Path) -> None:
    found = load(tmp_path, with_log(details()))
    assert "secret" not in repr(found)
