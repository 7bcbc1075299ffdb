"""A timeline as a Perfetto trace (`.pftrace`) for ui.perfetto.dev; the core encodes it."""

from collections.abc import Callable, Iterator

import numpy as np

from simfa.simulate import _core
from simfa.timeline import Timeline, place_title
from simfa.timeline_lanes import laned

# Slices that are encoded at once: what is in memory beside the timeline.
CHUNK_SLICES = 1 << 20


def perfetto_trace(timeline: Timeline, progress: Callable[[int], object] = lambda _: None) -> Iterator[bytes]:
    """Yield the parts of a trace file: one group of rows a place, counters first, times in ns with cycles as arguments.

    Slices that overlap on a track are spread over rows. A counter without a value at a sample is left as it was.
    `progress` is told how many slices have been encoded.
    """
    rows = laned(timeline)
    to_ns = 1e9 / timeline.sm_clock_hz
    places = list(dict.fromkeys(name.rpartition("/")[0] for name in [*timeline.counter_name, *rows.track_name]))
    tracks = [place_title(place) for place in places]
    parents = [-1] * len(places)
    units = [""] * len(tracks)
    for name, unit in zip([*timeline.counter_name, *rows.track_name], _units(rows), strict=True):
        place, _, short = name.rpartition("/")
        parents.append(places.index(place))
        tracks.append(short)
        units.append(unit)
    first_counter = len(places)
    first_slice = first_counter + len(timeline.counter_name)
    yield _core.perfetto_head(
        tracks=tracks,
        parents=parents,
        units=units,
        counters=[first_counter <= index < first_slice for index in range(len(tracks))],
        names=rows.slice_name,
    )
    for number, values in enumerate(timeline.counter_value):
        known = ~np.isnan(values)
        yield _core.perfetto_counter(
            track=first_counter + number,
            cycles=np.ascontiguousarray(timeline.counter_cycle[known], np.int64),
            values=np.ascontiguousarray(values[known], np.float64),
            ns_per_cycle=to_ns,
        )
    track = (rows.track + first_slice).astype(np.int32)
    for begin in range(0, len(rows), CHUNK_SLICES):
        progress(begin)
        part = slice(begin, begin + CHUNK_SLICES)
        yield _core.perfetto_slices(
            track=np.ascontiguousarray(track[part]),
            name=np.ascontiguousarray(rows.name[part], np.int32),
            start=np.ascontiguousarray(rows.start_cycle[part], np.int64),
            end=np.ascontiguousarray(rows.end_cycle[part], np.int64),
            arg=np.ascontiguousarray(rows.arg[part], np.int32),
            ns_per_cycle=to_ns,
        )


def _units(rows: Timeline) -> list[str]:
    """Return the unit of each counter and, for slices, nothing."""
    return [*rows.counter_unit, *[""] * len(rows.track_name)]
