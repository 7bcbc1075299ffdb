"""Profiling events of the FA3 kernel: Table 4 (level 1) and the extra ones of level 2, with the 16-byte log record.

This is the one definition: the CUDA header `instrument/cuda/simfa_events.cuh` is generated from it.
"""

import enum

import numpy as np

RECORD_DTYPE = np.dtype([("timestamp", "<u8"), ("event", "<u2"), ("stage", "<u2"), ("payload", "<u2"), ("aux", "<u2")])
PRODUCER = 0  # role of the producer warpgroup; consumer warpgroups are roles 1, 2, 3


class Event(enum.IntEnum):
    """What a warp did. Stage is the ring slot, payload the K/V block (`n_block`) unless said otherwise."""

    # Table 4, in its order.
    TMA_Q_ISSUE = 1
    TMA_K_ISSUE = 2
    TMA_V_ISSUE = 3
    WAIT_K_START = 4
    GEMM_QK_ISSUE = 5
    WAIT_V_START = 6
    GEMM_PV_ISSUE = 7
    WAIT_WG_1 = 8
    WAIT_WG_0 = 9
    # Level 2: what a faithful trace needs besides.
    TILE = 16  # stage: m_block, payload: head, aux: batch
    ACQUIRE_K_START = 17
    ACQUIRE_V_START = 18
    WAIT_Q_START = 19
    WAIT_Q_END = 20
    QUERY_EMPTY_WAIT = 21
    QUERY_EMPTY_ARRIVE = 22
    WAIT_O_START = 23
    WAIT_K_END = 24
    WAIT_V_END = 25
    BAR_SYNC_START = 26  # payload: barrier id
    BAR_SYNC_END = 27  # payload: barrier id
    BAR_ARRIVE = 28  # payload: barrier id
    WAIT_WG_1_END = 29
    WAIT_WG_0_END = 30
    RELEASE_K = 31
    RELEASE_V = 32
    SOFTMAX_END = 33
    EPILOGUE_START = 34
    TMA_O_ISSUE = 35
    TMA_O_WAIT_END = 36
    KERNEL_BEGIN = 37
    KERNEL_END = 38


LEVEL_1_EVENTS = frozenset(event for event in Event if event <= Event.WAIT_WG_0)
PRODUCER_EVENTS = frozenset(
    {
        Event.TMA_Q_ISSUE,
        Event.TMA_K_ISSUE,
        Event.TMA_V_ISSUE,
        Event.ACQUIRE_K_START,
        Event.ACQUIRE_V_START,
        Event.QUERY_EMPTY_WAIT,
        Event.WAIT_O_START,
        Event.TILE,
        Event.KERNEL_BEGIN,
        Event.KERNEL_END,
    }
)
CONSUMER_EVENTS = frozenset(Event) - PRODUCER_EVENTS | {Event.TILE, Event.KERNEL_BEGIN, Event.KERNEL_END}
