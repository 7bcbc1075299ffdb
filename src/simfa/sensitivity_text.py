"""A sensitivity study as the table a person reads, and as CSV."""

import csv
import io

from simfa.figure_files import FigureFile, FigureIndex, FigureTable
from simfa.studies import Move, Sensitivity
from simfa.tables import text_table

_HEADERS = ("value", "set to", "unit", "status", "down: latency", "up: latency", "note")
_UNMOVED = ("cannot move", "set to", "because")


def sensitivity_text(study: Sensitivity, top: int) -> str:
    """Return the `top` values with the largest effect, how many others there are, and the values that cannot move."""
    title = (
        f"{study.shape} on {study.preset}: {study.latency_us:,.2f} us; each value moved by {study.perturbation:.0%}, "
        "one at a time"
    )
    parts = [title, text_table(_HEADERS, _rows(study, top), right=(1, 4, 5))]
    left = study.rows[top:]
    if left:
        parts.append(f"{len(left)} more values, none of them with an effect above {left[0].swing:.2%}")
    if study.unmoved:
        cannot = text_table(_UNMOVED, _unmoved(study))
        parts += ["", cannot]
    return "\n".join(parts)


def sensitivity_index(study: Sensitivity, top: int, drawing: FigureFile) -> FigureIndex:
    """Return what the report shows: the tornado plot, the `top` values, and the values that cannot move."""
    moved = FigureTable(
        title=f"{study.shape} on {study.preset}: {study.latency_us:,.2f} us",
        caption=f"The {min(top, len(study.rows))} values with the largest effect of {len(study.rows)}.",
        headers=list(_HEADERS),
        rows=_rows(study, top),
        numbers=[1, 4, 5],
    )
    cannot = FigureTable(
        title="Values that cannot move", caption="", headers=list(_UNMOVED), rows=[list(row) for row in _unmoved(study)]
    )
    text = f"Latency with one preset value moved by {study.perturbation:.0%}, down and up; all others as they are."
    return FigureIndex(
        tool_version=study.tool_version, figures=[drawing], tables=[moved, cannot], section="sensitivity", text=text
    )


def _rows(study: Sensitivity, top: int) -> list[list[str]]:
    """Return the `top` values under `_HEADERS`."""
    return [
        [row.path, f"{row.value:g}", row.unit, row.status, _side(row.down), _side(row.up), row.note]
        for row in study.rows[:top]
    ]


def _unmoved(study: Sensitivity) -> list[tuple[str, str, str]]:
    """Return path, value and reason of the values that cannot move."""
    return [(entry.path, entry.value, entry.reason) for entry in study.unmoved]


def _side(side: Move | None) -> str:
    """Return the effect of one side; a change that is not the whole perturbation is named."""
    return "-" if side is None else f"{side.effect:+.2%} at {side.value:g}"


def sensitivity_csv(study: Sensitivity) -> str:
    """Return one line for each value: both sides, or the reason why it cannot move."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    sides = [f"{side}_{field}" for side in ("down", "up") for field in Move.__struct_fields__]
    writer.writerow(["path", "value", "unit", "status", *sides, "swing", "note"])
    for row in study.rows:
        cells = [
            "" if side is None else getattr(side, field)
            for side in (row.down, row.up)
            for field in Move.__struct_fields__
        ]
        writer.writerow([row.path, row.value, row.unit, row.status, *cells, row.swing, row.note])
    for entry in study.unmoved:
        writer.writerow([entry.path, entry.value, "", "", *[""] * len(sides), "", entry.reason])
    return buffer.getvalue()
