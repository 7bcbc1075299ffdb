"""docs/isa.md section 7 by hand: prologues, tile edges, static and dynamic schedules, tile origins."""

import msgspec

from simfa.isa import AcquireStage, Repeat
from simfa.kernel import kernel_for
from simfa.trace import TileBinding
from simfa.workload import AttentionShape
from tests.oracle.hand import (
    acquire,
    arrive,
    await_barrier,
    await_fill,
    bare,
    issued,
    load,
    nothing,
    release,
    ring,
    run,
    slot,
    store,
    tensor_map,
    trace_of,
    wgmma,
    wgmma_commit,
    wgmma_wait,
    work,
)


def test_a_role_runs_its_tiles_one_after_the_other():
    result = run(trace_of([work(5), nothing()], tiles=2))
    assert issued(result) == [0, 5, 6, 11]
    assert result.cycles == 12


def test_roles_run_their_tiles_apart():
    # Role 1 does not wait for role 0 at a tile's end.
    result = run(trace_of([work(50)], [nothing()], tiles=2))
    assert issued(result, 0) == [0, 50]
    assert issued(result, 1) == [1, 2]


def test_the_prologue_comes_once_before_the_first_tile():
    result = run(trace_of([nothing()], [await_barrier(), nothing()], tiles=2, prologue=(None, [arrive(), arrive()])))
    # Role 0: 0, 1. Role 1: prologue at 2 and 3 (seen 3, 4); waits pass at 4 and 6.
    assert issued(result, 0) == [0, 1]
    assert [tuple(issue) for issue in result.issues[0, 1]] == [
        (2, "prologue1", 0),
        (3, "prologue1", 1),
        (4, "role1", 0),
        (5, "role1", 1),
        (6, "role1", 0),
        (7, "role1", 1),
    ]


def test_a_prologue_uses_no_fills_of_later_tiles():
    # The prologue acquires K[0]; the tile's K[0] is the same fill 0, round 0, and free.
    result = run(trace_of([acquire(0), nothing()], rings=(ring(size=0),), prologue=([acquire(0)],)))
    assert issued(result) == [0, 1, 2]


def test_group_ids_count_anew_after_the_prologue():
    prologue = [wgmma(0, n=40), wgmma_commit(0)]
    tile = [wgmma(0), wgmma_commit(0), wgmma_wait(0, outstanding=1), nothing()]
    result = run(trace_of(tile, prologue=(prologue,)))
    # Prologue 0, 1 (pipe until 20). Tile: 2, 3; the wait at 4 looks one group back, at the prologue's: 20.
    assert issued(result) == [0, 1, 2, 3, 4, 20]


def test_consumers_pay_the_tile_edge_after_every_tile():
    result = run(trace_of([nothing()], [nothing()], tiles=2), bare(grid__tile_edge_cycles=10))
    # Role 0, the producer, pays nothing. Role 1: 2, ready at 3 + 10.
    assert issued(result, 0) == [0, 1]
    assert issued(result, 1) == [2, 13]
    # The last tile has its edge too.
    assert result.ends == {(0, 0): 2, (0, 1): 24}


def test_the_tile_edge_counts_from_when_the_last_instruction_is_over():
    hardware = bare(grid__tile_edge_cycles=10, named_barrier__wake_cycles=4)
    result = run(trace_of([work(20), arrive()], [await_barrier()]), hardware)
    # Arrive at 20, seen at 21, ready at 25, and the edge.
    assert result.ends[0, 1] == 35


def test_the_prologue_has_no_tile_edge():
    result = run(trace_of([nothing()], [nothing()], prologue=(None, [nothing()])), bare(grid__tile_edge_cycles=10))
    assert issued(result, 1) == [1, 2]


def test_a_cta_without_tiles_ends_at_the_launch():
    result = run(trace_of([nothing()], [nothing()], tiles=0), bare(grid__launch_ns=7.0))
    assert result.ends == {(0, 0): 7, (0, 1): 7}
    assert result.cycles == 7
    assert result.issues == {(0, 0): [], (0, 1): []}


def test_a_dynamic_cta_without_acquires_asks_for_the_next_tile_when_it_begins_one():
    # One CTA, three tiles of 5 cycles. Requests at 0, 5, 10; answers 3 later, always in time.
    result = run(trace_of([work(5)], queue=3), bare(grid__tile_fetch_cycles=3))
    assert issued(result) == [0, 5, 10]
    # The third request is answered at 13: no entry left; the role is through at 15.
    assert result.cycles == 15


def test_role_0_asks_at_its_last_acquire_whether_the_stage_is_free_or_not():
    # One stage. Role 0 works 5 cycles, acquires fill 0 at 5 (free) and fill 1 at 6 (not free, but it asks).
    # Role 1 issues at 1 and releases fill 0 at 41: fill 1 is acquired at 42. The answer to the request of 6 is there at
    # 46; role 0 is through at 43 and begins its second tile at 46.
    rings = (ring(stages=1, size=0),)
    bodies = [work(5), acquire(0), acquire(1)], [work(40), release(0), work(2), release(1)]
    result = run(trace_of(*bodies, queue=2, rings=rings), bare(grid__tile_fetch_cycles=40))
    assert issued(result, 0)[:4] == [0, 5, 6, 46]
    assert issued(result, 1)[:3] == [1, 41, 42]


def test_a_loop_asks_in_its_last_round():
    # Three rounds of 10 cycles; the ACQUIRE_STAGEs issue at 0, 11 and 22. Each round takes 1 + 10.
    loop = Repeat(count=3, body=(AcquireStage(slot=slot(0, step=1)), work(10)))
    rings = (ring(stages=3, size=0),)
    result = run(trace_of([loop], [nothing()], queue=1, rings=rings), bare(grid__tile_fetch_cycles=5))
    # Role 1 learns at 22 + 5 that there is no other tile.
    assert result.ends == {(0, 0): 33, (0, 1): 27}


def test_a_role_waits_for_the_answer():
    result = run(trace_of([work(5)], queue=3), bare(grid__tile_fetch_cycles=30))
    assert issued(result) == [0, 30, 60]
    # That there is no fourth tile is known at 90.
    assert result.cycles == 90


def test_consumers_begin_a_tile_with_the_answer_even_before_role_0():
    # Role 0 works 50 cycles; the answer to its request of 0 is there at 4. Role 1 (slot 1, ready at 2) goes on at 4,
    # then waits for the answer to role 0's next request (50, answered at 54), which is that there is nothing.
    result = run(trace_of([work(50)], [nothing()], queue=2), bare(grid__tile_fetch_cycles=4))
    assert issued(result, 0) == [0, 50]
    assert issued(result, 1) == [1, 4]
    assert result.ends == {(0, 0): 100, (0, 1): 54}


def test_a_tile_may_begin_in_the_cycle_of_the_answer():
    # Width 2: role 0 asks at 0, answer in phase 1 of 1: both roles begin the second tile at 1.
    result = run(trace_of([nothing()], [nothing()], queue=2), bare(sm__issue_width=2))
    assert issued(result, 0) == issued(result, 1) == [0, 1]


def test_a_tile_begins_when_its_role_is_ready_even_if_its_first_instruction_issues_later():
    # GTO leaves the slot to role 1 from 1 on. Role 0 is ready at 3 and begins its second tile then (asked for at 0,
    # there at 3); it asks for a third, though its first instruction has to wait until role 1 is through.
    hardware = bare(sm__scheduler="gto", grid__tile_fetch_cycles=3)
    result = run(trace_of([work(3)], [nothing()] * 4, queue=2), hardware)
    assert issued(result, 1) == [1, 2, 3, 4, 5, 6, 7, 8]
    assert issued(result, 0) == [0, 9]
    # Had it asked at 9, the answer would be there at 12 only, and role 1 would end then.
    assert result.ends == {(0, 0): 12, (0, 1): 9}


def _queue(trace, kinds):
    """Return a dynamic trace with a queue of tiles of these kinds."""
    queue = tuple(TileBinding(kind, 0, 0, 0) for kind in kinds)
    return msgspec.structs.replace(trace, schedule=msgspec.structs.replace(trace.schedule, tiles=(queue,)))


def test_an_empty_tile_begins_with_its_grant_and_has_its_edge():
    # Role 1 has nothing to do in any tile but pays the edge of 20. Role 0 takes 100 cycles for the first tile and one
    # for each other; answers take 5.
    trace = _queue(trace_of([work(100)], [], rank_1=([work(1)], []), queue=0), kinds=(0, 1, 1))
    result = run(trace, bare(grid__tile_fetch_cycles=5, grid__tile_edge_cycles=20))
    # Role 0: asks at 0, at 100 (second tile) and at 105 (third tile, with its answer): nothing left, known at 110.
    assert issued(result, 0) == [0, 100, 105]
    # Role 1: first tile 0-20, second 20-40, third from its grant at 105 to 125.
    assert result.ends == {(0, 0): 110, (0, 1): 125}


def test_entries_go_out_in_order_of_request_and_cta():
    # Two CTAs, entries 0 and 1 at the start. Programs by kind: 0 takes 5 cycles, 1 takes 30.
    trace = _queue(trace_of([work(5)], rank_1=([work(30)],), ctas=2, queue=0), kinds=(0, 1, 0, 1, 0))
    result = run(trace, bare(grid__tile_fetch_cycles=2))
    # Requests at 0 of both: CTA 0 gets entry 2 (kind 0), CTA 1 entry 3 (kind 1). CTA 0 begins entry 2 at 5 and asks:
    # entry 4. It begins it at 10 and asks: nothing. CTA 1 begins entry 3 at 30 and asks: nothing.
    assert [(i.cycle, i.program) for i in result.issues[0, 0]] == [(0, "role0"), (5, "role0"), (10, "role0")]
    assert [(i.cycle, i.program) for i in result.issues[1, 0]] == [(0, "role0'"), (30, "role0'")]
    assert result.ends == {(0, 0): 15, (1, 0): 60}


def test_a_dynamic_cta_beyond_the_queue_ends_after_its_prologue():
    result = run(trace_of([nothing()], ctas=2, queue=1, prologue=([work(6)],)), bare(grid__tile_fetch_cycles=9))
    assert result.ends == {(0, 0): 15, (1, 0): 6}
    # CTA 0 begins its tile at 6 and asks; it knows at 15 that there is no other.


SHAPE = AttentionShape(batch=2, seqlen_q=512, seqlen_kv=512, heads_q=4, heads_kv=2, head_dim=64)


def _origin_lines(origin, binding, dims):
    """Return the lines of a box of one 128-byte row at (0, 0) in a tile, of a tensor with `dims`."""
    strides = (128, 128 * 1024, 128 * 1024 * 8)
    maps = (tensor_map(dims=dims, strides=strides, box=(64, 1, 1, 1), origin=origin),)
    trace = trace_of([acquire(0), load(0), await_fill(0)], maps=maps)
    schedule = msgspec.structs.replace(trace.schedule, tiles=((binding,),))
    kernel = kernel_for(SHAPE)  # tiles of 192 rows
    return run(msgspec.structs.replace(trace, shape=SHAPE, kernel=kernel, schedule=schedule)).lines


def test_a_query_map_starts_at_the_tiles_rows_head_and_batch():
    tile = TileBinding(kind=0, m_block=2, head=3, batch=1)
    # Row 384, head 3, batch 1 are inside when each extent is one more.
    assert _origin_lines("query", tile, (64, 385, 4, 2)) == 1
    for outside in ((64, 384, 4, 2), (64, 385, 3, 2), (64, 385, 4, 1)):
        assert _origin_lines("query", tile, outside) == 0


def test_a_kv_map_starts_at_the_tiles_kv_head_and_batch():
    tile = TileBinding(kind=0, m_block=2, head=3, batch=1)
    # Row 0, head 3 // 2 = 1, batch 1.
    assert _origin_lines("kv", tile, (64, 1, 2, 2)) == 1
    for outside in ((64, 1, 1, 2), (64, 1, 2, 1)):
        assert _origin_lines("kv", tile, outside) == 0


def test_a_map_without_origin_starts_at_zero():
    tile = TileBinding(kind=0, m_block=2, head=3, batch=1)
    assert _origin_lines("none", tile, (64, 1, 1, 1)) == 1


def test_stores_are_placed_like_loads():
    maps = (tensor_map(dims=(64, 3, 1, 1), strides=(128, 1024, 1024), box=(64, 1, 1, 1), origin="query"),)
    trace = trace_of([store(y=2)], maps=maps)
    for m_block, lines in ((0, 1), (1, 0)):
        schedule = msgspec.structs.replace(trace.schedule, tiles=((TileBinding(0, m_block, 0, 0),),))
        placed = msgspec.structs.replace(trace, shape=SHAPE, kernel=kernel_for(SHAPE), schedule=schedule)
        assert run(placed).lines == lines
