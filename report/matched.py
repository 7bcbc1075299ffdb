"""A logged and a simulated timeline of one kernel, matched tile by tile: on one axis, and as a table of differences."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from simfa.errors import ReportError
from simfa.kernel import KernelSpec
from simfa.report.selection import in_tiles
from simfa.timeline import Timeline
from simfa.workload import AttentionShape

# Phases that both sides can tell apart, with the reasons of either. A log's WGMMA waits hold what the simulator books
# as a full window; its softmax holds the wait for CUDA cores.
PHASES: dict[str, tuple[str, ...]] = {
    "Q wait": ("wait_q",),
    "K wait": ("wait_k",),
    "V wait": ("wait_v",),
    "ping-pong wait": ("barrier",),
    "WGMMA issue and wait": ("wgmma_issue", "tensor_busy", "wgmma_wait"),
    "softmax and rescale": ("softmax", "cuda_contention", "bubble"),
    "epilogue": ("epilogue",),
    "O store": ("store",),
    "stage wait": ("acquire_stage", "acquire_other"),
    "query empty wait": ("acquire_q",),
    "O empty wait": ("acquire_o",),
    "issue, edges, the rest": ("issue", "tile_edge", "tile_fetch"),
}
_TOTAL = "tile"


class PhaseDifference(msgspec.Struct, frozen=True, kw_only=True):
    """Mean cycles that a role spends in a phase of a tile, over the matched tiles."""

    role: str
    phase: str
    logged_cycles: float
    simulated_cycles: float

    @property
    def difference_cycles(self) -> float:
        """Simulated minus logged."""
        return self.simulated_cycles - self.logged_cycles


class Matched(NamedTuple):
    """Tiles that both timelines hold: their rows in either table of tiles, in the order of the logged ones."""

    logged: NDArray[np.int64]
    simulated: NDArray[np.int64]

    def shift_cycles(self, logged: Timeline, simulated: Timeline) -> int:
        """Return what to add to logged cycles so that the first matched tile begins where the first simulated does."""
        begin = int(logged.tile_begin_cycle[self.logged].min())
        return int(simulated.tile_begin_cycle[self.simulated].min()) - begin


def check_same_kernel(meta: Mapping[str, Any], shape: AttentionShape, kernel: KernelSpec, name: str) -> None:
    """Refuse a run of another shape or kernel than the log's (`ReportError`); `meta` is that of the run's timeline."""
    for what, mine in (("shape", shape), ("kernel", kernel)):
        ran = meta.get(what)
        if ran is None:
            raise ReportError(f"the timeline does not say its run's {what}; record it with this version of simfa")
        if ran != msgspec.to_builtins(mine):
            other = {key: value for key, value in ran.items() if value != msgspec.to_builtins(mine).get(key)}
            raise ReportError(
                f"{name}: the log is of another {what}: the simulated run has "
                + ", ".join(f"{key} {value}" for key, value in other.items())
                + "; translate this log and simulate its trace"
            )


def match(logged: Timeline, simulated: Timeline) -> Matched:
    """Return the tiles that both hold, by m_block, head and batch; raises `ReportError` when there are none."""
    found = {key: row for row, key in enumerate(_keys(simulated))}
    rows = [(row, found[key]) for row, key in enumerate(_keys(logged)) if key in found]
    if not rows:
        raise ReportError(
            f"no tile is in both: the log holds {len(logged.tile_sm)} tiles, the run recorded "
            f"{len(simulated.tile_sm)}; record the SMs that run the logged CTAs with --timeline-cta"
        )
    pairs = np.array(rows, np.int64)
    return Matched(pairs[:, 0], pairs[:, 1])


def _keys(timeline: Timeline) -> list[tuple[int, int, int]]:
    return list(
        zip(timeline.tile_m_block.tolist(), timeline.tile_head.tolist(), timeline.tile_batch.tolist(), strict=True)
    )


def differences(logged: Timeline, simulated: Timeline, tiles: Matched) -> list[PhaseDifference]:
    """Return the mean cycles of each phase of a matched tile, by role; phases that neither side has are left out.

    Raises `ReportError` for a log of level 1, which does not tell the phases apart.
    """
    known = {reason for reasons in PHASES.values() for reason in reasons} | {"launch", "tail"}
    strange = sorted(set(logged.labels()) - known)
    if strange:
        raise ReportError(
            f"the log's {strange[0]!r} holds several phases, as level 1 stamps starts only; compare a log of level 2"
        )
    sides = [_means(side, rows) for side, rows in ((logged, tiles.logged), (simulated, tiles.simulated))]
    roles = sorted({role for side in sides for role, _ in side}, key=lambda role: (role != "producer", role))
    result = []
    for role in roles:
        if not all((role, _TOTAL) in side for side in sides):
            continue
        for phase in (*PHASES, _TOTAL):
            cycles = [side.get((role, phase), 0.0) for side in sides]
            if any(cycles):
                result.append(
                    PhaseDifference(role=role, phase=phase, logged_cycles=cycles[0], simulated_cycles=cycles[1])
                )
    return result


def _means(side: Timeline, rows: NDArray[np.int64]) -> dict[tuple[str, str], float]:
    """Return mean cycles a tile by (role, phase) over the tiles in `rows` of a side's table of tiles."""
    wanted = set(zip(side.tile_sm[rows].tolist(), side.tile_ordinal[rows].tolist(), strict=True))
    phase_of = {reason: phase for phase, reasons in PHASES.items() for reason in reasons}
    sums: dict[tuple[str, str], float] = {}
    for number, name in enumerate(side.track_name):
        place, _, unit = name.rpartition("/")
        if not unit.startswith(("producer", "consumer")):
            continue
        where = int(place.lstrip("smcta"))
        part = side.chosen(side.track == number)
        lengths = part.end_cycle - part.start_cycle
        for label, length, tile in zip(part.labels(), lengths.tolist(), part.arg.tolist(), strict=True):
            phase = phase_of.get(label)
            if phase is None or (where, tile) not in wanted:
                continue
            for key in ((unit, phase), (unit, _TOTAL)):
                sums[key] = sums.get(key, 0.0) + length
    return {key: cycles / len(rows) for key, cycles in sums.items()}


def side_by_side(logged: Timeline, simulated: Timeline, tiles: Matched) -> Timeline:
    """Return both on one axis: for each logged CTA its tracks, and below the simulated ones of the same tiles.

    Cycles are those of the simulation; the first matched tile begins at the same cycle in both.
    """
    shift = tiles.shift_cycles(logged, simulated)
    names: list[str] = []
    columns: list[tuple[NDArray[Any], ...]] = []
    labels = list(dict.fromkeys([*simulated.slice_name, *logged.slice_name]))
    for cta in np.unique(logged.tile_sm[tiles.logged]).tolist():
        rows = tiles.simulated[logged.tile_sm[tiles.logged] == cta]
        here = np.array([name.startswith(f"cta{cta}/") for name in logged.track_name])
        _append(names, columns, logged.chosen(here[logged.track]), labels, f"cta{cta}/logged ", shift, "")
        for sm in np.unique(simulated.tile_sm[rows]).tolist():
            ordinals = simulated.tile_ordinal[rows[simulated.tile_sm[rows] == sm]]
            part = simulated.chosen(in_tiles(simulated, sm, ordinals))
            _append(names, columns, part, labels, f"cta{cta}/simulated ", 0, "" if sm == cta else f" on SM {sm}")
    track, name, start, end, arg = (np.concatenate(parts) for parts in zip(*columns, strict=True))
    return msgspec.structs.replace(
        simulated,
        track_name=names,
        slice_name=labels,
        track=track.astype(np.int32),
        name=name.astype(np.int32),
        start_cycle=start,
        end_cycle=end,
        arg=arg,
    )


def _append(
    names: list[str],
    columns: list[tuple[NDArray[Any], ...]],
    part: Timeline,
    labels: list[str],
    prefix: str,
    shift: int,
    suffix: str,
) -> None:
    """Add the tracks of `part` that have slices, under other names, and their slices."""
    used = np.unique(part.track)
    index = np.zeros(len(part.track_name), np.int32)
    index[used] = np.arange(len(names), len(names) + len(used))
    names += [prefix + part.track_name[number].rpartition("/")[2] + suffix for number in used.tolist()]
    renamed = np.array([labels.index(label) for label in part.slice_name], np.int32)
    # Viewers know no time before zero: what the log has from before the simulated launch is cut off.
    start, end = np.maximum(part.start_cycle + shift, 0), part.end_cycle + shift
    kept = end > start
    columns.append((index[part.track][kept], renamed[part.name][kept], start[kept], end[kept], part.arg[kept]))
