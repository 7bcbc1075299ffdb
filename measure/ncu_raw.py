"""Nsight Compute's raw page: one row a launch, one column a metric, units in the second row."""

from collections.abc import Iterable
from pathlib import Path

from simfa.errors import MeasureError
from simfa.measure.csv_lines import Row
from simfa.measure.extents import extent, integer
from simfa.measure.metric_table import DESCRIBING, DIMENSIONS
from simfa.measure.ncu_launch import Draft, Identity
from simfa.measure.opening import Notes
from simfa.measure.quantity import CellError, StopError


class Table:
    """One raw table while its rows come in."""

    def __init__(self, path: Path, columns: list[str], notes: Notes, segment: int) -> None:
        """Start the table whose header has `columns`, of which only the known ones are ever looked at."""
        self._path = path
        self._notes = notes
        self._segment = segment
        self._columns = columns
        self._at = {name: position for position, name in reversed(list(enumerate(columns)))}
        self._metrics = [(name, position) for position, name in enumerate(columns) if name in DIMENSIONS]
        self._described = [(name, self._at[name]) for name in sorted(DESCRIBING & self._at.keys())]
        self._units: list[str] | None = None
        self._drafts: list[Draft] = []

    def wants_units(self, row: Row) -> bool:
        """Return whether `row` can be this table's row of units: whole, and nothing under the launch's id."""
        if self._units is not None or self._drafts or row.fields is None:
            return False
        return len(row.fields) == len(self._columns) and not row.fields[0].strip()

    def drafts(self) -> Iterable[Draft]:
        """Return the launches gathered so far."""
        return self._drafts

    def take(self, row: Row) -> None:
        """Read the row of units or of one launch; a row that is broken, short or cut is dropped and reported."""
        fields = row.fields
        width = len(self._columns)
        if fields is not None and len(fields) > width and not any(fields[width:]):
            fields = fields[:width]
        if fields is None or len(fields) != width or row.cut:
            why = "its quotes do not balance" if fields is None else f"{len(fields)} of {width} fields"
            self._notes.drop(f"line {row.number}", "the file ends inside it" if row.cut else why)
        elif self.wants_units(row):
            self._units = fields
        elif self._units is None:
            raise MeasureError(
                f"{self._path}:{row.number}: the raw page has no row of units under its header, so its values "
                "cannot be scaled"
            )
        else:
            self._launch(row, fields, self._units)

    def _launch(self, row: Row, fields: list[str], units: list[str]) -> None:
        identity = Identity(
            self._segment,
            self._cell(fields, "Process ID"),
            self._cell(fields, "ID"),
            self._cell(fields, "Kernel Name"),
            extent(self._cell(fields, "Grid Size")),
            extent(self._cell(fields, "Block Size")),
        )
        draft = Draft(identity, row.number)
        draft.stream = integer(self._cell(fields, "Stream"))
        draft.device = integer(self._cell(fields, "Device"))
        draft.capability = self._cell(fields, "CC") or None
        draft.described = {name: fields[position].strip() for name, position in self._described}
        for name, position in self._metrics:
            try:
                draft.measure(name, fields[position], units[position])
            except StopError as error:
                raise MeasureError(f"{self._path}:{row.number}: column {name!r}: {error}") from error
            except CellError as error:
                self._notes.drop(f"line {row.number}", f"column {name!r}: {error}")
                return
        self._drafts.append(draft)

    def _cell(self, fields: list[str], column: str) -> str:
        position = self._at.get(column)
        return fields[position].strip() if position is not None else ""
