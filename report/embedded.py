"""SVG figures of other stages, checked and made into images that a page holds itself."""

import base64
import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import msgspec

from simfa.errors import ReportError
from simfa.figure_files import FigureFile, FigureIndex, FigureTable, Section, index_path

# All figures together leave room for the rest in a page of 3 MB; base64 makes 4 bytes of 3.
MAX_FIGURE_BYTES = 1_500_000
# Panels side by side are that much wider than high, or more.
_BROAD = 1.8
_PASSIVE = {"svg", "g", "defs", "path", "use", "clipPath", "rect", "text", "tspan", "style", "metadata", "title"}
_SVG = "{http://www.w3.org/2000/svg}"
_METADATA = re.compile(r"\{http://(www\.w3\.org/1999/02/22-rdf-syntax-ns#|creativecommons\.org/ns#|purl\.org/dc/)")


class Figure(NamedTuple):
    """One figure as the page shows it; a broad one takes the whole width."""

    title: str
    caption: str
    svg_base64: str
    broad: bool


class FigureSection(NamedTuple):
    """The figures and tables of one part of the report."""

    anchor: str
    title: str
    text: str
    figures: list[Figure]
    tables: list[FigureTable]


# The parts in the order of showing: their titles, and what stands above them unless the folder brings its own words.
_SECTIONS: dict[Section, tuple[str, str]] = {
    "ablation": ("Ablations", "Each mechanism left out alone, and the counter that shows why it matters."),
    "sensitivity": ("Sensitivity", "How far the latency moves when one value of the preset moves."),
    "memory": ("Memory hierarchy beside measured curves", "Published measurements and the same programs, simulated."),
    "analytical": (
        "The analytical model",
        "Closed forms of traffic and latency bounds, no simulation; `simfa figures` draws them.",
    ),
}


def read_sections(folders: Sequence[str | Path]) -> list[FigureSection]:
    """Return the parts that folders of figures fill, in the order of the report; raises as `read_folder`."""
    found: dict[str, FigureSection] = {}
    for folder in folders:
        index, figures = read_folder(folder)
        title, text = _SECTIONS[index.section]
        old = found.get(index.section, FigureSection(index.section, title, index.text or text, [], []))
        found[index.section] = old._replace(figures=old.figures + figures, tables=old.tables + index.tables)
    return [found[name] for name in _SECTIONS if name in found]


def read_folder(folder: str | Path) -> tuple[FigureIndex, list[Figure]]:
    """Return the index and the figures of a folder that `simfa figures` or an ablation wrote.

    Raises `ReportError` for a missing or foreign index, a file that is not the one the index names, a table with a row
    of another width than its head, and an SVG that could load or run anything.
    """
    path = index_path(folder)
    try:
        index = msgspec.json.decode(path.read_bytes(), type=FigureIndex)
    except OSError as error:
        raise ReportError(f"{path}: cannot be read: {error.strerror}; write it with `simfa figures`") from error
    except msgspec.DecodeError as error:
        raise ReportError(f"{path}: not a figures.json of this version: {error}") from error
    contents = [_checked(path.parent, entry) for entry in index.figures]
    total = sum(map(len, contents))
    if total > MAX_FIGURE_BYTES:
        raise ReportError(f"{path}: figures of {total} bytes; expected at most {MAX_FIGURE_BYTES}")
    for table in index.tables:
        if any(len(row) != len(table.headers) for row in table.rows):
            raise ReportError(f"{path}: table {table.title!r}: expected {len(table.headers)} cells in every row")
    return index, [
        Figure(entry.title, entry.caption, base64.b64encode(content).decode("ascii"), _is_broad(content))
        for entry, content in zip(index.figures, contents, strict=True)
    ]


def _is_broad(svg: bytes) -> bool:
    """Return whether a drawing is much wider than high, by its view box."""
    box = ElementTree.fromstring(svg).get("viewBox", "").split()
    return len(box) == 4 and float(box[2]) > _BROAD * float(box[3])


def read_figures(folder: str | Path) -> list[Figure]:
    """Return the figures of a folder; raises as `read_folder`."""
    return read_folder(folder)[1]


def _checked(folder: Path, entry: FigureFile) -> bytes:
    """Return an SVG's bytes if they are those of the index and draw only."""
    path = folder / entry.file
    if Path(entry.file).name != entry.file:
        raise ReportError(f"{path}: expected the name of a file in the figures' folder")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ReportError(f"{path}: cannot be read: {error.strerror}; run `simfa figures` again") from error
    if hashlib.sha256(content).hexdigest() != entry.sha256:
        raise ReportError(f"{path}: not the file that {index_path(folder).name} names; run `simfa figures` again")
    try:
        root = ElementTree.fromstring(content)
    except ElementTree.ParseError as error:
        raise ReportError(f"{path}: not an SVG file: {error}") from error
    if root.tag != f"{_SVG}svg":
        raise ReportError(f"{path}: not an SVG file: its root is {root.tag}")
    for element in root.iter():
        _refuse_active(path, element)
    return content


def _refuse_active(path: Path, element: ElementTree.Element) -> None:
    """Raise for an element that is not a drawing's, an event handler, or a reference that leaves the file."""
    if element.tag.removeprefix(_SVG) not in _PASSIVE and not _METADATA.match(element.tag):
        raise ReportError(f"{path}: element {element.tag} has no place in a figure")
    for name, value in element.attrib.items():
        local = name.rpartition("}")[2]
        leaves = local == "href" and not value.startswith("#")
        if local.startswith("on") or leaves or re.search(r"url\((?!#)", value):
            raise ReportError(f"{path}: attribute {local}={value!r} has no place in a figure")
    if element.tag == f"{_SVG}style" and re.search(r"url\(|@import", element.text or ""):
        raise ReportError(f"{path}: its style loads something")
