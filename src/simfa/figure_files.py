"""A folder of figures: SVG files and tables, and `figures.json` that says what each shows and where it belongs.

`simfa figures` and `simfa memory-figures` write such folders, `simfa report --figures` reads them.
"""

from pathlib import Path
from typing import Literal

import msgspec

Section = Literal["analytical", "memory", "ablation", "sensitivity"]

INDEX_NAME = "figures.json"


class FigureFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One figure: an SVG file beside the index, its digest, and the words under it."""

    file: str
    sha256: str
    title: str
    caption: str


class FigureTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One table as it is shown: text in every cell; `numbers` are the columns that are set to the right."""

    title: str
    caption: str
    headers: list[str]
    rows: list[list[str]]
    numbers: list[int] = []


class FigureIndex(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `figures.json` holds, in the order of showing: `section` is the part of the report, `text` stands above."""

    tool_version: str
    figures: list[FigureFile]
    tables: list[FigureTable] = []
    section: Section = "analytical"
    text: str = ""


def index_path(folder: str | Path) -> Path:
    """Return where a folder's index lies."""
    return Path(folder) / INDEX_NAME
