"""A log as a timeline: what each warpgroup did between the events that it stamped, in the words of the simulator."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from simfa.errors import ReportError
from simfa.events import PRODUCER, Event
from simfa.salog import LogMetadata, LogSource, Records
from simfa.schedule import static_tiles
from simfa.timeline import Timeline

ROLE_NAMES = ("producer", "consumer1", "consumer2", "consumer3")

# What a warpgroup does from an event to its next one (level 2). Events that are not here start the issue of something.
_REASONS: dict[Event, str] = {
    Event.ACQUIRE_K_START: "acquire_stage",
    Event.ACQUIRE_V_START: "acquire_stage",
    Event.QUERY_EMPTY_WAIT: "acquire_q",
    Event.WAIT_O_START: "acquire_o",
    Event.WAIT_Q_START: "wait_q",
    Event.WAIT_K_START: "wait_k",
    Event.WAIT_V_START: "wait_v",
    Event.BAR_SYNC_START: "barrier",
    Event.GEMM_QK_ISSUE: "wgmma_issue",
    Event.GEMM_PV_ISSUE: "wgmma_issue",
    Event.WAIT_WG_1: "wgmma_wait",
    Event.WAIT_WG_0: "wgmma_wait",
    # The softmax of a block follows the release of its K, the rescaling of O that of V.
    Event.RELEASE_K: "softmax",
    Event.RELEASE_V: "softmax",
    Event.EPILOGUE_START: "epilogue",
    Event.TMA_O_ISSUE: "store",
    Event.KERNEL_BEGIN: "launch",
    Event.KERNEL_END: "tail",
}
# Level 1 stamps starts only, so that several things lie between two events.
_LEVEL_1: dict[Event, str] = {
    Event.TMA_Q_ISSUE: "issue or stage wait",
    Event.TMA_K_ISSUE: "issue or stage wait",
    Event.TMA_V_ISSUE: "issue or stage wait",
    Event.WAIT_K_START: "wait_k or barrier",
    Event.WAIT_V_START: "wait_v",
    Event.GEMM_QK_ISSUE: "wgmma_issue",
    Event.GEMM_PV_ISSUE: "wgmma_issue",
    Event.WAIT_WG_1: "QK rest and softmax",
    Event.WAIT_WG_0: "wgmma_wait and rest",
}
# Converts clock values of an SM into cycles of the log's time.
ToCycles = Callable[[int, NDArray[np.uint64]], NDArray[np.float64]]


class _Row(NamedTuple):
    """Slices of one warpgroup, and the cycle at which each of its tiles begins."""

    name: NDArray[np.int32]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    tile: NDArray[np.int32]
    tile_begin: NDArray[np.int64]
    coordinates: NDArray[np.int32]  # of TILE events: (tiles, 3)


def log_timeline(
    log: LogSource, to_cycles: ToCycles, sm_clock_hz: float, ctas: tuple[int, ...] = (), name: str = "log"
) -> Timeline:
    """Return the timeline of a log's CTAs, all by default: places `cta<block>`, one track a warpgroup.

    One warp stands for its warpgroup, the last that logged. `to_cycles` turns clocks of an SM into cycles from the
    kernel's begin. Tiles are those of the producer, or of the role that logged. Raises `ReportError` for a CTA without
    rows and when time goes backwards; `name` stands for the log in messages.
    """
    metadata = log.metadata
    labels, table = _labels(metadata.level)
    rows = {(int(header["block"]), int(header["role"])): row for row, header in enumerate(log.rows)}
    blocks = {block for block, _ in rows}
    for cta in ctas:
        if cta not in blocks:
            raise ReportError(f"{name}: CTA {cta} logged nothing; the log has rows of {len(blocks)} CTAs")
    wanted = sorted(key for key in rows if not ctas or key[0] in ctas)
    if not wanted:
        raise ReportError(f"{name}: the log has no rows")
    parts = [_row(log, rows[key], table, to_cycles, f"{name}: block {key[0]} role {key[1]}") for key in wanted]
    tiles: dict[int, tuple[NDArray[np.int64], NDArray[np.int32]]] = {}
    for (block, _), part in zip(wanted, parts, strict=True):
        tiles.setdefault(block, (part.tile_begin, _coordinates(metadata, log.ctas, block, part)))
    table_rows = [
        (block, ordinal, *where, begin)
        for block, (begins, places) in tiles.items()
        for ordinal, (begin, where) in enumerate(zip(begins.tolist(), places.tolist(), strict=False))
    ]
    columns = np.array(table_rows, np.int64).reshape(-1, 6)
    counts = [len(part.start) for part in parts]
    return Timeline(
        track_name=[f"cta{block}/{ROLE_NAMES[role]}" for block, role in wanted],
        slice_name=labels,
        track=np.repeat(np.arange(len(parts), dtype=np.int32), counts),
        name=np.concatenate([part.name for part in parts]),
        start_cycle=np.concatenate([part.start for part in parts]),
        end_cycle=np.concatenate([part.end for part in parts]),
        arg=np.concatenate([part.tile for part in parts]),
        sm_clock_hz=sm_clock_hz,
        tile_sm=columns[:, 0].astype(np.int32),
        tile_ordinal=columns[:, 1].astype(np.int32),
        tile_m_block=columns[:, 2].astype(np.int32),
        tile_head=columns[:, 3].astype(np.int32),
        tile_batch=columns[:, 4].astype(np.int32),
        tile_begin_cycle=columns[:, 5].copy(),
    )


def _labels(level: int) -> tuple[list[str], NDArray[np.int32]]:
    """Return the labels, and the number of the label that each event starts."""
    reasons = _REASONS if level >= 2 else _LEVEL_1
    labels = list(dict.fromkeys(["issue", *reasons.values()]))
    table = np.zeros(max(Event) + 1, np.int32)
    for event, label in reasons.items():
        table[event] = labels.index(label)
    return labels, table


def _row(log: LogSource, row: int, table: NDArray[np.int32], to_cycles: ToCycles, where: str) -> _Row:
    """Return one warp's slices: each from an event to the next one, neighbours of one kind joined."""
    records, header = log.records(row), log.rows[row]
    clocks = np.append(records["timestamp"], header["clock_end"]).astype(np.uint64)
    backwards = np.flatnonzero(np.diff(clocks.view(np.int64)) < 0)
    # The end was stamped by the warp's clock too, but a record may follow it within the same tick.
    if len(backwards) and backwards[0] + 1 < len(records):
        raise ReportError(
            f"{where}: the clock goes backwards at record {backwards[0] + 1}; a timeline needs rising times"
        )
    cycles = np.maximum.accumulate(np.rint(to_cycles(int(header["smid"]), clocks)).astype(np.int64))
    begins = _tile_begins(records, int(header["role"]), log.metadata.level)
    tile = np.zeros(len(records), np.int32)
    tile[begins] = 1
    tile = np.cumsum(tile, dtype=np.int32) - 1
    name = table[records["event"]]
    new = np.ones(len(records), bool)
    new[1:] = (name[1:] != name[:-1]) | (tile[1:] != tile[:-1])
    first = np.flatnonzero(new)
    ends = cycles[np.append(first[1:], len(records))]
    kept = ends > cycles[first]
    stamped = records[begins]
    places = np.stack([stamped["stage"], stamped["payload"], stamped["aux"]], axis=1).astype(np.int32)
    return _Row(name[first][kept], cycles[first][kept], ends[kept], tile[first][kept], cycles[:-1][begins], places)


def _tile_begins(records: Records, role: int, level: int) -> NDArray[np.int64]:
    """Return the records at which a tile begins: TILE, or at level 1 the first event of a first block.

    A tile visits its blocks from the last to the first, so a block that is not below the one before begins a tile.
    """
    if level >= 2:
        return np.flatnonzero(records["event"] == Event.TILE)
    marks = np.flatnonzero(records["event"] == (Event.TMA_K_ISSUE if role == PRODUCER else Event.GEMM_QK_ISSUE))
    block = records["payload"][marks].astype(np.int64)
    first = marks[np.concatenate([[True], block[1:] >= block[:-1]])] if len(marks) else marks
    # A consumer's tile begins with the wait for that block.
    return first if role == PRODUCER else np.maximum(first - 1, 0)


def _coordinates(metadata: LogMetadata, grid: int, block: int, row: _Row) -> NDArray[np.int32]:
    """Return the coordinates of a CTA's tiles, shape (tiles, 3); none when the log has lost them."""
    if metadata.tiles == "logged":
        return row.coordinates
    if metadata.tiles == "lost":
        return np.zeros((0, 3), np.int32)
    return np.array(list(static_tiles(metadata.shape, metadata.kernel, grid, block)), np.int32).reshape(-1, 3)
