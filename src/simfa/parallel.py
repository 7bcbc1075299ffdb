"""The same function on many inputs, on several host threads: results in the order of the inputs, whatever ran first.

The engine runs without the interpreter's lock, so threads are enough for simulations.
"""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


class Stopped(Exception):  # noqa: N818 - no error: another input failed, or Ctrl-C
    """Raised inside `ordered_map` by work that was told to stop."""


class StopFlag:
    """Set when the results are no longer wanted; work looks at it now and then."""

    def __init__(self) -> None:
        """Start unset."""
        self._event = threading.Event()

    def set(self) -> None:
        """Ask all work to stop."""
        self._event.set()

    def check(self, *_: object) -> None:
        """Raise `Stopped` if the flag is set; accepts and ignores what a progress callback gets."""
        if self._event.is_set():
            raise Stopped


def ordered_map(
    function: Callable[[Item, StopFlag], Result],
    items: Sequence[Item],
    jobs: int,
    done: Callable[[int], None] = lambda count: None,
) -> list[Result]:
    """Return `function` of every item, at most `jobs` at a time; `done` hears how many are finished.

    The first failure (of the earliest item, when several fail at once) is raised after the others were told to stop.
    """
    stop = StopFlag()
    with ThreadPoolExecutor(max_workers=jobs) as pool:
        futures = [pool.submit(function, item, stop) for item in items]
        try:
            pending = set(futures)
            while pending:
                finished, pending = wait(pending, timeout=0.2, return_when=FIRST_EXCEPTION)
                done(len(futures) - len(pending))
                if any(future.exception() is not None for future in finished):
                    break
        finally:
            stop.set()
            pool.shutdown(wait=True, cancel_futures=True)
    for future in futures:
        error = None if future.cancelled() else future.exception()
        if error is not None and not isinstance(error, Stopped):
            raise error
    return [future.result() for future in futures]
