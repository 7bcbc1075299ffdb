"""Reading tables of calls in chunks: CSV, TSV and Parquet, every bad row named by line and column."""

import csv
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from simfa.analytical.table import INPUT_COLUMNS, SHAPE_COLUMNS, Column, missing_columns
from simfa.errors import AnalyticalError, did_you_mean

DELIMITERS = {".csv": ",", ".tsv": "\t"}
_INT64_MAX = 2**63 - 1


class Reject(NamedTuple):
    """A row that cannot be priced: its line (row, in Parquet), the column, why, and its cells."""

    line: int
    column: str
    reason: str
    cells: list[Any]


class Chunk(NamedTuple):
    """Rows that were read: good ones as integer arrays by column with their lines, the others as rejects in order."""

    columns: dict[str, Column]
    lines: Column
    rejects: list[Reject]

    @property
    def rows(self) -> int:
        """Number of good rows."""
        return len(self.lines)

    def without(self, bad: dict[int, tuple[str, str]]) -> "Chunk":
        """Return the chunk with good rows `bad` (index: column, reason) moved to the rejects."""
        if not bad:
            return self
        keep = np.ones(self.rows, dtype=bool)
        keep[list(bad)] = False
        found = [
            Reject(int(self.lines[index]), *bad[index], [int(column[index]) for column in self.columns.values()])
            for index in bad
        ]
        return Chunk(
            columns={name: column[keep] for name, column in self.columns.items()},
            lines=self.lines[keep],
            rejects=sorted([*self.rejects, *found], key=lambda reject: reject.line),
        )


def read_chunks(source: Path, chunk_rows: int) -> Iterator[Chunk]:
    """Yield the table in chunks of `chunk_rows`, at least one; raises `AnalyticalError` for a wrong header or file."""
    suffix = source.suffix.lower()
    if suffix == ".parquet":
        return _parquet_chunks(source, chunk_rows)
    if suffix in DELIMITERS:
        return _text_chunks(source, DELIMITERS[suffix], chunk_rows)
    raise AnalyticalError(f"{source}: expected a name ending in .csv, .tsv or .parquet")


def pyarrow() -> Any:
    """Import pyarrow with its Parquet module, or raise `AnalyticalError` saying how to get it."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise AnalyticalError("Parquet needs pyarrow; pip install 'simfa[parquet]'") from error
    return pyarrow


def _text_chunks(source: Path, delimiter: str, chunk_rows: int) -> Iterator[Chunk]:
    try:
        with source.open(encoding="utf-8-sig") as handle:
            header = [name.strip() for name in next(csv.reader([handle.readline()], delimiter=delimiter), [])]
            _check_header(source, header)
            yield from _text_bodies(handle, header, delimiter, chunk_rows)
    except OSError as error:
        raise AnalyticalError(f"{source}: cannot be read: {error.strerror}") from error
    except (csv.Error, UnicodeDecodeError) as error:
        raise AnalyticalError(f"{source}: not a text table: {error}") from error


def _text_bodies(handle: IO[str], header: list[str], delimiter: str, chunk_rows: int) -> Iterator[Chunk]:
    first_line = 2
    while True:
        lines = list(itertools.islice(handle, chunk_rows))
        if not lines and first_line > 2:
            return
        columns = _all_integers(lines, len(header), delimiter)
        if columns is not None:
            yield _checked(header, columns, range(first_line, first_line + len(lines)), [])
        else:
            rows = csv.reader(lines, delimiter=delimiter)
            yield _sifted(header, rows, first_line)
        first_line += max(1, len(lines))


def _all_integers(lines: list[str], width: int, delimiter: str) -> Column | None:
    """Return the cells as an array of `width` columns when every one is a plain 64-bit integer, else nothing."""
    if not lines:
        return np.empty((0, width), dtype=np.int64)
    text = "".join(lines)
    if not text.isascii() or text.encode().translate(None, b"0123456789\n" + delimiter.encode()):
        return None
    try:
        table = np.loadtxt(lines, delimiter=delimiter, dtype=np.int64, ndmin=2, comments=None)
    except (ValueError, OverflowError):
        return None
    return table if table.shape == (len(lines), width) else None


def _checked(header: list[str], table: Column, lines: Sequence[int], rejects: list[Reject]) -> Chunk:
    """Return integer rows as a chunk, moving rows with zeros or uneven heads to the rejects."""
    columns = {name: np.ascontiguousarray(table[:, index]) for index, name in enumerate(header)}
    bad: dict[int, tuple[str, str]] = {}
    for name, column in columns.items():
        for index in np.flatnonzero(column < 1).tolist():
            bad.setdefault(index, (name, f"is {column[index]}; expected a positive whole number"))
    if "heads_q" in columns:
        heads, groups = columns["heads_q"], np.maximum(columns["heads_kv"], 1)
        for index in np.flatnonzero(heads % groups).tolist():
            bad.setdefault(index, ("heads_q", f"{heads[index]} is not a multiple of heads_kv {groups[index]}"))
    return Chunk(columns, np.asarray(lines, dtype=np.int64), rejects).without(bad)


def _sifted(header: list[str], rows: Iterator[list[Any]], first_line: int) -> Chunk:
    """Return rows cell by cell: those with a cell that is no integer become rejects."""
    good: list[list[int]] = []
    lines: list[int] = []
    rejects: list[Reject] = []
    for line, row in enumerate(rows, first_line):
        problem = _row_problem(header, row)
        if problem is None:
            good.append([int(cell) for cell in row])
            lines.append(line)
        else:
            rejects.append(Reject(line, *problem, row))
    return _checked(header, np.asarray(good, dtype=np.int64).reshape(-1, len(header)), lines, rejects)


def _row_problem(header: list[str], row: list[Any]) -> tuple[str, str] | None:
    """Return the first column of a row that is wrong, and why."""
    if len(row) != len(header):
        return header[
            min(len(row), len(header) - 1)
        ], f"row has {len(row)} cells; expected {len(header)}, as the header"
    for name, cell in zip(header, row, strict=True):
        if cell is None or (isinstance(cell, str) and not cell.strip()):
            return name, "is empty; expected a positive whole number"
        value = cell
        if isinstance(cell, str):
            text = cell.strip()
            value = int(text) if text.isascii() and text.isdigit() else text
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            return name, f"is {_shown(value)}; expected a positive whole number"
        if value > _INT64_MAX:
            return name, f"is {value}; expected at most {_INT64_MAX}"
    return None


def _shown(value: object) -> str:
    """Return a cell's value for a message: unprintable characters escaped, cut where it is long."""
    text = str(value) if str(value).isprintable() else ascii(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _parquet_chunks(source: Path, chunk_rows: int) -> Iterator[Chunk]:
    arrow = pyarrow()
    try:
        table = arrow.parquet.ParquetFile(source)
        header = list(table.schema_arrow.names)
        _check_header(source, header)
        seen = 0
        for batch in table.iter_batches(batch_size=chunk_rows):
            rows = zip(*(column.to_pylist() for column in batch.columns), strict=True)
            yield _sifted(header, map(list, rows), seen + 1)
            seen += batch.num_rows
        if not seen:
            yield _checked(header, np.empty((0, len(header)), dtype=np.int64), [], [])
    except OSError as error:
        raise AnalyticalError(f"{source}: cannot be read: {error}") from error
    except arrow.ArrowInvalid as error:
        raise AnalyticalError(f"{source}: not a Parquet file: {error}") from error


def _check_header(source: Path, header: list[str]) -> None:
    if not any(header):
        raise AnalyticalError(f"{source}: empty; expected a header line with {', '.join(SHAPE_COLUMNS)}")
    for name in header:
        if name not in INPUT_COLUMNS:
            hint = did_you_mean(name, INPUT_COLUMNS, f"expected {', '.join(INPUT_COLUMNS)}")
            raise AnalyticalError(f"{source}: column {name!r} is unknown; {hint}")
    doubled = [name for name in header if header.count(name) > 1]
    if doubled:
        raise AnalyticalError(f"{source}: column {doubled[0]} appears twice")
    given = set(header)
    if given & {"heads_q", "heads_kv"} and given & {"group_size", "num_kv_heads"}:
        raise AnalyticalError(f"{source}: give heads_q and heads_kv, or group_size and num_kv_heads, not both")
    lacking = missing_columns(given)
    if lacking:
        raise AnalyticalError(f"{source}: column {lacking[0]} is missing")
