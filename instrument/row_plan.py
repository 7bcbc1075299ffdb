"""How many rows a traced launch needs and how long they must be, before anything runs."""

from collections.abc import Collection
from typing import NamedTuple

from simfa.errors import InstrumentError
from simfa.events import PRODUCER
from simfa.instrument.event_order import begin_events, check_coordinates, end_events, logging_warps, tile_events
from simfa.kernel import KernelSpec
from simfa.salog import ROW_HEADER_DTYPE, WARPS_PER_WARPGROUP, row_bytes_for
from simfa.schedule import static_tiles, tile_count
from simfa.workload import AttentionShape

RECORD_UNIT_BYTES = 16
MAX_UNITS = 1 << 31  # the probe's cursor is a 32-bit index whose upper half means "does not log"

# A dynamic schedule may give a CTA more than its share; a row holds this many times the mean and two tiles.
DYNAMIC_SLACK = 2


class RowPlan(NamedTuple):
    """Rows of a traced launch: `ctas` in order, `warps` of each CTA in order, and the bytes of a row."""

    grid: int
    ctas: tuple[int, ...]
    warps: tuple[int, ...]
    row_bytes: int

    @property
    def rows(self) -> int:
        """Return the number of rows."""
        return len(self.ctas) * len(self.warps)

    @property
    def row_units(self) -> int:
        """Return 16-byte units per row, header included."""
        return self.row_bytes // RECORD_UNIT_BYTES

    @property
    def size_bytes(self) -> int:
        """Return the device memory that all rows take."""
        return self.rows * self.row_bytes

    def slots(self) -> list[int]:
        """Return for each CTA of the grid its slot, or -1 when it does not log."""
        slot_of = {cta: slot for slot, cta in enumerate(self.ctas)}
        return [slot_of.get(cta, -1) for cta in range(self.grid)]


def plan_rows(
    shape: AttentionShape,
    kernel: KernelSpec,
    level: int,
    grid: int,
    *,
    ctas: Collection[int] | None = None,
    one_warp: bool = False,
    row_records: int | None = None,
) -> RowPlan:
    """Return the rows for a launch of `grid` CTAs; `row_records` overrides how many records a row holds.

    Raises `ShapeError` when a coordinate does not fit a record, `InstrumentError` when the rows are too many for the
    probe's cursor.
    """
    check_coordinates(shape, kernel)
    logged = tuple(range(grid)) if ctas is None else tuple(sorted(set(ctas)))
    records = row_records or max(
        records_of_row(shape, kernel, level, grid, role) for role in range(1 + kernel.consumers)
    )
    plan = RowPlan(grid, logged, logging_warps(kernel, one_warp=one_warp), row_bytes_for(records))
    if plan.rows * plan.row_units >= MAX_UNITS:
        raise InstrumentError(
            f"{plan.rows} rows of {plan.row_bytes} bytes are more than the probes can address (32 GiB); log fewer CTAs "
            "with --ctas"
        )
    return plan


def records_of_row(shape: AttentionShape, kernel: KernelSpec, level: int, grid: int, role: int) -> int:
    """Return how many records a warp of `role` writes at most: exact for static schedules, a bound for dynamic ones."""
    last_warp = WARPS_PER_WARPGROUP - 1 if role != PRODUCER else 0
    per_blocks = {}
    for m_block in range(kernel.query_blocks(shape)):
        blocks = kernel.key_blocks(shape, m_block)
        if blocks not in per_blocks:
            per_blocks[blocks] = len(tile_events(kernel, role, blocks, level, warp=last_warp))
    around = len(begin_events(kernel, role, level)) + len(end_events(level))
    if kernel.schedule == "static":
        # Full masks: every tile has the same blocks, and CTA 0 has as many tiles as any other.
        (per_tile,) = per_blocks.values()
        return around + per_tile * sum(1 for _ in static_tiles(shape, kernel, grid, 0))
    mean_blocks = sum(
        per_blocks[kernel.key_blocks(shape, m_block)] for m_block in range(kernel.query_blocks(shape))
    ) / kernel.query_blocks(shape)
    share = mean_blocks * tile_count(shape, kernel) / grid
    return around + int(DYNAMIC_SLACK * share) + 2 * max(per_blocks.values())


assert ROW_HEADER_DTYPE.itemsize % RECORD_UNIT_BYTES == 0, "the probe counts the header in records"
