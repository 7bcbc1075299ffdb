"""Synthetic logs: what the probed FA3 kernel would log for a shape, from its schedule and a timing model.

Order, counts, stages, blocks and tile coordinates are the kernel's (`event_order`, `simfa.schedule`); timestamps come
from `timing_model`. Rows are made when asked for, so a log of any size takes little memory until it is written.
"""

import functools
import heapq
from collections.abc import Collection

import numpy as np

from simfa.errors import ShapeError
from simfa.hardware import Preset
from simfa.instrument.costs import costs_of
from simfa.instrument.event_order import (
    LAST_WARP,
    STORE_EVENTS,
    Records,
    begin_events,
    check_coordinates,
    end_events,
    logging_warps,
    of_level_1,
    set_coordinates,
    tile_events,
)
from simfa.instrument.row_clock import RowClock
from simfa.instrument.seeded import draw
from simfa.instrument.timing_model import TileKind, TimingModel
from simfa.kernel import KernelSpec
from simfa.salog import (
    ROW_HEADER_DTYPE,
    ROW_MAGIC,
    ROW_VERSION,
    WARPS_PER_WARPGROUP,
    LogMetadata,
    RowHeaders,
    row_bytes_for,
    tiles_known,
)
from simfa.schedule import Tile, tile_order
from simfa.workload import AttentionShape

WARP_SKEW_CYCLES = 8  # the warps of a warpgroup log within so many cycles
TEMPLATES = 1024  # kinds of tile whose records are kept


def synthesize(
    shape: AttentionShape,
    kernel: KernelSpec,
    preset: Preset,
    *,
    level: int = 2,
    seed: int = 0,
    one_warp: bool = True,
    ctas: Collection[int] | None = None,
) -> "SyntheticLog":
    """Return the log that `kernel` would write for `shape` on the GPU of `preset`; nothing is written.

    `one_warp` logs one warp of each warpgroup instead of all that work. `ctas` limits the log to some CTAs of the grid;
    CTAs that get no tile have no rows. Raises `ShapeError` for a CTA outside the grid, for half of a cluster, for a
    kernel without inner-warpgroup overlap, and when a coordinate does not fit a record's 16 bits.
    """
    grid = preset.spec.gpu.sm_count
    if ctas is not None:
        check_ctas(ctas, grid, kernel.cluster)
    check_coordinates(shape, kernel)
    metadata = LogMetadata(
        source="synthetic",
        seed=seed,
        level=2 if level >= 2 else 1,
        shape=shape,
        kernel=kernel,
        kernel_name="FlashAttnFwdSm90 (synthetic)",
        source_sha256=None,
        gpu=preset.name,
        sm_clock_hz=preset.spec.gpu.sm_clock_hz,
        clock_source="timing model",
        warps="one" if one_warp else "all",
        ctas_logged=None if ctas is None else tuple(sorted(set(ctas))),
        tiles=tiles_known(level, kernel),
    )
    return SyntheticLog(metadata, preset)


def check_ctas(ctas: Collection[int], grid: int, cluster: int) -> None:
    """Refuse CTAs that do not exist, and clusters logged in part: their loads are halves of one multicast."""
    if not ctas:
        raise ShapeError("no CTA is to be logged; give at least one")
    for cta in sorted(ctas):
        if not 0 <= cta < grid:
            raise ShapeError(f"CTA {cta} is outside the grid of {grid}; expected 0 to {grid - 1}")
        for mate in range(cta // cluster * cluster, cta // cluster * cluster + cluster):
            if mate not in ctas:
                raise ShapeError(f"CTA {cta} is logged without CTA {mate} of its cluster; log both")


class _CtaPlan:
    """The tiles one CTA runs and when each starts, in cycles after the CTA's own start."""

    def __init__(self) -> None:
        """Start without tiles."""
        self.tiles: list[Tile] = []
        self.kinds: list[TileKind] = []
        self.starts: list[int] = []
        self.cycles = 0


class SyntheticLog:
    """A `LogSource` whose records are made on demand from one template per kind of tile."""

    def __init__(self, metadata: LogMetadata, preset: Preset) -> None:
        """Decide which CTA runs which tile and when, and fill in the row headers."""
        spec = preset.spec
        self.metadata = metadata
        self.ctas = spec.gpu.sm_count
        self._timing = TimingModel(metadata.kernel, costs_of(metadata.shape, metadata.kernel, spec))
        self._clock = RowClock(round(spec.gpu.sm_clock_hz), self._seed, metadata.kernel.cluster)
        self._plans = self._schedule()
        self._template = functools.lru_cache(TEMPLATES)(self._make_template)
        self.rows = self._headers()
        self.row_bytes = row_bytes_for(int(self.rows["records"].max(initial=0)))

    @property
    def _seed(self) -> int:
        return self.metadata.seed or 0

    def records(self, row: int) -> Records:
        """Return the records of one row, shape (rows["records"][row],), dtype `RECORD_DTYPE`."""
        header = self.rows[row]
        cta, role, warp = int(header["block"]), int(header["role"]), int(header["warp"])
        plan, kernel, level = self._plans[cta], self.metadata.kernel, self.metadata.level
        first, last = begin_events(kernel, role, level), end_events(level)
        first["timestamp"] = np.arange(-len(first), 0, dtype=np.int64).view(np.uint64)
        last["timestamp"] = self._end(plan, role)
        parts, shifts = [first], [0]
        fills = 0
        for kind, start in zip(plan.kinds, plan.starts, strict=True):
            parts.append(self._template(kind, role, fills % kernel.stages, warp % WARPS_PER_WARPGROUP == LAST_WARP))
            shifts.append(start)
            fills += kind.key_blocks
        records = np.concatenate([*parts, last])
        lengths = [len(part) for part in parts]
        times = records["timestamp"].view(np.int64)
        times[: sum(lengths)] += np.repeat(np.array(shifts, np.int64), lengths)
        # Tiles follow each other by the consumers' time; a producer far ahead of a longer tile is held back here.
        np.maximum.accumulate(times, out=times)
        times += self._clock.origin(cta) + self._skew(cta, warp)
        set_coordinates(records, plan.tiles)
        return records

    def _make_template(self, kind: TileKind, role: int, ring_base: int, last_warp: bool) -> Records:
        """Return the records of a tile with times from its start on the first consumer."""
        kernel = self.metadata.kernel
        records = tile_events(kernel, role, kind.key_blocks, 2, ring_base=ring_base)
        records["timestamp"] = self._timing.events(kind, role).view(np.uint64)
        if not last_warp:
            records = records[~np.isin(records["event"], list(STORE_EVENTS))]
        return records if self.metadata.level >= 2 else records[of_level_1(records)]

    def _schedule(self) -> list[_CtaPlan]:
        """Return each CTA's tiles: as its static list, or each next tile to the CTA that is free first."""
        shape, kernel = self.metadata.shape, self.metadata.kernel
        kinds = [
            (kernel.key_blocks(shape, m_block), kernel.masked_blocks(shape, m_block))
            for m_block in range(kernel.query_blocks(shape))
        ]
        plans = [_CtaPlan() for _ in range(self.ctas)]
        free = [(0, cta) for cta in range(self.ctas)]
        for index, tile in enumerate(tile_order(shape, kernel)):
            cta = index % self.ctas if kernel.schedule == "static" else free[0][1]
            plan = plans[cta]
            kind = TileKind(*kinds[tile.m_block], cold=not plan.tiles)
            plan.tiles.append(tile)
            plan.kinds.append(kind)
            plan.starts.append(plan.cycles)
            plan.cycles += self._timing.cycles(kind)
            if kernel.schedule != "static":
                heapq.heapreplace(free, (plan.cycles, cta))
        return plans

    def _headers(self) -> RowHeaders:
        """Return the headers of all rows that the log has."""
        metadata, kernel = self.metadata, self.metadata.kernel
        wanted = range(self.ctas) if metadata.ctas_logged is None else metadata.ctas_logged
        blocks = [cta for cta in wanted if self._plans[cta].tiles]
        warps = logging_warps(kernel, one_warp=metadata.warps == "one")
        headers = np.zeros((len(blocks), len(warps)), ROW_HEADER_DTYPE)
        headers["magic"], headers["version"] = ROW_MAGIC, ROW_VERSION
        headers["block"] = headers["smid"] = np.array(blocks, np.uint32)[:, np.newaxis]
        headers["warp"] = warps
        headers["role"] = headers["warp"] // WARPS_PER_WARPGROUP
        for column, warp in enumerate(warps):
            role, place = divmod(warp, WARPS_PER_WARPGROUP)
            fixed = len(begin_events(kernel, role, metadata.level)) + len(end_events(metadata.level))
            lengths = {
                count: len(tile_events(kernel, role, count, metadata.level, warp=place))
                for count in {kind.key_blocks for cta in blocks for kind in self._plans[cta].kinds}
            }
            for line, cta in enumerate(blocks):
                plan, header = self._plans[cta], headers[line, column]
                header["records"] = fixed + sum(lengths[kind.key_blocks] for kind in plan.kinds)
                begin, end = self._clock.begin(cta), self._clock.end(cta, self._end(plan, role) + WARP_SKEW_CYCLES)
                header["globaltimer_begin"], header["clock_begin"] = begin
                header["globaltimer_end"], header["clock_end"] = end
        return headers.reshape(-1)

    def _end(self, plan: _CtaPlan, role: int) -> int:
        """Return the cycle after a role's last event, after the CTA's start."""
        return 1 + max(
            start + self._timing.end(kind, role) for start, kind in zip(plan.starts, plan.kinds, strict=True)
        )

    def _skew(self, cta: int, warp: int) -> int:
        """Return by how many cycles a warp logs later than the first of its warpgroup."""
        return 0 if warp < WARPS_PER_WARPGROUP else draw(WARP_SKEW_CYCLES, self._seed, "skew", cta, warp)
