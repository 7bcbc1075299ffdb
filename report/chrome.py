"""A timeline as Chrome trace events, for chrome://tracing, Speedscope and Perfetto's legacy importer."""

import json

from simfa.errors import ReportError
from simfa.report.timeline import Timeline

MAX_SLICES = 200_000


def chrome_json(timeline: Timeline) -> str:
    """Return the slices as Chrome JSON: one process an SM, one thread a track, times in microseconds.

    Cycles are kept exactly in `args`. Raises `ReportError` above `MAX_SLICES`, where JSON viewers give up.
    """
    if len(timeline) > MAX_SLICES:
        raise ReportError(
            f"{len(timeline)} slices are too many for Chrome JSON (limit {MAX_SLICES}); narrow it with --window or --sm"
        )
    to_us = 1e6 / timeline.sm_clock_hz
    events: list[dict[str, object]] = []
    used = sorted(set(timeline.track.tolist()))
    places = {track: _place(timeline.track_name[track]) for track in used}
    for track in used:
        process, name = places[track]
        events.append(_name_event("process_name", process, track, f"SM {process}"))
        events.append(_name_event("thread_name", process, track, name))
        sort = {"name": "thread_sort_index", "ph": "M", "pid": process, "tid": track, "args": {"sort_index": track}}
        events.append(sort)
    columns = (timeline.track, timeline.name, timeline.start_cycle, timeline.end_cycle, timeline.arg)
    for track, name, start, end, arg in zip(*(column.tolist() for column in columns), strict=True):
        events.append(
            {
                "name": timeline.slice_name[name],
                "ph": "X",
                "pid": places[track][0],
                "tid": track,
                "ts": start * to_us,
                "dur": (end - start) * to_us,
                "args": {"start_cycle": start, "cycles": end - start, "ordinal": arg},
            }
        )
    document = {
        "traceEvents": events,
        "displayTimeUnit": "ns",
        "otherData": {"sm_clock_hz": timeline.sm_clock_hz, "meta": timeline.meta},
    }
    return json.dumps(document, sort_keys=True) + "\n"


def _place(track_name: str) -> tuple[int, str]:
    """Return the SM number and the unit of a track such as `sm0/consumer1`."""
    sm, _, unit = track_name.partition("/")
    if not sm.removeprefix("sm").isdigit() or not unit:
        raise ReportError(f"track {track_name!r} is not sm<number>/<unit>")
    return int(sm.removeprefix("sm")), unit


def _name_event(kind: str, process: int, thread: int, name: str) -> dict[str, object]:
    """Return a metadata event that names a process or a thread."""
    return {"name": kind, "ph": "M", "pid": process, "tid": thread, "args": {"name": name}}
