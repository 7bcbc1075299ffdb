"""What must not change a result, what must never be half-read, and that no input ends in a traceback."""

import csv
import gzip
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from measure_exports import (
    CPU_EVENT,
    DETAILS_20,
    HOPPER,
    NSYS_SUMMARY,
    NSYS_TRACE,
    SUMMARY,
    complain_of_unexplained,
    console,
    csv_text,
    details_rows,
    kernel_event,
    kineto,
    load,
    nsys_sqlite,
    raw_rows,
    text_page,
    trace_row,
    with_log,
)
from test_measure_benchmarks import ATTN, CSV_ROW, CSV_TITLES, MARKDOWN

from simfa.errors import MeasureError
from simfa.measure.launch import MEASURED, Launch
from simfa.measure.metric_table import DIMENSIONS
from simfa.measure.reader import Measurements
from simfa.measure.unit_spellings import UNITS

# What takes dshared traffic off goes first, so that a cut leaves either all of it or no l2_bytes.
ORDERED = [HOPPER[n] for n in (7, 8, 5, 6, 0, 2, 3, 4, 11)]
FWD, GEMM = "void flash::fwd<(int)64, (bool)1>(T1::Params)", "void cutlass::gemm<(int)2>(T1::Params)"
HEADING = f"  {FWD} (132, 1, 1)x(384, 1, 1), Context 1, Stream 7, Device 0, CC 9.0"
WHERE = ("source_file", "source_row")


def essence(found: Measurements) -> list[dict[str, Any]]:
    """The launches without where they stood in the file."""
    return [
        {key: getattr(launch, key) for key in launch.__struct_fields__ if key not in WHERE} for launch in found.launches
    ]


def details_table(quoting: Any = csv.QUOTE_ALL, end: str = "\n") -> str:
    return csv_text(
        [
            DETAILS_20,
            *details_rows(metrics=ORDERED, Kernel_Name=FWD),
            *details_rows(metrics=ORDERED, ID="1", Kernel_Name=GEMM),
        ],
        quoting,
        end,
    )


def raw_table(quoting: Any = csv.QUOTE_ALL, end: str = "\n") -> str:
    return csv_text([*raw_rows(ORDERED, Kernel_Name=FWD), raw_rows(ORDERED, ID="1", Kernel_Name=GEMM)[2]], quoting, end)


def trace_table(quoting: Any = csv.QUOTE_ALL, end: str = "\n") -> str:
    return csv_text(
        [
            NSYS_TRACE,
            trace_row(name=FWD),
            trace_row("900000", corr="56", name=GEMM),
            trace_row("2000000", corr="57", name=FWD),
        ],
        quoting,
        end,
    )


def summary_table(quoting: Any = csv.QUOTE_ALL, end: str = "\n") -> str:
    known = ["1", "python", "host", FWD, "1", "7", "(384, 1, 1)", "(64, 1, 1)", "0", "9.0", "5", "x"]
    return csv_text([SUMMARY, *([*known, name, unit, "1", "9", value] for name, unit, value in ORDERED)], quoting, end)


def nvbench_table(quoting: Any = csv.QUOTE_ALL, end: str = "\n") -> str:
    return csv_text([CSV_TITLES, CSV_ROW, CSV_ROW], quoting, end)


TABLES: dict[str, Callable[..., str]] = {
    "details": details_table,
    "raw": raw_table,
    "trace": trace_table,
    "summary": summary_table,
    "nvbench": nvbench_table,
}
STATS_ROW = ["60.0", "915,360", "3", "305,120.0", "305,100.0", "305,000", "305,260", "130.5"]
TEXTS = {name: table() for name, table in TABLES.items()} | {
    "details minimal": details_table(csv.QUOTE_MINIMAL),
    "raw minimal": raw_table(csv.QUOTE_MINIMAL),
    "trace minimal": trace_table(csv.QUOTE_MINIMAL),
    "log": with_log(details_table()),
    "text": text_page(ORDERED, HEADING) + text_page(ORDERED, HEADING),
    "console": console(NSYS_SUMMARY, [[*STATS_ROW, FWD], [*STATS_ROW, GEMM]]),
    "kineto": kineto([kernel_event(FWD, "1.5"), CPU_EVENT, kernel_event(GEMM, "9", "2.25", correlation=56)]),
    "kineto list": kineto([kernel_event(FWD, "1.5"), kernel_event(GEMM, "9", "2.25", correlation=56)], as_list=True),
    "benchmark": ATTN,
    "markdown": MARKDOWN,
}
BODY = {"details": 1, "raw": 2, "trace": 1}


@pytest.mark.parametrize("name", BODY)
@given(seed=st.integers(0, 10**6))
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_order_of_rows_does_not_matter(tmp_path: Path, name: str, seed: int) -> None:
    lines = TEXTS[name].splitlines()
    head, body = lines[: BODY[name]], lines[BODY[name] :]
    random.Random(seed).shuffle(body)
    assert essence(load(tmp_path, "\n".join([*head, *body]) + "\n")) == essence(load(tmp_path, TEXTS[name]))


@given(seed=st.integers(0, 10**6))
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_order_of_events_and_records_does_not_matter(tmp_path: Path, seed: int) -> None:
    order = random.Random(seed)
    events = [kernel_event(ts=str(n), dur=f"{n + 1}.5", correlation=n) for n in range(6)] + [CPU_EVENT]
    rows = [{"name": FWD, "start": 100 * n, "end": 100 * n + n + 1, "correlationId": n} for n in range(6)]
    first = (
        essence(load(tmp_path, kineto(events))),
        essence(load(tmp_path, nsys_sqlite(tmp_path / "a", rows).read_bytes())),
    )
    order.shuffle(events)
    order.shuffle(rows)
    again = (
        essence(load(tmp_path, kineto(events))),
        essence(load(tmp_path, nsys_sqlite(tmp_path / "a", rows).read_bytes())),
    )
    assert first == again


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_NONNUMERIC])
def test_quoting_does_not_matter(tmp_path: Path, name: str, quoting: Any) -> None:
    assert essence(load(tmp_path, TABLES[name](quoting))) == essence(load(tmp_path, TABLES[name]()))


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("wrap", ["crlf", "bom", "utf-16", "utf-16-be", "gzip", "banners"])
def test_packing_does_not_matter(tmp_path: Path, name: str, wrap: str) -> None:
    text = TEXTS[name]
    if wrap == "banners" and name not in ("benchmark", "markdown", "nvbench", "kineto", "kineto list"):
        text = "==PROF== Connected to process 7\nloading\n" + text + "==PROF== Disconnected from process 7\nbye\n"
    data = text.encode({"bom": "utf-8-sig", "utf-16": "utf-16", "utf-16-be": "utf-16-be"}.get(wrap, "utf-8"))
    data = data.replace(b"\n", b"\r\n") if wrap == "crlf" else gzip.compress(data) if wrap == "gzip" else data
    found = load(tmp_path, data)
    assert essence(found) == essence(load(tmp_path, TEXTS[name]))
    assert found.warnings == load(tmp_path, TEXTS[name]).warnings


@pytest.mark.parametrize("name", TABLES)
@given(data=st.data())
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_unknown_columns_do_not_matter(tmp_path: Path, name: str, data: st.DataObject) -> None:
    rows = list(csv.reader(TEXTS[name].splitlines()))
    first = 1 if name != "nvbench" else rows[0].index("Samples") + 1
    place = data.draw(st.integers(first, len(rows[0]) - 1))
    title = data.draw(st.text(alphabet="abcXYZ_ .1%", min_size=3, max_size=9).map(lambda text: f"new {text}"))
    for number, row in enumerate(rows):
        if place <= len(row):
            row.insert(place, title if number == 0 else "" if name == "raw" and number == 1 else "1,2")
    assert essence(load(tmp_path, csv_text(rows))) == essence(load(tmp_path, TEXTS[name]))


AUTO = {
    "ns": (("ns", 0), ("us", 3), ("ms", 6)),
    "byte": (("byte", 0), ("Kbyte", 3), ("Mbyte", 6), ("Gbyte", 9)),
    "hz": (("hz", 0), ("Mhz", 6), ("Ghz", 9)),
}


@given(data=st.data())
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_auto_units_agree_with_base_units_within_their_rounding(tmp_path: Path, data: st.DataObject) -> None:
    metrics = []
    for metric, unit, value in ORDERED:
        if unit in AUTO:
            shown, power = data.draw(st.sampled_from(AUTO[unit]))
            value = f"{int(value) / 10**power:,.2f}" if power else value
            metrics.append((metric, shown, value))
        else:
            metrics.append((metric, unit, value))
    base = load(tmp_path, csv_text(raw_rows(ORDERED, Kernel_Name=FWD))).launches[0]
    auto = load(tmp_path, csv_text(raw_rows(metrics))).launches[0]
    for column in MEASURED:
        exact, value = getattr(base, column), getattr(auto, column)
        if exact is None:
            assert value is None
            continue
        low, high = auto.quantisation.get(column, (value, value))
        assert low <= exact <= high, column
        assert low <= value <= high, column
    assert auto.l2_definition == base.l2_definition


CHECKED = (*MEASURED, "kernel", "kernel_demangled", "grid", "block", "device", "stream", "start_ns", "case")


def whole_launches(text: str, tmp_path: Path) -> dict[tuple[str, int], Launch]:
    return {(launch.launch_id, launch.source_row): launch for launch in load(tmp_path, text).launches}


@pytest.mark.parametrize("name", [name for name in TEXTS if name != "log"])
def test_cut_at_every_byte_nothing_is_half_read(tmp_path: Path, name: str) -> None:
    """A cut file gives an error or launches whose every value is the whole file's; what is lost is reported."""
    data = TEXTS[name].encode()
    whole = whole_launches(TEXTS[name], tmp_path)
    for size in [*range(1, len(data), 1 + len(data) // 400), len(data) - 1]:
        try:
            found = load(tmp_path, data[:size])
        except MeasureError:
            continue
        for launch in found.launches:
            full = whole[(launch.launch_id, launch.source_row)]
            for key in CHECKED:
                assert getattr(launch, key) in (None, getattr(full, key)), (size, key)
        fragment = data[:size].rpartition(b"\n")[2]
        line = data[size - len(fragment) :].partition(b"\n")[0]
        same = not fragment.strip() or fragment.rstrip(b'",') == line.rstrip(b'",')
        if not same and b"SpeedOfLight" not in line and "kineto" not in name:
            assert found.warnings, size


@pytest.mark.parametrize("name", ["raw", "trace", "kineto", "benchmark"])
def test_cut_gzip_gives_whole_rows_and_says_so(tmp_path: Path, name: str) -> None:
    whole = whole_launches(TEXTS[name], tmp_path)
    packed = gzip.compress(TEXTS[name].encode())
    for size in range(3, len(packed), 7):
        try:
            found = load(tmp_path, packed[:size])
        except MeasureError:
            continue
        assert found.warnings, size
        for launch in found.launches:
            full = whole[(launch.launch_id, launch.source_row)]
            assert [getattr(launch, key) for key in MEASURED] == [getattr(full, key) for key in MEASURED], size


def attempt(folder: Path, data: bytes, **options: Any) -> None:
    """Read whatever it is: a result with every null explained, or one `MeasureError` that names the file."""
    try:
        found = load(folder, data, **options)
    except MeasureError as error:
        assert "export.txt" in str(error)
        return
    for launch in found.launches:
        complain_of_unexplained(launch)
        assert all(getattr(launch, column) is None or getattr(launch, column) >= 0 for column in MEASURED)


NASTY = [*'",;\n\r\x00(){}[]<>|=-.:%\u00e9\ufeff0123456789eE+-', '""', '"\n', "nan", "n/a", "1e999", "9" * 30]
NASTY += ["==PROF==", "ERR_NVGPUCTRPERM"]


@pytest.mark.parametrize("name", TEXTS)
@given(data=st.data())
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_damaged_exports_never_end_in_a_traceback(tmp_path: Path, name: str, data: st.DataObject) -> None:
    text = TEXTS[name]
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        length = data.draw(st.integers(0, 12))
        text = text[:start] + data.draw(st.sampled_from(NASTY)) + text[start + length :]
    attempt(tmp_path, text.encode("utf-8", "replace"))


@given(data=st.data())
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_damaged_databases_never_end_in_a_traceback(tmp_path: Path, data: st.DataObject) -> None:
    image = bytearray(nsys_sqlite(tmp_path / "a.sqlite", [{"name": FWD}, {"name": GEMM}]).read_bytes())
    for _ in range(data.draw(st.integers(1, 12))):
        image[data.draw(st.integers(16, len(image) - 1))] = data.draw(st.integers(0, 255))
    attempt(tmp_path, bytes(image))


@given(
    st.binary(max_size=200),
    st.sampled_from([None, "ncu-csv", "ncu-text", "nsys-stats", "nsys-sqlite", "kineto", "benchmark-attn", "nvbench"]),
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_never_end_in_a_traceback(tmp_path: Path, data: bytes, form: str | None) -> None:
    attempt(tmp_path, data, format=form)


@given(data=st.data())
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_cell_is_read_or_refused(tmp_path: Path, data: st.DataObject) -> None:
    names = data.draw(st.lists(st.sampled_from(sorted(DIMENSIONS)), min_size=1, max_size=5, unique=True))
    texts = st.one_of(
        st.sampled_from(NASTY), st.decimals(allow_nan=True, allow_infinity=True).map(str), st.text(max_size=8)
    )
    metrics = [(name, data.draw(st.sampled_from(sorted(UNITS))), data.draw(texts).replace("\r", " ")) for name in names]
    attempt(tmp_path, csv_text(raw_rows(metrics)).encode("utf-8", "replace"))
