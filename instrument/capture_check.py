"""Whether captured rows hold exactly the events the kernel must have logged: counts, order, stages, blocks, tiles."""

import functools
from collections import Counter
from collections.abc import Callable

import numpy as np

from simfa.errors import InstrumentError
from simfa.events import PRODUCER, Event
from simfa.instrument.event_order import Records, begin_events, end_events, set_coordinates, tile_events
from simfa.kernel import KernelSpec
from simfa.salog import WARPS_PER_WARPGROUP, LogSource
from simfa.schedule import Tile, static_tiles, tile_order
from simfa.workload import AttentionShape

COMPARED_FIELDS = ("event", "stage", "payload", "aux")


def check_records(log: LogSource) -> dict[str, int]:
    """Return how often each event was logged, after comparing every row with what its warp must have logged.

    Static schedules: the tiles are known. Dynamic with TILE events: each CTA's tiles are taken from them, all its warps
    must agree, and together they must be all tiles. Dynamic without: a row's tiles follow from its loads, and only
    totals over the whole grid are compared. Raises `InstrumentError` naming the row and the first wrong record.
    """
    metadata = log.metadata
    shape, kernel, level = metadata.shape, metadata.kernel, metadata.level
    expect = _expected_rows(shape, kernel, level)
    counts: Counter[int] = Counter()
    tiles_of: dict[int, list[Tile]] = {}
    for row, header in enumerate(log.rows):
        records = log.records(row)
        counts.update(records["event"].tolist())
        block, role, warp = int(header["block"]), int(header["role"]), int(header["warp"]) % WARPS_PER_WARPGROUP
        if kernel.schedule == "static":
            tiles = list(static_tiles(shape, kernel, log.ctas, block))
        elif level >= 2:
            tiles = _logged_tiles(records)
            if tiles_of.setdefault(block, tiles) != tiles:
                raise InstrumentError(
                    f"block {block} warp {header['warp']}: logged other tiles than its CTA's first warp"
                )
        else:
            continue
        _compare(records, expect(role, warp, tuple(tiles)), f"block {block} warp {header['warp']}")
    if kernel.schedule != "static" and metadata.ctas_logged is None:
        _check_totals(log, counts, [tile for tiles in tiles_of.values() for tile in tiles])
    return {Event(code).name: count for code, count in sorted(counts.items())}


def has_work(records: Records) -> bool:
    """Return whether a warp's records tell of any tile; a CTA of a persistent grid may get none."""
    return bool(np.isin(records["event"], [Event.TMA_Q_ISSUE, Event.GEMM_QK_ISSUE]).any())


def _expected_rows(
    shape: AttentionShape, kernel: KernelSpec, level: int
) -> Callable[[int, int, tuple[Tile, ...]], Records]:
    """Return a function from (role, warp, tiles) to a row's records; the parts of a row are made once."""

    @functools.lru_cache(maxsize=4096)
    def tile(role: int, warp: int, blocks: int, ring_base: int) -> Records:
        return tile_events(kernel, role, blocks, level, ring_base=ring_base, warp=warp)

    def row(role: int, warp: int, tiles: tuple[Tile, ...]) -> Records:
        parts = [begin_events(kernel, role, level)]
        fills = 0
        for coordinates in tiles:
            blocks = kernel.key_blocks(shape, coordinates.m_block)
            parts.append(tile(role, warp, blocks, fills % kernel.stages))
            fills += blocks
        records = np.concatenate([*parts, end_events(level)])
        if tiles:
            set_coordinates(records, tiles)
        return records

    return row


def _logged_tiles(records: Records) -> list[Tile]:
    tiles = records[records["event"] == Event.TILE]
    return [Tile(int(tile["stage"]), int(tile["payload"]), int(tile["aux"])) for tile in tiles]


def _compare(records: Records, expected: Records, where: str) -> None:
    """Raise for the first record that is not the expected one, or for too few or too many."""
    length = min(len(records), len(expected))
    wrong = np.zeros(length, bool)
    for field in COMPARED_FIELDS:
        wrong |= records[field][:length] != expected[field][:length]
    if wrong.any():
        first = int(np.argmax(wrong))
        raise InstrumentError(
            f"{where}: record {first} is {_describe(records[first])}, expected {_describe(expected[first])}; "
            "the probed kernel does not do what the schedule says"
        )
    if len(records) != len(expected):
        raise InstrumentError(f"{where}: {len(records)} records, expected {len(expected)}")


def _check_totals(log: LogSource, counts: Counter[int], tiles: list[Tile]) -> None:
    """Compare sums over the grid of a dynamic schedule: every tile once, and loads for all its blocks."""
    metadata = log.metadata
    shape, kernel = metadata.shape, metadata.kernel
    expected = list(tile_order(shape, kernel))
    if metadata.level >= 2 and sorted(tiles) != sorted(expected):
        missing = sorted(set(expected) - set(tiles))
        raise InstrumentError(f"{len(tiles)} tiles logged, expected {len(expected)}; missing {missing[:3]}")
    blocks = sum(kernel.key_blocks(shape, tile.m_block) for tile in expected)
    for event, count in ((Event.TMA_Q_ISSUE, len(expected)), (Event.TMA_K_ISSUE, blocks), (Event.TMA_V_ISSUE, blocks)):
        if counts[event] != count:
            raise InstrumentError(f"{counts[event]} {event.name} over all CTAs, expected {count}")
    consumer_warps = len({int(header["warp"]) for header in log.rows if header["role"] != PRODUCER})
    for event in (Event.GEMM_QK_ISSUE, Event.GEMM_PV_ISSUE):
        if counts[event] != blocks * consumer_warps:
            raise InstrumentError(f"{counts[event]} {event.name} over all CTAs, expected {blocks * consumer_warps}")


def _describe(record: np.void) -> str:
    try:
        name = Event(int(record["event"])).name
    except ValueError:
        name = f"event {record['event']}"
    return f"{name} (stage {record['stage']}, payload {record['payload']}, aux {record['aux']})"
