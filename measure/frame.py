"""Launches as flat columns: for DataFrames, CSV and Parquet alike."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from simfa.measure.launch import COLUMNS, MEASURED, SHAPE_COLUMNS, Launch
from simfa.workload import SIZE_FIELDS, AttentionShape

if TYPE_CHECKING:
    import pandas

INTEGERS = ("device", "stream", "source_row", *SIZE_FIELDS, "causal")
NUMBERS = ("start_ns", *MEASURED)
_SIZES = tuple(COLUMNS.index(column) for column in ("grid", "block", "cluster"))
_FLAGS = COLUMNS.index("flags")
_OBJECTS = tuple(COLUMNS.index(column) for column in ("quantisation", "missing", "counters", "case"))
_MISSING = COLUMNS.index("missing")
_KEPT = 4096


def columns(launches: Iterable[Launch]) -> tuple[str, ...]:
    """Return the columns of a table of these launches."""
    return (*COLUMNS, *SHAPE_COLUMNS) if any(launch.shape is not None for launch in launches) else COLUMNS


def flat(launches: Iterable[Launch], width: int) -> Iterator[list[object]]:
    """Yield launches as one value a column, in the order of `columns`, `width` of them; `None` is missing.

    Sizes become `132x1x1`, flags `a;b`; intervals, counters and cases become JSON objects, empty ones `None`. `missing`
    becomes a JSON object of reasons, each with its columns.
    """
    known: dict[int, tuple[object, str | None]] = {}
    for launch in launches:
        row = list(msgspec.structs.astuple(launch))
        shape = row.pop()
        for position in _SIZES:
            if row[position] is not None:
                row[position] = "{}x{}x{}".format(*row[position])
        row[_FLAGS] = ";".join(row[_FLAGS]) or None
        for position in _OBJECTS:
            value = row[position]
            # Launches alike share dictionaries; kept beside its text, a dictionary's identity is not used again.
            if (text := known.get(id(value))) is None:
                known = known if len(known) < _KEPT else {}
                shown = _by_reason(value) if position == _MISSING else value
                text = known[id(value)] = (value, _json(shown) if value else None)
            row[position] = text[1]
        if width > len(row):
            row += [None] * len(SHAPE_COLUMNS) if shape is None else _shape_cells(shape)
        yield row


def _shape_cells(shape: AttentionShape) -> list[object]:
    """Return a shape's columns, the mask as 0 or 1."""
    return [int(value) if isinstance(value, bool) else value for value in msgspec.structs.astuple(shape)]


def _json(value: object) -> str:
    return msgspec.json.encode(value, order="sorted").decode()


def _by_reason(missing: dict[str, str]) -> dict[str, list[str]]:
    reasons: dict[str, list[str]] = {}
    for column, reason in missing.items():
        reasons.setdefault(reason, []).append(column)
    return reasons


def frame(launches: Sequence[Launch]) -> "pandas.DataFrame":
    """Return launches as a DataFrame; whole columns are `Int64`, measured ones `Int64` or `Float64`, the rest text."""
    import pandas

    names = columns(launches)
    rows = list(flat(launches, len(names)))
    data = {}
    for position, column in enumerate(names):
        values = [row[position] for row in rows]
        data[column] = pandas.array(values, dtype=_dtype(column, values))  # type: ignore[call-overload]
    return pandas.DataFrame(data)


def _dtype(column: str, values: Iterable[object]) -> str:
    if column in INTEGERS:
        return "Int64"
    if column in NUMBERS:
        return "Float64" if any(isinstance(value, float) for value in values) else "Int64"
    return "string"
