"""The one table every reader fills: a kernel launch with its units, definitions and provenance."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

import msgspec

from simfa.measure.quantity import Number
from simfa.workload import AttentionShape

Extent = tuple[int, int, int]
# Column and why it has no value; a tuple, so that launches alike can share what is made of it.
Reasons = tuple[tuple[str, str], ...]


class Launch(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """One kernel launch, or one kernel of a summary or benchmark (then `flags` says so).

    `None` means not measured, with the reason under the column's name in `missing`. Times are ns, traffic is bytes.
    `quantisation` holds, by column, the interval the true value lies in where the export rounded; `counters` holds the
    counter each value came from. `shape` is what a benchmark computed, where its output tells. `source_row` is a line
    number, a SQLite row id or the index of a JSON event.
    """

    launch_id: str
    kernel: str | None
    kernel_demangled: str | None
    grid: Extent | None
    block: Extent | None
    cluster: Extent | None
    device: int | None
    stream: int | None
    start_ns: Number | None
    duration_ns: Number | None
    elapsed_cycles: Number | None
    sm_clock_hz: Number | None
    dram_read_bytes: Number | None
    dram_write_bytes: Number | None
    dram_total_bytes: Number | None
    l2_bytes: Number | None
    l2_definition: str | None
    l2_hit_pct: Number | None
    tensor_pipe_pct: Number | None
    clock_control: str | None
    cache_control: str | None
    quantisation: dict[str, tuple[Number, Number]]
    source_file: str
    source_row: int
    flags: tuple[str, ...]
    missing: dict[str, str]
    counters: dict[str, str]
    case: dict[str, str]
    kernel_mangled: str | None
    format: str
    tool: str
    tool_version: str | None
    gpu: str | None
    shape: AttentionShape | None = None


COLUMNS = Launch.__struct_fields__[:-1]
# Columns that a table has beside those where any launch has a shape.
SHAPE_COLUMNS = AttentionShape.__struct_fields__

# Columns that hold a measurement; a median is taken over these.
MEASURED = (
    "duration_ns",
    "elapsed_cycles",
    "sm_clock_hz",
    "dram_read_bytes",
    "dram_write_bytes",
    "dram_total_bytes",
    "l2_bytes",
    "l2_hit_pct",
    "tensor_pipe_pct",
)

# Columns that may be null and then owe a reason.
NULLABLE = (
    "kernel",
    "kernel_demangled",
    "grid",
    "block",
    "cluster",
    "device",
    "stream",
    "start_ns",
    *MEASURED,
    "l2_definition",
    "clock_control",
    "cache_control",
    "tool_version",
    "gpu",
)

_UNSTATED = {
    "tool_version": "the export does not name the tool's version",
    "gpu": "the export does not name the GPU; say it with --gpu",
    "clock_control": "the export does not say; state it with --clock-control (ncu locks to base unless told otherwise)",
    "cache_control": "the export does not say; state it with --cache-control (ncu flushes all unless told otherwise)",
    "l2_definition": "there is no l2_bytes to define",
}


class Stated(NamedTuple):
    """What the user says about a capture where the export is silent."""

    gpu: str | None = None
    clock_control: str | None = None
    cache_control: str | None = None


class Source(NamedTuple):
    """What one file turned out to be."""

    name: str
    format: str
    tool: str
    tool_version: str | None = None
    gpu: str | None = None


def make_launch(
    source: Source, values: Mapping[str, object], reasons: Reasons, default: str, *, stated: Stated
) -> Launch:
    """Return a launch of `values`, with a reason for every null column.

    A reason is looked for in `reasons`, then among the standing ones, then `default` is taken. What the export leaves
    open and `stated` answers is filled in and flagged `<column>_stated`.
    """
    row = _BLANK.copy()
    row.update(
        format=source.format,
        tool=source.tool,
        tool_version=source.tool_version,
        gpu=source.gpu,
        source_file=source.name,
    )
    row.update(values)
    flags = row["flags"]
    assert isinstance(flags, tuple)
    if stated != _NOTHING:
        for column, said in zip(Stated._fields, stated, strict=True):
            if said is not None and row[column] is None:
                row[column] = said
                flags = (*flags, f"{column}_stated")
        row["flags"] = flags
    nulls = tuple([column for column in NULLABLE if row[column] is None])
    row["missing"] = _reasons(nulls, reasons, default)
    return Launch(**row)  # type: ignore[arg-type]


_EMPTY: dict[str, str] = {}
_BLANK: dict[str, object] = dict.fromkeys(COLUMNS)
_BLANK.update(quantisation=_EMPTY, counters=_EMPTY, case=_EMPTY, flags=())
_NOTHING = Stated()


@lru_cache(maxsize=4096)
def _reasons(nulls: tuple[str, ...], given: Reasons, default: str) -> dict[str, str]:
    """Return the reason of each null column; launches alike share one dictionary, which keeps large tables small."""
    own = dict(given)
    return {column: own.get(column) or _UNSTATED.get(column) or default for column in nulls}


def numbered(launches: Iterable[Launch]) -> list[Launch]:
    """Return launches with ids made unique: a second `3` becomes `3#2`."""
    launches = list(launches)
    if len({launch.launch_id for launch in launches}) == len(launches):
        return launches
    seen: dict[str, int] = {}
    result = []
    for launch in launches:
        count = seen[launch.launch_id] = seen.get(launch.launch_id, 0) + 1
        result.append(
            launch if count == 1 else msgspec.structs.replace(launch, launch_id=f"{launch.launch_id}#{count}")
        )
    return result
