"""Nsight Compute CSV: which page it is, and its rows with banners and program output taken out.

Pages: details (one row a launch, section and metric; 12, 15, 20 or 21 columns over the years), raw (one row a launch, a
column a metric, a second row of units) and summary (average, minimum and maximum per kernel). Columns go by name.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from simfa.errors import MeasureError
from simfa.measure import ncu_details, ncu_raw
from simfa.measure.csv_lines import rows, split
from simfa.measure.launch import Launch, Stated
from simfa.measure.ncu_launch import finish, source_of
from simfa.measure.ncu_log import Log
from simfa.measure.opening import Notes, lines

# A row starts with its launch or process id.
ROW_START = re.compile(r'\s*"?\d+"?\s*,', re.ASCII)
# The header may follow program output that ended without a line end.
_HEADER = re.compile(r'(?:^\s*|(?<=[^,\s"]))"(?:ID|Process ID)"\s*,|^\s*(?:ID|Process ID)\s*,')
_SOURCE_PAGE = re.compile(r'^\s*"?(?:#|Address)"?,.*"?(?:Source|Address)"?,')


def header_of(text: str) -> list[str] | None:
    """Return the columns where `text` is the header of an Nsight Compute table, without what was printed before it."""
    found = _HEADER.search(text)
    if not found:
        return None
    columns = [column.strip() for column in split(text[found.start() :]) or []]
    if columns[:1] == ["ID"] and "Kernel Name" in columns:
        return columns
    if columns[:1] == ["Process ID"] and {"Metric Name", "Average"} <= set(columns):
        return columns
    return None


def is_source_page(text: str) -> bool:
    """Return whether `text` is the header of the per-instruction page."""
    return bool(_SOURCE_PAGE.match(text)) and ("Sampling" in text or "# Samples" in text)


def page_of(columns: list[str]) -> str:
    """Return `details`, `raw` or `summary`."""
    if columns[0] == "Process ID" or "Average" in columns:
        return "summary"
    return "details" if "Metric Name" in columns else "raw"


def read(path: Path, notes: Notes, stated: Stated) -> Iterator[Launch]:
    """Yield the launches of an Nsight Compute CSV in the order they ran.

    Raises `MeasureError` for a file without a table or without launches, an ambiguous number or an unknown unit.
    """
    log = Log()
    tables: list[ncu_details.Table | ncu_raw.Table] = []
    pages: set[str] = set()
    for row in rows(lines(path, notes), ROW_START):
        starts = bool(ROW_START.match(row.text))
        columns = None if starts or row.cut else header_of(row.text)
        if columns is not None:
            pages.add(page_of(columns))
            kind = ncu_raw.Table if page_of(columns) == "raw" else ncu_details.Table
            tables.append(kind(path, columns, notes, len(tables)))
        elif tables and (starts or tables[-1].wants_units(row)):
            tables[-1].take(row)
        else:
            log.feed(row.number, row.text)
            notes.outside(row.number, row.text, row.whole)
    drafts = [draft for table in tables for draft in table.drafts()]
    if not drafts:
        missing = "no whole launch under its header" if tables else "no header row that starts with ID or Process ID"
        raise log.failure(path) or MeasureError(
            f"{path}: has no Nsight Compute table to read: {missing}; export one with "
            "`ncu --import REPORT --page raw --csv --print-units base --log-file raw.csv`"
        )
    if log.permission or log.errors:
        notes.warn("the log around the table shows errors of Nsight Compute; some kernels may be missing")
    source = source_of(notes.name, "ncu-csv-" + "+".join(sorted(pages)))
    for position, draft in enumerate(sorted(drafts, key=lambda draft: draft.identity.order)):
        yield finish(draft, source, log, notes, stated, position)
