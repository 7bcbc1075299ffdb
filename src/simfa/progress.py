"""A one-line progress meter on stderr: silent unless stderr is a terminal and the work takes over two seconds.

The line has no colour, so NO_COLOR changes nothing; a terminal that cannot wipe a line (TERM=dumb) gets none.
"""

import os
import sys
import time
from typing import TextIO

QUIET_SECONDS = 2.0
REDRAW_SECONDS = 0.2


class Meter:
    """Shows `done` of `total` with remaining time and rate; leaving it as a context, or `close`, wipes the line."""

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

    def update(self, done: float, detail: str = "") -> None:
        """Draw the line if it is time to."""
        now = time.monotonic()
        if not self._enabled or now - self._drawn < REDRAW_SECONDS:
            return
        self._drawn = now
        share = done / self._total if self._total else 0.0
        left = (now - self._begin) * (1 - share) / share if share else float("inf")
        remaining = f"{left:.0f} s left" if left != float("inf") else "starting"
        if self._unit:
            detail = f"{_amount(done / (now - self._begin))} {self._unit}/s{', ' + detail if detail else ''}"
        self._stream.write(f"\r\x1b[K{self._what}: {share:4.0%}, {remaining}{', ' + detail if detail else ''}")
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


def _amount(rate: float) -> str:
    """Return a rate in three digits."""
    for size, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if rate >= size:
            return f"{rate / size:.3g} {prefix}"
    return f"{rate:.3g}"
