"""A one-line progress meter on stderr: silent unless stderr is a terminal and the work takes over two seconds.

The line has no colour, so NO_COLOR changes nothing; a terminal that cannot wipe a line (TERM=dumb) gets none.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TextIO, TypeVar

Item = TypeVar("Item")

QUIET_SECONDS = 2.0
REDRAW_SECONDS = 0.2


class Meter:
    """Shows `done` of `total` with remaining time and rate; leaving it as a context, or `close`, wipes the line.

    Where nobody knows how much there is to do, `total` is 0 and the line shows the time spent.
    """

    def __init__(
        self, what: str, total: float, stream: TextIO | None = None, *, unit: str = "", quiet: bool = False
    ) -> None:
        """Measure `what`, counted in `unit` where that has a rate worth showing; nothing is drawn when `quiet`."""
        self._what, self._total, self._unit = what, total, unit
        self._stream = sys.stderr if stream is None else stream
        self._enabled = not quiet and self._stream.isatty() and os.environ.get("TERM") != "dumb"
        self._begin = time.monotonic()
        self._drawn = self._begin + QUIET_SECONDS - REDRAW_SECONDS
        self._shown = False

    def update(self, done: float = 0.0, detail: str = "") -> None:
        """Draw the line if it is time to."""
        now = time.monotonic()
        if not self._enabled or now - self._drawn < REDRAW_SECONDS:
            return
        self._drawn = now
        spent = now - self._begin
        share = min(done / self._total, 1.0) if self._total else 0.0
        known = f"{share:4.0%}, {spent * (1 - share) / share:.0f} s left" if share else f"{spent:.0f} s so far"
        rate = f"{_amount(done / spent)} {self._unit}/s" if self._unit else ""
        self._stream.write(f"\r\x1b[K{self._what}: {', '.join(part for part in (known, rate, detail) if part)}")
        self._stream.flush()
        self._shown = True

    def __enter__(self) -> "Meter":
        """Start."""
        return self

    def __exit__(self, *error: object) -> None:
        """Wipe the line, also after an error."""
        self.close()

    def close(self) -> None:
        """Remove the line."""
        if self._shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._shown = False


def watched(items: Sequence[Item], what: str, *, quiet: bool = False) -> Iterator[Item]:
    """Yield the items, with a progress line for what is done with each."""
    with Meter(what, len(items), quiet=quiet) as meter:
        for number, item in enumerate(items):
            meter.update(number)
            yield item


def waited_for(work: Callable[[], Item], what: str, *, quiet: bool = False) -> Item:
    """Return what `work` returns; it runs beside a line with the time spent, as it cannot tell how far it is."""
    import concurrent.futures

    with Meter(what, 0, quiet=quiet) as meter, concurrent.futures.ThreadPoolExecutor(1) as pool:
        begun = pool.submit(work)
        while not begun.done():
            concurrent.futures.wait([begun], timeout=REDRAW_SECONDS)
            meter.update()
        return begun.result()


def tell(line: str, *, quiet: bool = False) -> None:
    """Say on stderr what begins now, unless that is not wanted."""
    if not quiet:
        print(line, file=sys.stderr, flush=True)


def _amount(rate: float) -> str:
    """Return a rate in three digits."""
    for size, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if rate >= size:
            return f"{rate / size:.3g} {prefix}"
    return f"{rate:.3g}"
