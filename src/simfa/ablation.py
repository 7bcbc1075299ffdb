"""Ablations: the same cases with one mechanism changed at a time, what that costs, and the counter that explains it.

Simulations come from outside (`run_all`), so that everything here is arithmetic on what they counted.
"""

import fnmatch
import functools
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from simfa import __version__
from simfa.errors import StudyError
from simfa.explaining import COUNTERS, Explanation, Observation, explain, observe
from simfa.hardware import HardwareSpec, load_preset, overlay_names, overlay_table
from simfa.studies import Ablation, AblationGroup, AblationRow, AblationRun, CaseSlowdown, OverlayInfo
from simfa.workload import AttentionShape, paper_shapes


class StudyCase(msgspec.Struct, frozen=True, kw_only=True):
    """One case to simulate; `sm_clock_hz` None means the preset's, `measured_us` is its latency where one is known."""

    name: str
    shape: AttentionShape
    kernel_version: str = "latest"
    sm_clock_hz: float | None = None
    measured_us: float | None = None


class CaseGroup(msgspec.Struct, frozen=True):
    """Cases of one kind that are simulated on one preset."""

    name: str
    preset: str
    cases: tuple[StudyCase, ...]


class Task(NamedTuple):
    """One simulation: a case on the values of a preset."""

    case: StudyCase
    hardware: HardwareSpec


Figures = Mapping[str, Any]  # of `RunResult.to_json()`
RunAll = Callable[[Sequence[Task]], Sequence[Figures]]
_Found = tuple[Figures, HardwareSpec]
# MAPE and largest APE, as fractions, of cases with their figures; None where no case is measured.
Errors = Callable[[Sequence[tuple[StudyCase, Figures]]], tuple[float | None, float | None]]


def paper_group(preset: str) -> CaseGroup:
    """Return the paper's 15 cases on a preset, at its own clock."""
    return CaseGroup(
        "paper", preset, tuple(StudyCase(name=name, shape=shape) for name, shape in paper_shapes().items())
    )


def overlay_info(name: str) -> OverlayInfo:
    """Return what an overlay file says about itself; raises `StudyError` for a counter that does not exist."""
    table = overlay_table(name)
    counters = table.get("counters", [])
    known = isinstance(counters, list) and all(isinstance(counter, str) and counter in COUNTERS for counter in counters)
    if not known:
        raise StudyError(f"overlay {name}: counters is {counters!r}; expected names among {', '.join(COUNTERS)}")
    return OverlayInfo(name, str(table.get("about", "")), counters)


def choose_overlays(names: Sequence[str]) -> list[OverlayInfo]:
    """Return the overlays of these names (shipped or `.toml` files), every shipped one without any; each once."""
    return [overlay_info(name) for name in dict.fromkeys(names or overlay_names())]


def choose_cases(
    groups: Sequence[CaseGroup], patterns: Sequence[str], max_seqlen: int | None = None
) -> list[CaseGroup]:
    """Return the groups with the cases that any pattern names: a group, a case, or a pattern such as `llama3-8b-*`.

    Without patterns all stay; `max_seqlen` leaves out longer ones. Raises `StudyError` for a pattern without a case and
    when nothing is left.
    """
    for pattern in patterns:
        if not any(_named(group, case, pattern) for group in groups for case in group.cases):
            names = dict.fromkeys(case.name for group in groups for case in group.cases)
            kinds = " or ".join(dict.fromkeys(group.name for group in groups))
            raise StudyError(f"case {pattern!r} is unknown; expected {kinds}, a pattern, or one of {', '.join(names)}")
    chosen = [
        CaseGroup(
            group.name,
            group.preset,
            tuple(
                case
                for case in group.cases
                if (not patterns or any(_named(group, case, pattern) for pattern in patterns))
                and (max_seqlen is None or max(case.shape.seqlen_q, case.shape.seqlen_kv) <= max_seqlen)
            ),
        )
        for group in groups
    ]
    chosen = [group for group in chosen if group.cases]
    if not chosen:
        lengths = {max(case.shape.seqlen_q, case.shape.seqlen_kv) for group in groups for case in group.cases}
        raise StudyError(
            f"no chosen case has at most {max_seqlen} tokens; lengths: {', '.join(map(str, sorted(lengths)))}"
        )
    return chosen


def _named(group: CaseGroup, case: StudyCase, pattern: str) -> bool:
    return pattern == group.name or fnmatch.fnmatchcase(case.name, pattern)


def ablate(
    groups: Sequence[CaseGroup],
    overlays: Sequence[OverlayInfo],
    run_all: RunAll,
    errors: Errors,
    means: Mapping[str, str],
) -> Ablation:
    """Run every case of every group without and with each overlay, equal simulations once, and compare.

    `means` words the reasons of `stall_cycles` for the explaining sentences.
    """
    spec_of = functools.cache(_spec)
    names = ("", *(info.name for info in overlays))
    every = [(group, case, name) for group in groups for case in group.cases for name in names]
    wanted = [Task(case, spec_of(group.preset, name, case.sm_clock_hz)) for group, case, name in every]
    tasks = list(dict.fromkeys(wanted))
    done = dict(zip(tasks, run_all(tasks), strict=True))

    def found(group: CaseGroup, case: StudyCase, overlay: str) -> _Found:
        spec = spec_of(group.preset, overlay, case.sm_clock_hz)
        return done[Task(case, spec)], spec

    runs: list[AblationRun] = []
    results = []
    for group in groups:
        base = [found(group, case, "") for case in group.cases]
        runs += _runs(group, "", base, base)
        rows = []
        for info in overlays:
            changed = [found(group, case, info.name) for case in group.cases]
            runs += _runs(group, info.name, changed, base)
            rows.append(_row(group, info, changed, base, errors, means))
        mape, worst = errors(_pairs(group, base))
        results.append(
            AblationGroup(
                name=group.name,
                preset=group.preset,
                cases=[case.name for case in group.cases],
                mape=mape,
                max_ape=worst,
                rows=sorted(rows, key=lambda row: (-row.slowdown, row.overlay)),
            )
        )
    return Ablation(tool_version=__version__, overlays=list(overlays), groups=results, runs=runs)


def _spec(preset: str, overlay: str, sm_clock_hz: float | None) -> HardwareSpec:
    clock = [] if sm_clock_hz is None else [f"gpu.sm_clock_hz={sm_clock_hz!r}"]
    return load_preset(preset, [overlay] if overlay else [], clock).spec


def _pairs(group: CaseGroup, found: Sequence[_Found]) -> list[tuple[StudyCase, Figures]]:
    return [(case, figures) for case, (figures, _) in zip(group.cases, found, strict=True)]


def _runs(group: CaseGroup, overlay: str, found: Sequence[_Found], base: Sequence[_Found]) -> list[AblationRun]:
    """Return one record for each case of a group under one overlay."""
    runs = []
    for case, (figures, spec), (reference, _) in zip(group.cases, found, base, strict=True):
        observation = observe(figures, spec)
        runs.append(
            AblationRun(
                preset=group.preset,
                group=group.name,
                overlay=overlay,
                case=case.name,
                shape=case.shape.describe(),
                cycles=figures["cycles"],
                latency_us=figures["latency_us"],
                slowdown=figures["cycles"] / reference["cycles"],
                measured_us=case.measured_us,
                error=None if case.measured_us is None else figures["latency_us"] / case.measured_us - 1,
                counters={name: counter.value([observation]) for name, counter in COUNTERS.items()},
            )
        )
    return runs


def _row(
    group: CaseGroup,
    info: OverlayInfo,
    found: Sequence[_Found],
    base: Sequence[_Found],
    errors: Errors,
    means: Mapping[str, str],
) -> AblationRow:
    """Return what an overlay does to a group."""
    slowdowns = [
        CaseSlowdown(case.name, figures["cycles"] / reference["cycles"])
        for case, (figures, _), (reference, _) in zip(group.cases, found, base, strict=True)
    ]
    mape, worst = errors(_pairs(group, found))
    why = _explanation(info, found, base, means)
    return AblationRow(
        overlay=info.name,
        slowdown=math.exp(statistics.fmean(math.log(entry.slowdown) for entry in slowdowns)),
        least=min(slowdowns, key=lambda entry: entry.slowdown),
        most=max(slowdowns, key=lambda entry: entry.slowdown),
        mape=mape,
        max_ape=worst,
        because=why.sentence,
        counter=why.counter,
        before=why.before,
        after=why.after,
    )


def _explanation(
    info: OverlayInfo, found: Sequence[_Found], base: Sequence[_Found], means: Mapping[str, str]
) -> Explanation:
    """Return the explaining sentence; an overlay that sets what the preset has already is named as that."""
    if all(spec == reference for (_, spec), (_, reference) in zip(found, base, strict=True)):
        return Explanation("the preset has these values already; the runs are the same", "cycles", None, None)
    return explain(_observations(base), _observations(found), info.counters, means)


def _observations(found: Sequence[_Found]) -> list[Observation]:
    return [observe(figures, spec) for figures, spec in found]
