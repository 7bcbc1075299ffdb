"""The report's section on ablations and sensitivity: studies read from files, as plain values for the template."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from simfa.report.embedded import Figure, embed
from simfa.report.inputs import read_ablation, read_sensitivity
from simfa.report.tornado import tornado
from simfa.studies import Ablation, Move, Sensitivity

TOP = 15


class Studies(NamedTuple):
    """What the section shows; either part may be missing."""

    groups: list[dict[str, Any]]
    overlays: list[tuple[str, str]]
    sensitivity: Sensitivity | None
    moves: list[dict[str, str]]
    left_out: int
    tornado: Figure | None


def read_studies(ablation: str | Path | None, sensitivity: str | Path | None) -> Studies | None:
    """Return the section of the given files, or None without any; raises `ReportError` for a file that is not one."""
    if ablation is None and sensitivity is None:
        return None
    return studies(
        None if ablation is None else read_ablation(ablation),
        None if sensitivity is None else read_sensitivity(sensitivity),
    )


def studies(ablation: Ablation | None, sensitivity: Sensitivity | None) -> Studies:
    """Return the section of two studies; the tornado plot needs Matplotlib."""
    drawn = None if sensitivity is None else _tornado(sensitivity)
    return Studies(
        groups=[] if ablation is None else _groups(ablation),
        overlays=[] if ablation is None else [(info.name, info.about) for info in ablation.overlays],
        sensitivity=sensitivity,
        moves=[] if sensitivity is None else _moves(sensitivity),
        left_out=0 if sensitivity is None else max(0, len(sensitivity.rows) - TOP),
        tornado=drawn,
    )


def _groups(ablation: Ablation) -> list[dict[str, Any]]:
    """Return the groups; rows with a MAPE say how far it lies above the group's, in points."""
    return [
        {
            "title": f"{group.name} cases on {group.preset}",
            "cases": group.cases,
            "mape": group.mape,
            "max_ape": group.max_ape,
            "rows": [
                {
                    "row": row,
                    "points": None if row.mape is None or group.mape is None else 100 * (row.mape - group.mape),
                }
                for row in group.rows
            ],
        }
        for group in ablation.groups
    ]


def _tornado(study: Sensitivity) -> Figure:
    caption = (
        f"Each value of {study.preset} moved by {study.perturbation:.0%}, one at a time; the {TOP} with the largest "
        f"effect on the latency of {study.shape}."
    )
    return embed("Tornado plot of preset values", caption, tornado(study, TOP, "svg"))


def _moves(study: Sensitivity) -> Sequence[dict[str, str]]:
    return [
        {
            "path": row.path,
            "value": f"{row.value:g}",
            "unit": row.unit,
            "status": row.status,
            "down": _side(row.down),
            "up": _side(row.up),
            "note": row.note,
        }
        for row in study.rows[:TOP]
    ]


def _side(side: Move | None) -> str:
    return "-" if side is None else f"{side.effect:+.2%} at {side.value:g}"
