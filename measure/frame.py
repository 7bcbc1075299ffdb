"""Launches as flat columns: for DataFrames, CSV and Parquet alike."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from simfa.measure.launch import COLUMNS, MEASURED, Launch

if TYPE_CHECKING:
    import pandas

INTEGERS = ("device", "stream", "source_row")
NUMBERS = ("start_ns", *MEASURED)


def flat(launch: Launch) -> list[object]:
    """Return a launch as one value a column, in the order of `COLUMNS`; `None` is missing.

    Sizes become `132x1x1`, flags `a;b`; intervals, reasons, counters and cases become JSON objects, empty ones `None`.
    """
    return [_flat(column, getattr(launch, column)) for column in COLUMNS]


def _flat(column: str, value: object) -> object:
    if isinstance(value, tuple):
        return ("x" if column in ("grid", "block", "cluster") else ";").join(str(part) for part in value)
    if isinstance(value, dict):
        return msgspec.json.encode(value, order="sorted").decode() if value else None
    return value


def frame(launches: Sequence[Launch]) -> "pandas.DataFrame":
    """Return launches as a DataFrame; whole columns are `Int64`, measured ones `Int64` or `Float64`, the rest text."""
    import pandas

    rows = [flat(launch) for launch in launches]
    data = {}
    for position, column in enumerate(COLUMNS):
        values = [row[position] for row in rows]
        data[column] = pandas.array(values, dtype=_dtype(column, values))  # type: ignore[call-overload]
    return pandas.DataFrame(data)


def _dtype(column: str, values: Iterable[object]) -> str:
    if column in INTEGERS:
        return "Int64"
    if column in NUMBERS:
        return "Float64" if any(isinstance(value, float) for value in values) else "Int64"
    return "string"
