"""`nsys stats` tables: CSV and console, old and new names, any unit of time."""

import csv
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from measure_exports import COPY_ROW, FA3, NSYS_SUMMARY, NSYS_TRACE, console, csv_text, load, one, trace_row

from simfa.errors import MeasureError
from simfa.measure.csv_lines import TailSplitter, split

CHATTER = "Generating SQLite file a.sqlite from a.nsys-rep\nProcessing [a.sqlite] with [cuda_gpu_trace.py]...\n"
SUMMARY_ROW = ["100.0", "915360", "3", "305120.0", "305100.0", "305000", "305260", "130.5", FA3]
API_TABLE = [
    ("Time (%)", "Total Time (ns)", "Num Calls", "Avg (ns)", "Med (ns)", "Min (ns)", "Max (ns)", "StdDev (ns)", "Name"),
    ["99.0", "88888", "9", "1.0", "1.0", "1", "1", "0.0", "cudaLaunchKernel"],
]


def minimal(*rows: object) -> str:
    return csv_text(rows, csv.QUOTE_MINIMAL)  # type: ignore[arg-type]


def test_trace_csv_keeps_kernels_only(tmp_path: Path) -> None:
    found = load(tmp_path, CHATTER + minimal(NSYS_TRACE, COPY_ROW, trace_row()))
    launch = one(found)
    assert found.format == "nsys-stats-trace-csv"
    assert (launch.start_ns, launch.duration_ns, launch.grid, launch.block) == (1000, 305_120, (132, 1, 1), (384, 1, 1))
    assert (launch.gpu, launch.device, launch.stream, launch.launch_id) == ("NVIDIA H800", 0, 7, "55")
    assert launch.quantisation == {}


@pytest.mark.parametrize(
    ("unit", "duration", "value", "interval"),
    [
        ("ns", "305120", 305_120, None),
        ("us", "305.120", 305_120, (305_119.5, 305_120.5)),
        ("\u03bcs", "305.12", 305_120, (305_115, 305_125)),
        ("usec", "305.12", 305_120, (305_115, 305_125)),
        ("ms", "0.305", 305_000, (304_500, 305_500)),
        ("msec", "0.305", 305_000, (304_500, 305_500)),
        ("s", "0.0003", 300_000, (250_000, 350_000)),
        ("sec", "0.0003", 300_000, (250_000, 350_000)),
    ],
)
def test_unit_is_read_from_the_header(
    tmp_path: Path, unit: str, duration: str, value: int, interval: tuple[float, float] | None
) -> None:
    titles = [title.replace("(ns)", f"({unit})") for title in NSYS_TRACE]
    launch = one(load(tmp_path, minimal(titles, trace_row("0.5", duration))))
    assert launch.duration_ns == value
    assert launch.quantisation.get("duration_ns") == interval


def test_unknown_unit_stops(tmp_path: Path) -> None:
    titles = [title.replace("(ns)", "(fortnights)") for title in NSYS_TRACE]
    with pytest.raises(MeasureError, match=r"export.txt:2: column 'Duration'.*fortnights"):
        load(tmp_path, minimal(titles, trace_row()))


@pytest.mark.parametrize(
    ("titles", "row", "value", "flag"),
    [
        (NSYS_SUMMARY, SUMMARY_ROW, 305_100, "median_of=3"),
        (
            ("Time(%)", "Total Time (ns)", "Instances", "Average (ns)", "Minimum (ns)", "Maximum (ns)", "Name"),
            ["100.0", "915360", "3", "305120.0", "305000", "305260", FA3],
            305_120,
            "mean_of=3",
        ),
        (
            ("Time(%)", "Total Time", "Instances", "Average", "Minimum", "Maximum", "Name"),
            ["100.0", "915360", "3", "305120.0", "305000", "305260", FA3],
            305_120,
            "mean_of=3",
        ),
        (
            ("Time (%)", "Total Time (ns)", "Instances", "Avg (ns)", "Med (ns)", "GridXYZ", "BlockXYZ", "Name"),
            ["100.0", "915360", "3", "305120.0", "305100.0", " 132    1    1", " 384    1    1", FA3],
            305_100,
            "median_of=3",
        ),
    ],
    ids=["2023", "2021", "2019", "per grid"],
)
def test_summary_csv_over_the_years(
    tmp_path: Path, titles: tuple[str, ...], row: list[str], value: int, flag: str
) -> None:
    found = load(tmp_path, CHATTER + minimal(titles, row))
    launch = one(found)
    assert launch.duration_ns == value
    assert launch.flags == ("summary", flag)
    assert launch.grid == ((132, 1, 1) if "GridXYZ" in titles else None)
    assert found.format == "nsys-stats-summary-csv"
    assert bool(found.warnings) == ("Total Time" in titles)


def test_console_tables_group_thousands(tmp_path: Path) -> None:
    row = ["100.0", "915,360", "3", "305,120.0", "305,100.0", "305,000", "305,260", "130.5", FA3]
    other = ["0.1", "15", "1", "15.0", "15.0", "15", "15", "0.0", "void ns::other<1, 2>(int, int)"]
    text = (
        CHATTER
        + console(API_TABLE[0], [API_TABLE[1]], "CUDA API Summary (cuda_api_sum)")
        + console(NSYS_SUMMARY, [row, other])
    )
    found = load(tmp_path, text)
    assert [launch.duration_ns for launch in found.launches] == [305_100, 15]
    assert [launch.kernel_demangled for launch in found.launches] == [FA3, "void ns::other<1, 2>(int, int)"]
    assert found.format == "nsys-stats-summary-text"


def test_console_trace_with_copies(tmp_path: Path) -> None:
    found = load(tmp_path, console(NSYS_TRACE, [COPY_ROW, trace_row("1,000", "305,120")], "CUDA GPU Trace (gputrace)"))
    assert (one(found).duration_ns, one(found).start_ns, one(found).grid) == (305_120, 1000, (132, 1, 1))


def test_cut_names_are_flagged(tmp_path: Path) -> None:
    row = ["100.0", "915,360", "3", "305,120.0", "305,100.0", "1", "2", "130.5", "void cutlass::device_ker..."]
    assert "name_cut" in one(load(tmp_path, console(NSYS_SUMMARY, [row]))).flags


def test_all_reports_in_one_stream(tmp_path: Path) -> None:
    text = minimal(*API_TABLE) + "\n" + minimal(NSYS_SUMMARY, SUMMARY_ROW) + "\n" + minimal(*API_TABLE)
    assert len(load(tmp_path, text).launches) == 1
    found = load(tmp_path, text + "\n" + minimal(NSYS_TRACE, trace_row()) + minimal(*API_TABLE))
    assert one(found).flags == ()
    assert any("the trace is taken" in warning for warning in found.warnings)


def test_api_rows_are_no_gpu_work(tmp_path: Path) -> None:
    with pytest.raises(MeasureError, match="API and memory tables are no GPU work"):
        load(tmp_path, minimal(*API_TABLE), format="nsys-stats")


def test_skipped_report_is_quoted(tmp_path: Path) -> None:
    with pytest.raises(MeasureError, match=r"SKIPPED: a.sqlite does not contain CUDA kernel data"):
        load(tmp_path, CHATTER + "SKIPPED: a.sqlite does not contain CUDA kernel data.\n")


def test_empty_table_is_empty_not_wrong(tmp_path: Path) -> None:
    with pytest.raises(MeasureError, match="has no whole row"):
        load(tmp_path, minimal(NSYS_SUMMARY))


def test_bad_rows_are_listed(tmp_path: Path) -> None:
    rows = [trace_row(duration="x"), trace_row()[:-1], trace_row()]
    found = load(tmp_path, minimal(NSYS_TRACE, *rows))
    assert one(found).source_row == 4
    assert any("line 2 (column 'Duration'" in warning and "line 3 (20 of 21" in warning for warning in found.warnings)


def test_last_row_without_line_end_may_be_cut(tmp_path: Path) -> None:
    text = minimal(NSYS_TRACE, trace_row(), trace_row("2000", name="flash_fwd_kernel"))
    found = load(tmp_path, text.rstrip("\n"))
    assert one(found).start_ns == 1000
    assert any("the file ends inside it" in warning for warning in found.warnings)


def test_ambiguous_comma_names_line_and_column(tmp_path: Path) -> None:
    with pytest.raises(MeasureError, match=r"export.txt:2: column 'Duration': value '1,5'"):
        load(tmp_path, csv_text([NSYS_TRACE, trace_row(duration="1,5")]))


CELLS = st.lists(st.text('ab ,"\t1.', max_size=4), max_size=7)


@given(st.lists(CELLS, min_size=1, max_size=4), st.booleans())
def test_a_line_is_split_alike_with_its_tail_remembered(table: list[list[str]], quoted: bool) -> None:
    splitter = TailSplitter(3)
    for cells in table * 2:
        line = csv_text([cells], csv.QUOTE_ALL).rstrip("\n") if quoted else ",".join(cells)
        assert splitter(line) == split(line)


def test_launches_alike_are_read_as_launches_apart(tmp_path: Path) -> None:
    titles = [title.replace("(ns)", "(us)") for title in NSYS_TRACE]
    # Times of every form, an id that is missing, another grid, a copy, a mangled row: whole table against row by row.
    times = [
        ("1.5", "305.120"),
        ("2", "305"),
        ("1,234.5", "1,305.120"),
        ("7.25", "0.000"),
        ("1000.5", "3.05e2"),
        ("9", "x"),
    ]
    table = [trace_row(*pair) for pair in times] + [trace_row(f"{start}.5", "305.5") for start in (10, 11, 12)]
    table[7][2] = ""
    table[8][3] = "66"
    table.insert(2, COPY_ROW)
    together = load(tmp_path, minimal(titles, *table))
    apart = [launch for row in table for launch in rows_alone(tmp_path, titles, row)]
    named = [(launch.start_ns, launch.duration_ns, launch.quantisation, launch.grid) for launch in together.launches]
    assert named == sorted(
        ((launch.start_ns, launch.duration_ns, launch.quantisation, launch.grid) for launch in apart),
        key=lambda facts: facts[0],
    )
    assert len(named) == 8
    assert [warning for warning in together.warnings if "'x' is not a number" in warning]


def rows_alone(tmp_path: Path, titles: list[str], row: list[str]) -> list[Any]:
    """The launches of a table of one row, none where it is dropped."""
    try:
        return list(load(tmp_path, minimal(titles, row)).launches)
    except MeasureError:
        return []


def test_an_ambiguous_comma_stops_behind_launches_alike(tmp_path: Path) -> None:
    table = [trace_row("1", "305"), trace_row("2", "305"), trace_row("3", "305,12")]
    with pytest.raises(MeasureError, match=r"export.txt:4: column 'Duration'.*'305,12' is ambiguous"):
        load(tmp_path, minimal(NSYS_TRACE, *table))
