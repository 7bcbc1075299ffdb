"""The mapping file (TOML): which launches of a capture computed which attention shape, with which kernel.

A profiler export knows kernels and grids, not shapes; `docs/ingest.md` shows a file.
"""

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path

import msgspec

from simfa.errors import MeasureError, SimfaError
from simfa.hardware import load_preset
from simfa.kernel import KERNEL_VERSIONS
from simfa.measure import kernel_names
from simfa.measure.launch_rows import Row, configurations
from simfa.workload import AttentionShape


class Match(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a launch must be for an entry to describe it; keys that are left out match everything.

    `kernel` is a regular expression, searched as by `simfa ingest --kernel`; `order` are positions, from 0 and in table
    order, among the launches that all other keys match.
    """

    kernel: str | None = None
    grid: str | None = None
    launch_id: str | int | None = None
    source_file: str | None = None
    tool: str | None = None
    clock_control: str | None = None
    cache_control: str | None = None
    order: int | list[int] | None = None


class Entry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One case: launches and what they computed. Launches that repeat it are its repeats.

    `gpu` is a preset; left out, the export's GPU is looked up. `sm_clock_mhz` holds where the export has no clock.
    """

    id: str
    match: Match
    shape: AttentionShape
    kernel_version: str = "latest"
    gpu: str | None = None
    sm_clock_mhz: float | None = None


def read_mapping(path: str | Path) -> list[Entry]:
    """Return the entries of a mapping file; raises `MeasureError` naming file, entry and what is wrong with it."""
    file = Path(path)
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise MeasureError(f"{file}: cannot be read as TOML: {error}") from error
    tables = document.pop("case", None)
    if document:
        raise MeasureError(f"{file}: {', '.join(sorted(document))}: unknown; expected [[case]] entries only")
    if not isinstance(tables, list) or not tables:
        raise MeasureError(f"{file}: holds no [[case]] entry")
    entries: list[Entry] = []
    for position, table in enumerate(tables, 1):
        entry = _entry(f"{file}: case {position}", table)
        if entry.id in {known.id for known in entries}:
            raise MeasureError(f"{file}: case {position}: id {entry.id!r} is taken; repeats of a case share one entry")
        entries.append(entry)
    return entries


def _entry(place: str, table: object) -> Entry:
    try:
        entry = msgspec.convert(table, Entry)
        if entry.gpu is not None:
            load_preset(entry.gpu)
        re.compile(entry.match.kernel or "")
    except (msgspec.ValidationError, SimfaError) as error:
        raise MeasureError(f"{place}: {error}") from error
    except re.error as error:
        raise MeasureError(f"{place}: kernel {entry.match.kernel!r} is no regular expression: {error}") from error
    if not re.fullmatch(r"[\w.+-]+", entry.id):
        raise MeasureError(f"{place}: id {entry.id!r}; expected letters, digits and any of _ . + -")
    if entry.kernel_version not in KERNEL_VERSIONS:
        expected = ", ".join(KERNEL_VERSIONS)
        raise MeasureError(f"{place}: kernel_version {entry.kernel_version!r}; expected one of {expected}")
    if entry.sm_clock_mhz is not None and not 0 < entry.sm_clock_mhz < float("inf"):
        raise MeasureError(f"{place}: sm_clock_mhz is {entry.sm_clock_mhz}; expected a positive number")
    return entry


def assign(path: str | Path, entries: Sequence[Entry], rows: Sequence[Row], *, allow_mixed: bool) -> list[Entry | None]:
    """Return the entry of each row, `None` where none matches.

    Raises `MeasureError` for an entry that matches nothing, kernels or grids that cannot be one shape, or launches of
    several policies without `allow_mixed`; and for a launch that two entries match.
    """
    owners: list[Entry | None] = [None] * len(rows)
    for entry in entries:
        found = matching(entry.match, rows)
        place = f"{path}: case {entry.id}"
        _check(place, [rows[index] for index in found], allow_mixed)
        for index in found:
            other = owners[index]
            if other is not None:
                raise MeasureError(
                    f"{place}: {rows[index].place} (launch {rows[index].launch_id}) is also matched by case "
                    f"{other.id}; narrow one of them with grid, launch_id, source_file or order"
                )
            owners[index] = entry
    return owners


def matching(match: Match, rows: Sequence[Row]) -> list[int]:
    """Return the positions of the rows that `match` describes."""
    pattern = None if match.kernel is None else re.compile(match.kernel)
    launch_id = None if match.launch_id is None else str(match.launch_id)
    policy = (match.tool, match.clock_control, match.cache_control)
    wanted = (match.grid, launch_id, match.source_file, *policy)
    found = []
    for index, row in enumerate(rows):
        has = (row.grid, row.launch_id, row.source_file, *msgspec.structs.astuple(row.policy))
        if all(value is None or value == own for value, own in zip(wanted, has, strict=True)) and (
            pattern is None or kernel_names.parse(row.full_name).matches(pattern)
        ):
            found.append(index)
    if match.order is None:
        return found
    chosen = [match.order] if isinstance(match.order, int) else match.order
    return [found[position] for position in sorted(set(chosen)) if 0 <= position < len(found)]


def _check(place: str, found: Sequence[Row], allow_mixed: bool) -> None:
    if not found:
        raise MeasureError(f"{place}: matches no launch; `simfa ingest FILE` shows kernels, the table grids and ids")
    for tool in {row.policy.tool for row in found}:
        kinds = configurations([row for row in found if row.policy.tool == tool])
        if len(kinds) > 1:
            shown = "; ".join(f"{name[:80]} grid {grid} block {block}" for name, grid, block in sorted(kinds)[:4])
            raise MeasureError(
                f"{place}: matches launches of {len(kinds)} kernels or grids, which one shape does not have: {shown}; "
                "narrow it with kernel, grid, launch_id, source_file or order"
            )
    policies = sorted({row.policy for row in found})
    if len(policies) > 1 and not allow_mixed:
        raise MeasureError(
            f"{place}: matches launches under {len(policies)} policies ({'; '.join(p.describe() for p in policies)}); "
            "make it one entry each (keys tool, clock_control, cache_control), or mix them with --allow-mixed"
        )
