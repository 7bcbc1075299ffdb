"""From a log to a trace: reads it tile by tile, binds tiles to CTAs, lowers each distinct stream once."""

from typing import NamedTuple

from simfa.errors import LogError
from simfa.salog import LogSource
from simfa.schedule import Tile, tile_count
from simfa.trace import Origin, Trace
from simfa.translate.programs import KindStreams, Rules
from simfa.translate.tiles import LoggedTiles, logged_tiles
from simfa.translate.trace_builder import ScheduleMode, model_mode, model_tiles, translate_streams


class Translation(NamedTuple):
    """A trace and what a reader should know of how it was made."""

    trace: Trace
    outvoted_warps: int
    """Warps whose rows lost against the majority of their warpgroup."""
    cut_tiles: int
    """Tiles that a truncated log holds in part and that were left out."""
    borrowed_tiles: int
    """Tiles that were not logged and took the events of a logged one with as many K/V blocks."""


class _Streams:
    """The events of any tile: its own if they were logged, else those of a logged tile that visits as many blocks."""

    def __init__(self, log: LogSource, logged: LoggedTiles) -> None:
        self._shape, self._kernel = log.metadata.shape, log.metadata.kernel
        self._logged = logged
        tiles = [tile for run in logged.ctas.values() for tile in run]
        self._own = {tile.tile: tile.streams for tile in tiles if tile.tile is not None}
        self._like = {tile.key_blocks: tile.streams for tile in reversed(tiles)}
        self.borrowed = 0

    def of(self, tile: Tile) -> KindStreams:
        """Return the events of a tile; raises `LogError` when no logged tile is like it."""
        blocks = self._kernel.key_blocks(self._shape, tile.m_block)
        numbers = self._own.get(tile)
        if numbers is None:
            numbers = self._like.get(blocks)
            self.borrowed += 1
        if numbers is None:
            raise LogError(
                f"query block {tile.m_block} visits {blocks} K/V blocks, and no logged tile visits so many; log more "
                "CTAs"
            )
        codes = tuple(self._logged.streams[number] for number in numbers)
        return KindStreams(codes, self._kernel.masked_blocks(self._shape, tile.m_block))


def translate_log(
    log: LogSource,
    *,
    rules: Rules = "source",
    schedule: ScheduleMode = "model",
    log_sha256: str = "",
    allow_disagreement: bool = False,
    truncated: bool = False,
) -> Translation:
    """Return the verified trace of a log.

    `schedule` "replay" binds tiles to CTAs as logged; "model" as the kernel's scheduler does, which for static grids is
    the same. `truncated` says that the log was opened although it is cut short.

    Raises `LogError` for a log that cannot be what its metadata says, and `TraceError` when its events would hang.
    """
    metadata = log.metadata
    logged = logged_tiles(log, allow_disagreement=allow_disagreement, truncated=truncated)
    streams = _Streams(log, logged)
    shape, kernel = metadata.shape, metadata.kernel
    replay = schedule == "replay"
    origin = Origin(
        log_source=metadata.source,
        log_sha256=log_sha256,
        seed=metadata.seed,
        event_level=metadata.level,
        rules=rules,
    )
    trace = translate_streams(
        shape,
        kernel,
        origin,
        _replayed(log, logged, truncated) if replay else model_tiles(shape, kernel, log.ctas),
        streams.of,
        ctas=log.ctas,
        mode="static" if replay else model_mode(kernel),
        prologue=logged.prologue,
    )
    return Translation(trace, logged.outvoted, logged.cut, streams.borrowed)


def _replayed(log: LogSource, logged: LoggedTiles, truncated: bool) -> tuple[tuple[Tile, ...], ...]:
    """Return each CTA's tiles as logged; raises `LogError` when the log does not tell."""
    metadata = log.metadata
    if metadata.ctas_logged is not None and len(metadata.ctas_logged) < log.ctas:
        raise LogError(
            f"only {len(metadata.ctas_logged)} of {log.ctas} CTAs are in the log, so it cannot be replayed; use "
            "--schedule model"
        )
    lists = []
    for cta in range(log.ctas):
        tiles = [tile.tile for tile in logged.ctas.get(cta, ())]
        known = [tile for tile in tiles if tile is not None]
        if len(known) != len(tiles):
            raise LogError(
                "the log has no TILE events and its schedule is dynamic, so it cannot be replayed; use --schedule model"
            )
        lists.append(tuple(known))
    found, expected = sum(map(len, lists)), tile_count(metadata.shape, metadata.kernel)
    if found != expected and not truncated:
        raise LogError(f"{found} of {expected} tiles are in the log, so it cannot be replayed; use --schedule model")
    cluster = metadata.kernel.cluster
    for first in range(0, len(lists), cluster):
        # Of a truncated log one CTA of a cluster may hold more tiles than its mate.
        shortest = min(len(tiles) for tiles in lists[first : first + cluster])
        lists[first : first + cluster] = [tiles[:shortest] for tiles in lists[first : first + cluster]]
    return tuple(lists)
