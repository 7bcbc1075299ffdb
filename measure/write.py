"""Measurements as JSON, CSV or Parquet: streamed, the same bytes for the same input."""

import csv
import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from simfa.errors import MeasureError
from simfa.files import atomic_write
from simfa.measure.frame import INTEGERS, NUMBERS, flat
from simfa.measure.launch import COLUMNS
from simfa.measure.reader import Measurements

SUFFIXES = (".csv", ".parquet")
_BATCH = 10_000


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
        writer = csv.writer(handle, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(flat(found.launches))


def _write_parquet(path: Path, found: Measurements) -> None:
    try:
        arrow: Any = importlib.import_module("pyarrow")
        parquet: Any = importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        raise MeasureError(
            f"{path}: writing Parquet needs pyarrow: pip install 'simfa[parquet]', or write .csv"
        ) from error
    schema = arrow.schema([(column, _arrow_type(arrow, column)) for column in COLUMNS])
    with atomic_write(path, "wb") as handle, parquet.ParquetWriter(handle, schema) as writer:
        for start in range(0, len(found.launches), _BATCH):
            rows = list(flat(found.launches[start : start + _BATCH]))
            columns = [
                arrow.array(values, type=_arrow_type(arrow, name))
                for name, values in zip(COLUMNS, zip(*rows, strict=True), strict=True)
            ]
            writer.write_table(arrow.Table.from_arrays(columns, schema=schema))


def _arrow_type(arrow: Any, column: str) -> Any:
    if column in INTEGERS or column == "start_ns":
        return arrow.int64()
    return arrow.float64() if column in NUMBERS else arrow.string()
