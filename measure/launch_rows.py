"""The table that `simfa ingest -o` writes, read back for a comparison, with the columns a user added to it."""

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from simfa.errors import MeasureError
from simfa.measure import kernel_names
from simfa.measure.launch import COLUMNS
from simfa.workload import AttentionShape

Object = TypeVar("Object", bound=dict[str, Any])

# What marks a table as one of launches, and no table of latencies.
MARKS = ("launch_id", "duration_ns", "source_row")
# Columns a user may add to say what a launch computed; `MeasuredCase` explains them.
ADDED = (
    "case_id",
    *AttentionShape.__struct_fields__,
    "kernel_version",
    "preset",
    "sm_clock_mhz",
)
_NUMBERS = (
    "duration_ns",
    "elapsed_cycles",
    "sm_clock_hz",
    "l2_bytes",
    "dram_read_bytes",
    "dram_write_bytes",
    "dram_total_bytes",
)


class Policy(msgspec.Struct, frozen=True, order=True):
    """What must be the same for latencies to be averaged: the tool, and how it controlled clocks and caches."""

    tool: str
    clock_control: str
    cache_control: str

    def describe(self) -> str:
        """Return e.g. `ncu, clock control base, cache control all`."""
        return f"{self.tool}, clock control {self.clock_control}, cache control {self.cache_control}"


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One launch of the table; numbers are in the units of `Launch`, `None` with its reason in `missing`.

    `rounding` holds, by column, the interval that an export's rounding left open. `place` is file and line of the
    table, `added` holds the user's columns that are filled in, by name.
    """

    place: str
    launch_id: str
    kernel: str
    full_name: str
    grid: str
    block: str
    source_file: str
    gpu: str
    policy: Policy
    numbers: dict[str, float | None]
    rounding: dict[str, tuple[float, float]]
    l2_definition: str
    missing: dict[str, str]
    flags: tuple[str, ...]
    added: dict[str, str]

    @property
    def clock_hz(self) -> float | None:
        """SM clock: as reached, else from cycles and duration, else as the user's column says."""
        clock, cycles, time_ns = (self.numbers[name] for name in ("sm_clock_hz", "elapsed_cycles", "duration_ns"))
        if clock is not None:
            return clock
        if cycles is not None and time_ns:
            return cycles / time_ns * 1e9
        return None

    def between(self, column: str) -> tuple[float, float] | None:
        """Return the interval that a value lies in, both ends the value where the export has every digit."""
        value = self.numbers[column]
        return None if value is None else self.rounding.get(column, (value, value))

    def why(self, column: str) -> str:
        """Return why `column` has no value."""
        return self.missing.get(column, "the table gives no reason")


def is_launch_table(path: str | Path) -> bool:
    """Whether the header of a CSV is that of a table of launches."""
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as handle:
            header = next(csv.reader(handle), [])
    except (OSError, UnicodeDecodeError, csv.Error):
        return False  # the reader of other tables says what is wrong with the file
    return all(mark in header for mark in MARKS)


def read_rows(path: str | Path) -> list[Row]:
    """Return the launches of a table that `simfa ingest -o measured.csv` wrote.

    Raises `MeasureError` naming file and line for a missing column, a row cut short, or a value that is no number.
    """
    file = Path(path)
    csv.field_size_limit(1 << 24)
    try:
        with file.open(encoding="utf-8-sig", newline="") as handle:
            reader = csv.DictReader(handle)
            header = reader.fieldnames or []
            lacking = [column for column in COLUMNS if column not in header]
            if lacking:
                raise MeasureError(
                    f"{file}: line 1: column {', '.join(lacking)} is missing; write it with simfa ingest"
                )
            rows = []
            for fields in reader:
                place = f"{file}: line {reader.line_num}"
                if None in fields or None in fields.values():
                    raise MeasureError(f"{place}: expected {len(header)} fields as in the header")
                rows.append(_row(place, fields))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise MeasureError(f"{file}: cannot be read: {error}") from error
    if not rows:
        raise MeasureError(f"{file}: holds no launch; expected one a line, as simfa ingest writes them")
    return rows


def _row(place: str, fields: Mapping[str, str]) -> Row:
    full_name = fields["kernel_demangled"] or fields["kernel_mangled"] or fields["kernel"]
    return Row(
        place=place,
        launch_id=fields["launch_id"],
        kernel=fields["kernel"],
        full_name=full_name,
        grid=fields["grid"],
        block=fields["block"],
        source_file=fields["source_file"],
        gpu=fields["gpu"],
        policy=Policy(
            fields["tool"] or "unknown tool",
            fields["clock_control"] or "unstated",
            fields["cache_control"] or "unstated",
        ),
        numbers={column: _number(place, column, fields[column]) for column in _NUMBERS},
        rounding=_decoded(place, "quantisation", fields["quantisation"], dict[str, tuple[float, float]]),
        l2_definition=fields["l2_definition"],
        missing=_reasons(place, fields["missing"]),
        flags=tuple(fields["flags"].split(";")) if fields["flags"] else (),
        added={column: fields[column].strip() for column in ADDED if fields.get(column, "").strip()},
    )


def _number(place: str, column: str, text: str) -> float | None:
    if not text:
        return None
    positive = column in ("duration_ns", "elapsed_cycles", "sm_clock_hz")
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not 0 <= value < float("inf") or (positive and value == 0):
        wanted = "a positive number" if positive else "a number of bytes"
        raise MeasureError(f"{place}: {column} is {text!r}; expected {wanted}, or nothing where it was not measured")
    return value


def _reasons(place: str, text: str) -> dict[str, str]:
    """Return the reason of each empty column; the table holds the columns of each reason."""
    by_reason = _decoded(place, "missing", text, dict[str, list[str]])
    return {column: reason for reason, columns in by_reason.items() for column in columns}


def _decoded(place: str, column: str, text: str, kind: type[Object]) -> Object:
    """Return the JSON object of a column, an empty one where the column is empty."""
    try:
        found: Object = msgspec.json.decode(text or "{}", type=kind)
    except msgspec.DecodeError as error:
        raise MeasureError(f"{place}: {column} is no JSON object as ingest writes it: {error}") from error
    return found


def launch_kind(row: Row) -> Literal["single", "looped"]:
    """Return `looped` for the means of benchmark scripts, whose launches follow each other without pause."""
    return "looped" if "benchmark" in row.flags else "single"


def configurations(rows: list[Row]) -> set[tuple[str, str, str]]:
    """Return the different kernels and launch configurations among rows of one tool."""
    return {(kernel_names.parse(row.full_name).identity, row.grid, row.block) for row in rows}
