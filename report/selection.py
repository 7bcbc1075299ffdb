"""The part of a timeline that is asked for: places, tiles, cycles."""

import msgspec
import numpy as np
from numpy.typing import NDArray

from simfa.errors import ReportError
from simfa.timeline import TILE_COLUMNS, Timeline

ROLES = ("producer", "consumer")


def of_places(timeline: Timeline, numbers: tuple[int, ...]) -> Timeline:
    """Return the tracks, counters and tiles of SMs (of a run) or CTAs (of a log), and the chip's counters.

    Raises `ReportError` for a number that the timeline does not hold.
    """
    have = {name: int(name.lstrip("smcta")) for name in timeline.places() if name.lstrip("smcta").isdecimal()}
    for number in numbers:
        if number not in have.values():
            shown = ", ".join(sorted(have, key=lambda name: have[name])) or "none"
            raise ReportError(f"SM or CTA {number} was not recorded; the timeline holds {shown}")
    return timeline.of_places({name for name, number in have.items() if number in numbers})


def of_tiles(timeline: Timeline, wanted: tuple[int, ...]) -> Timeline:
    """Return what overlaps the time of some tiles: the first and the last ordinal, or m_block, head and batch.

    Raises `ReportError` when no such tile was recorded.
    """
    chosen = _tiles(timeline, wanted)
    if not chosen.any():
        what = f"{wanted[0]} to {wanted[1]}" if len(wanted) == 2 else f"m_block, head, batch {wanted}"
        raise ReportError(f"tile {what} was not recorded; the timeline holds {len(chosen)} tiles")
    keep = np.zeros(len(timeline), bool)
    for place in np.unique(timeline.tile_sm[chosen]).tolist():
        ordinals = timeline.tile_ordinal[chosen & (timeline.tile_sm == place)]
        keep |= in_tiles(timeline, place, ordinals)
    return msgspec.structs.replace(
        timeline.chosen(keep), **{name: getattr(timeline, name)[chosen] for name in TILE_COLUMNS}
    )


def in_tiles(timeline: Timeline, place: int, ordinals: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Return which slices of a place belong to its tiles, or overlap their time on tracks that are of no role."""
    tracks, roles = [], []
    for number, name in enumerate(timeline.track_name):
        where, _, unit = name.rpartition("/")
        if where in (f"sm{place}", f"cta{place}"):
            tracks.append(number)
            roles += [number] if unit.startswith(ROLES) else []
    mine = np.isin(timeline.track, roles) & np.isin(timeline.arg, ordinals)
    if not mine.any():
        return mine
    begin, end = timeline.start_cycle[mine].min(), timeline.end_cycle[mine].max()
    others = np.isin(timeline.track, tracks) & ~np.isin(timeline.track, roles)
    kept: NDArray[np.bool_] = mine | (others & (timeline.end_cycle > begin) & (timeline.start_cycle < end))
    return kept


def _tiles(timeline: Timeline, wanted: tuple[int, ...]) -> NDArray[np.bool_]:
    """Return which of the recorded tiles are wanted."""
    if len(wanted) == 2:
        return (timeline.tile_ordinal >= wanted[0]) & (timeline.tile_ordinal <= wanted[1])
    columns = (timeline.tile_m_block, timeline.tile_head, timeline.tile_batch)
    return np.all([column == value for column, value in zip(columns, wanted, strict=True)], axis=0)  # type: ignore[no-any-return]
