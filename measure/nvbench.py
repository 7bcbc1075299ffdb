"""nvbench tables, Markdown or CSV: cold GPU time (L2 flushed before each run) and batch GPU time per configuration."""

import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

from simfa.errors import MeasureError
from simfa.measure.csv_lines import split
from simfa.measure.launch import Launch, Source, Stated, make_launch
from simfa.measure.ncu_log import replayed
from simfa.measure.opening import Line, Notes, lines
from simfa.measure.quantity import CellError, Reading, StopError, parse_number, plain, scaled
from simfa.measure.unit_spellings import TIME, UNITS

_COLD, _BATCH = "GPU Time", "Batch GPU"
_KNOWN = frozenset({"Benchmark", "Device", "Device Name", "Skipped"})
_DEVICE = re.compile(r"###\s*\[(?P<number>\d{1,4})\]\s*(?P<name>.+?)\s*$")
_TITLED = re.compile(r"(?P<name>.*?)\s*(?:\((?P<unit>[^()]*)\))?")
_CELL = re.compile(r"(?P<number>[\d.,]+)\s+(?P<unit>[^\d\s.,]\S*)")
_SUSPICIOUS_NS = 10**9
_REASON = "nvbench prints mean times per configuration, no launches"
_COUNTERS = "a benchmark has no counters; use ncu"
_REASONS = tuple(
    (column, _REASON) for column in ("kernel_demangled", "grid", "block", "cluster", "device", "stream", "start_ns")
)


class Table(NamedTuple):
    """One table's columns by position, the unit of the two times where the header has it, and its form."""

    names: list[str]
    units: dict[str, str]
    form: str


def header_of(text: str) -> Table | None:
    """Return the table where `text` is the header of an nvbench table in Markdown or CSV."""
    form = "markdown" if text.lstrip().startswith("|") else "csv"
    titles = _cells(text) if form == "markdown" else split(text) or []
    names: list[str] = []
    units: dict[str, str] = {}
    for title in titles:
        found = _TITLED.fullmatch(title.strip())
        names.append(found["name"] if found else title.strip())
        units.setdefault(names[-1], (found["unit"] or "") if found else "")
    wanted = {_COLD, "Samples"} if form == "markdown" else {_COLD, "Samples", "Benchmark"}
    return Table(names, units, form) if wanted <= set(names) else None


def _cells(text: str) -> list[str]:
    return [cell.strip() for cell in text.strip().strip("|").split("|")]


def read(path: Path, notes: Notes, stated: Stated) -> Iterator[Launch]:
    """Yield a row for each cold and each batch time, in file order; `case` holds the axis values as printed.

    Raises `MeasureError` for output without times or printed under ncu, and for ambiguous numbers and unknown units.
    """
    table: Table | None = None
    title = device = ""
    number: int | None = None
    found: list[Launch] = []
    forms: set[str] = set()
    for line in lines(path, notes):
        text = line.text
        if text.startswith("==PROF=="):
            raise replayed(path, line.number)
        header = header_of(text) if line.whole else None
        if header is not None:
            table = header
            forms.add(header.form)
        elif (heading := _DEVICE.match(text)) and line.whole:
            device, number = heading["name"], int(heading["number"])
        elif text.startswith("## ") and line.whole:
            title, table = text[3:].strip(), None
        elif table is not None and _is_row(text, table):
            found.extend(_row(path, line, table, title, (device, number), notes, stated, len(found)))
        else:
            notes.outside(line.number, text, line.whole)
    if not found:
        raise MeasureError(f"{path}: has no nvbench table with a whole row under it ({_COLD}, {_BATCH})")
    yield from found


def _is_row(text: str, table: Table) -> bool:
    if table.form == "markdown":
        return text.lstrip().startswith("|") and not re.fullmatch(r"[\s|:-]+", text)
    return "," in text


def _row(
    path: Path,
    line: Line,
    table: Table,
    title: str,
    device: tuple[str, int | None],
    notes: Notes,
    stated: Stated,
    position: int,
) -> Iterator[Launch]:
    text = line.text
    cells = _cells(text) if table.form == "markdown" else split(text)
    closed = text.rstrip().endswith("|" if table.form == "markdown" else '"')
    if cells is None or len(cells) != len(table.names) or not (line.whole or closed):
        notes.drop(f"line {line.number}", "cut short or broken")
        return
    row = {name: cell.strip() for name, cell in reversed(list(zip(table.names, cells, strict=True)))}
    if row.get("Skipped", "No") not in ("No", ""):
        notes.drop(f"line {line.number}", "skipped by the benchmark")
        return
    axes = table.names[: table.names.index("Samples")]
    case = {name: row[name] for name in axes if name not in _KNOWN}
    gpu, number = row.get("Device Name") or device[0] or None, device[1]
    if number is None and row.get("Device", "").isdecimal():
        number = int(row["Device"][:9])
    for column, kind, cache in ((_COLD, "cold", "all"), (_BATCH, "batch", "none")):
        if not row.get(column):
            continue
        try:
            time = _time(row[column], table.units.get(column, ""))
        except StopError as error:
            raise MeasureError(f"{path}:{line.number}: column {column!r}: {error}") from error
        except CellError as error:
            notes.drop(f"line {line.number}", f"column {column!r}: {error}")
            continue
        if time.value >= Decimal(_SUSPICIOUS_NS):
            notes.warn("a kernel takes a second or more: was the benchmark run under a profiler that replays kernels?")
        source = Source(notes.name, f"nvbench-{table.form}", "nvbench")
        values: dict[str, object] = {
            "launch_id": f"{position}-{kind}",
            "kernel": row.get("Benchmark") or title or None,
            "device": number,
            "gpu": gpu,
            "duration_ns": plain(time.value),
            "quantisation": {"duration_ns": (plain(time.low), plain(time.high))},
            "counters": {"duration_ns": column},
            "clock_control": "none",
            "cache_control": cache,
            "case": case,
            "source_row": line.number,
            "flags": ("benchmark", kind, f"mean_of={row['Samples'].rstrip('x') if kind == 'cold' else 'unknown'}"),
        }
        yield make_launch(source, values, (("kernel", "the table has no title"), *_REASONS), _COUNTERS, stated=stated)


def _time(text: str, unit: str) -> Reading:
    """Return the time of a cell: `12.345 us` in Markdown, a bare number under a header with the unit in CSV."""
    found = _CELL.fullmatch(text)
    number, spelled = (found["number"], found["unit"]) if found else (text, unit)
    known = UNITS.get(spelled)
    if known is None or known.dimension != TIME:
        raise StopError(f"unit {spelled!r} of {text!r} is no known unit of time")
    value, step = parse_number(number)
    return scaled(value, step, known.exponent, TIME)
