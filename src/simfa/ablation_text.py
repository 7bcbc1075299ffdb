"""An ablation as the table a person reads, and as CSV."""

import csv
import io

from simfa.explaining import COUNTERS
from simfa.studies import Ablation, AblationGroup, AblationRow, AblationRun
from simfa.tables import text_table


def ablation_text(ablation: Ablation) -> str:
    """Return one table for each group of cases, slowest overlay first with its reason, then what each overlay means."""
    parts = [_group_text(group) for group in ablation.groups]
    parts.append(text_table(("overlay", "means"), [(info.name, info.about) for info in ablation.overlays]))
    return "\n\n".join(parts)


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


def _group_text(group: AblationGroup) -> str:
    measured = group.mape is not None
    headers = ["overlay", "slowdown", "least", "most", *(["MAPE", "points", "max"] if measured else [])]
    rows = []
    for row in group.rows:
        cells = [row.overlay, f"{row.slowdown:.3f}", f"{row.least.slowdown:.3f}", f"{row.most.slowdown:.3f}"]
        if row.mape is not None and row.max_ape is not None:
            cells += [f"{row.mape:.2%}", mape_change(group, row), f"{row.max_ape:.2%}"]
        rows.append(cells)
    head, rule, *lines = text_table(headers, rows, right=range(1, len(headers))).splitlines()
    reasoned = [f"{line}\n    {row.because}" for line, row in zip(lines, group.rows, strict=True)]
    return "\n".join([group_title(group), head, rule, *reasoned])
