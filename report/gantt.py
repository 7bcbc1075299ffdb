"""Figure 7: what producer, consumers and tensor pipe of one SM do over several main-loop iterations."""

import io
import re
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec
import numpy as np

from simfa.errors import ReportError
from simfa.report.attribution import REASONS
from simfa.report.palette import is_dark, reason_colour, slice_colour
from simfa.timeline import Timeline
from simfa.workload import AttentionShape

# Reasons drawn as blank space: nothing to see there.
_BLANK = {"launch", "tail", "drain"}
_MAX_SLICES = 20_000
# Spans narrower than this part of the axis are drawn with their neighbour: a line of white edges says nothing.
_THINNEST = 1 / 1200
# The tensor pipe is coloured by the warpgroup it works for, so that the turns show: S and O of each.
_WARPGROUP_COLOURS = {1: ("#228833", "#8fd19e"), 2: ("#4477aa", "#a9c6e6"), 3: ("#aa3377", "#dfa8c6")}
_STAGE_STATES = ("loading", "full")
# Reasons that alternate with every WGMMA of a group are one bar, whoever stamped them.
_WGMMA = {"wgmma_issue", "tensor_busy"}
_TITLES = {"tensor": "tensor core", "tma": "TMA loads", "tma_issue": "TMA engine"}


class _Span(NamedTuple):
    """A bar: cycles, colour, what stands in it, what stands for it in the legend."""

    start: int
    end: int
    colour: str
    text: str
    legend: str


def gantt_chart(timeline: Timeline, place: str, window: tuple[int, int] | None = None, kind: str = "png") -> bytes:
    """Return a chart of one place (`sm0`, `cta7`) as `png` or `svg`: cycles below, us above; byte for byte repeatable.

    Without a window it shows six turns of the first consumer's main loop. Raises `ReportError` when matplotlib is
    missing or the window holds nothing or too much.
    """
    try:
        import matplotlib
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
        from matplotlib.patches import Patch
    except ImportError as error:
        raise ReportError(f"the Gantt chart needs matplotlib: pip install 'simfa[report]' ({error})") from error
    begin, end = window or main_loop_window(timeline, place)
    shown = timeline.of_places({place}).window(begin, end)
    title = place.replace("sm", "SM ").replace("cta", "CTA ")
    if not len(shown):
        raise ReportError(f"{title} has no slice between cycles {begin} and {end}")
    if len(shown) > _MAX_SLICES:
        raise ReportError(f"{len(shown)} slices are too many for one figure; narrow it with --window BEGIN:END")
    rows = [number for number in _rows(shown, place) if (shown.track == number).any()]
    heights = [0.42 if " stage " in shown.track_name[number] else 0.84 for number in rows]
    figure = Figure(figsize=(13, 0.62 * sum(heights) + 2.0), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    axes: Any = figure.add_subplot()
    legend: dict[str, str] = {}
    top, middles, names = 0.0, [], []
    for number, height in zip(rows, heights, strict=True):
        unit = shown.track_name[number].rpartition("/")[2]
        issued = _issued(shown, place) if unit == "producer" else []
        for span in _spans(shown, number, unit, begin, end):
            legend.setdefault(span.legend, span.colour)
            _draw(axes, span, top, height, (begin, end), 0.25 if issued else 0.5)
        for span in issued:
            legend.setdefault(span.legend, span.colour)
            _draw(axes, span, top + height / 2, height / 2, (begin, end))
        middles.append(top + height / 2)
        names.append(_TITLES.get(unit, unit.replace("consumer", "consumer ")))
        top += height + 0.16
    axes.set_yticks(middles, names)
    axes.set_ylim(top, -0.16)
    axes.set_xlim(begin, end)
    axes.set_xlabel("SM cycle")
    axes.xaxis.set_major_formatter(lambda cycle, _: f"{cycle:,.0f}")
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["left", "right"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    to_us = 1e6 / timeline.sm_clock_hz
    upper = axes.secondary_xaxis("top", functions=(lambda cycle: cycle * to_us, lambda us: us / to_us))
    upper.set_xlabel(f"{_shape(timeline)}{title}, time in µs at {timeline.sm_clock_hz / 1e6:,.0f} MHz")
    handles = [Patch(facecolor=colour, label=text) for text, colour in legend.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=7, frameon=False, fontsize=8)
    buffer = io.BytesIO()
    metadata = {"Software": None} if kind == "png" else {"Date": None}
    with matplotlib.rc_context({"svg.hashsalt": "simfa", "svg.fonttype": "none"}):
        figure.savefig(buffer, format=kind, metadata=metadata)
    return buffer.getvalue()


def _shape(timeline: Timeline) -> str:
    """Return the shape that a timeline is of, ready to stand in a title."""
    shape = timeline.meta.get("shape")
    return "" if shape is None else f"{msgspec.convert(shape, AttentionShape).describe()}: "


def main_loop_window(timeline: Timeline, place: str, iterations: int = 6) -> tuple[int, int]:
    """Return the cycles of so many turns of a place's main loop, or of what there is of them; else all cycles.

    Turns are those of the first consumer, logged or simulated. The cold start and the edges of tiles make such a
    stretch longer: it is one with the length of the lower quartile. Raises `ReportError` for a timeline without slices.
    """
    if not len(timeline):
        raise ReportError("the timeline holds no slice; record some SMs with --timeline")
    turns = _pipe_turns(timeline.of_track(f"{place}/tensor")) or _softmax_turns(timeline, place)
    if len(turns) < 2:
        return int(timeline.start_cycle.min()), int(timeline.end_cycle.max())
    count = min(iterations, len(turns) - 1)
    lengths = [end - start for start, end in zip(turns, turns[count:], strict=False)]
    typical = [n for n, length in enumerate(lengths) if length == sorted(lengths)[(len(lengths) - 1) // 4]]
    first = typical[len(typical) // 2]
    return turns[first], turns[first + count]


def _pipe_turns(pipe: Timeline) -> list[int]:
    """Return the cycles at which the tensor pipe begins S for the first consumer after an O for it."""
    labels = pipe.labels()
    mine = [n for n in range(len(pipe)) if pipe.arg[n] == 1 and labels[n] in ("S", "O")]
    return [int(pipe.start_cycle[n]) for m, n in pairwise(mine) if labels[m] + labels[n] == "OS"]


def _softmax_turns(timeline: Timeline, place: str) -> list[int]:
    """Return the cycles at which the first consumer begins softmax, but for the first: a log has no tensor pipe."""
    name = next((name for name in timeline.track_name if name.startswith(f"{place}/") and "consumer1" in name), "")
    consumer = timeline.of_track(name)
    begins = zip(consumer.start_cycle.tolist(), consumer.labels(), strict=True)
    return [start for start, label in begins if label == "softmax"][1:]


def _rows(shown: Timeline, place: str) -> list[int]:
    """Return the tracks to draw, in order: roles, tensor pipe, K and V stages, or else all that there are."""
    mine = [number for number, name in enumerate(shown.track_name) if name.startswith(f"{place}/")]
    units = {number: shown.track_name[number].rpartition("/")[2] for number in mine}
    # Beside a log the units are called `logged producer`, `simulated consumer1 on SM 3`.
    main = [n for n in mine if re.match(r"(logged |simulated )?(producer|consumer|tensor)", units[n])]
    stages = [n for n in mine if units[n].startswith(("K stage", "V stage"))]
    loads = [n for n in mine if units[n] == "tma"] if not stages else []
    return [*main, *stages, *loads] or mine


def _spans(shown: Timeline, number: int, unit: str, begin: int, end: int) -> list[_Span]:
    """Return the bars of one track; those too thin to see go with the bar before, if they touch."""
    thinnest = (end - begin) * _THINNEST
    spans: list[_Span] = []
    for index in np.flatnonzero(shown.track == number):
        label = shown.slice_name[shown.name[index]]
        start, stop = int(shown.start_cycle[index]), int(shown.end_cycle[index])
        if label in _BLANK:
            continue
        span = _span(unit, label, start, stop, int(shown.arg[index]))
        before = spans[-1] if spans else None
        if before is not None and before.end >= start and (before.legend == span.legend or stop - start < thinnest):
            spans[-1] = before._replace(end=stop)
        elif before is not None and before.end >= start and before.end - before.start < thinnest:
            spans[-1] = span._replace(start=before.start)
        else:
            spans.append(span)
    return spans


def _issued(shown: Timeline, place: str) -> list[_Span]:
    """Return the copies that the TMA engine sends for the producer, which itself is done with them at once."""
    sent = shown.of_track(f"{place}/tma_issue")
    loads = zip(sent.start_cycle.tolist(), sent.end_cycle.tolist(), sent.labels(), strict=True)
    return [_Span(a, b, slice_colour(name), name, f"TMA sends {name}") for a, b, name in loads if name != "store"]


def _span(unit: str, label: str, start: int, end: int, arg: int) -> _Span:
    """Return the bar of one slice."""
    if unit.endswith("tensor") and arg in _WARPGROUP_COLOURS:
        colour = _WARPGROUP_COLOURS[arg][label != "S"]
        return _Span(start, end, colour, f"{label} {arg}", f"{'QK' if label == 'S' else 'PV'} of consumer {arg}")
    if label in _STAGE_STATES:
        return _Span(start, end, slice_colour(label), "", f"stage {label}")
    if label in _WGMMA:
        return _Span(start, end, reason_colour("tensor_busy"), "WGMMA", "WGMMA issue and queue")
    if label in REASONS:
        return _Span(start, end, reason_colour(label), label.replace("_", " "), label.replace("_", " "))
    return _Span(start, end, slice_colour(label), label, label)


def _draw(axes: Any, span: _Span, top: float, height: float, window: tuple[int, int], text_at: float = 0.5) -> None:
    """Draw one bar, with its text where that fits, so far down the bar."""
    length = span.end - span.start
    axes.broken_barh([(span.start, length)], (top, height), facecolors=span.colour, edgecolor="white", linewidth=0.3)
    begin, end = max(span.start, window[0]), min(span.end, window[1])
    if end - begin > (window[1] - window[0]) * (0.0068 * len(span.text) + 0.002):
        colour = "white" if is_dark(span.colour) else "black"
        place = (begin + end) / 2, top + text_at * height
        axes.text(*place, span.text, ha="center", va="center", fontsize=7, color=colour, clip_on=True)
