"""`nsys stats` kernel tables, CSV or console: a launch trace (`gputrace`, `cuda_gpu_trace`) or a summary per kernel
(`gpukernsum`, `cuda_gpu_kern_sum`), told apart by their columns; the unit of time stands in the header.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import msgspec

from simfa.errors import MeasureError
from simfa.measure import kernel_names
from simfa.measure.csv_lines import TailSplitter, rows, split
from simfa.measure.extents import extent, integer, sizes
from simfa.measure.launch import Launch, Source, Stated, make_launch
from simfa.measure.opening import Notes, lines
from simfa.measure.quantity import CellError, Number, Reading, StopError, parse_number, plain, printed, scaled
from simfa.measure.unit_spellings import TIME, UNITS

_ROW_START = re.compile(r'\s*"?[\d.,]+"?\s*,', re.ASCII)
_DASHES = re.compile(r"\s*-{2,}(?:\s+-{2,}){4,}\s*$")
_TITLED = re.compile(r"(?P<name>.*?)\s*(?:\((?P<unit>[^()]*)\))?\s*")
# Spellings of the summary's columns, old and new.
_MEAN, _MEDIAN = ("Avg", "Average"), ("Med", "Median")
_SUMMARY = ("Total Time", "Instances", *_MEAN, *_MEDIAN, "GridXYZ", "BlockXYZ", "Name")
_TRACE = ("Start", "Duration", "CorrId", "GrdX", "GrdY", "GrdZ", "BlkX", "BlkY", "BlkZ", "Device", "Strm", "Name")
_DEVICE = re.compile(r"(?P<name>.*\S)\s*\((?P<number>\d{1,4})\)")
_REASONS = (
    *(
        (column, "an nsys stats table has no such column")
        for column in ("cluster", "grid", "block", "device", "stream")
    ),
    ("start_ns", "a summary has no start times"),
    ("kernel_demangled", "the export has mangled names only"),
)
_EXACT: dict[str, tuple[Number, Number]] = {}
_COUNTERS = "a trace has no counters; use ncu"


class Columns(NamedTuple):
    """Where the columns that are read stand in one table, the unit of each, whether it lists launches, its format."""

    used: tuple[tuple[str, int], ...]
    units: dict[str, str]
    width: int
    trace: bool
    format: str


def columns_of(titles: list[str], form: str) -> Columns | None:
    """Return the columns of a kernel table in `form`, `None` where the titles belong to another table.

    Tables of API calls and memory operations have neither grid nor instances, and are no GPU work.
    """
    at: dict[str, int] = {}
    units: dict[str, str] = {}
    for position, title in enumerate(titles):
        found = _TITLED.fullmatch(title.strip())
        name, unit = (found["name"], found["unit"] or "") if found else (title.strip(), "")
        if name not in at:
            at[name], units[name] = position, unit
    if {"Start", "Duration", "GrdX", "BlkX", "Name"} <= at.keys():
        names: tuple[str, ...] = _TRACE
        kind = "trace"
    elif {"Total Time", "Instances", "Name"} <= at.keys() and any(name in at for name in (*_MEAN, *_MEDIAN)):
        names, kind = _SUMMARY, "summary"
    else:
        return None
    used = tuple((name, at[name]) for name in names if name in at)
    return Columns(used, units, len(titles), kind == "trace", f"nsys-stats-{kind}-{form}")


def header_of(text: str) -> Columns | None:
    """Return the columns where `text` is the CSV header of a kernel table."""
    return columns_of(split(text) or [], "csv") if "Name" in text and "," in text else None


def console_header(text: str, dashes: str) -> Columns | None:
    """Return the columns where `text` over `dashes` is the console header of a kernel table."""
    if not _DASHES.match(dashes):
        return None
    return columns_of([text[start:end] for start, end in _spans(dashes)], "text")


def _spans(dashes: str) -> list[tuple[int, int | None]]:
    spans: list[tuple[int, int | None]] = [found.span() for found in re.finditer("-+", dashes)]
    return [*spans[:-1], (spans[-1][0], None)]


def read(path: Path, notes: Notes, stated: Stated) -> Iterator[Launch]:
    """Yield launches of a trace, or one flagged row per kernel of a summary; a file with both gives the trace.

    Raises `MeasureError` for output without a kernel table or with an empty one, ambiguous numbers, unknown units.
    """
    table: Columns | None = None
    known = _Alike(())
    spans: list[tuple[int, int | None]] | None = None
    previous = ""
    skipped = ""
    traces: list[Launch] = []
    summaries: list[Launch] = []
    forms: set[str] = set()
    # A trace starts with its times and the correlation id; from row to row little else changes.
    for row in rows(lines(path, notes), _ROW_START, TailSplitter(3)):
        text = row.text
        if table is not None and (text.strip() if spans else _ROW_START.match(text)):
            fields = [text[start:end].strip() for start, end in spans] if spans else row.fields
            found = traces if table.trace else summaries
            launch = None if row.cut or fields is None else known.launch(fields, row.number)
            if launch is None:
                launch = _row(_Place(path, row.number, len(found)), fields, row.cut, table, notes, stated)
                known.remember(fields, launch)
            if launch is not None:
                found.append(launch)
        elif spans:
            table = spans = None
        elif (csv := header_of(text)) is not None and not row.cut:
            table = csv
            known = _Alike.of(table)
            forms.add("csv")
        elif (console := console_header(previous, text)) is not None:
            table, spans = console, _spans(text)
            known = _Alike.of(table)
            forms.add("text")
        else:
            if "SKIPPED" in text or "does not contain" in text:
                skipped = skipped or f"line {row.number}: {text.strip()}"
            notes.outside(row.number, text, row.whole)
            table = None if _is_header(text) else table
        previous = text
    if summaries and traces:
        notes.warn("has a launch trace and a kernel summary; the trace is taken")
    if not traces and not summaries:
        seen = "whole row in its kernel table" if forms else "kernel table (API and memory tables are no GPU work)"
        raise MeasureError(
            f"{path}: has no {seen}{'; it says: ' + skipped if skipped else ''}; export one with "
            "`nsys stats --report cuda_gpu_trace --format csv --output . REPORT.nsys-rep`"
        )
    yield from sorted(traces, key=lambda launch: (launch.start_ns or 0, launch.source_row)) if traces else summaries


def _is_header(text: str) -> bool:
    """Return whether `text` is the CSV header of some other table: many columns and no figure."""
    return text.count(",") >= 4 and not any(letter.isdigit() for letter in text)


class _Alike:
    """Launches of one trace table that differ in their times and correlation id only: all else is read once.

    Without columns, as for a summary, it knows no launch.
    """

    _KEPT = 4096

    def __init__(self, own: tuple[tuple[int, int], ...]) -> None:
        """Take position and exponent over ns of start and duration, and the position of the id (exponent unused)."""
        self._own = own
        self._seen: dict[tuple[str, ...], Launch] = {}

    @classmethod
    def of(cls, table: Columns) -> "_Alike":
        """Return the memory for a table."""
        units = [UNITS.get(table.units.get(name, "")) for name in ("Start", "Duration")]
        at = dict(table.used)
        if not table.trace or "CorrId" not in at or any(unit is None or unit.dimension != TIME for unit in units):
            return cls(())
        exponents = [unit.exponent for unit in units if unit is not None]
        return cls(((at["Start"], exponents[0]), (at["Duration"], exponents[1]), (at["CorrId"], 0)))

    def _key(self, fields: list[str]) -> tuple[str, ...]:
        rest = fields.copy()
        for position, _ in self._own:
            rest[position] = ""
        return tuple(rest)

    def remember(self, fields: list[str] | None, launch: Launch | None) -> None:
        """Keep a launch for the rows that are like it."""
        if self._own and fields is not None and launch is not None:
            self._seen = self._seen if len(self._seen) < self._KEPT else {}
            self._seen[self._key(fields)] = launch

    def launch(self, fields: list[str], line: int) -> Launch | None:
        """Return the launch of a row like one before it, `None` where the row must be read in full."""
        if not self._seen or len(fields) <= max(position for position, _ in self._own):
            return None
        like = self._seen.get(self._key(fields))
        if like is None:
            return None
        (start_at, start_exponent), (duration_at, duration_exponent), (id_at, _) = self._own
        start = printed(fields[start_at].strip(), start_exponent)
        duration = printed(fields[duration_at].strip(), duration_exponent)
        launch_id = fields[id_at].strip()
        if start is None or duration is None or not launch_id:
            return None
        return msgspec.structs.replace(
            like,
            launch_id=launch_id,
            start_ns=start[0],
            duration_ns=duration[0],
            quantisation=_rounded(*duration[1:]),
            source_row=line,
        )


class _Place(NamedTuple):
    """Where a row stands: file, line, and how many rows came before it."""

    path: Path
    line: int
    position: int


def _row(
    place: _Place, fields: list[str] | None, cut: bool, table: Columns, notes: Notes, stated: Stated
) -> Launch | None:
    if fields is None or len(fields) != table.width or cut:
        why = "its quotes do not balance" if fields is None else f"{len(fields)} of {table.width} fields"
        notes.drop(f"line {place.line}", "the file ends inside it" if cut else why)
        return None
    cells = {name: fields[position].strip() for name, position in table.used}
    if table.trace and not cells["GrdX"]:
        return None  # a copy or memset
    try:
        values = _trace(cells, table.units) if table.trace else _summary(cells, table.units, notes)
    except StopError as error:
        raise MeasureError(f"{place.path}:{place.line}: {error}") from error
    except CellError as error:
        notes.drop(f"line {place.line}", str(error))
        return None
    name = kernel_names.parse(cells["Name"])
    flags = values.pop("flags", ())
    assert isinstance(flags, tuple)
    source = Source(notes.name, table.format, "nsys")
    values |= {
        "kernel": name.function or None,
        "kernel_demangled": None if name.mangled else name.full or None,
        "kernel_mangled": name.full if name.mangled else None,
        "clock_control": "none",
        "cache_control": "none",
        "source_row": place.line,
        "flags": (*flags, *(("name_cut",) if name.cut else ())),
    }
    values.setdefault("launch_id", str(place.position))
    return make_launch(source, values, _REASONS, _COUNTERS, stated=stated)


def _time(text: str, title: str, unit: str) -> Reading:
    known = UNITS.get(unit)
    if known is None or known.dimension != TIME:
        raise StopError(f"column {title!r}: unit {unit!r} is no known unit of time")
    try:
        number, step = parse_number(text)
    except StopError as error:
        raise StopError(f"column {title!r}: {error}") from error
    except CellError as error:
        raise CellError(f"column {title!r}: {error}") from error
    return scaled(number, step, known.exponent, TIME)


def _duration(reading: Reading, counter: str) -> dict[str, object]:
    low, value, high = (plain(number) for number in (reading.low, reading.value, reading.high))
    return {"duration_ns": value, "counters": _counters(counter), "quantisation": _rounded(low, high)}


def _rounded(low: Number, high: Number) -> dict[str, tuple[Number, Number]]:
    """Return the interval of a rounded duration by its column, nothing for an exact one."""
    return _EXACT if low == high else {"duration_ns": (low, high)}


@lru_cache(maxsize=16)
def _counters(title: str) -> dict[str, str]:
    return {"duration_ns": title}


def _trace(cells: dict[str, str], units: dict[str, str]) -> dict[str, object]:
    values = _duration(_time(cells["Duration"], "Duration", units["Duration"]), "Duration")
    values["start_ns"] = plain(_time(cells["Start"], "Start", units["Start"]).value)
    values["grid"] = sizes(cells["GrdX"], cells.get("GrdY", ""), cells.get("GrdZ", ""))
    values["block"] = sizes(cells["BlkX"], cells.get("BlkY", ""), cells.get("BlkZ", ""))
    values["gpu"], values["device"] = _device(cells.get("Device", ""))
    if cells.get("CorrId"):
        values["launch_id"] = cells["CorrId"]
    values["stream"] = integer(cells.get("Strm", ""))
    return values


@lru_cache(maxsize=64)
def _device(text: str) -> tuple[str | None, int | None]:
    found = _DEVICE.fullmatch(text)
    return (found["name"], int(found["number"])) if found else (None, None)


def _summary(cells: dict[str, str], units: dict[str, str], notes: Notes) -> dict[str, object]:
    """Return a kernel's median where the table has one, else its mean; early tables print no unit, and meant ns."""
    title, kind = next(
        (name, kind) for names, kind in ((_MEDIAN, "median"), (_MEAN, "mean")) for name in names if name in cells
    )
    unit = units[title] or units["Total Time"]
    if not unit:
        unit = "ns"
        notes.warn("the header names no unit of time; nsys printed ns before it could print others")
    reading = _time(cells[title], title, unit)
    count, _ = parse_number(cells["Instances"])
    if count != count.to_integral_value() or count < 1:
        raise CellError(f"column 'Instances': {cells['Instances']!r} is no count")
    values = _duration(reading, title)
    values["flags"] = ("summary", f"{kind}_of={int(count)}")
    for key, name in (("grid", "GridXYZ"), ("block", "BlockXYZ")):
        values[key] = extent(cells.get(name, ""))
    return values
