"""A folder of figures: SVG files, and `figures.json` that says what each shows.

`simfa figures` and `simfa memory-figures` write such folders, `simfa report --figures` reads them.
"""

from pathlib import Path

import msgspec

INDEX_NAME = "figures.json"


class FigureFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One figure: an SVG file beside the index, its digest, and the words under it."""

    file: str
    sha256: str
    title: str
    caption: str


class FigureIndex(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `figures.json` holds, in the order of showing; heading and note stand above them."""

    tool_version: str
    figures: list[FigureFile]
    heading: str = "The analytical model"
    note: str = "Closed forms of traffic and latency bounds, no simulation; simfa figures draws them."


def index_path(folder: str | Path) -> Path:
    """Return where a folder's index lies."""
    return Path(folder) / INDEX_NAME
