"""docs/isa.md section 3 by hand: rings, releases, named barriers, clusters of two."""

from simfa.isa import AcquireStage, Affine, Repeat, TmaBulk
from tests.oracle.hand import (
    acquire,
    arrive,
    await_barrier,
    await_fill,
    bare,
    bulk,
    issued,
    load,
    nothing,
    release,
    ring,
    run,
    slot,
    tensor_map,
    trace_of,
    work,
)


def test_a_fill_is_complete_when_its_bytes_have_arrived():
    # Bulk issued at 1 is eligible at 2; its line goes out at 2 and is answered at 22. Role 1 waits since 2 (one slot a
    # cycle, oldest first) and is woken at 22.
    result = run(trace_of([acquire(0), bulk(0)], [await_fill(0), nothing()]))
    assert issued(result, 1) == [2, 22]


def test_a_fill_needs_all_its_copies():
    # Two bulks of 128 bytes, issued at 1 and 2: lines at 2 and 3, answers at 22 and 23.
    result = run(trace_of([acquire(0), bulk(0), bulk(0)], [await_fill(0), nothing()], rings=(ring(size=256),)))
    assert issued(result, 1) == [3, 23]


def test_mb_wait_passes_at_once_when_the_fill_is_complete():
    hardware = bare(mbarrier__wait_cycles=4, mbarrier__wake_cycles=9)
    # The acquire of 0 makes role 0 ready at 4: bulk at 4, line at 5, answer at 25. Role 1 waits from 31 on.
    result = run(trace_of([acquire(0), bulk(0)], [work(30), await_fill(0), nothing()]), hardware)
    assert issued(result, 0) == [0, 4]
    assert issued(result, 1) == [1, 31, 35]


def test_mb_wait_blocked_costs_wake_cycles():
    hardware = bare(mbarrier__wake_cycles=9)
    result = run(trace_of([acquire(0), bulk(0)], [await_fill(0), nothing()]), hardware)
    # Complete at 22 as above.
    assert issued(result, 1) == [2, 31]


def test_round_zero_is_free_and_later_rounds_need_all_releases_of_the_earlier():
    # Two stages: fills 0 and 1 are free. Fill 2 needs 1 x 2 arrivals at stage 0: from roles 1 and 2.
    producer = [acquire(0), acquire(1), acquire(2)]
    # Role 1 works at 3 for 5 cycles, releases at 8 (seen 9); role 2 works at 4 for 20 cycles, releases at 24 (seen 25).
    consumers = [work(5), release(0)], [work(20), release(0)]
    result = run(trace_of(producer, *consumers, rings=(ring(stages=2, size=0, releases=2),)))
    assert issued(result, 0) == [0, 1, 2]
    assert result.ends[0, 0] == 25


def test_a_release_counts_for_its_stage_alone():
    # Role 1 releases fill 1 (stage 1) at 3 and fill 0 (stage 0) at 14: fill 2 sits on stage 0.
    producer = [acquire(0), acquire(1), acquire(2)]
    result = run(trace_of(producer, [release(1), work(10), release(0)], rings=(ring(stages=2, size=0),)))
    # Role 1 issues at 3, 4 (work until 14), 14; seen at 15.
    assert issued(result, 1) == [3, 4, 14]
    assert result.ends[0, 0] == 15


def test_a_release_takes_arrive_cycles_and_at_least_one():
    for cycles, seen in ((0, 1), (1, 1), (6, 6)):
        hardware = bare(mbarrier__arrive_cycles=cycles)
        consumer = [nothing(), work(8), release(0)]
        result = run(trace_of([acquire(0), acquire(1)], consumer, rings=(ring(size=0),)), hardware)
        # Role 1 issues at 2, 3 (work until 11) and releases at 11.
        assert issued(result, 1) == [2, 3, 11]
        assert result.ends[0, 0] == 11 + seen


def test_a_ring_of_named_barriers_releases_with_named_barrier_latency():
    hardware = bare(named_barrier__arrive_cycles=13, mbarrier__arrive_cycles=2)
    trace = trace_of([acquire(0), acquire(1)], [nothing(), work(8), release(0)], rings=(ring(size=0, empty="named"),))
    # Released at 11 as above, seen at 24.
    assert run(trace, hardware).ends[0, 0] == 24


def test_the_expectation_of_a_woken_acquire_is_its_wake_up():
    # A ring without data: fill 1 is complete as soon as it is expected. Role 0 blocks on it at 1 and is woken at w = 12
    # (role 1 releases at 11); with wake 7 it goes on at 19, but role 2 sees the fill complete at 12.
    hardware = bare(mbarrier__wake_cycles=7)
    producer = [acquire(0), acquire(1)]
    consumer = [work(9), release(0)]
    result = run(trace_of(producer, consumer, [await_fill(1)], rings=(ring(size=0),)), hardware)
    assert issued(result, 1) == [2, 11]
    assert result.ends[0, 0] == 19
    # Role 2 blocks at 3 and is woken at 12 as well.
    assert issued(result, 2) == [3]
    assert result.ends[0, 2] == 19


def test_a_fill_expected_last_is_complete_when_the_acquire_issues():
    # The bytes come first: role 1 loads without an acquire (issue at 1, line at 2, answer at 22); role 0 works until 40
    # and acquires then. Role 2 waits since 2 and is woken in phase 4 of 40.
    for wake, ready in ((5, 45), (1, 41)):
        hardware = bare(mbarrier__wake_cycles=wake)
        result = run(trace_of([work(40), acquire(0)], [bulk(0)], [await_fill(0)]), hardware)
        assert issued(result, 0) == [0, 40]
        assert result.ends[0, 2] == ready


def test_a_thread_woken_in_phase_4_issues_in_the_next_cycle_at_the_earliest():
    # As above with wake 0 and free slots in cycle 40.
    result = run(trace_of([work(40), acquire(0)], [bulk(0)], [await_fill(0), nothing()]), bare(sm__issue_width=3))
    assert issued(result, 2) == [0, 41]


def test_within_a_cycle_slots_see_what_earlier_slots_did():
    # Width 2, ring without data: role 0 acquires in the first slot of 0, role 1 finds the fill complete in the second.
    hardware = bare(sm__issue_width=2, mbarrier__wait_cycles=3, mbarrier__wake_cycles=8)
    result = run(trace_of([acquire(0)], [await_fill(0)], rings=(ring(size=0),)), hardware)
    assert result.ends == {(0, 0): 3, (0, 1): 3}
    # The other way round role 0 blocks first, and is woken in the same cycle.
    result = run(trace_of([await_fill(0)], [acquire(0)], rings=(ring(size=0),)), hardware)
    assert result.ends == {(0, 0): 8, (0, 1): 3}


def test_producer_runs_as_many_fills_ahead_as_there_are_stages():
    # Four fills through two stages; each consumer step holds a stage until 30 cycles of work are over.
    acquires, loads = AcquireStage(slot=slot(0, step=1)), TmaBulk(slot=slot(0, step=1), address=Affine(0), bytes=128)
    producer = [Repeat(count=4, body=(acquires, loads))]
    consumer = []
    for index in range(4):
        consumer += [await_fill(index), work(30), release(index)]
    result = run(trace_of(producer, consumer, rings=(ring(stages=2),)))
    # Role 0: acquires and loads at 0-3 (answers at 22 and 24), blocks on fill 2 at 4. Role 1: waits at 5, works 22-52,
    # releases at 52, seen at 53. Role 0, the lower role, has slots 53 (load, answer 74) and 54 (blocks on fill 3).
    # Role 1: wait for fill 1 at 55 passes, works 56-86, releases at 86, seen at 87, when role 0 loads (answer 108).
    # Role 1: wait for fill 2 at 88 passes, works 89-119, releases; fill 3 likewise at 120, 121 and 151.
    assert issued(result, 0) == [0, 1, 2, 3, 4, 53, 54, 87]
    assert issued(result, 1) == [5, 22, 52, 55, 56, 86, 88, 89, 119, 120, 121, 151]


def test_a_named_barrier_needs_its_arrivals_and_consumes_them():
    # Three signals, seen at 1, 2 and 3; role 1 takes two, then needs two more: one is left, the fourth comes late.
    signals = [arrive(), arrive(), arrive(), work(20), arrive()]
    result = run(trace_of(signals, [await_barrier(arrivals=2), await_barrier(arrivals=2), nothing()]))
    # Role 0 issues at 0-3 and, after the work, at 23 (seen at 24). Role 1 has slots from 4 on: its first wait passes,
    # the second at 5 finds one signal of two and is woken at 24.
    assert issued(result, 0) == [0, 1, 2, 3, 23]
    assert issued(result, 1) == [4, 5, 24]


def test_barriers_are_apart_and_belong_to_their_cta():
    bodies = [arrive(3)], [await_barrier(3), nothing()]
    result = run(trace_of(*bodies, ctas=2))
    # In each CTA: arrive at 0, seen at 1, wait at 1 passes, next at 2.
    assert issued(result, 1, cta=0) == issued(result, 1, cta=1) == [1, 2]


def test_a_remote_release_reaches_the_other_cta_of_the_cluster():
    # Releases 2: each stage needs the own and the other consumer. Both CTAs run the same: acquire 0 at 0, blocked on
    # fill 1 at 1; role 1 works at 2 until 12 and releases at 12: own arrival at 13, remote at 12 + 11 = 23.
    hardware = bare(mbarrier__remote_arrive_cycles=11)
    bodies = [acquire(0), acquire(1)], [work(10), release(0, remote=True)]
    result = run(trace_of(*bodies, rings=(ring(size=0, releases=2),), ctas=2, cluster=2), hardware)
    assert issued(result, 1) == [2, 12]
    assert result.ends[0, 0] == result.ends[1, 0] == 23


def test_a_remote_release_takes_mbarrier_latency_whatever_the_ring_is_made_of():
    hardware = bare(mbarrier__remote_arrive_cycles=11, named_barrier__arrive_cycles=30)
    bodies = [acquire(0), acquire(1)], [work(10), release(0, remote=True)]
    rings = (ring(size=0, releases=2, empty="named"),)
    # Own arrival at 12 + 30 = 42, the remote one at 23.
    assert run(trace_of(*bodies, rings=rings, ctas=2, cluster=2), hardware).ends[0, 0] == 42


def test_remote_means_nothing_outside_a_cluster():
    bodies = [acquire(0), acquire(1)], [work(10), release(0, remote=True)]
    result = run(trace_of(*bodies, rings=(ring(size=0),), ctas=2, cluster=1))
    assert result.ends[0, 0] == result.ends[1, 0] == 13


def test_multicast_loads_rows_by_rank_and_credits_both_ctas():
    # A fill is two boxes of one 128-byte row, one loaded by each rank. Each CTA issues its load at 1, line at 2, answer
    # at 22: in each, its own bytes and the other's.
    bodies = [acquire(0), load(0, multicast=True)], [await_fill(0), nothing()]
    result = run(trace_of(*bodies, rings=(ring(size=256),), ctas=2, cluster=2))
    assert issued(result, 1, cta=0) == issued(result, 1, cta=1) == [2, 22]
    assert result.lines == 2


def test_multicast_rank_1_loads_the_rows_behind_those_of_rank_0():
    # The tensor has one row: rank 0 loads it, rank 1's row is out of range and needs no line.
    bodies = [acquire(0), load(0, multicast=True)], [await_fill(0), nothing()]
    maps = (tensor_map(dims=(64, 1)),)
    result = run(trace_of(*bodies, rings=(ring(size=256),), maps=maps, ctas=2, cluster=2))
    # Rank 1's box is there at 2, but both fills also need rank 0's, at 22.
    assert issued(result, 1, cta=0) == issued(result, 1, cta=1) == [2, 22]
    assert result.lines == 1


def test_multicast_bytes_may_come_before_the_other_cta_expects_them():
    # Only rank 0 loads, for both: issue at 1, line at 2, answer at 22. CTA 1 acquires at 60, in phase 4, and its fill
    # is complete then: its role 1, waiting since 1, is woken at 60 and ready at 60 + 5.
    hardware = bare(mbarrier__wake_cycles=5)
    rank_0 = [acquire(0), load(0, multicast=True)], [await_fill(0)]
    rank_1 = [work(60), acquire(0)], [await_fill(0)]
    result = run(trace_of(*rank_0, rank_1=rank_1, ctas=2, cluster=2), hardware)
    assert result.ends == {(0, 0): 2, (0, 1): 27, (1, 0): 61, (1, 1): 65}


def test_multicast_is_the_same_under_ideal_memory_when_the_coalescer_does_not_do_it():
    # Without `lrc.multicast` each line is requested for each receiver, behind the SM: nothing that ideal memory knows.
    bodies = [acquire(0), load(0, multicast=True)], [await_fill(0), nothing()]
    trace = trace_of(*bodies, rings=(ring(size=256),), ctas=2, cluster=2)
    assert run(trace, bare(lrc__multicast=False)) == run(trace)


def test_multicast_in_a_cluster_of_one_loads_its_own_box_alone():
    bodies = [acquire(0), load(0, multicast=True)], [await_fill(0), nothing()]
    result = run(trace_of(*bodies, ctas=2, cluster=1))
    assert issued(result, 1, cta=1) == [2, 22]


def test_later_tiles_go_on_in_the_ring():
    # Two tiles of one fill each through one stage: K[0] of the second tile is absolute fill 1, which needs one release.
    producer = [acquire(0), bulk(0)]
    consumer = [await_fill(0), work(9), release(0)]
    result = run(trace_of(producer, consumer, tiles=2))
    # Fill 0: issue at 0, 1; line at 2; there at 22. Role 0 blocks on fill 1 at 2. Role 1: wait at 3, work at 22 until
    # 31, release at 31, seen at 32: role 0 loads at 32, line at 33, there at 53. Role 1 waits at 33 (slot 32 is taken).
    assert issued(result, 0) == [0, 1, 2, 32]
    assert issued(result, 1) == [3, 22, 31, 33, 53, 62]


def test_a_tile_uses_fills_up_to_the_highest_ordinal_that_any_of_its_programs_names():
    # Role 1 names K[2], so a tile uses three fills although role 0 acquires one: the second tile's K[0] is fill 3,
    # which sits on stage 0 of 3 in round 1 and needs a release of stage 0.
    producer = [acquire(0)]
    consumer = [work(9), release(0), release(2)]
    result = run(trace_of(producer, consumer, rings=(ring(stages=3, size=0),), tiles=2))
    # Role 0 blocks at 1; role 1 works at 2 until 11, releases at 11, seen at 12.
    assert issued(result, 0) == [0, 1]
    assert result.ends[0, 0] == 12
