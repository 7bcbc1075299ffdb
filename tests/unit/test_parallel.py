"""Work on several threads: order of results, failures, and the flag that stops the rest."""

import threading

import pytest

from simfa.parallel import StopFlag, Stopped, ordered_map


@pytest.mark.parametrize("jobs", [1, 3])
def test_results_come_in_the_order_of_the_inputs(jobs: int) -> None:
    later = threading.Event()

    def work(item: int, stop: StopFlag) -> int:
        if jobs > 1 and item == 0:
            assert later.wait(10)
        later.set()
        return item * item

    heard: list[int] = []
    assert ordered_map(work, range(5), jobs, heard.append) == [0, 1, 4, 9, 16]
    assert heard[-1] == 5 and heard == sorted(heard)


def test_nothing_to_do_is_no_error() -> None:
    assert ordered_map(lambda item, stop: item, [], 2) == []


def test_a_failure_stops_what_still_runs_and_is_raised() -> None:
    stopped = []

    def work(item: int, stop: StopFlag) -> int:
        if item == 1:
            raise ValueError("item 1 is bad")
        try:
            while True:
                stop.check()
        except Stopped:
            stopped.append(item)
            raise

    with pytest.raises(ValueError, match="item 1 is bad"):
        ordered_map(work, range(9), 2)
    assert stopped in ([0], [0, 2])  # the others never began


def test_ctrl_c_stops_the_work() -> None:
    ended = threading.Event()

    def work(item: int, stop: StopFlag) -> int:
        try:
            while True:
                stop.check()
        finally:
            ended.set()

    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ordered_map(work, [1], 1, interrupt)
    assert ended.is_set()
