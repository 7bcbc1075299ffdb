"""Nsight Systems SQLite exports, schema 2.7 (2021.5) to 3.25 (2026.2): kernel records by column name.

The schema moves: the metadata table was renamed, tables exist only when they have rows, columns came over the years.
Only kernel records count; environment variables, host and user names in the metadata are never read out.
"""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from functools import lru_cache
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

from simfa.errors import MeasureError
from simfa.measure import kernel_names
from simfa.measure.launch import Extent, Launch, Source, Stated, make_launch
from simfa.measure.opening import Notes, unpacked_file

KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
GRAPHS = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
OLDEST_SCHEMA, NEWEST_SCHEMA = (2, 7), (3, 25)
_META = ("META_DATA_EXPORT", "EXPORT_META_DATA")
_NAMES = ("demangledName", "shortName", "mangledName")
_OPTIONAL = (
    *("deviceId", "streamId", "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ"),
    *("clusterX", "clusterY", "clusterZ", "correlationId", "graphNodeId"),
)
_COUNTERS = "a trace has no counters; use ncu"
_LIKELY = (
    "likely causes: no CUDA tracing (nsys profile -t cuda), a program that ended before its kernels were flushed, "
    "WSL or a container without access to CUPTI"
)


def read(path: Path, notes: Notes, stated: Stated) -> Iterator[Launch]:
    """Yield kernel launches by start time; durations are exact ns.

    Raises `MeasureError` for a database that is damaged, cut short, no Nsight Systems export, or without kernels.
    """
    with unpacked_file(path, ".sqlite") as file:
        _check_size(path, file)
        _check_journal(path, file)
        try:
            with closing(sqlite3.connect(f"file:{quote(str(file))}?mode=ro&immutable=1", uri=True)) as database:
                database.text_factory = lambda text: text.decode("utf-8", "replace")
                yield from _launches(path, database, notes, stated)
        except (sqlite3.Error, OverflowError, UnicodeError) as error:
            raise MeasureError(f"{path}: this SQLite file is damaged: {error}; export the report again") from error
    _check_age(path, notes)


def _launches(path: Path, database: sqlite3.Connection, notes: Notes, stated: Stated) -> Iterator[Launch]:
    tables = {str(row[0]) for row in database.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")}
    version = _version(database, tables, notes)
    _warn_of_graphs(database, tables, notes)
    kernels = _newest(tables, KERNELS)
    if kernels is None:
        raise _no_kernels(path, tables)
    columns = _columns(database, kernels)
    missing = [name for name in ("start", "end") if name not in columns]
    names = [name for name in _NAMES if name in columns]
    if missing or not names or "StringIds" not in tables:
        wanted = ", ".join(missing or (["a name column"] if not names else ["the table StringIds"]))
        raise MeasureError(f"{path}: table {kernels} lacks {wanted}; it has {', '.join(sorted(columns))}")
    gpus = _gpus(database, tables)
    source = Source(notes.name, "nsys-sqlite", "nsys", version)
    picked = ["rowid", "start", "end", *names, *(name for name in _OPTIONAL if name in columns)]
    strings: dict[Any, str] = {}
    for name in names:
        query = f'SELECT id, value FROM StringIds WHERE id IN (SELECT DISTINCT "{name}" FROM "{kernels}")'
        strings.update(database.execute(query))
    selection = ", ".join(f'"{name}"' for name in picked)
    count = 0
    (rows,) = database.execute(f'SELECT count(*) FROM "{kernels}"').fetchone()
    for done, record in enumerate(database.execute(f'SELECT {selection} FROM "{kernels}" ORDER BY start, rowid')):
        notes.told_items(done, rows)
        row = dict(zip(picked, record, strict=True))
        launch = _launch(row, strings, gpus, source, notes, stated)
        if launch is not None:
            count += 1
            yield launch
    if not count:
        raise MeasureError(f"{path}: table {kernels} is there and holds no whole kernel record; {_LIKELY}")


def _launch(
    row: dict[str, Any], strings: dict[Any, str], gpus: dict[int, str], source: Source, notes: Notes, stated: Stated
) -> Launch | None:
    rowid, start, end = row["rowid"], row["start"], row["end"]
    if not (isinstance(start, int) and isinstance(end, int) and 0 <= start <= end):
        notes.drop(f"row {rowid} of the kernel table", f"start {start!r:.40}, end {end!r:.40}")
        return None
    demangled, short, mangled = (strings.get(row.get(name)) for name in _NAMES)
    full = demangled or mangled or short
    if not isinstance(full, str):
        notes.drop(f"row {rowid} of the kernel table", "without a name")
        return None
    name = kernel_names.parse(full)
    cell = row.get
    device = _whole(cell("deviceId"))
    graph = row.get("graphNodeId") is not None
    values: dict[str, object] = {
        "launch_id": str(row.get("correlationId") if row.get("correlationId") is not None else rowid),
        "kernel": name.function,
        "kernel_demangled": None if name.mangled else full,
        "kernel_mangled": mangled or (full if name.mangled else None),
        "grid": _sizes(cell("gridX"), cell("gridY"), cell("gridZ")),
        "block": _sizes(cell("blockX"), cell("blockY"), cell("blockZ")),
        "cluster": _sizes(cell("clusterX"), cell("clusterY"), cell("clusterZ")),
        "device": device,
        "stream": _whole(row.get("streamId")),
        "start_ns": start,
        "duration_ns": end - start,
        "clock_control": "none",
        "cache_control": "none",
        "gpu": gpus.get(device) if device is not None else None,
        "source_row": rowid,
        "flags": ("graph_node",) if graph else (),
        "counters": _TIMES,
    }
    return make_launch(source, values, _REASONS, _COUNTERS, stated=stated)


_TIMES = {"duration_ns": "end - start"}
_REASONS = tuple(
    {
        "cluster": "the kernel record has no cluster (schemas from 3.24 on have clusterX, clusterY, clusterZ)",
        "grid": "the kernel record has no grid",
        "block": "the kernel record has no block",
        "kernel_demangled": "the export has mangled names only",
        "device": "the kernel record has no device",
        "stream": "the kernel record has no stream",
    }.items()
)


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and value >= 0 else None


@lru_cache(maxsize=4096)
def _sizes(x: object, y: object, z: object) -> Extent | None:
    sizes = (_whole(x), _whole(y), _whole(z))
    return cast(Extent, sizes) if all(sizes) else None


def _newest(tables: set[str], name: str) -> str | None:
    """Return the table called `name`, or the variant with the highest `_V<n>` that community exports write."""
    variants = [
        (int(found[1] or 0), table) for table in tables if (found := re.fullmatch(rf"{name}(?:_V(\d{{1,3}}))?", table))
    ]
    return max(variants)[1] if variants else None


def _columns(database: sqlite3.Connection, table: str) -> set[str]:
    return {str(row[1]) for row in database.execute(f'PRAGMA table_info("{table}")')}


def _version(database: sqlite3.Connection, tables: set[str], notes: Notes) -> str | None:
    """Return the product version; warn of a schema that is unknown. Only keys about the export itself are read."""
    facts: dict[str, str] = {}
    for table in _META:
        if table in tables and {"name", "value"} <= _columns(database, table):
            query = (
                f"SELECT name, value FROM {table} WHERE name IN ('EXPORT_SCHEMA_VERSION', 'EXPORT_PRODUCT_VERSION', "
                "'EXPORT_SCHEMA_VERSION_MAJOR', 'EXPORT_SCHEMA_VERSION_MINOR')"
            )
            facts.update((str(name), str(value)) for name, value in database.execute(query))
    major_minor = f"{facts.get('EXPORT_SCHEMA_VERSION_MAJOR', '')}.{facts.get('EXPORT_SCHEMA_VERSION_MINOR', '')}"
    text = facts.get("EXPORT_SCHEMA_VERSION", major_minor)
    found = re.match(r"(\d{1,6})\.(\d{1,6})", text)
    if not found:
        notes.warn("does not name its export schema; columns were taken by name")
    elif (schema := (int(found[1]), int(found[2]))) > NEWEST_SCHEMA:
        notes.warn(
            f"export schema {text} is newer than the newest known ({_dotted(NEWEST_SCHEMA)}); columns were taken by "
            "name"
        )
    elif schema < OLDEST_SCHEMA:
        notes.warn(
            f"export schema {text} is older than the oldest known ({_dotted(OLDEST_SCHEMA)}); columns were taken by "
            "name"
        )
    return facts.get("EXPORT_PRODUCT_VERSION")


def _dotted(schema: tuple[int, int]) -> str:
    return f"{schema[0]}.{schema[1]}"


def _gpus(database: sqlite3.Connection, tables: set[str]) -> dict[int, str]:
    """Return GPU names by CUDA device number; the table may be missing."""
    if "TARGET_INFO_GPU" not in tables:
        return {}
    columns = _columns(database, "TARGET_INFO_GPU")
    if "name" not in columns:
        return {}
    number = next((name for name in ("cuDevice", "id") if name in columns), "rowid")
    found = {
        int(device): str(name)
        for device, name in database.execute(f"SELECT {number}, name FROM TARGET_INFO_GPU")
        if isinstance(device, int) and name
    }
    mapped = "TARGET_INFO_CUDA_DEVICE"
    if number != "cuDevice" and mapped in tables and {"gpuId", "cudaId"} <= _columns(database, mapped):
        pairs = database.execute(f"SELECT cudaId, gpuId FROM {mapped} ORDER BY 1, 2")
        found = {cuda: found[gpu] for cuda, gpu in pairs if isinstance(cuda, int) and gpu in found} or found
    return found


def _warn_of_graphs(database: sqlite3.Connection, tables: set[str], notes: Notes) -> None:
    if GRAPHS in tables and (count := database.execute(f"SELECT count(*) FROM {GRAPHS}").fetchone()[0]):
        notes.warn(
            f"{count} CUDA graph launches were traced as one block each, so their kernels are not in the kernel table; "
            "capture with nsys profile --cuda-graph-trace=node"
        )


def _no_kernels(path: Path, tables: set[str]) -> MeasureError:
    shown = [table for table in sorted(tables) if not table.startswith(("ENUM_", "sqlite_"))]
    activity = [table for table in shown if table.startswith("CUPTI_") or table == "StringIds"]
    if not activity:
        return MeasureError(f"{path}: is no Nsight Systems export; its tables: {', '.join(shown[:20]) or 'none'}")
    graphs = "; its kernels ran inside CUDA graphs: capture with --cuda-graph-trace=node" if GRAPHS in tables else ""
    return MeasureError(
        f"{path}: has no kernel table ({KERNELS}){graphs}; tables that are there: {', '.join(activity[:20])} "
        f"(API rows are no GPU work); {_LIKELY}"
    )


def _check_size(path: Path, file: Path) -> None:
    """Raise where the file is shorter than its header says: SQLite itself would read the pages that are left."""
    with file.open("rb") as handle:
        head = handle.read(100)
    size = file.stat().st_size
    if len(head) < 100:
        raise MeasureError(f"{path}: this SQLite file is cut short: {size} bytes; export the report again")
    page = int.from_bytes(head[16:18], "big")
    pages = int.from_bytes(head[28:32], "big") if head[24:28] == head[92:96] else 0
    if size < pages * (65536 if page == 1 else page):
        raise MeasureError(
            f"{path}: this SQLite file is cut short: {size} of {pages * page} bytes; copy or export it again"
        )


def _check_journal(path: Path, file: Path) -> None:
    for ending in ("-wal", "-journal"):
        journal = file.with_name(file.name + ending)
        if journal.exists() and journal.stat().st_size:
            raise MeasureError(
                f"{path}: {journal.name} lies beside it: the export is still being written or was broken off"
            )


def _check_age(path: Path, notes: Notes) -> None:
    for ending in (".nsys-rep", ".qdrep"):
        report = path.with_suffix(ending)
        if report.exists() and report.stat().st_mtime > path.stat().st_mtime:
            notes.warn(
                f"{report.name} beside it is newer: this export may be of an earlier capture (nsys export "
                "--force-overwrite)"
            )
