"""In which order each warp of the FA3 forward kernel logs its events: the one definition of order and counts.

Source: the Hopper forward mainloop, kernel and epilogue of FA3 v2.8 with inner-warpgroup overlap (functions `load`,
`mma`, `mma_init`, `store`). K runs one block ahead of V: turn i issues QK for K fill i and PV for V fill i - 1. With
ping-pong scheduling only the first consumer waits on mbarriers inside the loop; the named barriers cover the others.
Older kernel versions differ in tiles and schedule; their order inside a tile is assumed to be the same.

A tile visits its key blocks from the last to the first, so fill i of a ring holds block `key_blocks - 1 - i`.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from simfa.errors import ShapeError
from simfa.events import LEVEL_1_EVENTS, PRODUCER, RECORD_DTYPE, Event
from simfa.kernel import KernelSpec
from simfa.salog import WARPS_PER_WARPGROUP, warps_per_cta
from simfa.salog_check import RING_EVENTS
from simfa.schedule import Tile
from simfa.workload import AttentionShape

LAST_WARP = WARPS_PER_WARPGROUP - 1  # of a warpgroup
FIRST_PING_PONG_BARRIER = 9  # named barrier of the first consumer; the others follow. 8 is QueryEmpty

MAX_FIELD = 1 << 16  # values of a record's stage, payload or aux

STORE_EVENTS = (Event.TMA_O_ISSUE, Event.TMA_O_WAIT_END)  # of the one warp that stores O

Records = npt.NDArray[np.void]


class _Step(NamedTuple):
    """One event of a turn: `lag` is how many fills it is behind the turn's K fill, None if it is of no fill."""

    event: Event
    lag: int | None = None
    payload: int = 0


# Lags of the two rings: a turn's V fill is one behind its K fill.
_K = 0
_V = 1


def tile_events(
    kernel: KernelSpec, role: int, key_blocks: int, level: int, *, ring_base: int = 0, warp: int = LAST_WARP
) -> Records:
    """Return the records one warp of `role` writes for one tile of `key_blocks` blocks, without timestamps.

    `ring_base` is the number of K fills (and so of V fills) by the CTA's earlier tiles; it sets the stages. `warp` is
    the warp in its warpgroup: the last one of the last consumer also stores O, otherwise warps of a role log alike.

    Returns `RECORD_DTYPE` records; `set_coordinates` fills in those of TILE and TMA_Q_ISSUE. Raises `ShapeError` for
    a kernel without overlap.
    """
    if not kernel.overlap:
        raise ShapeError("kernels without inner-warpgroup overlap have no synthetic logs; use one of FA3's own kernels")
    stores = role == kernel.consumers and warp == LAST_WARP
    first, turn, last = _producer_turns() if role == PRODUCER else _consumer_turns(kernel, role, stores)
    records = np.concatenate(
        [
            _expand(first, np.array([0]), kernel, key_blocks, ring_base),
            _expand(turn, np.arange(1, key_blocks), kernel, key_blocks, ring_base),
            _expand(last, np.array([key_blocks]), kernel, key_blocks, ring_base),
        ]
    )
    return records if level >= 2 else records[of_level_1(records)]


def check_coordinates(shape: AttentionShape, kernel: KernelSpec) -> None:
    """Raise `ShapeError` when a block, head or batch entry of `shape` does not fit a record's 16-bit fields."""
    query_blocks = kernel.query_blocks(shape)
    for what, count in (
        ("query blocks", query_blocks),
        ("key blocks", kernel.key_blocks(shape, query_blocks - 1)),
        ("heads_q", shape.heads_q),
        ("batch", shape.batch),
    ):
        if count > MAX_FIELD:
            raise ShapeError(f"{what} {count}: a log record holds at most {MAX_FIELD}; use a smaller shape")


def set_coordinates(records: Records, tiles: Sequence[Tile]) -> None:
    """Write the coordinates of `tiles`, in order, into the TILE and TMA_Q_ISSUE records of one warp."""
    m_block, head, batch = np.array(tiles, np.uint16).T
    tile, load = records["event"] == Event.TILE, records["event"] == Event.TMA_Q_ISSUE
    for field, values in (("stage", m_block), ("payload", head), ("aux", batch)):
        records[field][tile] = values[: tile.sum()]
    records["payload"][load] = m_block[: load.sum()]


def loop_bounds(kernel: KernelSpec, role: int) -> tuple[int, int]:
    """Return how many level-2 records of a tile come before the loop over blocks, and how many each turn adds."""
    first, turn, _ = _producer_turns() if role == PRODUCER else _consumer_turns(kernel, role, False)
    return len(first), len(turn)


def begin_events(kernel: KernelSpec, role: int, level: int) -> Records:
    """Return what a warp of `role` logs before its first tile: the kernel's begin and the barriers it primes."""
    steps = [_Step(Event.KERNEL_BEGIN)]
    if role != PRODUCER:
        steps.append(_Step(Event.QUERY_EMPTY_ARRIVE))
    if role == 1 and kernel.ping_pong:
        steps.append(_Step(Event.BAR_ARRIVE, payload=FIRST_PING_PONG_BARRIER))
    return _bare(steps) if level >= 2 else _bare([])


def end_events(level: int) -> Records:
    """Return what a warp logs after its last tile."""
    return _bare([_Step(Event.KERNEL_END)]) if level >= 2 else _bare([])


def logging_warps(kernel: KernelSpec, *, one_warp: bool) -> tuple[int, ...]:
    """Return the warps of a CTA that log.

    One warp of the producer warpgroup works, its first. Of each consumer warpgroup all four log, or with `one_warp`
    the last, since the last of all also stores O.
    """
    consumers = range(WARPS_PER_WARPGROUP, warps_per_cta(kernel))
    return (0, *(consumers[LAST_WARP::WARPS_PER_WARPGROUP] if one_warp else consumers))


def of_level_1(records: Records) -> npt.NDArray[np.bool_]:
    """Return which records a level-1 log keeps."""
    return np.isin(records["event"], list(LEVEL_1_EVENTS))


def _producer_turns() -> tuple[list[_Step], list[_Step], list[_Step]]:
    """Return the producer's steps before, inside and after the loop over blocks."""
    load_k = [_Step(Event.ACQUIRE_K_START, _K), _Step(Event.TMA_K_ISSUE, _K)]
    load_v = [_Step(Event.ACQUIRE_V_START, _V), _Step(Event.TMA_V_ISSUE, _V)]
    # O shares shared memory with V: the first V of a tile waits for the store of the last O.
    load_q = [_Step(Event.QUERY_EMPTY_WAIT), _Step(Event.TMA_Q_ISSUE), _Step(Event.WAIT_O_START)]
    return [_Step(Event.TILE), *load_k, *load_q], [*load_k, *load_v], load_v


def _consumer_turns(kernel: KernelSpec, role: int, stores: bool) -> tuple[list[_Step], list[_Step], list[_Step]]:
    """Return a consumer's steps before, inside and after the loop over blocks."""
    wait_q = [_Step(Event.WAIT_Q_START), _Step(Event.WAIT_Q_END)]
    wait_k = [_Step(Event.WAIT_K_START, _K), _Step(Event.WAIT_K_END, _K)]
    wait_v = [_Step(Event.WAIT_V_START, _V), _Step(Event.WAIT_V_END, _V)]
    finish_pv = [_Step(Event.WAIT_WG_0, _V), _Step(Event.WAIT_WG_0_END, _V), _Step(Event.RELEASE_V, _V)]
    first = [
        _Step(Event.TILE),
        *wait_q,
        *wait_k,
        _Step(Event.GEMM_QK_ISSUE, _K),
        _Step(Event.WAIT_WG_0, _K),
        _Step(Event.WAIT_WG_0_END, _K),
        _Step(Event.RELEASE_K, _K),
        _Step(Event.SOFTMAX_END, _K),
    ]
    own = FIRST_PING_PONG_BARRIER + role - 1
    following = FIRST_PING_PONG_BARRIER + role % kernel.consumers
    sync = [_Step(Event.BAR_SYNC_START, payload=own), _Step(Event.BAR_SYNC_END, payload=own)]
    waits = role == 1 or not kernel.ping_pong
    turn = [
        *(wait_k if waits else []),
        *(sync if kernel.ping_pong else []),
        _Step(Event.GEMM_QK_ISSUE, _K),
        *(wait_v if waits else []),
        _Step(Event.GEMM_PV_ISSUE, _V),
        *([_Step(Event.BAR_ARRIVE, payload=following)] if kernel.ping_pong else []),
        _Step(Event.WAIT_WG_1, _K),
        _Step(Event.WAIT_WG_1_END, _K),
        _Step(Event.RELEASE_K, _K),
        _Step(Event.SOFTMAX_END, _K),
        *finish_pv,
    ]
    store = [_Step(event) for event in STORE_EVENTS] if stores else []
    last = [
        _Step(Event.QUERY_EMPTY_ARRIVE),
        *wait_v,
        _Step(Event.GEMM_PV_ISSUE, _V),
        *finish_pv,
        _Step(Event.EPILOGUE_START),
        *store,
    ]
    return first, turn, last


def _expand(
    steps: list[_Step], turns: npt.NDArray[np.int64], kernel: KernelSpec, key_blocks: int, ring_base: int
) -> Records:
    """Return the records of `steps` for each of `turns`, in order."""
    records = np.zeros((len(turns), len(steps)), RECORD_DTYPE)
    for column, step in enumerate(steps):
        records["event"][:, column] = step.event
        if step.lag is None:
            records["payload"][:, column] = step.payload
        else:
            fills = turns - step.lag
            if step.event != Event.SOFTMAX_END:  # works on registers
                records["stage"][:, column] = (ring_base + fills) % kernel.stages
            records["payload"][:, column] = key_blocks - 1 - fills
    return records.reshape(-1)


def _bare(steps: list[_Step]) -> Records:
    """Return the records of steps that name no ring slot."""
    assert not RING_EVENTS & {step.event for step in steps}
    records = np.zeros(len(steps), RECORD_DTYPE)
    records["event"] = [step.event for step in steps]
    records["payload"] = [step.payload for step in steps]
    return records
