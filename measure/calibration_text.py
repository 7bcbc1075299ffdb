"""A calibration as JSON and as the tables a person reads."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from simfa.measure.accuracy import ErrorFigures, error_figures
from simfa.measure.calibration import Calibration
from simfa.measure.summary_text import FIGURE_HEADERS, figure_cells, percent
from simfa.tables import text_table

# Id of a case, its error at the preset's values, its error at the fitted values.
Checked = Mapping[str, Sequence[tuple[str, float, float]]]


def groups(found: Calibration, checked: Checked) -> dict[str, dict[str, ErrorFigures | None]]:
    """Return the figures of each half, of all cases, of leave-one-out, and of each further set."""
    table: dict[str, dict[str, ErrorFigures | None]] = {}
    for name, cases in (
        ("calib half", [case for case in found.cases if case.target.fitted_on]),
        ("valid half", [case for case in found.cases if not case.target.fitted_on]),
        ("all", list(found.cases)),
    ):
        table[name] = {
            "now": error_figures([case.error_now for case in cases]),
            "fitted": error_figures([case.error_fitted for case in cases]),
        }
    calib = [case for case in found.cases if case.target.fitted_on]
    table["calib half, left out"] = {"now": None, "fitted": error_figures([case.error_left_out for case in calib])}
    for name, rows in checked.items():
        table[name] = {
            "now": error_figures([row[1] for row in rows]),
            "fitted": error_figures([row[2] for row in rows]),
        }
    return table


def to_json(found: Calibration, checked: Checked) -> dict[str, Any]:
    """Return a calibration as plain values: parameters, cases, figures of each group, checked sets."""
    return {
        **msgspec.to_builtins(found),
        "figures": {
            name: {label: None if entry is None else entry._asdict() for label, entry in both.items()}
            for name, both in groups(found, checked).items()
        },
        "checked": {
            name: [{"id": row[0], "error_now": row[1], "error_fitted": row[2]} for row in rows]
            for name, rows in checked.items()
        },
    }


def to_text(found: Calibration, checked: Checked) -> str:
    """Return the tables: parameters with range and sensitivity, cases, figures of each group."""
    parameters = text_table(
        ("value", "now", "fitted", "standard error", "range", "low to high moves latency"),
        [
            (
                entry.parameter.path,
                f"{entry.parameter.value:g}",
                f"{entry.fitted:g}{' (bound)' if entry.at_bound else ''}",
                "-" if entry.standard_error is None else f"{entry.standard_error:.2g}",
                f"{entry.parameter.low:g} to {entry.parameter.high:g}",
                f"{entry.sensitivity:.2%}",
            )
            for entry in found.parameters
        ],
        right=range(1, 6),
    )
    cases = text_table(
        ("case", "half", "now", "fitted", "left out"),
        [
            (
                case.target.id,
                "calib" if case.target.fitted_on else "valid",
                percent(case.error_now),
                percent(case.error_fitted),
                percent(case.error_left_out) if case.target.fitted_on else "-",
            )
            for case in found.cases
        ],
        right=range(2, 5),
    )
    rows = [
        (name, label, *figure_cells(entry))
        for name, both in groups(found, checked).items()
        for label, entry in both.items()
        if entry is not None and entry.used
    ]
    summary = text_table(("cases", "values", *FIGURE_HEADERS), rows, right=range(2, 6))
    return f"{parameters}\n\n{cases}\n\n{summary}\n\n{found.runs} simulations"
