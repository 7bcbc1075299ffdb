"""Which records a warp of a given kernel can have written: known events, possible stages, blocks and tiles."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from simfa.events import CONSUMER_EVENTS, LEVEL_1_EVENTS, PRODUCER, PRODUCER_EVENTS, Event
from simfa.kernel import KernelSpec, ceil_div
from simfa.workload import AttentionShape

# Events whose payload is a block of K or V; of all but SOFTMAX_END the stage is the slot of its ring.
RING_EVENTS = frozenset(
    {
        Event.TMA_K_ISSUE,
        Event.TMA_V_ISSUE,
        Event.ACQUIRE_K_START,
        Event.ACQUIRE_V_START,
        Event.WAIT_K_START,
        Event.WAIT_K_END,
        Event.WAIT_V_START,
        Event.WAIT_V_END,
        Event.GEMM_QK_ISSUE,
        Event.GEMM_PV_ISSUE,
        Event.WAIT_WG_1,
        Event.WAIT_WG_1_END,
        Event.WAIT_WG_0,
        Event.WAIT_WG_0_END,
        Event.RELEASE_K,
        Event.RELEASE_V,
        Event.SOFTMAX_END,
    }
)
BARRIER_EVENTS = frozenset({Event.BAR_SYNC_START, Event.BAR_SYNC_END, Event.BAR_ARRIVE})
NAMED_BARRIERS = 16  # of a CTA, PTX ISA

_UNLIMITED = 1 << 16  # the fields of a record have 16 bits
_CODES = max(Event) + 2  # one more than the last event: stands for all unknown ones


class Fault(NamedTuple):
    """The first wrong record of a row, and what is wrong with it."""

    record: int
    message: str


def _table(events: frozenset[Event]) -> npt.NDArray[np.bool_]:
    """Return a lookup table by event code."""
    table = np.zeros(_CODES, bool)
    table[list(events)] = True
    return table


class RecordRules:
    """The rules for one log, looked up by event code so that a row is checked in a few array operations."""

    def __init__(self, shape: AttentionShape, kernel: KernelSpec, level: int) -> None:
        """Derive the limits of stages, blocks and tile coordinates."""
        of_level = LEVEL_1_EVENTS if level == 1 else frozenset(Event)
        self._level = level
        self._known = _table(frozenset(Event))
        self._of_level = _table(of_level)
        self._of_role = {True: _table(PRODUCER_EVENTS), False: _table(CONSUMER_EVENTS)}
        key_blocks = ceil_div(shape.seqlen_kv, kernel.tile_n)
        unlimited = np.full(_CODES, _UNLIMITED)
        self._limits = {field: unlimited.copy() for field in ("stage", "payload", "aux")}
        for event in RING_EVENTS:
            self._limits["stage"][event] = min(kernel.stages, _UNLIMITED)
            self._limits["payload"][event] = min(key_blocks, _UNLIMITED)
        for event in BARRIER_EVENTS:
            self._limits["payload"][event] = NAMED_BARRIERS
        self._limits["payload"][Event.TMA_Q_ISSUE] = min(kernel.query_blocks(shape), _UNLIMITED)
        self._limits["stage"][Event.TILE] = min(kernel.query_blocks(shape), _UNLIMITED)
        self._limits["payload"][Event.TILE] = min(shape.heads_q, _UNLIMITED)
        self._limits["aux"][Event.TILE] = min(shape.batch, _UNLIMITED)

    def first_fault(self, records: npt.NDArray[np.void], role: int) -> Fault | None:
        """Return the first record that a warp of `role` cannot have written, or None."""
        codes = np.minimum(records["event"], _CODES - 1)
        of_role = self._of_role[role == PRODUCER]
        wrong = ~(self._of_level & of_role)[codes]
        for field, limits in self._limits.items():
            wrong |= records[field] >= limits[codes]
        if not wrong.any():
            return None
        index = int(np.argmax(wrong))
        record, code = records[index], int(codes[index])
        if not self._known[code]:
            return Fault(index, f"unknown event {record['event']}; expected one of `simfa.events`")
        name = Event(code).name
        if not self._of_level[code]:
            return Fault(index, f"{name} in a log of level {self._level}; the metadata or the record is wrong")
        if not of_role[code]:
            return Fault(
                index, f"{name} by role {role}; expected it from {'consumers' if role == 0 else 'the producer'}"
            )
        for field, limits in self._limits.items():
            if record[field] >= limits[code]:
                return Fault(
                    index, f"{name} with {field} {record[field]}; expected below {limits[code]}{_meaning(code, field)}"
                )
        raise AssertionError("a wrong record has a reason")


def _meaning(code: int, field: str) -> str:
    """Return what a limited field of an event counts."""
    if code == Event.TILE:
        return {"stage": " query blocks", "payload": " query heads", "aux": " batch entries"}[field]
    if code == Event.TMA_Q_ISSUE:
        return " query blocks"
    if code in BARRIER_EVENTS:
        return " named barriers of a CTA"
    return {"stage": " stages of the ring", "payload": " blocks of K/V"}[field]
