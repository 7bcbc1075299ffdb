"""Measurements as JSON, CSV or Parquet: streamed, the same bytes for the same input."""

import importlib
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from simfa.errors import MeasureError
from simfa.files import atomic_write
from simfa.measure.frame import INTEGERS, NUMBERS, columns, flat
from simfa.measure.reader import Measurements

SUFFIXES = (".csv", ".parquet")
_BATCH = 10_000
_SPECIAL = re.compile(r'[",\r\n]')


def json_parts(found: Measurements) -> Iterator[bytes]:
    """Yield the JSON document in parts: the facts first, then one launch a line, then the warnings."""
    head = {
        "format": found.format,
        "tool": found.tool,
        "tool_version": found.tool_version,
        "gpu": found.gpu,
        "sources": found.sources,
        "selection": found.selection,
        "kernels": found.kernels,
    }
    yield msgspec.json.encode(head)[:-1] + b',\n"launches":[\n'
    encoder = msgspec.json.Encoder()
    for position, launch in enumerate(found.launches):
        yield (b",\n" if position else b"") + encoder.encode(launch)
    yield b'\n],\n"warnings":' + msgspec.json.encode(found.warnings) + b"}\n"


def write(path: Path, found: Measurements) -> None:
    """Write launches to `path`, as CSV or Parquet by its suffix; nothing is left behind where that fails."""
    if path.suffix == ".parquet":
        _write_parquet(path, found)
        return
    with atomic_write(path) as handle:
        names = columns(found.launches)
        handle.write(",".join(names) + "\n")
        handle.writelines(csv_line(row) for row in flat(found.launches, len(names)))


def csv_line(row: Iterable[object]) -> str:
    """Return a row as the `csv` module writes it; most of a launch's text stands in the launches before it too."""
    cells = ["" if cell is None else _quoted(cell) if cell.__class__ is str else repr(cell) for cell in row]
    return ",".join(cells) + "\n"


@lru_cache(maxsize=4096)
def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if _SPECIAL.search(text) else text


def _write_parquet(path: Path, found: Measurements) -> None:
    try:
        arrow: Any = importlib.import_module("pyarrow")
        parquet: Any = importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        raise MeasureError(
            f"{path}: writing Parquet needs pyarrow: pip install 'simfa[parquet]', or write .csv"
        ) from error
    names = columns(found.launches)
    schema = arrow.schema([(column, _arrow_type(arrow, column)) for column in names])
    with atomic_write(path, "wb") as handle, parquet.ParquetWriter(handle, schema) as writer:
        for start in range(0, len(found.launches), _BATCH):
            rows = list(flat(found.launches[start : start + _BATCH], len(names)))
            arrays = [
                arrow.array(values, type=_arrow_type(arrow, name))
                for name, values in zip(names, zip(*rows, strict=True), strict=True)
            ]
            writer.write_table(arrow.Table.from_arrays(arrays, schema=schema))


def _arrow_type(arrow: Any, column: str) -> Any:
    if column in INTEGERS or column == "start_ns":
        return arrow.int64()
    return arrow.float64() if column in NUMBERS else arrow.string()
