"""A timeline as Chrome trace events, for chrome://tracing, Speedscope and Perfetto's legacy importer."""

import json
import math

from simfa.errors import ReportError
from simfa.timeline import Timeline, place_title
from simfa.timeline_lanes import laned

MAX_SLICES = 200_000


def chrome_json(timeline: Timeline) -> str:
    """Return the slices as Chrome JSON: one process an SM, one thread a track, times in microseconds.

    Cycles are kept exactly in `args`; slices that overlap on a track are spread over threads. Raises `ReportError`
    above `MAX_SLICES`, where JSON viewers give up.
    """
    if len(timeline) > MAX_SLICES:
        raise ReportError(
            f"{len(timeline)} slices are too many for Chrome JSON (limit {MAX_SLICES}); narrow it with --window, --sm "
            "or --tile, or write a .pftrace"
        )
    rows = laned(timeline)
    to_us = 1e6 / timeline.sm_clock_hz
    events: list[dict[str, object]] = []
    used = sorted(set(rows.track.tolist()))
    process_of = _processes([*(rows.track_name[track] for track in used), *timeline.counter_name])
    places = {track: process_of[rows.track_name[track].rpartition("/")[0]] for track in used}
    for place, process in process_of.items():
        events.append(_name_event("process_name", process, 0, place_title(place)))
    for track in used:
        unit = rows.track_name[track].rpartition("/")[2]
        events.append(_name_event("thread_name", places[track], track, unit))
        sort = {"name": "thread_sort_index", "ph": "M", "pid": places[track], "tid": track}
        events.append(sort | {"args": {"sort_index": track}})
    columns = (rows.track, rows.name, rows.start_cycle, rows.end_cycle, rows.arg)
    for track, name, start, end, arg in zip(*(column.tolist() for column in columns), strict=True):
        events.append(
            {
                "name": rows.slice_name[name],
                "ph": "X",
                "pid": places[track],
                "tid": track,
                "ts": start * to_us,
                "dur": (end - start) * to_us,
                "args": {"start_cycle": start, "cycles": end - start, "ordinal": arg},
            }
        )
    events += _counter_events(timeline, process_of, to_us)
    document = {
        "traceEvents": events,
        "displayTimeUnit": "ns",
        "otherData": {"sm_clock_hz": timeline.sm_clock_hz, "meta": timeline.meta},
    }
    return json.dumps(document, sort_keys=True) + "\n"


def _processes(names: list[str]) -> dict[str, int]:
    """Return a process number for each place: the SM's or CTA's own number, for others the next one that is free."""
    places = list(dict.fromkeys(name.rpartition("/")[0] for name in names))
    numbers = {place: int(place.lstrip("smcta")) for place in places if place.lstrip("smcta").isdecimal()}
    for place in places:
        numbers.setdefault(place, max(numbers.values(), default=-1) + 1)
    return numbers


def _counter_events(timeline: Timeline, process_of: dict[str, int], to_us: float) -> list[dict[str, object]]:
    """Return the samples of the counters; a rate that had nothing to count has none."""
    cycles = timeline.counter_cycle.tolist()
    return [
        {
            "name": name.rpartition("/")[2],
            "ph": "C",
            "pid": process_of[name.rpartition("/")[0]],
            "ts": cycle * to_us,
            "args": {unit: value},
        }
        for name, unit, values in zip(
            timeline.counter_name, timeline.counter_unit, timeline.counter_value.tolist(), strict=True
        )
        for cycle, value in zip(cycles, values, strict=True)
        if not math.isnan(value)
    ]


def _name_event(kind: str, process: int, thread: int, name: str) -> dict[str, object]:
    """Return a metadata event that names a process or a thread."""
    return {"name": kind, "ph": "M", "pid": process, "tid": thread, "args": {"name": name}}
