"""Launches joined with shapes: repeats become one case, policies become separate sets."""

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from simfa.errors import MeasureError, ShapeError
from simfa.kernel import KERNEL_VERSIONS, kernel_for
from simfa.measure.benchmark_shape import NO_SHAPE
from simfa.measure.cases import CaseSet, MeasuredCase, preset_for
from simfa.measure.launch_rows import Policy, Row, launch_kind, read_rows
from simfa.measure.mapping import Entry, assign, read_mapping
from simfa.measure.traffic import TRAFFIC, MeasuredTraffic
from simfa.summary import Excluded
from simfa.workload import SIZE_FIELDS, AttentionShape

# Launches whose clocks differ by more than this are averaged in cycles, not in time.
SAME_CLOCK = 1e-3


class _Key(NamedTuple):
    """What makes two launches repeats of one case; the policy is left out of it where policies are mixed."""

    policy: Policy | None
    id: str
    shape: AttentionShape
    kernel_version: str
    preset: str
    stated_clock_hz: float | None


def launch_sets(
    paths: Sequence[str], mapping: str | None = None, *, preset: str | None = None, allow_mixed: bool = False
) -> list[CaseSet]:
    """Return the cases of tables that `simfa ingest` wrote, one set for each tool, clock and cache policy.

    `mapping` says what launches computed, where columns of the table do not; `preset` stands for every GPU.
    `allow_mixed` makes one set of all policies. Raises `MeasureError` for what cannot be joined.
    """
    rows = [row for path in paths for row in read_rows(path)]
    name = "+".join(Path(path).stem for path in paths)
    owners: list[Entry | None] = [None] * len(rows)
    if mapping is not None:
        owners = assign(mapping, read_mapping(mapping), rows, allow_mixed=allow_mixed)
    elif not any("batch" in row.added for row in rows):
        raise MeasureError(
            f"{', '.join(paths)}: launches carry no attention shape; say what they computed with --mapping cases.toml, "
            f"or add the columns {', '.join(SIZE_FIELDS)}, causal and dtype"
        )
    groups: dict[_Key, list[Row]] = {}
    excluded: dict[Policy | None, list[Excluded]] = {}
    for row, entry in zip(rows, owners, strict=True):
        policy = None if allow_mixed else row.policy
        excluded.setdefault(policy, [])
        key = _key(row, entry, policy, preset)
        if isinstance(key, _Key):
            groups.setdefault(key, []).append(row)
        else:
            excluded[policy].append(key)
    _check_ids(list(groups))
    separate = len({key.policy for key in groups}) > 1
    sets = []
    for policy, left_out in excluded.items():
        cases = [_case(key, found, separate) for key, found in groups.items() if key.policy == policy]
        kinds = sorted({row.policy for row in rows}) if policy is None else [policy]
        label = f"{'mixed: ' if len(kinds) > 1 else ''}{'; '.join(kind.describe() for kind in kinds)}"
        sets.append(CaseSet(f"{name} ({label})", tuple(cases), tuple(left_out)))
    return sets


def _key(row: Row, entry: Entry | None, policy: Policy | None, preset: str | None) -> _Key | Excluded:
    """Return what a launch is a repeat of, or why it is left out."""
    name = f"{row.source_file}:{row.launch_id}"
    own = None
    try:
        own = _own_shape(row)
        shape = own or (entry.shape if entry else None)
        if shape is None:
            return Excluded(name, _no_shape(row))
        if entry and own and own != entry.shape:
            theirs = f"case {entry.id} of the mapping {entry.shape.describe()}"
            raise MeasureError(f"{row.place}: its columns say {own.describe()}, {theirs}")
        version = entry.kernel_version if entry else row.added.get("kernel_version", "latest")
        if version not in KERNEL_VERSIONS:
            raise MeasureError(f"{row.place}: kernel_version {version!r}; expected one of {', '.join(KERNEL_VERSIONS)}")
        kernel_for(shape, version)
    except ShapeError as error:
        return Excluded(name, str(error))
    stated_mhz = entry.sm_clock_mhz if entry else None
    if "sm_clock_mhz" in row.added:
        stated_mhz = _number(row, "sm_clock_mhz", float)
    found = preset or (entry.gpu if entry else None) or row.added.get("preset")
    if found is None:
        found, reason = preset_for(row.gpu)
        if found is None:
            return Excluded(
                name, f"{row.gpu}: {reason}" if row.gpu else "the export does not name the GPU: give a preset"
            )
    case_id = entry.id if entry else row.added.get("case_id") or _shape_id(shape, version, found)
    return _Key(policy, case_id, shape, version, found, None if stated_mhz is None else stated_mhz * 1e6)


def _no_shape(row: Row) -> str:
    """Return why nothing says what a launch computed."""
    if "benchmark" not in row.flags:
        return "no mapping entry matches and the table names no shape"
    why = next((NO_SHAPE[flag] for flag in row.flags if flag in NO_SHAPE), "not FA3's forward kernel")
    return f"no mapping entry matches, and of this benchmark result no shape is known: {why}"


def _check_ids(keys: Sequence[_Key]) -> None:
    """Refuse an id that stands for two things: its cases could not be told apart in the results."""
    seen: dict[tuple[Policy | None, str], _Key] = {}
    for key in keys:
        other = seen.setdefault((key.policy, key.id), key)
        if other != key:
            both = [
                f"{k.shape.describe()}, {k.kernel_version}, {k.preset}, {k.stated_clock_hz or 'own'} Hz"
                for k in (other, key)
            ]
            raise MeasureError(f"case {key.id} is two: {both[0]}; and {both[1]}; give each its own id")


def _own_shape(row: Row) -> AttentionShape | None:
    """Return the shape that the row's added columns state, all of them or none."""
    columns = (*SIZE_FIELDS, "causal", "dtype")
    lacking = [column for column in columns if column not in row.added]
    if len(lacking) == len(columns):
        return None
    if lacking:
        raise MeasureError(f"{row.place}: {', '.join(lacking)} is empty; a shape needs {', '.join(columns)}")
    if row.added["causal"].lower() not in ("0", "1", "true", "false"):
        raise MeasureError(f"{row.place}: causal is {row.added['causal']!r}; expected 0 or 1")
    sizes: dict[str, Any] = {column: _number(row, column, int) for column in SIZE_FIELDS}
    return AttentionShape(**sizes, causal=row.added["causal"].lower() in ("1", "true"), dtype=row.added["dtype"])


def _number(row: Row, column: str, kind: type[int] | type[float]) -> float:
    try:
        value = kind(row.added[column])
    except ValueError:
        value = 0
    if not 0 < value < float("inf"):
        raise MeasureError(f"{row.place}: {column} is {row.added[column]!r}; expected a positive number")
    return value


def _shape_id(shape: AttentionShape, version: str, preset: str) -> str:
    return "_".join([*shape.describe().replace("/", "-").split(), version, Path(preset).stem])


def _case(key: _Key, rows: Sequence[Row], separate: bool) -> MeasuredCase:
    """Return repeats as one case: medians of time, of cycles and of traffic."""
    policy = key.policy or rows[0].policy
    suffix = f".{policy.tool}-{policy.clock_control}-{policy.cache_control}" if separate else ""
    times_us = [_time_us(row) for row in rows]
    clocks = [clock for row in rows if (clock := row.clock_hz or key.stated_clock_hz) is not None]
    clock = float(round(statistics.median(clocks))) if len(clocks) == len(rows) else None
    cycles = None
    note = ""
    if clock is not None:
        each = [
            row.numbers["elapsed_cycles"] or time_us * own / 1e6
            for row, time_us, own in zip(rows, times_us, clocks, strict=True)
        ]
        cycles = statistics.median(each)
        if max(clocks) / min(clocks) - 1 > SAME_CLOCK:
            times_us = [count / clock * 1e6 for count in each]
            note = (
                f"launches ran at {min(clocks) / 1e6:.0f} to {max(clocks) / 1e6:.0f} MHz: their cycles are compared, "
                f"as time at {clock / 1e6:.0f} MHz"
            )
    return MeasuredCase(
        id=key.id + suffix,
        source_id=policy.tool,
        gpu=rows[0].gpu or key.preset,
        preset=key.preset,
        kernel_version=key.kernel_version,
        sm_clock_hz=clock,
        shape=key.shape,
        latency_us=statistics.median(times_us),
        launches=launch_kind(rows[0]),
        repeats_us=tuple(times_us),
        rounding_us=None if note else _rounding_us(rows),
        cycles=cycles,
        traffic=_traffic(rows),
        note=note,
    )


def _time_us(row: Row) -> float:
    time_ns = row.numbers["duration_ns"]
    if time_ns is None:
        raise MeasureError(
            f"{row.place} (launch {row.launch_id}): has no duration_ns: {row.why('duration_ns')}; "
            "capture gpu__time_duration.sum, or keep the launch out of mapping and shape columns"
        )
    return time_ns / 1000


def _median_between(rows: Sequence[Row], column: str) -> tuple[float, float] | None:
    """Return the interval that the median lies in for what the export rounded away; `None` where it has every digit."""
    ends = [found for row in rows if (found := row.between(column)) is not None]
    low, high = (statistics.median(end) for end in zip(*ends, strict=True))
    return None if low == high else (low, high)


def _rounding_us(rows: Sequence[Row]) -> tuple[float, float] | None:
    found = _median_between(rows, "duration_ns")
    return None if found is None else (found[0] / 1000, found[1] / 1000)


def _traffic(rows: Sequence[Row]) -> MeasuredTraffic:
    """Return the median traffic; a quantity that any launch lacks, or defines otherwise, has none."""
    values: dict[str, float | None] = {}
    rounding = {}
    missing = {}
    for column in TRAFFIC:
        present = [number for row in rows if (number := row.numbers[column]) is not None]
        values[column] = statistics.median(present) if len(present) == len(rows) else None
        if values[column] is not None and (between := _median_between(rows, column)) is not None:
            rounding[column] = between
        if values[column] is None:
            missing[column] = next(row.why(column) for row in rows if row.numbers[column] is None)
    definitions = {row.l2_definition for row in rows}
    if len(definitions) > 1:
        values["l2_bytes"] = None
        missing["l2_bytes"] = f"launches define it differently: {', '.join(sorted(map(str, definitions)))}"
    caches = {row.policy.cache_control for row in rows}
    return MeasuredTraffic(
        **values,
        l2_definition=rows[0].l2_definition,
        cache_control=caches.pop() if len(caches) == 1 else "mixed",
        missing=missing,
        rounding=rounding,
    )
