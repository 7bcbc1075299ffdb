"""CSV rows taken line by line, so that a stray quote in a program's output cannot swallow the rows behind it."""

import csv
import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from simfa.measure.opening import Line

# A quoted field may run over a few lines (rule descriptions); more is a quote that was never meant to open one.
_JOIN_LIMIT = 20
csv.field_size_limit(1 << 24)


class Row(NamedTuple):
    """The fields of one row; `None` where its quotes do not balance.

    `whole` is false where it has no line end, `cut` true where its own end may therefore be missing.
    """

    number: int
    text: str
    fields: list[str] | None
    whole: bool
    cut: bool


def split(text: str) -> list[str] | None:
    """Return the fields of one CSV line, or `None` where its quoting is broken."""
    try:
        return next(csv.reader((text,), strict=True, skipinitialspace=True), [])
    except csv.Error:
        return None


class TailSplitter:
    """Splits as `split` does, for tables whose rows differ in their first fields and repeat the rest.

    The rest is split once for each text it has; `own` fields, unquoted ones, stand before it.
    """

    def __init__(self, own: int, kept: int = 4096) -> None:
        """Take `own` fields apart anew for every row and remember the last `kept` different rests."""
        self._own = own
        self._tail = lru_cache(maxsize=kept)(split)

    def __call__(self, text: str) -> list[str] | None:
        """Return the fields of one CSV line, or `None` where its quoting is broken."""
        head = text.split(",", self._own)
        if len(head) <= self._own or '"' in text[: len(text) - len(head[-1])]:
            return split(text)
        tail = self._tail(head.pop())
        return None if tail is None else [*(field.lstrip(" ") for field in head), *(tail or [""])]


def rows(
    lines: Iterable[Line], start: re.Pattern[str], split: Callable[[str], list[str] | None] = split
) -> Iterator[Row]:
    """Yield the rows of `lines`. A row whose quotes stay open goes on until they close, but never past a row `start`.

    A last line without a line end counts as cut unless its last field is quoted and closed. `split` takes a line apart.
    """
    source = iter(lines)
    held: list[Line] = []
    while (line := held.pop(0) if held else next(source, None)) is not None:
        text = line.text
        fields = split(text)
        if fields is None and start.match(text) and text.count('"') % 2:
            joined, last = [text], line
            while len(joined) < _JOIN_LIMIT and (follower := next(source, None)) is not None:
                held.append(follower)
                if start.match(follower.text):
                    break
                joined.append(follower.text)
                last = follower
                fields = split("\n".join(joined))
                if fields is not None:
                    text, held = "\n".join(joined), []
                    line = Line(line.number, text, last.whole)
                    break
        cut = not line.whole and not text.rstrip().endswith('"')
        yield Row(line.number, text, fields, line.whole, cut)
