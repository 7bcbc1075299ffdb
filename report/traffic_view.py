"""Measured beside modelled traffic as the report shows it, and the way of a run's bytes from DRAM to the SMs."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from simfa.report.inputs import RunStats
from simfa.summary import Interval, TrafficComparison

_DEFINITIONS = {
    "sm_side": "L2 bytes at the SMs, before merging (M_L2)",
    "lts_from_sm": "L2 bytes at the slices, after merging",
    "lts_all": "all L2 lookups",
}
_QUANTITIES = {
    "l2_bytes": "L2 bytes",
    "dram_read_bytes": "DRAM bytes read",
    "dram_write_bytes": "DRAM bytes written",
    "dram_total_bytes": "DRAM bytes, both ways",
}


class ModelCell(NamedTuple):
    """What one model says beside a measurement; `x` is its place on the row's axis, in percent."""

    model: str
    modelled_bytes: int
    error: float
    x: float


class TrafficRow(NamedTuple):
    """One measured quantity of one case; the axis of a row runs over half to twice the measured bytes, by factors."""

    case_id: str
    quantity: str
    measured_bytes: float
    interval: Interval | None
    cells: list[ModelCell]


def traffic_rows(traffic: Sequence[TrafficComparison]) -> list[TrafficRow]:
    """Return what is compared, one row a case and quantity, in the order of the summary."""
    rows: dict[tuple[str, str, str], TrafficRow] = {}
    for entry in traffic:
        if entry.error is None or entry.modelled_bytes is None or entry.measured_bytes is None:
            continue
        key = (entry.id, entry.quantity, entry.definition)
        row = rows.setdefault(
            key, TrafficRow(entry.id, quantity_text(*key[1:]), entry.measured_bytes, entry.measured_interval, [])
        )
        row.cells.append(ModelCell(entry.model, entry.modelled_bytes, entry.error, _place(1 + entry.error)))
    return list(rows.values())


def quantity_text(quantity: str, definition: str = "") -> str:
    """Return what a quantity counts, in words."""
    return _DEFINITIONS.get(definition) or _QUANTITIES.get(quantity, quantity)


def _place(ratio: float) -> float:
    """Return the place of a ratio on an axis from a half to two, in percent, at most at its ends."""
    return 0.0 if ratio <= 0 else min(100.0, max(0.0, 50 + 50 * math.log2(ratio)))


class Level(NamedTuple):
    """One level of a run's memory path: bytes, the part of the widest level in percent, and what they are."""

    name: str
    moved_bytes: int
    width: float
    means: str


def memory_path(stats: RunStats) -> list[Level]:
    """Return the bytes a run reads at the SMs, at L2 and from DRAM, and those it writes to DRAM."""
    levels = (
        ("delivered to SMs", stats.sm_read_bytes, "what TMA puts into shared memory, before requests merge"),
        ("read from L2", stats.l2_read_bytes, "what reaches L2 after multicast and coalescing"),
        ("read from DRAM", stats.dram_read_bytes, "L2 misses"),
        ("written to DRAM", stats.dram_write_bytes, "lines that left L2 before the kernel's end"),
    )
    widest = max(1, *(moved for _, moved, _ in levels))
    return [Level(name, moved, 100 * moved / widest, means) for name, moved, means in levels]
