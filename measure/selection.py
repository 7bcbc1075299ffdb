"""Which kernels to keep: an explicit choice by name, helpers left out, warm-up skipped, repeats collapsed."""

import re
import statistics
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

import msgspec

from simfa.errors import MeasureError
from simfa.measure import kernel_names
from simfa.measure.launch import MEASURED, Launch
from simfa.measure.quantity import Number

_SHOWN = 12


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """What to keep. `kernel` is searched in the function's name without template arguments, `kernel_full` in all of it.

    `several` allows a pattern to match more than one kernel, `helpers` keeps helper kernels, `skip` leaves out the
    first launches of each kernel and launch configuration, `median` makes one row of each.
    """

    kernel: str | None = None
    kernel_full: str | None = None
    several: bool = False
    helpers: bool = False
    skip: int = 0
    median: bool = False


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """One kernel seen in the files: its names, its rows and their total time, and what became of it."""

    kernel: str
    functor: str | None
    full_name: str
    rows: int
    total_ns: Number | None
    state: str


class _Seen:
    """Running totals of one kernel."""

    __slots__ = ("full", "rows", "state", "total")

    def __init__(self, full: str, state: str) -> None:
        self.full = full
        self.state = state
        self.rows = 0
        self.total: Number | None = 0


def full_name(launch: Launch) -> str:
    """Return the fullest name the export has."""
    return launch.kernel_demangled or launch.kernel_mangled or launch.kernel or ""


def pattern(text: str | None) -> re.Pattern[str] | None:
    """Compile a pattern of the user's; raises `MeasureError` where it is no regular expression."""
    try:
        return None if text is None else re.compile(text)
    except re.error as error:
        raise MeasureError(f"kernel pattern {text!r} is no regular expression: {error}") from error


def choose(files: Mapping[str, Iterable[Launch]], choice: Choice) -> tuple[list[Launch], list[Candidate]]:
    """Return the launches kept, file after file and by start time inside each, and every kernel that was seen.

    `files` holds the launches of each file by its path. Only launches that are kept stay in memory. Raises
    `MeasureError`, listing the candidates, where a pattern matches no kernel, or more than one without `several`.
    """
    short, full = pattern(choice.kernel), pattern(choice.kernel_full)
    seen: dict[str, _Seen] = {}
    where = ", ".join(files)
    kept: list[list[Launch]] = []
    for launches in files.values():
        own: list[Launch] = []
        for launch in launches:
            text = full_name(launch)
            name = kernel_names.parse(text)
            known = seen.get(name.identity)
            if known is None:
                known = seen[name.identity] = _Seen(text, _state(name, text, short, full, choice.helpers))
            known.rows += 1
            known.total = (
                None if known.total is None or launch.duration_ns is None else known.total + launch.duration_ns
            )
            if known.state == "chosen":
                own.append(launch)
        if all(launch.start_ns is not None for launch in own):
            own.sort(key=lambda launch: (launch.start_ns, launch.device or 0, launch.stream or 0, launch.launch_id))
        kept.append(own)
    candidates = [_candidate(known) for known in seen.values()]
    candidates.sort(key=lambda c: (c.state != "chosen", -(c.total_ns or 0), c.full_name))
    chosen = [candidate for candidate in candidates if candidate.state == "chosen"]
    asked = " and ".join(
        f"{key} {value!r}"
        for key, value in (("--kernel", choice.kernel), ("--kernel-full", choice.kernel_full))
        if value
    )
    if not chosen:
        helpers = any(candidate.state.startswith("helper") for candidate in candidates)
        why = f"no kernel matches {asked}" if asked else "there is no kernel to keep"
        why += ", leaving out helper kernels (--helpers keeps them)" if helpers else ""
        raise MeasureError(f"{where}: {why}; the candidates are:\n{listing(candidates)}")
    if asked and len(chosen) > 1 and not choice.several:
        raise MeasureError(
            f"{where}: {asked} matches {len(chosen)} kernels; narrow it (--kernel-full REGEX matches template "
            f"arguments too), or take all with --several; the candidates are:\n{listing(chosen)}"
        )
    return [launch for own in kept for launch in _repeats(own, choice)], candidates


def listing(candidates: list[Candidate]) -> str:
    """Return candidates as indented lines, most time first."""
    lines = [
        f"  {c.kernel}{f' [{c.functor}]' if c.functor else ''}: {c.rows} rows, "
        f"{'time unknown' if c.total_ns is None else f'{c.total_ns / 1000:.1f} us in all'}, {c.state}; "
        f"{_short(c.full_name)}"
        for c in candidates[:_SHOWN]
    ]
    more = len(candidates) - len(lines)
    return "\n".join([*lines, *([f"  and {more} more"] if more else [])])


def _short(name: str) -> str:
    return name if len(name) <= 160 else name[:157] + "..."


def _state(
    name: kernel_names.KernelName, text: str, short: re.Pattern[str] | None, full: re.Pattern[str] | None, helpers: bool
) -> str:
    if (short and not name.matches(short)) or (full and not full.search(text)):
        return "not matched"
    purpose = name.helper()
    return f"helper: {purpose}" if purpose and not helpers else "chosen"


def _candidate(known: _Seen) -> Candidate:
    name = kernel_names.parse(known.full)
    return Candidate(
        kernel=name.function,
        functor=name.functor,
        full_name=known.full,
        rows=known.rows,
        total_ns=known.total,
        state=known.state,
    )


class _Group(NamedTuple):
    """Launches of one file that repeat each other: same kernel, sizes, device and benchmark case."""

    kernel: str
    grid: Any
    block: Any
    device: int | None
    case: tuple[tuple[str, str], ...]
    batch: bool


def _group(launch: Launch) -> _Group:
    identity = kernel_names.parse(full_name(launch)).identity
    case = tuple(launch.case.items())
    return _Group(identity, launch.grid, launch.block, launch.device, case, "batch" in launch.flags)


def _repeats(launches: list[Launch], choice: Choice) -> list[Launch]:
    if not choice.skip and not choice.median:
        return launches
    groups: dict[_Group, list[Launch]] = {}
    for launch in launches:
        groups.setdefault(_group(launch), []).append(launch)
    if choice.skip and (summed := [launch for launch in launches if {"summary", "benchmark"} & set(launch.flags)]):
        raise MeasureError(
            f"--skip {choice.skip} needs launches, and {summed[0].source_file} is a {summed[0].format} table whose "
            "rows already cover them all; export a trace of launches"
        )
    if choice.skip and (short := [group for group, members in groups.items() if len(members) <= choice.skip]):
        raise MeasureError(
            f"--skip {choice.skip} leaves nothing of {short[0].kernel[:160]} with grid {short[0].grid} in "
            f"{launches[0].source_file}, which was launched {len(groups[short[0]])} times"
        )
    if not choice.median:
        keep = {id(launch) for members in groups.values() for launch in members[choice.skip :]}
        return [launch for launch in launches if id(launch) in keep]
    return [_median(members[choice.skip :]) for members in groups.values()]


def _median(members: list[Launch]) -> Launch:
    """Return the first launch with every measured column replaced by the median; one missing value makes it missing."""
    if len(members) == 1 and {"summary", "benchmark"} & set(members[0].flags):
        return members[0]
    changes: dict[str, Any] = {}
    intervals: dict[str, tuple[Number, Number]] = {}
    missing = dict(members[0].missing)
    for column, numbers in _columns(members):
        present = [number for number in numbers if number is not None]
        if len(present) < len(members):
            changes[column] = None
            if present:
                missing[column] = f"missing in {len(members) - len(present)} of {len(members)} launches, so no median"
            continue
        changes[column] = middle(present)
        ends = [
            launch.quantisation.get(column) or (number, number) for launch, number in zip(members, present, strict=True)
        ]
        if any(low != high for low, high in ends):
            intervals[column] = (middle([low for low, _ in ends]), middle([high for _, high in ends]))
    if changes["l2_bytes"] is None or len({launch.l2_definition for launch in members}) > 1:
        changes |= {"l2_bytes": None, "l2_definition": None}
        missing.setdefault("l2_bytes", "defined differently from launch to launch")
        missing.setdefault("l2_definition", missing["l2_bytes"])
    flags = tuple(dict.fromkeys(flag for launch in members for flag in launch.flags))
    return msgspec.structs.replace(
        members[0], **changes, quantisation=intervals, missing=missing, flags=(*flags, f"median_of={len(members)}")
    )


def _columns(members: list[Launch]) -> Iterator[tuple[str, list[Number | None]]]:
    for column in MEASURED:
        yield column, [getattr(launch, column) for launch in members]


def middle(numbers: list[Number]) -> Number:
    """Return the median, exact for integers."""
    value = statistics.median(Fraction(number) for number in numbers)
    return int(value) if value.denominator == 1 else float(value)
