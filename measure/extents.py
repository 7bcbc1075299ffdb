"""Sizes and whole numbers out of text cells, as grids, blocks, devices and streams are printed."""

import re
from functools import lru_cache

from simfa.measure.launch import Extent

_EXTENT = re.compile(r"\(?\s*(\d{1,10})[\s,x]+(\d{1,10})[\s,x]+(\d{1,10})\s*\)?", re.ASCII)


def integer(text: str) -> int | None:
    """Return a small non-negative integer, grouped or not, `None` for anything else."""
    text = text.strip().replace(",", "")
    return int(text) if text.isdecimal() and text.isascii() and len(text) < 19 else None


def extent(text: str) -> Extent | None:
    """Return three sizes from `(128, 1, 1)`, `128x1x1` or `128 1 1`."""
    found = _EXTENT.fullmatch(text.strip())
    return (int(found[1]), int(found[2]), int(found[3])) if found else None


@lru_cache(maxsize=4096)
def sizes(x: str, y: str, z: str) -> Extent | None:
    """Return three sizes from a cell each, `None` where one holds no number."""
    first, second, third = integer(x), integer(y), integer(z)
    return None if first is None or second is None or third is None else (first, second, third)
