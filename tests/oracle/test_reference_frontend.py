"""docs/isa.md sections 1 and 2 by hand: slots, schedulers, waits and their costs."""

import pytest

from simfa.isa import Affine, MbWait, Repeat, Slot
from tests.oracle.hand import (
    acquire,
    arrive,
    await_barrier,
    await_fill,
    bare,
    bulk,
    issued,
    nothing,
    release,
    ring,
    run,
    slot,
    trace_of,
    wgmma,
    work,
)


def test_a_thread_issues_one_instruction_a_cycle_even_with_free_slots():
    result = run(trace_of([nothing(), nothing(), nothing()]), bare(sm__issue_width=3))
    assert issued(result) == [0, 1, 2]
    assert result.ends == {(0, 0): 3}
    assert result.cycles == 3


def test_all_threads_start_at_the_launch_cycle():
    # 3.5 ns at 1 GHz is 3.5 cycles, rounded half up: 4.
    result = run(trace_of([nothing()], [nothing()]), bare(grid__launch_ns=3.5, sm__issue_width=2))
    assert issued(result, 0) == issued(result, 1) == [4]


def test_width_two_issues_two_threads_in_a_cycle():
    three = [nothing()] * 2
    result = run(trace_of(three, three, three), bare(sm__issue_width=2))
    # Oldest first: roles 0 and 1 take both slots of cycles 0 and 1, role 2 comes after.
    assert issued(result, 0) == issued(result, 1) == [0, 1]
    assert issued(result, 2) == [2, 3]


def test_oldest_prefers_the_lowest_role():
    # Role 0 pauses in cycle 1 (2 cycles of work), so role 1 gets it; back at 2, role 0 comes first again.
    result = run(trace_of([work(2), nothing(), nothing()], [nothing()] * 3))
    assert issued(result, 0) == [0, 2, 3]
    assert issued(result, 1) == [1, 4, 5]


def test_gto_stays_with_the_thread_that_issued_last():
    # As above, but having issued at 1, role 1 keeps the slot until it is through.
    result = run(trace_of([work(2), nothing(), nothing()], [nothing()] * 3), bare(sm__scheduler="gto"))
    assert issued(result, 0) == [0, 4, 5]
    assert issued(result, 1) == [1, 2, 3]


def test_gto_falls_back_to_the_lowest_role():
    # Cycle 1: role 0 works until 5; of 1 and 2 the lower one goes, and stays until it works itself.
    result = run(trace_of([work(5)], [nothing(), work(9)], [nothing()]), bare(sm__scheduler="gto"))
    assert issued(result, 1) == [1, 2]
    assert issued(result, 2) == [3]


def test_lrr_takes_turns_starting_at_role_0():
    two = [nothing()] * 2
    result = run(trace_of(two, two, two), bare(sm__scheduler="lrr"))
    assert issued(result, 0) == [0, 3]
    assert issued(result, 1) == [1, 4]
    assert issued(result, 2) == [2, 5]


def test_lrr_skips_threads_that_cannot_issue():
    # Role 1 works until 4: turns 0, 1, 2, 0, then at 4 role 1 is next after 0.
    result = run(trace_of([nothing()] * 3, [work(3), nothing()], [nothing()]), bare(sm__scheduler="lrr"))
    assert issued(result, 0) == [0, 3, 5]
    assert issued(result, 1) == [1, 4]
    assert issued(result, 2) == [2]


def test_lrr_counts_from_the_last_slot_of_a_cycle():
    # Width 2: cycle 0 takes roles 0, 1; cycle 1 goes on with role 2, then 0; cycle 2 with 1, 2.
    two = [nothing()] * 2
    result = run(trace_of(two, two, two), bare(sm__scheduler="lrr", sm__issue_width=2))
    assert issued(result, 0) == [0, 1]
    assert issued(result, 1) == [0, 2]
    assert issued(result, 2) == [1, 2]


def test_repeat_takes_no_time_and_its_body_keeps_its_indices():
    body = [nothing(), Repeat(count=2, body=(nothing(), work(3))), nothing()]
    result = run(trace_of(body))
    # 0 | 1, 2 (3 cycles) | 5, 6 (3 cycles) | 9; REPEAT has no index of its own.
    assert [tuple(issue) for issue in result.issues[0, 0]] == [
        (0, "role0", 0),
        (1, "role0", 1),
        (2, "role0", 2),
        (5, "role0", 1),
        (6, "role0", 2),
        (9, "role0", 3),
    ]


def test_repeat_advances_affine_operands():
    # Fills 0, 2, 4 of a ring without data are acquired from the start, so all three waits pass at once.
    steps = [acquire(0), acquire(2), acquire(4), Repeat(count=3, body=(MbWait(slot=slot(0, step=2)),))]
    result = run(trace_of(steps, rings=(ring(stages=8, size=0),)))
    assert issued(result) == [0, 1, 2, 3, 4, 5]


def test_a_step_outside_a_repeat_adds_nothing():
    body = [acquire(1), MbWait(slot=Slot("K", Affine(1, 5)))]
    result = run(trace_of(body, rings=(ring(stages=2, size=0),)))
    assert issued(result) == [0, 1]


def test_each_single_wgmma_of_a_count_takes_a_slot():
    result = run(trace_of([wgmma(count=3)]), bare(tensor_core__wgmma_issue_cycles=5))
    assert [tuple(issue) for issue in result.issues[0, 0]] == [(0, "role0", 0), (5, "role0", 0), (10, "role0", 0)]


def test_a_refused_wgmma_uses_no_slot():
    # Window 1, 4 cycles each: role 0 is refused at 1-3, and role 1 has the slots meanwhile.
    result = run(trace_of([wgmma(count=2)], [nothing()] * 3), bare(tensor_core__wgmma_window_ss=1))
    assert issued(result, 0) == [0, 4]
    assert issued(result, 1) == [1, 2, 3]


def test_a_wait_that_holds_costs_its_wait_cycles():
    hardware = bare(mbarrier__wait_cycles=7, mbarrier__wake_cycles=50)
    result = run(trace_of([acquire(0), await_fill(0), nothing()], rings=(ring(size=0),)), hardware)
    # ACQUIRE_STAGE of round 0 holds: 7; the fill has no data and is expected: 7 more.
    assert issued(result) == [0, 7, 14]


def test_a_blocked_wait_costs_its_wake_cycles_from_the_cycle_it_became_true():
    # BAR_ARRIVE at 9 (after 9 cycles of work) is seen at 9 + 5 = 14; role 1 waits since 1 and is ready at 14 + 6.
    hardware = bare(named_barrier__arrive_cycles=5, named_barrier__wait_cycles=3, named_barrier__wake_cycles=6)
    result = run(trace_of([work(9), arrive()], [await_barrier(), nothing()]), hardware)
    assert issued(result, 0) == [0, 9]
    assert issued(result, 1) == [1, 20]


def test_a_blocked_wait_takes_one_slot():
    result = run(trace_of([work(9), arrive()], [await_barrier()], [nothing()] * 12))
    # Role 1 issues once, at 1; role 2 has every other slot until role 0 is back at 9.
    assert issued(result, 1) == [1]
    assert issued(result, 2) == [2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 14]
    # Seen at 10, woken at 10 with wake 0.
    assert result.ends[0, 1] == 10


def test_with_wake_0_a_thread_issues_in_the_cycle_of_its_wake_up():
    # Arrive at 9, seen at 10; the next instruction issues at 10.
    result = run(trace_of([work(9), arrive()], [await_barrier(), nothing()]))
    assert issued(result, 1) == [1, 10]


@pytest.mark.parametrize(("empty", "wait", "wake"), [("mbarrier", 3, 5), ("named", 4, 6)])
def test_acquire_costs_by_what_the_empty_barrier_is_made_of(empty, wait, wake):
    hardware = bare(
        mbarrier__wait_cycles=3,
        mbarrier__wake_cycles=5,
        named_barrier__wait_cycles=4,
        named_barrier__wake_cycles=6,
    )
    # Role 0 acquires fill 0 at 0 (holds: ready at `wait`), then fill 1 of the same stage, which blocks until role 1
    # releases: role 1 works 20 cycles from 1 on, releases at 21, seen at 22, ready at 22 + wake.
    producer = [acquire(0), acquire(1), nothing()]
    consumer = [work(20), release(0)]
    result = run(trace_of(producer, consumer, rings=(ring(size=0, empty=empty),)), hardware)
    assert issued(result, 0) == [0, wait, 22 + wake]


def test_loads_take_a_slot_and_nothing_more():
    result = run(trace_of([acquire(0), bulk(0), nothing()], rings=(ring(),)))
    assert issued(result) == [0, 1, 2]
