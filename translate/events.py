"""A role's events of one tile as compact codes: what matters for translation and nothing else.

A code holds event and payload in 32 bits. Timestamps and auxiliary fields never get here; ring slots are left out
because a program names fills by their order (`first_wrong_stage` checks what was logged). Two tiles with the same
codes are the same kind of tile.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from simfa.events import Event
from simfa.salog_check import BARRIER_EVENTS, RING_EVENTS

Codes = npt.NDArray[np.uint32]
Records = npt.NDArray[np.void]

# Stamps of the end of a wait, and records that only frame others: no instruction comes of them.
_SILENT = frozenset(
    {
        Event.TILE,
        Event.WAIT_Q_END,
        Event.WAIT_K_END,
        Event.WAIT_V_END,
        Event.BAR_SYNC_END,
        Event.WAIT_WG_1_END,
        Event.WAIT_WG_0_END,
        Event.KERNEL_BEGIN,
        Event.KERNEL_END,
    }
)
_CODES = max(Event) + 1
_EVENTS = {int(event): event for event in Event}  # faster than calling Event
_PAYLOAD_SHIFT = 16
# Events that use their ring's slots in turn: the k-th of a row has stage k modulo the ring's stages.
_FILL_EVENTS = (Event.TMA_K_ISSUE, Event.TMA_V_ISSUE, Event.GEMM_QK_ISSUE, Event.GEMM_PV_ISSUE)


def _table(events: Iterable[Event]) -> npt.NDArray[np.bool_]:
    table = np.zeros(_CODES, bool)
    table[list(events)] = True
    return table


_HAS_MEANING = _table(frozenset(Event) - _SILENT)
_HAS_PAYLOAD = _table(RING_EVENTS | BARRIER_EVENTS)


class Step(NamedTuple):
    """One event of a role: the payload is a block of K/V, a barrier, or 0."""

    event: Event
    payload: int = 0


def codes_of(records: Records) -> Codes:
    """Return the codes of records, shape (n,), without those that have no meaning for a trace."""
    events = records["event"]
    payloads = np.where(_HAS_PAYLOAD[events], records["payload"], 0).astype(np.uint32)
    codes: Codes = (events.astype(np.uint32) | payloads << _PAYLOAD_SHIFT)[_HAS_MEANING[events]]
    return codes


def steps_of(codes: Codes) -> Iterator[Step]:
    """Yield the events of codes in order."""
    for code in codes.tolist():
        yield Step(_EVENTS[code & 0xFFFF], code >> _PAYLOAD_SHIFT)


def codes_of_steps(steps: Iterable[Step]) -> Codes:
    """Return the codes of events: the inverse of `steps_of`."""
    return np.array([step.event | step.payload << _PAYLOAD_SHIFT for step in steps], np.uint32)


def count(codes: Codes, event: Event) -> int:
    """Return how often an event occurs."""
    return int(np.count_nonzero((codes & 0xFFFF) == event))


def first_wrong_stage(records: Records, stages: int) -> tuple[int, int] | None:
    """Return index and expected stage of the first record of a whole row whose ring slot is out of turn, or None."""
    faults = []
    for event in _FILL_EVENTS:
        (places,) = np.nonzero(records["event"] == event)
        expected = np.arange(len(places)) % stages
        wrong = records["stage"][places] != expected
        if wrong.any():
            first = int(np.argmax(wrong))
            faults.append((int(places[first]), int(expected[first])))
    return min(faults, default=None)
