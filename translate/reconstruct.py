"""Level-2 events that a log lacks, put where the FA3 source has them.

A level-1 log holds Table 4 alone. From the order of its events and the kernel's facts all others follow; the trace
says that they were reconstructed.
"""

from collections.abc import Iterator
from typing import NamedTuple

from simfa.events import PRODUCER, Event
from simfa.kernel import KernelSpec
from simfa.translate.events import Codes, Step, codes_of_steps, count, steps_of

PING_PONG_BARRIER = 8  # named barrier of consumer i is 8 + i, as in the SASS of the FA3 kernel; 8 itself is QueryEmpty


class Completed(NamedTuple):
    """A tile's events of one role with nothing missing, and whether some were added."""

    codes: Codes
    reconstructed: bool


def next_consumer(kernel: KernelSpec, role: int) -> int:
    """Return the consumer whose turn follows that of `role` under ping-pong."""
    return role % kernel.consumers + 1


def complete_tile(codes: Codes, kernel: KernelSpec, role: int, level: int) -> Completed:
    """Return a tile's events with those of level 2 in place.

    A level-2 log may lack only the store of O, which is logged by one warp of the last consumer warpgroup.
    """
    if level == 1:
        steps = _producer(codes) if role == PRODUCER else _consumer(codes, kernel, role)
        return Completed(codes_of_steps(steps), True)
    if role == kernel.consumers and not count(codes, Event.TMA_O_ISSUE):
        return Completed(codes_of_steps([*steps_of(codes), *_STORE]), True)
    return Completed(codes, False)


def complete_prologue(codes: Codes, kernel: KernelSpec, role: int, level: int) -> Completed:
    """Return what a role does before its first tile: the first consumer gives itself the first ping-pong turn."""
    if level == 1:
        first = kernel.ping_pong and role == 1
        return Completed(codes_of_steps([Step(Event.BAR_ARRIVE, PING_PONG_BARRIER + 1)] if first else []), first)
    return Completed(codes, False)


_STORE = (Step(Event.TMA_O_ISSUE), Step(Event.TMA_O_WAIT_END))


def _producer(codes: Codes) -> Iterator[Step]:
    for step in steps_of(codes):
        if step.event is Event.TMA_K_ISSUE:
            yield Step(Event.ACQUIRE_K_START, step.payload)
        elif step.event is Event.TMA_V_ISSUE:
            yield Step(Event.ACQUIRE_V_START, step.payload)
        elif step.event is Event.TMA_Q_ISSUE:
            yield Step(Event.QUERY_EMPTY_WAIT)
        yield step
        if step.event is Event.TMA_Q_ISSUE:
            yield Step(Event.WAIT_O_START)


def _consumer(codes: Codes, kernel: KernelSpec, role: int) -> Iterator[Step]:
    key_blocks = count(codes, Event.GEMM_QK_ISSUE)
    products = {Event.GEMM_QK_ISSUE: 0, Event.GEMM_PV_ISSUE: 0}
    key, value = 0, 0  # blocks of the latest QK and PV product
    yield Step(Event.WAIT_Q_START)
    for step in steps_of(codes):
        if step.event is Event.GEMM_QK_ISSUE:
            key = step.payload
            if products[step.event] and kernel.ping_pong:
                yield Step(Event.BAR_SYNC_START, PING_PONG_BARRIER + role)
        elif step.event is Event.GEMM_PV_ISSUE:
            value = step.payload
        elif step.event is Event.WAIT_V_START and products[Event.GEMM_PV_ISSUE] == key_blocks - 1:
            yield Step(Event.QUERY_EMPTY_ARRIVE)
        yield step
        if step.event in products:
            products[step.event] += 1
        if step.event is Event.GEMM_PV_ISSUE and products[step.event] < key_blocks and kernel.ping_pong:
            yield Step(Event.BAR_ARRIVE, PING_PONG_BARRIER + next_consumer(kernel, role))
        if step.event is Event.WAIT_WG_0 and products[Event.GEMM_PV_ISSUE]:
            yield Step(Event.RELEASE_V, value)
        elif step.event in (Event.WAIT_WG_0, Event.WAIT_WG_1):
            yield Step(Event.RELEASE_K, key)
            yield Step(Event.SOFTMAX_END, key)
    yield Step(Event.EPILOGUE_START)
    if role == kernel.consumers:
        yield from _STORE
