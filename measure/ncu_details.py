"""Nsight Compute's details page and its summaries: one row a metric, gathered into launches or kernels."""

from collections.abc import Iterable
from pathlib import Path

from simfa.errors import MeasureError
from simfa.measure.csv_lines import Row
from simfa.measure.extents import extent, integer
from simfa.measure.metric_table import DESCRIBING, DIMENSIONS
from simfa.measure.ncu_launch import Draft, Identity
from simfa.measure.opening import Notes
from simfa.measure.quantity import Absent, CellError, StopError

_IDENTITY = ("ID", "Process ID", "Kernel Name", "Grid Size", "Block Size")


class Table:
    """One details or summary table while its rows come in."""

    def __init__(self, path: Path, columns: list[str], notes: Notes, segment: int) -> None:
        """Start the table whose header has `columns`; raises `MeasureError` where it lacks what a launch needs."""
        self._path = path
        self._notes = notes
        self._segment = segment
        at = {name: position for position, name in reversed(list(enumerate(columns)))}
        self._summary = "Average" in at
        needed = ("Kernel Name", "Metric Name", "Metric Unit", "Average" if self._summary else "Metric Value")
        if missing := [name for name in needed if name not in at]:
            hint = "; a summary over all kernels has no kernels to compare" if "Kernel Name" in missing else ""
            raise MeasureError(f"{path}: its Nsight Compute table has no column {', '.join(missing)}{hint}")
        self._at = at
        self._width = len(columns)
        self._metric, self._unit = at["Metric Name"], at["Metric Unit"]
        self._value = at["Average" if self._summary else "Metric Value"]
        self._body = at.get("Body Item Label")
        self._key = [at[name] for name in _IDENTITY if name in at]
        self._last = max(self._metric, self._unit, self._value, *self._key)
        self._drafts: dict[tuple[str, ...], Draft] = {}

    def wants_units(self, row: Row) -> bool:
        """Return false: units stand in a column of their own here."""
        return False

    def drafts(self) -> Iterable[Draft]:
        """Return the launches gathered so far."""
        return self._drafts.values()

    def take(self, row: Row) -> None:
        """Read one row into its launch; a row that is broken, short or cut is dropped and reported."""
        fields = row.fields
        if fields is None or len(fields) <= self._last or len(fields) > self._width:
            self._drop(row, "its quotes do not balance" if fields is None else f"{len(fields)} of {self._width} fields")
            return
        if row.cut and len(fields) == self._last + 1:
            self._drop(row, "the file ends inside it")
            return
        draft = self._draft(row, fields)
        name = fields[self._metric].strip()
        text = fields[self._value]
        if name in DESCRIBING:
            draft.described.setdefault(name, text.strip())
        elif name in DIMENSIONS:
            breakdown = self._body is not None and self._body < len(fields) and bool(fields[self._body].strip())
            try:
                draft.measure(name, text, fields[self._unit], breakdown=breakdown)
            except StopError as error:
                raise MeasureError(f"{self._path}:{row.number}: metric {name!r}: {error}") from error
            except CellError as error:
                draft.add(name, Absent(f"unreadable in line {row.number}"), breakdown=breakdown)
                self._drop(row, f"metric {name!r}: {error}")

    def _draft(self, row: Row, fields: list[str]) -> Draft:
        key = tuple([fields[position] for position in self._key])
        draft = self._drafts.get(key)
        if draft is None:
            draft = self._drafts[key] = Draft(self._identity(fields), row.number)
            draft.stream = integer(self._cell(fields, "Stream"))
            draft.device = integer(self._cell(fields, "Device"))
            draft.capability = self._cell(fields, "CC") or None
            if self._summary:
                draft.flags = ["summary", f"mean_of={self._cell(fields, 'Invocations') or 'unknown'}"]
        draft.line = min(draft.line, row.number)
        return draft

    def _identity(self, fields: list[str]) -> Identity:
        grid, block = extent(self._cell(fields, "Grid Size")), extent(self._cell(fields, "Block Size"))
        process, number, name = (self._cell(fields, column) for column in ("Process ID", "ID", "Kernel Name"))
        return Identity(self._segment, process, number, name, grid, block)

    def _cell(self, fields: list[str], column: str) -> str:
        position = self._at.get(column)
        return fields[position].strip() if position is not None and position < len(fields) else ""

    def _drop(self, row: Row, why: str) -> None:
        self._notes.drop(f"line {row.number}", why)
        fields = row.fields or []
        draft = self._drafts.get(tuple(fields[position] for position in self._key if position < len(fields)))
        if draft is not None:
            draft.flags.append("rows_dropped")
