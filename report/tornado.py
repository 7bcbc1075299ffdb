"""The tornado plot of a sensitivity study: effect on latency of each preset value, moved down and up."""

import hashlib
import io
from typing import Any

from simfa.errors import ReportError
from simfa.figure_files import FigureFile
from simfa.studies import Sensitivity

DOWN_COLOUR, UP_COLOUR = "#4477aa", "#ee6677"  # Tol's "bright" scheme, as in `simfa.report.palette`
ROW_INCHES = 0.28
FILE_NAME = "tornado.svg"


def figure_file(study: Sensitivity, top: int, svg: bytes) -> FigureFile:
    """Return the entry of `svg` in a folder of figures, where it is named `FILE_NAME`."""
    caption = (
        f"Each value of {study.preset} moved by {study.perturbation:.0%}, one at a time: the change of the latency of "
        f"{study.shape}, for the values with the largest effect, {top} at most."
    )
    return FigureFile(FILE_NAME, hashlib.sha256(svg).hexdigest(), "Tornado plot of preset values", caption)


def tornado(study: Sensitivity, top: int, kind: str) -> bytes:
    """Return the `top` values with an effect as `kind` (svg or png); the same study gives the same bytes.

    Raises `ReportError` when Matplotlib is missing.
    """
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ReportError(f"the tornado plot needs Matplotlib: pip install 'simfa[report]' ({error})") from error
    rows = [row for row in study.rows if row.swing > 0][:top][::-1]
    figure = Figure(figsize=(9.0, 1.4 + ROW_INCHES * max(1, len(rows))), layout="constrained")
    axes = figure.subplots()
    for name, colour, sides in (
        (f"{-study.perturbation:.0%}", DOWN_COLOUR, [row.down for row in rows]),
        (f"{study.perturbation:+.0%}", UP_COLOUR, [row.up for row in rows]),
    ):
        drawn = [(place, 100 * side.effect) for place, side in enumerate(sides) if side is not None]
        axes.barh([place for place, _ in drawn], [effect for _, effect in drawn], 0.7, color=colour, label=name)
    axes.set_yticks(range(len(rows)), [f"{row.path} = {row.value:g}" for row in rows], fontsize="small")
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set(xlabel="change of latency (%)")
    axes.set_title(f"{study.shape} on {study.preset}, {study.latency_us:,.2f} us", fontsize="medium")
    axes.grid(visible=True, axis="x", alpha=0.3)
    if rows:
        axes.legend(title="value moved by", fontsize="small", title_fontsize="small")
    undated: dict[str, Any] = {"Date": None} if kind == "svg" else {"Software": None}
    buffer = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "simfa"}):
        figure.savefig(buffer, format=kind, dpi=120, metadata=undated)
    return buffer.getvalue()
