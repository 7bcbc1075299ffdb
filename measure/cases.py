"""Measured kernel latencies as cases to simulate: what ran, where, at which clock, and how long it took.

A table of measurements (`data/measured/README.md` explains the columns) becomes a `CaseSet`: cases that the model can
run, and the rows it cannot or should not be judged by, each with its reason.
"""

import csv
import difflib
import re
from collections.abc import Iterable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

import msgspec

from simfa.errors import MeasureError, ShapeError
from simfa.kernel import KERNEL_VERSIONS, kernel_for
from simfa.measure.traffic import MeasuredTraffic
from simfa.summary import Excluded
from simfa.workload import SIZE_FIELDS, AttentionShape

TABLES = ("fa3_ncu_h100_1500mhz.csv", "fa3_public.csv")
REQUIRED_COLUMNS = ("gpu", *SIZE_FIELDS, "causal", "dtype", "latency_us")

# GPU text of a source, first match wins: preset, or None with the reason why no preset stands for that part.
GPU_PRESETS: tuple[tuple[str, str | None, str], ...] = (
    (r"PCIe", None, "no preset for PCIe parts"),
    (r"\bH100\b", "h100-sxm", ""),
    (r"\bH200\b", "h200-sxm", ""),
    (r"\bH800\b", "h800-sxm", ""),
    (r"\bH20\b", "h20", ""),
)


class MeasuredCase(msgspec.Struct, frozen=True, kw_only=True):
    """One measured launch, or mean of launches.

    `sm_clock_hz` is None when the source states no clock: the preset's nominal clock is simulated then. `launches` is
    `single` (one cold launch) or `looped`. `latency_us` is kernel time in microseconds. Cases made of launches have
    the times behind that median in `repeats_us`, median `cycles` where the clock is known, and their traffic;
    `rounding_us` is the interval that the export's rounding left open, where it rounded. `half` says, within a set that
    constants may be fitted on, which half a case is in: `calib` or `valid`.
    """

    id: str
    source_id: str
    gpu: str
    preset: str
    kernel_version: str
    sm_clock_hz: float | None
    shape: AttentionShape
    latency_us: float
    launches: Literal["single", "looped"] = "single"
    split: str = ""
    half: str = ""
    quality: str = ""
    source_url: str = ""
    repeats_us: tuple[float, ...] = ()
    rounding_us: tuple[float, float] | None = None
    cycles: float | None = None
    traffic: MeasuredTraffic | None = None
    note: str = ""


class CaseSet(msgspec.Struct, frozen=True):
    """The cases of one name, in the order of their table."""

    name: str
    cases: tuple[MeasuredCase, ...]
    excluded: tuple[Excluded, ...]


Number = TypeVar("Number", int, float)


class _Row(NamedTuple):
    """One line of a measured table."""

    fields: Mapping[str, str]
    place: str


def set_names() -> list[str]:
    """Return the names that `load_set` knows: all, ncu-1500, calib, valid, h20, and one for each public source."""
    sources = dict.fromkeys(row.fields["source_id"].lower() for row in _bundled_rows())
    return ["all", "ncu-1500", "calib", "valid", "h20", *(name for name in sources if name != "ncu")]


def load_set(name: str) -> CaseSet:
    """Return the bundled cases of set `name`; raises `MeasureError` for an unknown name."""
    if name not in set_names():
        close = difflib.get_close_matches(name, set_names(), 1)
        hint = f"; did you mean {close[0]}?" if close else ""
        raise MeasureError(f"measured set {name!r} is unknown; expected one of {', '.join(set_names())}{hint}")
    return case_set(name, (row for row in _bundled_rows() if _belongs(name, row.fields)))


def load_table(path: str | Path, name: str | None = None) -> CaseSet:
    """Return the cases of a CSV of measurements; the set is named after the file unless `name` is given.

    Raises `MeasureError` naming file and line for a missing column, a value that is not a number, or an empty table.
    """
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise MeasureError(f"{file}: cannot be read: {error}") from error
    rows = _rows(text, str(file))
    if not rows:
        raise MeasureError(f"{file}: holds no measurement; expected a header and one row a case")
    return case_set(name or file.stem, rows)


def case_set(name: str, rows: Iterable[_Row]) -> CaseSet:
    """Sort rows into cases and excluded rows."""
    cases: list[MeasuredCase] = []
    excluded: list[Excluded] = []
    for row in rows:
        case = _case(row)
        if isinstance(case, MeasuredCase):
            cases.append(case)
        else:
            excluded.append(case)
    return CaseSet(name, tuple(cases), tuple(excluded))


def preset_for(gpu: str) -> tuple[str | None, str]:
    """Return the preset that stands for a GPU as a source names it, or None and why there is none."""
    for pattern, preset, reason in GPU_PRESETS:
        if re.search(pattern, gpu, re.IGNORECASE):
            return preset, reason
    return None, "no preset for this GPU"


def _belongs(name: str, fields: Mapping[str, str]) -> bool:
    """Return whether a bundled row is part of set `name`."""
    if name == "all":
        return True
    if name == "ncu-1500":
        return fields["source_id"] == "NCU"
    if name == "h20":
        return fields["gpu"] == "H20"
    return name in (fields["split"], fields["source_id"].lower())


def _bundled_rows() -> list[_Row]:
    """Return all rows of the tables that ship with the package."""
    folder = resources.files("simfa.measured")
    return [row for table in TABLES for row in _rows((folder / table).read_text(encoding="utf-8"), table)]


def _rows(text: str, place: str) -> list[_Row]:
    """Return the rows of a CSV after checking its header."""
    reader = csv.DictReader(text.splitlines())
    header = reader.fieldnames or []
    missing = [column for column in REQUIRED_COLUMNS if column not in header]
    if missing:
        raise MeasureError(f"{place}: line 1: column {', '.join(missing)} is missing; expected {REQUIRED_COLUMNS}")
    rows = []
    for fields in reader:
        if None in fields or None in fields.values():
            raise MeasureError(f"{place}: line {reader.line_num}: expected {len(header)} fields as in the header")
        rows.append(_Row(fields, f"{place}: line {reader.line_num}"))
    return rows


def _case(row: _Row) -> MeasuredCase | Excluded:
    """Return a row as a case, or as excluded with its reason; malformed rows raise `MeasureError`."""
    fields, place = row
    name = fields.get("id") or place
    latency_us = _number(row, "latency_us", float)
    if not 0 < latency_us < float("inf"):
        raise MeasureError(f"{place}: latency_us is {fields['latency_us']}; expected a positive number")
    if fields["causal"].lower() not in ("0", "1", "true", "false"):
        raise MeasureError(f"{place}: causal is {fields['causal']!r}; expected 0 or 1")
    version = fields.get("kernel_version") or "latest"
    if version not in KERNEL_VERSIONS:
        raise MeasureError(f"{place}: kernel_version {version!r}; expected one of {', '.join(KERNEL_VERSIONS)}")
    clock_mhz = _number(row, "clock_mhz", float) if fields.get("clock_mhz") else None
    launches = fields.get("launches") or "single"
    if launches not in ("single", "looped"):
        raise MeasureError(f"{place}: launches is {launches!r}; expected single or looped")
    sizes: dict[str, Any] = {column: _number(row, column, int) for column in SIZE_FIELDS}
    try:
        shape = AttentionShape(**sizes, causal=fields["causal"].lower() in ("1", "true"), dtype=fields["dtype"])
        kernel_for(shape, version)
    except ShapeError as error:
        return Excluded(name, str(error))
    preset, reason = preset_for(fields["gpu"])
    if preset is None:
        return Excluded(name, f"{fields['gpu']}: {reason}")
    if fields.get("quality") == "C":
        return Excluded(name, f"quality C: {fields.get('notes') or 'doubtful configuration'}")
    return MeasuredCase(
        id=name,
        source_id=fields.get("source_id", ""),
        gpu=fields["gpu"],
        preset=preset,
        kernel_version=version,
        sm_clock_hz=None if clock_mhz is None else clock_mhz * 1e6,
        shape=shape,
        latency_us=latency_us,
        launches="looped" if launches == "looped" else "single",
        split=fields.get("split", ""),
        half=fields.get("half", ""),
        quality=fields.get("quality", ""),
        source_url=fields.get("source_url", ""),
    )


def _number(row: _Row, column: str, kind: type[Number]) -> Number:
    """Return a field as a number."""
    try:
        return kind(row.fields[column])
    except ValueError as error:
        wanted = "a whole number" if kind is int else "a number"
        raise MeasureError(f"{row.place}: {column} is {row.fields[column]!r}; expected {wanted}") from error
