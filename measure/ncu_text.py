"""Nsight Compute's tables as text (no `--csv`): details or raw page, a heading per launch, columns under dashes."""

import re
from collections.abc import Iterator
from pathlib import Path

from simfa.errors import MeasureError
from simfa.measure.extents import extent, integer
from simfa.measure.launch import Launch, Stated
from simfa.measure.metric_table import DESCRIBING, DIMENSIONS
from simfa.measure.ncu_launch import Draft, Identity, finish, source_of
from simfa.measure.ncu_log import Log
from simfa.measure.opening import Line, Notes, lines
from simfa.measure.quantity import Absent, CellError, StopError

# `  void kernel<1>(Params) (128, 1, 1)x(384, 1, 1), Context 1, Stream 7, Device 0, CC 9.0`; before 2022 a date stood in
# place of the sizes and device was not printed.
HEADING = re.compile(
    r"^\s+(?P<name>\S.*?)(?:\s+\((?P<grid>\d+, \d+, \d+)\)x\((?P<block>\d+, \d+, \d+)\))?"
    r"(?:, \d{4}-\w{3}-\d{1,2} \d\d:\d\d:\d\d)?"
    r", Context \d+, Stream (?P<stream>\d+)(?:, Device (?P<device>\d+))?(?:, CC (?P<capability>\d+\.\d+))?\s*$",
    re.ASCII,
)
_DASHES = re.compile(r"\s*-{3,}(?:\s+-{3,}){2}\s*$")


def read(path: Path, notes: Notes, stated: Stated) -> Iterator[Launch]:
    """Yield the launches of Nsight Compute's text output; the text has no launch ids, so they are counted.

    Raises `MeasureError` for text without a launch, an ambiguous number or an unknown unit.
    """
    log = Log()
    draft: Draft | None = None
    drafts: list[Draft] = []
    spans: list[tuple[int, int]] | None = None
    for line in lines(path, notes):
        text = line.text
        heading = HEADING.match(text)
        if not line.whole:
            notes.outside(line.number, text, line.whole)
            if draft is not None and spans is not None:
                draft.flags.append("rows_dropped")
        elif heading:
            draft, spans = _start(heading, line, len(drafts)), None
            drafts.append(draft)
        elif text.startswith("==") or draft is None:
            log.feed(line.number, text)
            notes.outside(line.number, text, line.whole)
        elif _DASHES.match(text):
            spans = [found.span() for found in re.finditer(r"-+", text)]
        elif not text.strip():
            spans = None
        elif spans is not None:
            _cell(path, line, spans, draft, notes)
        else:
            log.feed(line.number, text)
            notes.outside(line.number, text, line.whole)
    if not drafts:
        raise log.failure(path) or MeasureError(f"{path}: has no launch in Nsight Compute's text form")
    source = source_of(notes.name, "ncu-text")
    for position, draft in enumerate(drafts):
        yield finish(draft, source, log, notes, stated, position)


def _start(heading: re.Match[str], line: Line, number: int) -> Draft:
    identity = Identity(
        0, "", str(number), heading["name"], extent(heading["grid"] or ""), extent(heading["block"] or "")
    )
    draft = Draft(identity, line.number)
    draft.stream = integer(heading["stream"])
    draft.device = integer(heading["device"] or "")
    draft.capability = heading["capability"]
    return draft


def _cell(path: Path, line: Line, spans: list[tuple[int, int]], draft: Draft, notes: Notes) -> None:
    """Read one table line: name, unit and value stand under the dashes, the value up to the line's end."""
    (start, end), (_, unit_end), _ = spans
    name, unit, value = (part.strip() for part in (line.text[start:end], line.text[end:unit_end], line.text[unit_end:]))
    if name in DESCRIBING:
        draft.described.setdefault(name, value)
    elif name in DIMENSIONS:
        try:
            draft.measure(name, value, unit)
        except StopError as error:
            raise MeasureError(f"{path}:{line.number}: metric {name!r}: {error}") from error
        except CellError as error:
            draft.add(name, Absent(f"unreadable in line {line.number}"))
            notes.drop(f"line {line.number}", f"metric {name!r}: {error}")
