"""A timeline as the data of the page's Gantt chart: slices by track, and how busy the tensor pipe was over the run."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from simfa.report.attribution import REASONS
from simfa.report.gantt import main_loop_window
from simfa.report.palette import reason_colour
from simfa.timeline import Timeline

# A slice takes about 12 characters of the page.
MAX_SLICES = 60_000
OVERVIEW_BINS = 600
MAX_SAMPLES = 2_000
# Drawn as blank space: the role does not exist then.
BLANK = ("launch", "tail")
# Units that the chart shows first; stages, barriers and the like are asked for.
MAIN_UNITS = ("producer", "consumer", "tensor", "tma")

# What a label says on a track that no warpgroup owns, by the unit's first word.
_MEANS: dict[str, dict[str, str]] = {
    "tensor": {
        "S": "computing S = Q K^T of one block",
        "O": "computing O += P V of one block",
        "drain": "draining after a WGMMA group: no new group may start",
    },
    "tma": {
        "K": "a K block on its way, from the first line's request to the last line's arrival",
        "V": "a V block on its way, from the first line's request to the last line's arrival",
        "Q": "the Q block of a tile on its way",
        "O": "the O block of a tile on its way out",
    },
    "tma_issue": {"store": "the TMA engine sends the lines of a store"},
    "stage": {"loading": "the stage fills", "full": "the stage is full, until consumers release it"},
    "barrier": {"waiting": "a warpgroup waits at the barrier", "arrived": "signals have arrived, nobody waits"},
}
# What `arg` counts on a track, by the unit's first word.
_COUNTS = {"tensor": "warpgroup", "tma": "fill", "tma_issue": "fill", "stage": "fill", "barrier": "role or signals"}


def gantt_view(timeline: Timeline) -> dict[str, Any]:
    """Return what the page's chart draws, as plain lists and numbers; cycles are those of the SM clock.

    Starts are differences to the start before, so that a slice takes few characters. Above `MAX_SLICES` the slices are
    those around the first turns of the main loop; the overview always spans the whole recording.
    """
    begin, end = int(timeline.start_cycle.min()), int(timeline.end_cycle.max())
    places = timeline.places()
    window = main_loop_window(timeline, places[0])
    shown = _fitting(timeline, window)
    return {
        "clock_hz": timeline.sm_clock_hz,
        "begin": begin,
        "end": end,
        "shown": [int(shown.start_cycle.min()), int(shown.end_cycle.max())],
        "complete": len(shown) == len(timeline),
        "window": list(window),
        "places": places,
        "labels": [_label(name) for name in timeline.slice_name],
        "tracks": [_track(shown, number, name) for number, name in enumerate(timeline.track_name)],
        "overview": {place: _busy(timeline, place, begin, end) for place in places},
        "counters": _counters(timeline),
    }


def _fitting(timeline: Timeline, window: tuple[int, int]) -> Timeline:
    """Return the timeline, cut around `window` where it has too many slices for a page."""
    if len(timeline) <= MAX_SLICES:
        return timeline
    centre = (window[0] + window[1]) // 2
    far = np.maximum(np.abs(timeline.start_cycle - centre), np.abs(timeline.end_cycle - centre))
    return timeline.chosen(far < np.partition(far, MAX_SLICES)[MAX_SLICES])


def _label(name: str) -> dict[str, Any]:
    """Return a label with its colour; a reason with its words."""
    reason = REASONS.get(name)
    return {
        "name": name,
        "means": reason.means if reason else "",
        "colour": reason_colour(name),
        "blank": name in BLANK,
    }


def _track(shown: Timeline, number: int, name: str) -> dict[str, Any]:
    """Return one track's slices in the order of their starts."""
    here = np.flatnonzero(shown.track == number)
    here = here[np.argsort(shown.start_cycle[here], kind="stable")]
    place, _, unit = name.rpartition("/")
    starts = shown.start_cycle[here]
    kind = _kind(unit)
    return {
        "place": place,
        "unit": unit,
        "main": unit.startswith(MAIN_UNITS) and kind != "tma_issue",
        "counts": _COUNTS.get(kind, "tile"),
        "means": _MEANS.get(kind, {}),
        "start": np.diff(starts, prepend=0).tolist(),
        "length": (shown.end_cycle[here] - starts).tolist(),
        "label": shown.name[here].tolist(),
        "arg": shown.arg[here].tolist(),
    }


def _kind(unit: str) -> str:
    """Return what a unit is: `K stage 0` is a stage, `barrier 9` a barrier."""
    words = unit.split()
    return "stage" if "stage" in words else words[0]


def _busy(timeline: Timeline, place: str, begin: int, end: int) -> list[int]:
    """Return how busy the tensor pipe of a place was, in thousandths, for equal bins of the recording."""
    bins = min(OVERVIEW_BINS, max(1, end - begin))
    shares = busy_shares(timeline, place, np.linspace(begin, end, bins + 1))
    return np.rint(shares * 1000).astype(int).tolist()  # type: ignore[no-any-return]


def busy_shares(timeline: Timeline, place: str, edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how much of the cycles between one edge and the next the tensor pipe of a place computes, 0 to 1."""
    pipe = timeline.of_track(f"{place}/tensor")
    computing = np.array([label != "drain" for label in pipe.labels()], bool)
    done = _busy_before(pipe.start_cycle[computing], pipe.end_cycle[computing], edges)
    shares: NDArray[np.float64] = np.clip(np.diff(done) / np.diff(edges), 0, 1)
    return shares


def _busy_before(start: NDArray[np.int64], end: NDArray[np.int64], at: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the cycles that slices spent before each of the cycles `at`; slices that overlap count each."""
    spent = np.zeros(len(at))
    for edges, sign in ((np.sort(start), 1.0), (np.sort(end), -1.0)):
        count = np.searchsorted(edges, at, side="left")
        total = np.concatenate([[0.0], np.cumsum(edges.astype(float))])[count]
        spent += sign * (count * at - total)
    return spent


def _counters(timeline: Timeline) -> list[dict[str, Any]]:
    """Return the sampled counters, thinned to what a page can show; recordings of older runs have none."""
    step = -(-len(timeline.counter_cycle) // MAX_SAMPLES) or 1
    return [
        {
            "name": name,
            "unit": unit,
            "cycle": timeline.counter_cycle[::step].tolist(),
            "value": [None if np.isnan(value) else round(float(value), 4) for value in row[::step]],
        }
        for name, unit, row in zip(timeline.counter_name, timeline.counter_unit, timeline.counter_value, strict=True)
    ]
