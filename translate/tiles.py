"""Cuts a log into tiles: which events each role of each CTA logged for each output tile, equal ones stored once."""

import itertools
from typing import NamedTuple

import numpy as np

from simfa.errors import LogError
from simfa.events import PRODUCER, Event
from simfa.salog import LogSource
from simfa.schedule import Tile, static_tiles
from simfa.translate.dedup import merge_warps
from simfa.translate.events import Codes, Records, codes_of, count, first_wrong_stage


class LoggedTile(NamedTuple):
    """One tile of a CTA: index of each role's events in `LoggedTiles.streams`, K/V blocks, coordinates if known."""

    streams: tuple[int, ...]
    key_blocks: int
    tile: Tile | None


class LoggedTiles(NamedTuple):
    """All that a log says for a trace.

    `streams` are the distinct tiles' events of one role, `ctas` each logged CTA's tiles in order, `prologue` what each
    role logged before its first tile. `outvoted` counts warps whose rows disagreed, `cut` tiles dropped because a
    truncated log holds them in part.
    """

    streams: tuple[Codes, ...]
    ctas: dict[int, tuple[LoggedTile, ...]]
    prologue: tuple[Codes, ...]
    outvoted: int
    cut: int


class _RoleTiles(NamedTuple):
    """One role's row of a CTA, cut up."""

    prologue: Codes
    tiles: list[Codes]
    coordinates: list[Tile] | None


def logged_tiles(log: LogSource, *, allow_disagreement: bool = False, truncated: bool = False) -> LoggedTiles:
    """Return the tiles of a log, reading one CTA at a time.

    With `truncated` a tile that some role logged in part ends its CTA's list. Raises `LogError` naming block, warp and
    record when the rows are not those of this kernel's tiles.
    """
    reader = _Reader(log, allow_disagreement, truncated)
    blocks = log.rows["block"]
    edges = [0, *(np.flatnonzero(np.diff(blocks.astype(np.int64))) + 1).tolist(), len(blocks)]
    ctas: dict[int, tuple[LoggedTile, ...]] = {}
    for first, stop in itertools.pairwise(edges):
        if stop > first:
            ctas[int(blocks[first])] = reader.cta(first, stop)
    empty = np.zeros(0, np.uint32)
    prologue = reader.prologue or (empty,) * (1 + log.metadata.kernel.consumers)
    return LoggedTiles(tuple(reader.streams), ctas, prologue, reader.outvoted, reader.cut)


class _Reader:
    """Reads CTAs one after the other and keeps each distinct stream once."""

    def __init__(self, log: LogSource, allow_disagreement: bool, truncated: bool) -> None:
        """Start without streams."""
        self._log = log
        self._shape, self._kernel, self._level = log.metadata.shape, log.metadata.kernel, log.metadata.level
        self._allow_disagreement = allow_disagreement
        self._truncated = truncated
        self._numbers: dict[bytes, int] = {}
        self.streams: list[Codes] = []
        self.prologue: tuple[Codes, ...] | None = None
        self.outvoted = 0
        self.cut = 0

    def cta(self, first: int, stop: int) -> tuple[LoggedTile, ...]:
        """Return the tiles of the CTA whose rows are `first` to `stop`."""
        block = int(self._log.rows["block"][first])
        roles = self._roles(block, first, stop)
        lengths = [len(role.tiles) for role in roles]
        if len(set(lengths)) > 1 and not self._truncated:
            found = ", ".join(f"role {role}: {length}" for role, length in enumerate(lengths))
            raise LogError(f"block {block}: its roles logged different numbers of tiles ({found}); capture again")
        self.cut += max(lengths) - min(lengths)
        coordinates = self._coordinates(block, roles, min(lengths))
        if min(lengths) == 0:
            return ()
        prologue = tuple(role.prologue for role in roles)
        if self.prologue is None:
            self.prologue = prologue
        elif any(not np.array_equal(*pair) for pair in zip(prologue, self.prologue, strict=True)):
            raise LogError(f"block {block}: starts with other barrier events than the blocks before it; capture again")
        return tuple(
            self._tile(block, position, [role.tiles[position] for role in roles], coordinates)
            for position in range(min(lengths))
        )

    def _tile(self, block: int, position: int, codes: list[Codes], coordinates: list[Tile] | None) -> LoggedTile:
        key_blocks = count(codes[PRODUCER], Event.TMA_K_ISSUE)
        for role, stream in enumerate(codes[1:], 1):
            if count(stream, Event.GEMM_QK_ISSUE) != key_blocks:
                raise LogError(
                    f"block {block}: tile {position}: role {role} logged {count(stream, Event.GEMM_QK_ISSUE)} "
                    f"GEMM_QK_ISSUE, the producer {key_blocks} TMA_K_ISSUE; expected equal numbers"
                )
        tile = None if coordinates is None else coordinates[position]
        expected = None if tile is None else self._kernel.key_blocks(self._shape, tile.m_block)
        if expected not in (None, key_blocks):
            raise LogError(
                f"block {block}: tile {position} is query block {tile.m_block if tile else ''} with {key_blocks} K/V "
                f"blocks; this kernel visits {expected}"
            )
        return LoggedTile(tuple(self._number(stream) for stream in codes), key_blocks, tile)

    def _number(self, codes: Codes) -> int:
        number = self._numbers.setdefault(codes.tobytes(), len(self.streams))
        if number == len(self.streams):
            self.streams.append(codes)
        return number

    def _roles(self, block: int, first: int, stop: int) -> list[_RoleTiles]:
        """Return each role's row, merged from its warps and cut into tiles."""
        warps: dict[int, dict[int, Records]] = {role: {} for role in range(1 + self._kernel.consumers)}
        for row in range(first, stop):
            header = self._log.rows[row]
            warps[int(header["role"])][int(header["warp"])] = self._log.records(row)
        roles = []
        for role, rows in warps.items():
            if not rows and self._truncated:
                roles.append(_RoleTiles(np.zeros(0, np.uint32), [], None))
                continue
            if not rows:
                raise LogError(f"block {block}: no warp of role {role} logged; log at least one warp of each warpgroup")
            merged = merge_warps(
                rows,
                role,
                f"block {block}",
                allow_disagreement=self._allow_disagreement,
                truncated=self._truncated,
            )
            self.outvoted += len(merged.outvoted)
            place = f"block {block} warp {merged.warp}"
            wrong = first_wrong_stage(merged.records, self._kernel.stages)
            if wrong is not None:
                record = merged.records[wrong[0]]
                raise LogError(
                    f"{place} record {wrong[0]}: {Event(int(record['event'])).name} with stage {record['stage']}; its "
                    f"ring is at stage {wrong[1]} by then, so records are missing or changed"
                )
            cut = _cut_level_2 if self._level >= 2 else _cut_level_1
            roles.append(cut(merged.records, role, place, self._truncated))
        return roles

    def _coordinates(self, block: int, roles: list[_RoleTiles], length: int) -> list[Tile] | None:
        """Return the tiles' coordinates: as logged, or by the static schedule, which logged ones must follow."""
        logged = roles[PRODUCER].coordinates
        for role, tiles in enumerate(roles):
            if logged is not None and tiles.coordinates is not None and tiles.coordinates[:length] != logged[:length]:
                raise LogError(f"block {block}: role {role} logged other TILE coordinates than the producer")
        if self._kernel.schedule != "static":
            return logged
        expected = list(static_tiles(self._shape, self._kernel, self._log.ctas, block))
        if length != len(expected) and not self._truncated:
            raise LogError(
                f"block {block}: {length} tiles logged; the static schedule of {self._log.ctas} CTAs gives it "
                f"{len(expected)}"
            )
        if logged is not None and logged[:length] != expected[:length]:
            raise LogError(f"block {block}: TILE coordinates are not those of the static schedule")
        return expected


def _cut_level_2(records: Records, role: int, place: str, truncated: bool) -> _RoleTiles:
    """Cut a row at its TILE events."""
    starts = np.flatnonzero(records["event"] == Event.TILE)
    coordinates = [Tile(int(record["stage"]), int(record["payload"]), int(record["aux"])) for record in records[starts]]
    bounds = [*starts.tolist(), len(records)]
    tiles = [codes_of(records[first:stop]) for first, stop in itertools.pairwise(bounds)]
    if truncated:
        while tiles and not _is_whole(tiles[-1], role):
            tiles.pop()
            coordinates.pop()
    return _RoleTiles(codes_of(records[: bounds[0]]), tiles, coordinates)


def _cut_level_1(records: Records, role: int, place: str, truncated: bool) -> _RoleTiles:
    """Cut a row after the last event of each tile: V's block 0 loaded, or its product waited for."""
    if role == PRODUCER:
        ends = np.flatnonzero((records["event"] == Event.TMA_V_ISSUE) & (records["payload"] == 0)) + 1
    else:
        ends = np.flatnonzero((records["event"] == Event.GEMM_PV_ISSUE) & (records["payload"] == 0)) + 2
        ends = ends[ends <= len(records)]
        (wrong,) = np.nonzero(records["event"][ends - 1] != Event.WAIT_WG_0)
        if len(wrong):
            record = int(ends[wrong[0]]) - 1
            found = Event(int(records["event"][record])).name
            raise LogError(f"{place} record {record}: expected WAIT_WG_0 after the last PV product, found {found}")
    bounds = [0, *ends.tolist()]
    if bounds[-1] != len(records) and not truncated:
        raise LogError(
            f"{place} record {bounds[-1]}: a tile begins that does not end; records are missing, capture again with "
            "larger rows"
        )
    tiles = [codes_of(records[first:stop]) for first, stop in itertools.pairwise(bounds)]
    return _RoleTiles(codes_of(records[:0]), tiles, None)


def _is_whole(codes: Codes, role: int) -> bool:
    """Return whether the events of a level-2 tile go up to its end."""
    if role == PRODUCER:
        return count(codes, Event.TMA_V_ISSUE) == count(codes, Event.TMA_K_ISSUE) > 0
    return count(codes, Event.EPILOGUE_START) == 1
