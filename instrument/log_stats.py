"""Durations between the natural pairs of events of a log, per role: where warps wait and work, as they stamped it."""

from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from simfa.errors import LogError
from simfa.events import PRODUCER, Event
from simfa.instrument.event_order import Records
from simfa.salog import LogSource


class Span(NamedTuple):
    """A duration: from an event to the first of the `ends` after it, before the same event comes again."""

    name: str
    starts: Event
    ends: tuple[Event, ...]


PRODUCER_SPANS = {
    1: (Span("K load interval", Event.TMA_K_ISSUE, (Event.TMA_K_ISSUE,)),),
    2: (
        Span("tile", Event.TILE, (Event.TILE, Event.KERNEL_END)),
        Span("K stage wait", Event.ACQUIRE_K_START, (Event.TMA_K_ISSUE,)),
        Span("V stage wait", Event.ACQUIRE_V_START, (Event.TMA_V_ISSUE,)),
        Span("query empty wait", Event.QUERY_EMPTY_WAIT, (Event.TMA_Q_ISSUE,)),
        Span("O store wait", Event.WAIT_O_START, (Event.ACQUIRE_K_START, Event.ACQUIRE_V_START)),
        Span("K load interval", Event.TMA_K_ISSUE, (Event.TMA_K_ISSUE,)),
    ),
}
CONSUMER_SPANS = {
    1: (
        Span("K wait and turn", Event.WAIT_K_START, (Event.GEMM_QK_ISSUE,)),
        Span("V wait", Event.WAIT_V_START, (Event.GEMM_PV_ISSUE,)),
        Span("QK issue to wait", Event.GEMM_QK_ISSUE, (Event.WAIT_WG_1, Event.WAIT_WG_0)),
        Span("QK rest and softmax", Event.WAIT_WG_1, (Event.WAIT_WG_0,)),
        Span("block interval", Event.GEMM_QK_ISSUE, (Event.GEMM_QK_ISSUE,)),
    ),
    2: (
        Span("tile", Event.TILE, (Event.TILE, Event.KERNEL_END)),
        Span("Q wait", Event.WAIT_Q_START, (Event.WAIT_Q_END,)),
        Span("K wait", Event.WAIT_K_START, (Event.WAIT_K_END,)),
        Span("V wait", Event.WAIT_V_START, (Event.WAIT_V_END,)),
        Span("ping-pong wait", Event.BAR_SYNC_START, (Event.BAR_SYNC_END,)),
        Span("QK", Event.GEMM_QK_ISSUE, (Event.WAIT_WG_1_END, Event.WAIT_WG_0_END)),
        Span("PV", Event.GEMM_PV_ISSUE, (Event.WAIT_WG_0_END,)),
        Span("softmax", Event.RELEASE_K, (Event.SOFTMAX_END,)),
        Span("WGMMA wait<1>", Event.WAIT_WG_1, (Event.WAIT_WG_1_END,)),
        Span("WGMMA wait<0>", Event.WAIT_WG_0, (Event.WAIT_WG_0_END,)),
        Span("epilogue", Event.EPILOGUE_START, (Event.TMA_O_ISSUE,)),
        Span("O store", Event.TMA_O_ISSUE, (Event.TMA_O_WAIT_END,)),
        Span("block interval", Event.GEMM_QK_ISSUE, (Event.GEMM_QK_ISSUE,)),
    ),
}
LIMITS = {
    1: "level 1 stamps starts only: a wait ends at the next issue, so K wait holds the ping-pong wait too, "
    "and softmax cannot be told from the rest of QK",
    2: "QK and PV last until the warp saw them done: issue, queueing behind the other warpgroups and the wait itself",
}


class SpanStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """Statistics of one span over all tiles of a role, in SM cycles of the log's clock."""

    role: int
    span: str
    starts: str
    ends: str
    count: int
    mean_cycles: float
    p50_cycles: float
    p95_cycles: float


def span_statistics(log: LogSource, name: str = "log") -> list[SpanStatistics]:
    """Return statistics of every span that occurs, by role and in the order of the tables above.

    One warp stands for its warpgroup: the last that logged, since it may also store O. Raises `LogError` when a warp's
    time goes backwards; `name` stands for the log in the message.
    """
    samples: dict[tuple[int, Span], list[npt.NDArray[np.int64]]] = {}
    level = log.metadata.level
    for row in representatives(log):
        role = int(log.rows["role"][row])
        records = log.records(row)
        backwards = np.flatnonzero(np.diff(records["timestamp"].view(np.int64)) < 0)
        if len(backwards):
            header = log.rows[row]
            raise LogError(
                f"{name}: block {header['block']} warp {header['warp']} record {backwards[0] + 1}: the clock goes "
                "backwards; statistics need the timestamps of a warp to rise"
            )
        for span in (PRODUCER_SPANS if role == PRODUCER else CONSUMER_SPANS)[level]:
            samples.setdefault((role, span), []).append(durations(records, span))
    statistics = []
    for (role, span), parts in sorted(samples.items(), key=lambda item: item[0][0]):
        cycles = np.concatenate(parts)
        if len(cycles) == 0:
            continue
        statistics.append(
            SpanStatistics(
                role=role,
                span=span.name,
                starts=span.starts.name,
                ends=" or ".join(event.name for event in span.ends),
                count=len(cycles),
                mean_cycles=float(cycles.mean()),
                p50_cycles=float(np.percentile(cycles, 50)),
                p95_cycles=float(np.percentile(cycles, 95)),
            )
        )
    return statistics


def representatives(log: LogSource) -> list[int]:
    """Return one row for each warpgroup: its last."""
    last = {(int(header["block"]), int(header["role"])): row for row, header in enumerate(log.rows)}
    return list(last.values())


def durations(records: Records, span: Span) -> npt.NDArray[np.int64]:
    """Return the durations of a span in one row's records, in order; a start without an end counts for nothing."""
    starts = np.flatnonzero(records["event"] == span.starts)
    ends = np.flatnonzero(np.isin(records["event"], span.ends))
    place = np.searchsorted(ends, starts, side="right")
    starts, place = starts[place < len(ends)], place[place < len(ends)]
    ends = ends[place]
    if span.starts not in span.ends:
        following = np.append(starts[1:], len(records))
        starts, ends = starts[ends < following], ends[ends < following]
    times = records["timestamp"].view(np.int64)
    taken: npt.NDArray[np.int64] = times[ends] - times[starts]
    return taken
