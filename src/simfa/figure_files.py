"""A folder of figures: SVG files, and `figures.json` that says what each shows.

`simfa figures` writes such a folder, `simfa report --figures` reads it.
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
    """What `figures.json` holds, in the order of showing."""

    tool_version: str
    figures: list[FigureFile]


def index_path(folder: str | Path) -> Path:
    """Return where a folder's index lies."""
    return Path(folder) / INDEX_NAME
