"""docs/isa.md section 4 by hand: the tensor pipe, its windows, groups, drain and tails."""

import pytest

from tests.oracle.hand import bare, issued, nothing, run, trace_of, wgmma, wgmma_commit, wgmma_wait, work

# m64n8k16 takes 4 cycles of the bare pipe and m64n`n`k16 takes n / 2.


def test_a_wgmma_takes_two_flop_per_element_and_a_wait_sees_its_end():
    result = run(trace_of([wgmma(n=40), wgmma_commit(), wgmma_wait(), nothing()]))
    # Start at 0, end at 20: the wait of 2 is woken at 20 and goes on in that cycle.
    assert issued(result) == [0, 1, 2, 20]


def test_the_duration_is_rounded_up_and_has_a_floor():
    wait = [wgmma(), wgmma_commit(), wgmma_wait(), nothing()]
    # 16384 / 1000 = 16.384.
    assert issued(run(trace_of(wait), bare(tensor_core__flop_per_cycle=1000)))[-1] == 17
    # 4 cycles by rate, 19 at least.
    assert issued(run(trace_of(wait), bare(tensor_core__wgmma_min_cycles=19)))[-1] == 19
    # 4 cycles by rate and 3 of its own; the floor is of both together.
    assert issued(run(trace_of(wait), bare(tensor_core__wgmma_overhead_cycles=3)))[-1] == 7
    both = bare(tensor_core__wgmma_overhead_cycles=3, tensor_core__wgmma_min_cycles=19)
    assert issued(run(trace_of(wait), both))[-1] == 19


@pytest.mark.parametrize(("mode", "done"), [("SS", 4 + 30), ("RS", 4 + 20)])
def test_the_result_is_there_a_tail_after_the_end(mode, done):
    hardware = bare(tensor_core__wgmma_tail_ss_cycles=30, tensor_core__wgmma_tail_rs_cycles=20)
    result = run(trace_of([wgmma(mode=mode), wgmma_commit(), wgmma_wait(), nothing()]), hardware)
    assert issued(result)[-1] == done


def test_the_pipe_is_a_fifo_over_all_warpgroups():
    group = [wgmma(n=40), wgmma_commit(), wgmma_wait(), nothing()]
    result = run(trace_of(group, group), bare(sm__issue_width=2))
    # Both issue at 0: role 0 has the pipe until 20, role 1 until 40.
    assert issued(result, 0)[-1] == 20
    assert issued(result, 1)[-1] == 40


def test_tails_do_not_occupy_the_pipe():
    hardware = bare(sm__issue_width=2, tensor_core__wgmma_tail_ss_cycles=100)
    group = [wgmma(n=40), wgmma_commit(), wgmma_wait(), nothing()]
    result = run(trace_of(group, group), hardware)
    assert issued(result, 0)[-1] == 120
    assert issued(result, 1)[-1] == 140


def test_issue_cycles_hold_the_thread_but_not_the_pipe():
    hardware = bare(tensor_core__wgmma_issue_cycles=3)
    result = run(trace_of([wgmma(count=2), wgmma_commit(), wgmma_wait(), nothing()]), hardware)
    # Issued at 0 and 3; in the pipe 0-4 and 4-8; commit at 6, wait at 7, woken at 8.
    assert issued(result) == [0, 3, 6, 7, 8]


def test_the_window_counts_wgmmas_that_have_not_ended():
    result = run(trace_of([wgmma(count=4)]), bare(tensor_core__wgmma_window_ss=2))
    # Ends at 4, 8, 12: the third is admitted at 4, when the first has ended, the fourth at 8.
    assert issued(result) == [0, 1, 4, 8]


def test_the_window_is_that_of_the_wgmmas_own_mode_over_all_wgmmas_of_the_sm():
    hardware = bare(tensor_core__wgmma_window_ss=3, tensor_core__wgmma_window_rs=1)
    result = run(trace_of([wgmma(count=2), wgmma(mode="RS"), wgmma()]), hardware)
    # SS at 0 and 1 end at 4 and 8. RS needs all of them out: 8 (end 12). The last SS finds one of three: 9.
    assert issued(result) == [0, 1, 8, 9]


def test_the_window_is_shared_by_the_warpgroups():
    result = run(trace_of([wgmma(n=40)], [wgmma(), nothing()]), bare(tensor_core__wgmma_window_ss=1))
    # Role 1 is refused until role 0's WGMMA ends at 20.
    assert issued(result, 1) == [20, 21]


def test_a_group_is_complete_with_its_last_result():
    hardware = bare(tensor_core__wgmma_tail_ss_cycles=50, tensor_core__wgmma_tail_rs_cycles=0)
    # SS ends at 4, done at 54; RS ends at 8, done at 8: the group is complete at 54.
    result = run(trace_of([wgmma(), wgmma(mode="RS"), wgmma_commit(), wgmma_wait(), nothing()]), hardware)
    assert issued(result)[-1] == 54


def test_a_wait_with_outstanding_groups_looks_further_back():
    # Groups end at 4, 8, 12, 16, ...; two instructions a group: issued at 0, 1 / 2, 3 / 4, 5.
    groups = [instruction for group in range(3) for instruction in (wgmma(group, n=16), wgmma_commit(group))]
    for outstanding, woken in ((0, 24), (1, 16), (2, 8)):
        result = run(trace_of([*groups, wgmma_wait(2, outstanding), nothing()]))
        # The wait issues at 6; groups of 8 cycles each are complete at 8, 16 and 24.
        assert issued(result)[-2:] == [6, woken]


def test_a_wait_for_an_older_group_ignores_younger_ones():
    groups = [instruction for group in range(3) for instruction in (wgmma(group, n=16), wgmma_commit(group))]
    result = run(trace_of([*groups, wgmma_wait(1), nothing()]))
    assert issued(result)[-2:] == [6, 16]


def test_a_wait_includes_all_earlier_groups():
    hardware = bare(tensor_core__wgmma_tail_ss_cycles=50)
    # Group 0 (SS) is complete at 54, group 1 (RS) at 8: a wait for group 1 ends at 54.
    body = [wgmma(0), wgmma_commit(0), wgmma(1, mode="RS"), wgmma_commit(1), wgmma_wait(1), nothing()]
    assert issued(run(trace_of(body), hardware))[-1] == 54


def test_a_wait_without_such_a_group_passes():
    result = run(trace_of([wgmma(n=40), wgmma_commit(), wgmma_wait(0, outstanding=1), nothing()]))
    assert issued(result) == [0, 1, 2, 3]


def test_a_wait_that_holds_costs_one_cycle():
    result = run(trace_of([wgmma(), wgmma_commit(), work(10), wgmma_wait(), nothing()]))
    assert issued(result) == [0, 1, 2, 12, 13]


def test_an_empty_group_is_complete_at_its_commit():
    result = run(trace_of([wgmma(n=40), wgmma_commit(0), work(30), wgmma_commit(1), wgmma_wait(1), nothing()]))
    assert issued(result) == [0, 1, 2, 32, 33, 34]


def test_group_ids_count_from_zero_in_each_tile_and_reach_back_into_earlier_tiles():
    body = [wgmma_commit(0), wgmma_wait(0, outstanding=1), wgmma(1, n=40), wgmma_commit(1)]
    result = run(trace_of(body, tiles=2))
    # First tile: 0, 1 (no group before: passes), 2 (pipe 2-22), 3. Second: commit at 4, and its wait at 5 looks one
    # group back: the first tile's group 1, complete at 22. WGMMA at 22, commit at 23.
    assert issued(result) == [0, 1, 2, 3, 4, 5, 22, 23]


def test_the_pipe_idles_behind_a_committed_group():
    body = [wgmma(0), wgmma_commit(0), wgmma(1), wgmma_commit(1), wgmma_wait(1), nothing()]
    result = run(trace_of(body), bare(tensor_core__group_drain_cycles=10))
    # Group 0 ends at 4, so the pipe is free at 14, and group 1 ends at 18.
    assert issued(result) == [0, 1, 2, 3, 4, 18]


def test_the_drain_starts_at_the_groups_own_last_end():
    # Width 2. Role 0's WGMMA ends at 4, role 1's (same cycle, behind) at 24. Role 0 commits at 1: 4 + 10 < 24, so the
    # pipe stays free at 24. Role 1 commits at 1 too: 34. Role 0's next WGMMA runs 34-38.
    hardware = bare(sm__issue_width=2, tensor_core__group_drain_cycles=10)
    first = [wgmma(0), wgmma_commit(0), wgmma(1), wgmma_commit(1), wgmma_wait(1), nothing()]
    result = run(trace_of(first, [wgmma(n=40), wgmma_commit()]), hardware)
    assert issued(result, 0)[-1] == 38


def test_a_commit_without_wgmmas_drains_nothing():
    body = [wgmma(0, n=40), wgmma_commit(0), wgmma_commit(1), wgmma(2), wgmma_commit(2), wgmma_wait(2), nothing()]
    # Group 0 ends at 20, drain to 30; the empty group adds nothing: 30-34.
    assert issued(run(trace_of(body), bare(tensor_core__group_drain_cycles=10)))[-1] == 34
