"""Launches as flat columns: for DataFrames, CSV and Parquet alike."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from simfa.measure.launch import COLUMNS, MEASURED, Launch

if TYPE_CHECKING:
    import pandas

INTEGERS = ("device", "stream", "source_row")
NUMBERS = ("start_ns", *MEASURED)
_SIZES = tuple(COLUMNS.index(column) for column in ("grid", "block", "cluster"))
_FLAGS = COLUMNS.index("flags")
_OBJECTS = tuple(COLUMNS.index(column) for column in ("quantisation", "missing", "counters", "case"))
_MISSING = COLUMNS.index("missing")
_KEPT = 4096


def flat(launches: Iterable[Launch]) -> Iterator[list[object]]:
    """Yield launches as one value a column, in the order of `COLUMNS`; `None` is missing.

    Sizes become `132x1x1`, flags `a;b`; intervals, counters and cases become JSON objects, empty ones `None`. `missing`
    becomes a JSON object of reasons, each with its columns.
    """
    known: dict[int, tuple[object, str | None]] = {}
    for launch in launches:
        row = list(msgspec.structs.astuple(launch))
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
        yield row


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

    rows = list(flat(launches))
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
