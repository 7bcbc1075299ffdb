"""docs/isa.md section 5 by hand: when operations start, which lines they ask for, when they complete; stores."""

from itertools import pairwise

import pytest

from tests.oracle.hand import (
    acquire,
    await_fill,
    bare,
    bulk,
    issued,
    load,
    nothing,
    ring,
    run,
    store,
    store_commit,
    store_wait,
    tensor_map,
    trace_of,
    work,
)


def _arrival(body, hardware=None, size=128, maps=None, latency=20):
    """Return the cycle at which the fill that `body` loads is complete, seen by a second role with wake 0."""
    trace = trace_of([acquire(0), *body], [work(3), await_fill(0), nothing()], rings=(ring(size=size),), maps=maps)
    result = run(trace, hardware, latency)
    return issued(result, 1)[-1], result.lines


# Launch: the load issues at 1, after the acquire. With bare hardware it is eligible at 2, its line goes out at 2 and
# the answer is there at 2 + 20 = 22.


def test_a_line_takes_the_memory_latency():
    assert _arrival([bulk(0)], latency=20) == (22, 1)
    assert _arrival([bulk(0)], latency=5) == (7, 1)


def test_a_bulk_copy_pays_the_launch_alone():
    costs = {"tma__launch_cycles": 7, "tma__tensor_map_cycles": 100, "tma__descriptor_miss_cycles": 1000}
    assert _arrival([bulk(0)], bare(**costs)) == (1 + 7 + 20, 1)


def test_a_tensor_copy_pays_launch_tensor_map_and_miss():
    costs = {"tma__launch_cycles": 7, "tma__tensor_map_cycles": 100, "tma__descriptor_miss_cycles": 1000}
    assert _arrival([load(0)], bare(**costs)) == (1 + 7 + 100 + 1000 + 20, 1)


def test_a_launch_of_one_cycle_is_the_least():
    # max(c + 1, c + launch): 0 and 1 are the same.
    assert _arrival([bulk(0)], bare(tma__launch_cycles=1)) == (22, 1)
    assert _arrival([bulk(0)], bare(tma__launch_cycles=2)) == (23, 1)


def test_the_descriptor_cache_keeps_the_most_recently_used_maps():
    maps = tuple(tensor_map(name=name, dims=(64, 1)) for name in "ABC")
    # Boxes at row 1 are out of range: no lines, complete at their start, so the eligible cycle shows. Each load waits
    # for the one before. Cache of two: A miss, B miss, A hit, C miss (drops B), A hit, B miss.
    hardware = bare(tma__descriptor_cache_entries=2, tma__descriptor_miss_cycles=50, tma__launch_cycles=4)
    body = []
    for index, name in enumerate("ABACAB"):
        body += [acquire(index), load(index, name, y=1), await_fill(index)]
    result = run(trace_of(body, rings=(ring(stages=8),), maps=maps), hardware)
    starts = issued(result)[0::3]
    # From the acquire at t: load at t + 1, start at t + 5 (hit) or t + 55 (miss), when the wait is over.
    steps = [later - earlier for earlier, later in pairwise(starts)]
    assert steps == [55, 55, 5, 55, 5]
    assert result.ends[0, 0] - starts[-1] == 55


def test_lines_go_out_at_the_issue_bandwidth():
    # 512 bytes are 4 lines, the first at 2.
    for port, last in ((128, 5), (256, 3), (512, 2), (1024, 2), (64, 8), (32, 14)):
        assert _arrival([bulk(0, 512)], bare(tma__issue_bytes_per_cycle=port), size=512) == (last + 20, 4), port


def test_bandwidth_is_shared_by_successive_operations():
    # Two bulks of one line, issued at 1 and 2, both eligible at 10 because of the first one's launch: 1 + 9 and 2 + 9.
    hardware = bare(tma__launch_cycles=9, tma__issue_bytes_per_cycle=64)
    # The first line goes out at 10, the second operation starts at 11 but its line waits until 12.
    assert _arrival([bulk(0), bulk(0)], hardware, size=256) == (32, 2)


def test_two_operations_may_share_a_cycle():
    # Three lines and then one, two lines a cycle. The first operation, eligible at 6, has its lines at 6, 6 and 7; the
    # second, eligible at 7, starts at 7 (the first has issued all in that phase) and uses the second slot of 7.
    hardware = bare(tma__launch_cycles=5, tma__issue_bytes_per_cycle=256)
    assert _arrival([bulk(0, 384), bulk(0, 128)], hardware, size=512) == (27, 4)


def test_operations_start_a_gap_apart():
    # Issued at 1 and 2: the first starts at 2, the second at 2 + 30.
    assert _arrival([bulk(0), bulk(0)], bare(tma__issue_gap_cycles=30), size=256) == (52, 2)


def test_the_gap_counts_from_the_start_not_from_the_last_line():
    # The first operation has 40 lines, 2-41; the gap of 30 is long over when it has issued them. The second starts at
    # 41, in the cycle of the last line, and its line goes out at 42.
    assert _arrival([bulk(0, 40 * 128), bulk(0)], bare(tma__issue_gap_cycles=30), size=41 * 128) == (62, 41)


def test_an_operation_waits_for_its_predecessor_to_issue_its_lines():
    # The first operation has lines 2-5, so the second starts at 5; with a gap of 3 from there the third starts at 8.
    body = [bulk(0, 512), bulk(0), bulk(0)]
    assert _arrival(body, bare(tma__issue_gap_cycles=3), size=768) == (28, 6)


def test_lines_in_flight_are_bounded():
    # Four lines, two in flight: 2, 3, then with the answers 22, 23.
    assert _arrival([bulk(0, 512)], bare(tma__max_lines_in_flight=2), size=512) == (43, 4)


def test_an_answer_frees_its_place_in_the_same_cycle():
    # One in flight, latency 1: a line each cycle, 2-5, answered at 6.
    assert _arrival([bulk(0, 512)], bare(tma__max_lines_in_flight=1), size=512, latency=1) == (6, 4)


def test_level_0_takes_a_fixed_latency_from_the_start():
    hardware = bare(tma__level=0, tma__level_0_latency_cycles=50, tma__launch_cycles=7)
    assert _arrival([bulk(0, 512)], hardware, size=512) == (1 + 7 + 50, 0)


def test_level_0_starts_operations_a_gap_apart_and_without_generation_time():
    hardware = bare(tma__level=0, tma__level_0_latency_cycles=50, tma__issue_gap_cycles=3)
    assert _arrival([bulk(0, 5120), bulk(0)], hardware, size=5248) == (2 + 3 + 50, 0)


def test_level_0_without_latency_completes_at_its_start():
    hardware = bare(tma__level=0, tma__level_0_latency_cycles=0, tma__launch_cycles=9)
    assert _arrival([bulk(0, 512)], hardware, size=512) == (10, 0)


# Which lines: 128 bytes each. Counts of lines are the requests of the run.


def _lines(body, size, maps=None, **hardware):
    return _arrival(body, bare(**hardware), size=size, maps=maps)[1]


def test_an_unaligned_bulk_copy_touches_a_line_more():
    assert _lines([bulk(0, 128, address=0)], 128) == 1
    assert _lines([bulk(0, 128, address=4)], 128) == 2
    assert _lines([bulk(0, 2, address=127)], 2) == 2


def test_rows_of_a_box_are_requested_one_by_one():
    # 4 rows of 256 bytes, 1 KiB apart: 2 lines each.
    maps = (tensor_map(dims=(512, 8), strides=(1024,), box=(128, 4)),)
    assert _lines([load(0)], 1024, maps) == 8
    # The same from byte 100 on: 3 lines each.
    maps = (tensor_map(dims=(512, 8), strides=(1024,), box=(128, 4), base=100),)
    assert _lines([load(0)], 1024, maps) == 12


def test_short_rows_that_share_a_line_request_it_once():
    # Rows of 32 bytes, 32 bytes apart: 8 rows are 256 bytes in 2 lines.
    maps = (tensor_map(dims=(16, 8), strides=(32,), box=(16, 8)),)
    assert _lines([load(0)], 256, maps) == 2


def test_a_line_is_requested_again_when_another_came_between():
    # Dimension 1 alternates between two lines (stride 128), dimension 2 moves on by 32 bytes: lines 0, 1, 0, 1.
    maps = (tensor_map(dims=(16, 2, 2), strides=(128, 32), box=(16, 2, 2)),)
    assert _lines([load(0)], 128, maps) == 4
    # With the strides exchanged dimension 1 stays in the line: 0, 0, 1, 1.
    maps = (tensor_map(dims=(16, 2, 2), strides=(32, 128), box=(16, 2, 2)),)
    assert _lines([load(0)], 128, maps) == 2


def test_a_line_that_two_operations_need_is_requested_by_each():
    assert _lines([bulk(0, 64, address=0), bulk(0, 64, address=64)], 128) == 2


def test_without_deduplication_each_piece_of_each_row_is_a_request():
    # 8 rows of 32 bytes: 8 pieces of 32, or 16 of 16 bytes; a row of 128 bytes: 4 pieces.
    maps = (tensor_map(dims=(16, 8), strides=(32,), box=(16, 8)),)
    assert _lines([load(0)], 256, maps, tma__deduplicate=False) == 8
    assert _lines([load(0)], 256, maps, tma__deduplicate=False, tma__request_bytes=16) == 16
    assert _lines([bulk(0)], 128, tma__deduplicate=False) == 4
    # 32 bytes from byte 16 on lie in two pieces of 32.
    assert _lines([bulk(0, 32, address=16)], 32, tma__deduplicate=False) == 2


def test_without_deduplication_a_piece_takes_the_time_of_a_line():
    # Four pieces at 2, 3, 4 and 5.
    assert _arrival([bulk(0)], bare(tma__deduplicate=False)) == (25, 4)


def test_rows_outside_the_tensor_are_not_requested_but_count_for_completion():
    # Box of 4 rows at row 6 of 8: two rows are fetched, and the fill of 512 bytes is complete.
    maps = (tensor_map(box=(64, 4)),)
    assert _arrival([load(0, y=6)], size=512, maps=maps) == (23, 2)


def test_columns_outside_the_tensor_are_not_requested():
    # Box of 128 columns of 2 bytes at column 64 of 128: one line of two.
    maps = (tensor_map(dims=(128, 1), strides=(256,), box=(128, 1)),)
    assert _lines([load(0, x=0)], 256, maps) == 2
    assert _lines([load(0, x=64)], 256, maps) == 1
    # Column 96: 64 bytes, in the second line.
    assert _lines([load(0, x=96)], 256, maps) == 1


def test_a_box_outside_the_tensor_completes_at_its_start():
    assert _arrival([load(0, y=8)], bare(tma__launch_cycles=9)) == (10, 0)
    assert _arrival([load(0, x=64)], bare(tma__launch_cycles=9)) == (10, 0)


def test_operations_without_lines_take_no_issue_slot():
    # The load of row 8 is empty. A store before it makes both eligible in time: store (8 rows) issued at 0 has its
    # lines at 1-8; load and bulk, issued at 2 and 3, both start at 8 behind its last line, and the bulk's line goes out
    # at 9: there at 29.
    maps = (tensor_map(box=(64, 8)), tensor_map(name="N"))
    body = [acquire(0), load(0, "N", y=8), bulk(0), await_fill(0), nothing()]
    result = run(trace_of([store()], body, rings=(ring(size=256),), maps=maps))
    assert issued(result, 1) == [1, 2, 3, 4, 29]
    assert result.lines == 9


@pytest.mark.parametrize(
    ("dims", "strides", "box", "lines"),
    [
        ((64,), (), (64,), 1),
        ((64, 4), (128,), (64, 4), 4),
        ((64, 2, 3), (128, 256), (64, 2, 3), 6),
        ((64, 2, 3, 2), (128, 256, 1024), (64, 2, 3, 2), 12),
        ((64, 2, 3, 2, 2), (128, 256, 1024, 2048), (64, 2, 3, 2, 2), 24),
        # One of two rows and two of three planes are inside.
        ((64, 1, 2), (128, 256), (64, 2, 3), 2),
    ],
)
def test_boxes_of_any_rank(dims, strides, box, lines):
    maps = (tensor_map(dims=dims, strides=strides, box=box),)
    assert _lines([load(0)], maps[0].box_bytes, maps) == lines


@pytest.mark.parametrize("element_bytes", [1, 2, 4, 8])
def test_columns_are_elements(element_bytes):
    # 64 elements from element 64 on of 128: bytes [64e, 128e), lines of 128 bytes.
    maps = (tensor_map(dims=(128, 1), strides=(1024,), box=(64, 1), element_bytes=element_bytes),)
    assert _lines([load(0, x=64)], 64 * element_bytes, maps) == {1: 1, 2: 1, 4: 2, 8: 4}[element_bytes]


# Stores. Each test has one role; instructions issue one a cycle unless blocked.


def test_a_store_is_complete_when_its_lines_are_acknowledged():
    # Issue at 0, lines (two rows) at 1 and 2, acknowledged at 21 and 22. The wait issues at 2.
    maps = (tensor_map(box=(64, 2)),)
    result = run(trace_of([store(), store_commit(), store_wait(), nothing()], maps=maps))
    assert issued(result) == [0, 1, 2, 22]
    assert result.lines == 2


def test_a_read_wait_ends_when_the_shared_memory_was_read():
    maps = (tensor_map(box=(64, 2)),)
    body = [store(), store_commit(), store_wait(read=True), nothing()]
    # Last line at 2; read 9 cycles later.
    assert issued(run(trace_of(body, maps=maps), bare(tma__store_read_cycles=9))) == [0, 1, 2, 11]
    # With no read time: read at 2, in phase 2, so the wait of 2 holds at once.
    assert issued(run(trace_of(body, maps=maps))) == [0, 1, 2, 3]


def test_a_store_without_lines_is_read_behind_its_start():
    body = [store(y=8), store_commit(), store_wait(read=True), nothing()]
    # Start at 1, read at 10.
    assert issued(run(trace_of(body), bare(tma__store_read_cycles=9))) == [0, 1, 2, 10]


def test_a_level_0_store():
    hardware = bare(tma__level=0, tma__level_0_latency_cycles=50, tma__store_read_cycles=9)
    # Start at 1: read at 10, complete at 51.
    assert issued(run(trace_of([store(), store_commit(), store_wait(read=True), nothing()]), hardware))[-1] == 10
    assert issued(run(trace_of([store(), store_commit(), store_wait(), nothing()]), hardware))[-1] == 51


def test_a_store_pays_launch_tensor_map_and_miss():
    hardware = bare(tma__launch_cycles=7, tma__tensor_map_cycles=100, tma__descriptor_miss_cycles=1000)
    assert issued(run(trace_of([store(), store_commit(), store_wait(), nothing()]), hardware))[-1] == 1107 + 20


def test_a_wait_that_holds_costs_one_cycle():
    result = run(trace_of([store(), store_commit(), work(40), store_wait(), nothing()]))
    assert issued(result) == [0, 1, 2, 42, 43]


def test_store_groups_wait_for_all_their_members():
    # Stores at 0 and 1 in one group: lines at 1 and 2, acknowledged at 21 and 22.
    result = run(trace_of([store(), store(y=1), store_commit(), store_wait(), nothing()]))
    assert issued(result)[-1] == 22


def test_store_waits_may_leave_groups_outstanding():
    groups = [instruction for g in range(3) for instruction in (store(g, y=g), store_commit(g))]
    # Stores at 0, 2, 4: lines at 1, 3, 5, acknowledged at 21, 23, 25. The wait issues at 6.
    for outstanding, woken in ((0, 25), (1, 23), (2, 21)):
        assert issued(run(trace_of([*groups, store_wait(2, outstanding), nothing()])))[-2:] == [6, woken]
    # Without such a group it passes.
    assert issued(run(trace_of([*groups, store_wait(2, 3), nothing()])))[-2:] == [6, 7]


def test_a_wait_for_a_group_includes_earlier_groups_and_ignores_later_ones():
    body = [store(0), store_commit(0), store(1, y=8), store_commit(1), store(2, y=1), store_commit(2)]
    # Group 1 has no lines and is complete at once, but group 0 only at 21; group 2 is complete at 25.
    assert issued(run(trace_of([*body, store_wait(1), nothing()])))[-1] == 21


def test_an_empty_store_group_is_complete():
    assert issued(run(trace_of([store_commit(), store_wait(), nothing()]))) == [0, 1, 2]


def test_store_groups_reach_back_into_earlier_tiles():
    body = [store_commit(0), store_wait(0, outstanding=1), store(1), store_commit(1)]
    result = run(trace_of(body, tiles=2))
    # First tile 0-3 (store at 2, line 3, acknowledged 23); the second tile's wait at 5 looks at group 1 of the first.
    assert issued(result) == [0, 1, 2, 3, 4, 5, 23, 24]


def test_loads_and_stores_share_the_engine():
    # The store of role 0 (issued at 0) has 8 lines, 1-8. Role 1's bulk, issued at 2, eligible at 3, starts at 8 with
    # the last line and issues at 9: there at 29.
    maps = (tensor_map(box=(64, 8)),)
    result = run(trace_of([store(), store_commit()], [acquire(0), bulk(0), await_fill(0), nothing()], maps=maps))
    assert issued(result, 1) == [2, 3, 4, 29]


def test_the_kernel_ends_with_its_last_store():
    result = run(trace_of([store()]))
    # The role is done at 1, its store at 21; no commit is needed for that.
    assert result.ends == {(0, 0): 1}
    assert result.cycles == 21


def test_the_kernel_does_not_wait_for_loads_nobody_waits_for():
    result = run(trace_of([acquire(0), bulk(0)]))
    assert result.cycles == 2
    assert result.lines == 1
