"""CSV rows taken line by line, so that a stray quote in a program's output cannot swallow the rows behind it."""

import csv
import re
from collections.abc import Iterable, Iterator
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


def rows(lines: Iterable[Line], start: re.Pattern[str]) -> Iterator[Row]:
    """Yield the rows of `lines`. A row whose quotes stay open goes on until they close, but never past a row `start`.

    A last line without a line end counts as cut unless its last field is quoted and closed.
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
