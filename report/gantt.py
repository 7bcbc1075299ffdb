"""Figure 7: what the roles, the tensor pipe and the TMA engine of one SM do over several main-loop iterations."""

import io
from typing import Any

import numpy as np

from simfa.errors import ReportError
from simfa.report.attribution import REASONS
from simfa.report.palette import slice_colour
from simfa.report.timeline import Timeline, iterations_window

# Reasons drawn as blank space: nothing to see there.
_BLANK = {"launch", "tail"}
_MAX_SLICES = 20_000


def default_window(timeline: Timeline, sm: int, iterations: int = 6) -> tuple[int, int]:
    """Return the cycles of `iterations` turns of consumer 1's main loop, past the first two."""
    return iterations_window(timeline, f"sm{sm}/consumer1", "softmax", 2, iterations)


def gantt_png(timeline: Timeline, sm: int, window: tuple[int, int] | None = None) -> bytes:
    """Return a PNG of one SM in a window of cycles; the same timeline gives the same bytes.

    Raises `ReportError` when matplotlib is missing, the SM was not recorded, or the window holds nothing or too much.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
        from matplotlib.patches import Patch
    except ImportError as error:
        raise ReportError(f"the Gantt chart needs matplotlib: pip install 'simfa[report]' ({error})") from error
    begin, end = window or default_window(timeline, sm)
    shown = timeline.sm(sm).window(begin, end)
    if not len(shown):
        raise ReportError(f"SM {sm} has no slice between cycles {begin} and {end}")
    if len(shown) > _MAX_SLICES:
        raise ReportError(f"{len(shown)} slices are too many for one figure; narrow it with --window BEGIN:END")
    tracks = [index for index, name in enumerate(shown.track_name) if name.startswith(f"sm{sm}/")]
    figure = Figure(figsize=(13, 0.62 * len(tracks) + 1.6), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    axes: Any = figure.add_subplot()
    for row, track in enumerate(tracks):
        _draw_track(axes, shown, track, row, begin, end)
    names = [shown.track_name[track].split("/", 1)[1] for track in tracks]
    axes.set_yticks(range(len(tracks)), names)
    axes.set_ylim(len(tracks) - 0.4, -0.6)
    axes.set_xlim(begin, end)
    axes.set_xlabel("SM cycle")
    to_us = 1e6 / timeline.sm_clock_hz
    upper = axes.secondary_xaxis("top", functions=(lambda cycle: cycle * to_us, lambda us: us / to_us))
    upper.set_xlabel("us")
    figure.legend(handles=_legend(shown, Patch), loc="outside lower center", ncols=6, frameon=False, fontsize=8)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()


def _draw_track(axes: Any, shown: Timeline, track: int, row: int, begin: int, end: int) -> None:
    """Draw the slices of one track, with labels where they fit."""
    here = np.flatnonzero(shown.track == track)
    by_colour: dict[str, list[tuple[int, int]]] = {}
    for index in here:
        label = shown.slice_name[shown.name[index]]
        if label in _BLANK:
            continue
        start, stop = int(shown.start_cycle[index]), int(shown.end_cycle[index])
        by_colour.setdefault(slice_colour(label), []).append((start, stop - start))
        if min(stop, end) - max(start, begin) > (end - begin) * 0.0085 * len(label):
            middle = (max(start, begin) + min(stop, end)) / 2
            axes.text(middle, row, label, ha="center", va="center", fontsize=7, color="black")
    for colour, spans in by_colour.items():
        axes.broken_barh(spans, (row - 0.4, 0.8), facecolors=colour, edgecolor="white", linewidth=0.3)


def _legend(shown: Timeline, patch: Any) -> list[Any]:
    """Return one legend entry for each group or label that occurs."""
    entries: dict[str, str] = {}
    for number in sorted(set(shown.name.tolist())):
        label = shown.slice_name[number]
        if label not in _BLANK:
            entries.setdefault(REASONS[label].group if label in REASONS else label, slice_colour(label))
    return [patch(facecolor=colour, label=text) for text, colour in entries.items()]
