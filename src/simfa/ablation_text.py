"""An ablation as the table a person reads, and as CSV."""

import csv
import io

from simfa.explaining import COUNTERS
from simfa.figure_files import FigureIndex, FigureTable
from simfa.studies import Ablation, AblationGroup, AblationRow, AblationRun
from simfa.tables import text_table

_TEXT = (
    "One mechanism changed at a time by an overlay, all other values kept, nothing fitted again. Slowdown: cycles with "
    "the overlay over cycles without, the geometric mean over the cases; least and most are single cases; points are "
    "percentage points of MAPE. The reason cites counters of stats.json."
)


def ablation_text(ablation: Ablation) -> str:
    """Return one table for each group of cases, slowest overlay first with its reason, then what each overlay means."""
    parts = [_group_text(group) for group in ablation.groups]
    parts.append(text_table(("overlay", "means"), [(info.name, info.about) for info in ablation.overlays]))
    return "\n\n".join(parts)


def ablation_index(ablation: Ablation) -> FigureIndex:
    """Return the tables that the report shows: one a group, and what each overlay means."""
    tables = [_group_table(group) for group in ablation.groups]
    meanings = [[info.name, info.about] for info in ablation.overlays]
    tables.append(FigureTable(title="Overlays", caption="", headers=["overlay", "means"], rows=meanings))
    return FigureIndex(tool_version=ablation.tool_version, figures=[], tables=tables, section="ablation", text=_TEXT)


def _group_table(group: AblationGroup) -> FigureTable:
    cells = [[*_cells(group, row), row.because] for row in group.rows]
    numbers = list(range(1, len(_headers(group))))
    caption = f"Cases: {', '.join(group.cases)}."
    return FigureTable(
        title=group_title(group), caption=caption, headers=[*_headers(group), "because"], rows=cells, numbers=numbers
    )


def ablation_csv(ablation: Ablation) -> str:
    """Return one line for each run; `overlay` is empty for the runs that slowdowns refer to."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    fields = [name for name in AblationRun.__struct_fields__ if name != "counters"]
    writer.writerow([*fields, *COUNTERS])
    for run in ablation.runs:
        values = [getattr(run, name) for name in fields] + [run.counters.get(name) for name in COUNTERS]
        writer.writerow(["" if value is None else value for value in values])
    return buffer.getvalue()


def group_title(group: AblationGroup) -> str:
    """Return what a group is, in one line."""
    cases = f"{len(group.cases)} case{'s' if len(group.cases) != 1 else ''}"
    accuracy = "" if group.mape is None else f", MAPE {group.mape:.2%} and max {group.max_ape:.2%} without an overlay"
    return f"{group.name} on {group.preset}: {cases}{accuracy}"


def mape_change(group: AblationGroup, row: AblationRow) -> str:
    """Return how many percentage points a row's MAPE lies above that of its group, or an empty text."""
    if group.mape is None or row.mape is None:
        return ""
    return f"{100 * (row.mape - group.mape):+.2f}"


def _headers(group: AblationGroup) -> list[str]:
    return ["overlay", "slowdown", "least", "most", *(["MAPE", "points", "max"] if group.mape is not None else [])]


def _cells(group: AblationGroup, row: AblationRow) -> list[str]:
    """Return a row's figures, under `_headers`."""
    cells = [row.overlay, f"{row.slowdown:.3f}", f"{row.least.slowdown:.3f}", f"{row.most.slowdown:.3f}"]
    if row.mape is not None and row.max_ape is not None:
        cells += [f"{row.mape:.2%}", mape_change(group, row), f"{row.max_ape:.2%}"]
    return cells


def _group_text(group: AblationGroup) -> str:
    headers = _headers(group)
    rows = [_cells(group, row) for row in group.rows]
    head, rule, *lines = text_table(headers, rows, right=range(1, len(headers))).splitlines()
    reasoned = [f"{line}\n    {row.because}" for line, row in zip(lines, group.rows, strict=True)]
    return "\n".join([group_title(group), head, rule, *reasoned])
