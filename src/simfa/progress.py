"""A one-line progress meter on stderr: silent unless stderr is a terminal and the work takes over two seconds."""

import sys
import time
from typing import TextIO

QUIET_SECONDS = 2.0
REDRAW_SECONDS = 0.2


class Meter:
    """Shows `done` of `total` with rate and remaining time; `close` wipes the line."""

    def __init__(self, what: str, total: float, stream: TextIO | None = None, *, quiet: bool = False) -> None:
        """Measure `what`; nothing is drawn when `quiet`."""
        self._what, self._total = what, total
        self._stream = sys.stderr if stream is None else stream
        self._enabled = not quiet and self._stream.isatty()
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
        self._stream.write(f"\r\x1b[K{self._what}: {share:4.0%}, {remaining}{', ' + detail if detail else ''}")
        self._stream.flush()
        self._shown = True

    def close(self) -> None:
        """Remove the line."""
        if self._shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._shown = False
