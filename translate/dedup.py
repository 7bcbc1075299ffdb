"""Four warps of a warpgroup to one stream of events."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from simfa.errors import LogError
from simfa.events import PRODUCER, Event
from simfa.translate.events import Records

# Only the last warp of the last consumer warpgroup stores O.
_ELECTED = (Event.TMA_O_ISSUE, Event.TMA_O_WAIT_END)
_LOADS = (Event.TMA_Q_ISSUE, Event.TMA_K_ISSUE, Event.TMA_V_ISSUE)
_FIELDS = ("event", "stage", "payload", "aux")


class Disagreement(NamedTuple):
    """Where a warp first departs from the others of its warpgroup."""

    warp: int
    record: int
    message: str


class MergedWarps(NamedTuple):
    """The stream of a warpgroup, the warp it was taken from, and the warps that say otherwise."""

    records: Records
    warp: int
    outvoted: tuple[Disagreement, ...]


def merge_warps(
    warps: Mapping[int, Records],
    role: int,
    place: str,
    *,
    allow_disagreement: bool = False,
    truncated: bool = False,
) -> MergedWarps:
    """Return the stream of a warpgroup from the records of its warps, by warp number; rows may be missing.

    All warps must have logged the same events; timestamps differ and are ignored. Of the producer one warp works and
    the others have nothing to say. The store of O, which one elected warp does, is taken from whoever logged it.
    With `allow_disagreement` the events that most warps agree on win, at equal votes those of the lowest warp; else a
    disagreement is a `LogError` naming `place`, warp, record and event. In a `truncated` log a warp that stops where
    another goes on is cut, and has no vote.
    """
    if role == PRODUCER:
        loading = {warp: records for warp, records in warps.items() if np.isin(records["event"], _LOADS).any()}
        warps = loading or warps
    if truncated:
        warps = {warp: records for warp, records in warps.items() if not _is_cut(records, warps.values())}
    votes: dict[bytes, list[int]] = {}
    for warp in sorted(warps):
        votes.setdefault(_content(_common(warps[warp])), []).append(warp)
    winners = max(votes.values(), key=len)  # the first of equals: that of the lowest warp
    losers = [warp for group in votes.values() if group is not winners for warp in group]
    outvoted = tuple(_difference(warps, winners[0], warp) for warp in sorted(losers))
    if outvoted and not allow_disagreement:
        raise LogError(
            f"{place}: warps of role {role} disagree: {outvoted[0].message}; capture again, or go by the majority with "
            "--allow-disagreement"
        )
    chosen = max(winners, key=lambda warp: (len(warps[warp]), -warp))  # the one with the elected events, if any
    return MergedWarps(warps[chosen], chosen, outvoted)


def _common(records: Records) -> Records:
    """Return the records that every warp of the warpgroup writes."""
    elected = np.isin(records["event"], _ELECTED)
    return records[~elected] if elected.any() else records


def _is_cut(records: Records, others: Iterable[Records]) -> bool:
    """Return whether some other warp wrote the same records and then more."""
    mine = _common(records)
    longer = (other for other in map(_common, others) if len(other) > len(mine))
    return any(_content(other[: len(mine)]) == _content(mine) for other in longer)


def _content(records: Records) -> bytes:
    """Return the records without timestamps, as bytes."""
    return b"".join(np.ascontiguousarray(records[field]).tobytes() for field in _FIELDS)


def _difference(warps: Mapping[int, Records], winner: int, loser: int) -> Disagreement:
    """Return the first record of `loser` that `winner` has not got at that place."""
    expected, found = _common(warps[winner]), _common(warps[loser])
    length = min(len(expected), len(found))
    wrong = np.zeros(length, bool)
    for field in _FIELDS:
        wrong |= expected[field][:length] != found[field][:length]
    place = int(np.argmax(wrong)) if wrong.any() else length
    elected = np.isin(warps[loser]["event"], _ELECTED)
    positions = np.flatnonzero(~elected)
    record = int(positions[place]) if place < len(positions) else len(warps[loser])
    message = (
        f"record {record} of warp {loser} is {_describe(found, place)}, warp {winner} has {_describe(expected, place)}"
    )
    return Disagreement(loser, record, message)


def _describe(records: Records, place: int) -> str:
    if place >= len(records):
        return "missing"
    record = records[place]
    return f"{Event(int(record['event'])).name} (stage {record['stage']}, payload {record['payload']})"
