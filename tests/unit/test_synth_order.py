"""Order and counts of the events of one tile, against the FA3 source as the reference page tabulates it."""

import msgspec
import numpy as np
import pytest

from simfa.errors import ShapeError
from simfa.events import LEVEL_1_EVENTS, Event
from simfa.instrument.event_order import (
    begin_events,
    end_events,
    logging_warps,
    loop_bounds,
    set_coordinates,
    tile_events,
)
from simfa.kernel import kernel_for
from simfa.schedule import Tile
from simfa.workload import AttentionShape


def kernel_of(head_dim, causal=False):
    return kernel_for(
        AttentionShape(batch=1, seqlen_q=768, seqlen_kv=768, heads_q=1, heads_kv=1, head_dim=head_dim, causal=causal)
    )


KERNELS = {(head_dim, causal): kernel_of(head_dim, causal) for head_dim in (64, 128, 256) for causal in (False, True)}
PING_PONG_2 = KERNELS[128, False]
PING_PONG_3 = KERNELS[64, False]
NO_PING_PONG = KERNELS[256, False]


def names(records):
    return [Event(code).name for code in records["event"]]


def slots(records, *events):
    """Return (event, stage, block) of the events named."""
    kept = records[np.isin(records["event"], events)]
    return [(Event(record["event"]), int(record["stage"]), int(record["payload"])) for record in kept]


def test_producer_of_two_blocks():
    assert names(tile_events(PING_PONG_2, 0, 2, 2)) == [
        "TILE",
        "ACQUIRE_K_START",
        "TMA_K_ISSUE",
        "QUERY_EMPTY_WAIT",
        "TMA_Q_ISSUE",
        "WAIT_O_START",
        "ACQUIRE_K_START",
        "TMA_K_ISSUE",
        "ACQUIRE_V_START",
        "TMA_V_ISSUE",
        "ACQUIRE_V_START",
        "TMA_V_ISSUE",
    ]


def test_first_consumer_of_two_blocks_under_ping_pong():
    assert names(tile_events(PING_PONG_2, 1, 2, 2)) == [
        "TILE",
        "WAIT_Q_START",
        "WAIT_Q_END",
        "WAIT_K_START",
        "WAIT_K_END",
        "GEMM_QK_ISSUE",
        "WAIT_WG_0",
        "WAIT_WG_0_END",
        "RELEASE_K",
        "SOFTMAX_END",
        "WAIT_K_START",
        "WAIT_K_END",
        "BAR_SYNC_START",
        "BAR_SYNC_END",
        "GEMM_QK_ISSUE",
        "WAIT_V_START",
        "WAIT_V_END",
        "GEMM_PV_ISSUE",
        "BAR_ARRIVE",
        "WAIT_WG_1",
        "WAIT_WG_1_END",
        "RELEASE_K",
        "SOFTMAX_END",
        "WAIT_WG_0",
        "WAIT_WG_0_END",
        "RELEASE_V",
        "QUERY_EMPTY_ARRIVE",
        "WAIT_V_START",
        "WAIT_V_END",
        "GEMM_PV_ISSUE",
        "WAIT_WG_0",
        "WAIT_WG_0_END",
        "RELEASE_V",
        "EPILOGUE_START",
    ]


def test_level_1_of_both_consumers():
    assert names(tile_events(PING_PONG_2, 2, 2, 1)) == [
        "WAIT_K_START",
        "GEMM_QK_ISSUE",
        "WAIT_WG_0",
        "GEMM_QK_ISSUE",
        "GEMM_PV_ISSUE",
        "WAIT_WG_1",
        "WAIT_WG_0",
        "WAIT_V_START",
        "GEMM_PV_ISSUE",
        "WAIT_WG_0",
    ]
    assert names(tile_events(PING_PONG_2, 1, 1, 1)) == [
        "WAIT_K_START",
        "GEMM_QK_ISSUE",
        "WAIT_WG_0",
        "WAIT_V_START",
        "GEMM_PV_ISSUE",
        "WAIT_WG_0",
    ]


@pytest.mark.parametrize("blocks", [1, 2, 3, 7, 35])
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=str)
def test_counts_per_tile(kernel, blocks):
    for role in range(kernel.consumers + 1):
        one = tile_events(kernel, role, blocks, 1)
        both = tile_events(kernel, role, blocks, 2)
        counts = {event: int((both["event"] == event).sum()) for event in Event}
        if role == 0:
            assert len(one) == 1 + 2 * blocks
            assert len(both) == 4 * blocks + 4
            continue
        waits = role == 1 or not kernel.ping_pong
        assert len(one) == (6 * blocks if waits else 4 * blocks + 2)
        assert counts[Event.WAIT_K_START] == counts[Event.WAIT_V_START] == (blocks if waits else 1)
        assert counts[Event.GEMM_QK_ISSUE] == counts[Event.GEMM_PV_ISSUE] == blocks
        assert counts[Event.WAIT_WG_1] == blocks - 1
        assert counts[Event.WAIT_WG_0] == blocks + 1
        assert counts[Event.RELEASE_K] == counts[Event.RELEASE_V] == counts[Event.SOFTMAX_END] == blocks
        turns = blocks - 1 if kernel.ping_pong else 0
        assert counts[Event.BAR_SYNC_START] == counts[Event.BAR_SYNC_END] == counts[Event.BAR_ARRIVE] == turns
        assert counts[Event.TMA_O_ISSUE] == counts[Event.TMA_O_WAIT_END] == (role == kernel.consumers)
        for start, end in (
            ("WAIT_K_START", "WAIT_K_END"),
            ("WAIT_WG_0", "WAIT_WG_0_END"),
            ("WAIT_WG_1", "WAIT_WG_1_END"),
        ):
            assert counts[Event[start]] == counts[Event[end]]


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=str)
def test_level_1_is_level_2_without_its_extra_events(kernel):
    for role in range(kernel.consumers + 1):
        both = tile_events(kernel, role, 4, 2, ring_base=3)
        kept = both[np.isin(both["event"], list(LEVEL_1_EVENTS))]
        assert tile_events(kernel, role, 4, 1, ring_base=3).tobytes() == kept.tobytes()


def test_stages_and_blocks_of_the_producer():
    records = tile_events(PING_PONG_2, 0, 3, 1, ring_base=1)
    assert slots(records, Event.TMA_K_ISSUE, Event.TMA_V_ISSUE) == [
        (Event.TMA_K_ISSUE, 1, 2),
        (Event.TMA_K_ISSUE, 0, 1),
        (Event.TMA_V_ISSUE, 1, 2),
        (Event.TMA_K_ISSUE, 1, 0),
        (Event.TMA_V_ISSUE, 0, 1),
        (Event.TMA_V_ISSUE, 1, 0),
    ]


def test_v_of_a_turn_is_the_previous_read_state():
    records = tile_events(PING_PONG_2, 1, 3, 2)
    assert slots(records, Event.GEMM_QK_ISSUE, Event.GEMM_PV_ISSUE) == [
        (Event.GEMM_QK_ISSUE, 0, 2),
        (Event.GEMM_QK_ISSUE, 1, 1),
        (Event.GEMM_PV_ISSUE, 0, 2),
        (Event.GEMM_QK_ISSUE, 0, 0),
        (Event.GEMM_PV_ISSUE, 1, 1),
        (Event.GEMM_PV_ISSUE, 0, 0),
    ]
    # The first wait<0> of a tile is for QK and releases K; all others are for PV and release V.
    assert slots(records, Event.WAIT_WG_0, Event.RELEASE_K, Event.RELEASE_V) == [
        (Event.WAIT_WG_0, 0, 2),
        (Event.RELEASE_K, 0, 2),
        (Event.RELEASE_K, 1, 1),
        (Event.WAIT_WG_0, 0, 2),
        (Event.RELEASE_V, 0, 2),
        (Event.RELEASE_K, 0, 0),
        (Event.WAIT_WG_0, 1, 1),
        (Event.RELEASE_V, 1, 1),
        (Event.WAIT_WG_0, 0, 0),
        (Event.RELEASE_V, 0, 0),
    ]


def test_softmax_names_its_block_and_no_slot():
    records = tile_events(PING_PONG_2, 2, 3, 2, ring_base=1)
    assert slots(records, Event.SOFTMAX_END) == [(Event.SOFTMAX_END, 0, block) for block in (2, 1, 0)]


def test_coordinates_of_tiles_in_order():
    both = np.concatenate([tile_events(PING_PONG_2, 0, blocks, 2) for blocks in (2, 3)])
    set_coordinates(both, [Tile(5, 2, 1), Tile(4, 3, 0)])
    tiles = both[both["event"] == Event.TILE]
    assert tiles[["stage", "payload", "aux"]].tolist() == [(5, 2, 1), (4, 3, 0)]
    assert both[both["event"] == Event.TMA_Q_ISSUE]["payload"].tolist() == [5, 4]


@pytest.mark.parametrize("kernel", [PING_PONG_2, PING_PONG_3])
def test_turns_pass_from_each_consumer_to_the_next(kernel):
    # The first turn is primed at the start; after it each barrier is signalled as often as it is awaited.
    signals = [9]
    awaited = []
    for turn in range(3):
        for role in range(1, kernel.consumers + 1):
            records = tile_events(kernel, role, 4, 2)
            sync = records[records["event"] == Event.BAR_SYNC_START]["payload"][turn]
            arrive = records[records["event"] == Event.BAR_ARRIVE]["payload"][turn]
            assert signals[-1] == sync == 8 + role
            awaited.append(int(sync))
            signals.append(int(arrive))
    assert signals[:-1] == awaited
    assert signals[-1] == 9


def test_what_a_warp_logs_before_and_after_its_tiles():
    assert names(begin_events(PING_PONG_2, 0, 2)) == ["KERNEL_BEGIN"]
    first = begin_events(PING_PONG_2, 1, 2)
    assert names(first) == ["KERNEL_BEGIN", "QUERY_EMPTY_ARRIVE", "BAR_ARRIVE"]
    assert first["payload"][2] == 9
    assert names(begin_events(PING_PONG_2, 2, 2)) == ["KERNEL_BEGIN", "QUERY_EMPTY_ARRIVE"]
    assert names(begin_events(NO_PING_PONG, 1, 2)) == ["KERNEL_BEGIN", "QUERY_EMPTY_ARRIVE"]
    assert names(end_events(2)) == ["KERNEL_END"]
    assert len(begin_events(PING_PONG_2, 1, 1)) == len(end_events(1)) == 0


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=str)
def test_loop_bounds_delimit_a_turn(kernel):
    for role in range(kernel.consumers + 1):
        before, length = loop_bounds(kernel, role)
        two, four = tile_events(kernel, role, 2, 2), tile_events(kernel, role, 4, 2)
        assert len(four) - len(two) == 2 * length
        turns = four["event"][before : before + 3 * length].reshape(3, length)
        assert (turns == turns[0]).all()
        assert (four["event"][:before] == two["event"][:before]).all()


def test_only_the_last_warp_of_the_last_consumer_stores():
    for role in (1, 2):
        for warp in range(4):
            stores = Event.TMA_O_ISSUE in tile_events(PING_PONG_2, role, 2, 2, warp=warp)["event"]
            assert stores == (role == 2 and warp == 3)


def test_nine_of_twelve_warps_log():
    assert logging_warps(PING_PONG_2, one_warp=False) == (0, 4, 5, 6, 7, 8, 9, 10, 11)
    assert logging_warps(PING_PONG_2, one_warp=True) == (0, 7, 11)
    assert len(logging_warps(PING_PONG_3, one_warp=False)) == 13
    assert logging_warps(PING_PONG_3, one_warp=True) == (0, 7, 11, 15)


def test_a_kernel_without_overlap_is_refused():
    with pytest.raises(ShapeError, match="overlap"):
        tile_events(msgspec.structs.replace(PING_PONG_2, overlap=False), 1, 2, 2)
