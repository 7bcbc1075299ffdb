"""Rows for viewers that show one slice at a time in a row: slices that overlap on a track are spread over lanes."""

import heapq

import msgspec
import numpy as np

from simfa.timeline import Timeline


def laned(timeline: Timeline) -> Timeline:
    """Return the same slices with as many tracks `<track>`, `<track> (2)`, ... as slices overlap at once.

    A slice takes the first lane that is free at its start.
    """
    names: list[str] = []
    track = np.zeros(len(timeline), np.int32)
    for number, name in enumerate(timeline.track_name):
        here = np.flatnonzero(timeline.track == number)
        here = here[np.lexsort((timeline.end_cycle[here], timeline.start_cycle[here]))]
        starts, ends = timeline.start_cycle[here], timeline.end_cycle[here]
        if (starts[1:] >= ends[:-1]).all():
            track[here] = len(names)
            names.append(name)
            continue
        lanes, count = _lanes(starts.tolist(), ends.tolist())
        track[here] = len(names) + np.array(lanes, np.int32)
        names += [name if lane == 0 else f"{name} ({lane + 1})" for lane in range(count)]
    return msgspec.structs.replace(timeline, track_name=names, track=track)


def _lanes(starts: list[int], ends: list[int]) -> tuple[list[int], int]:
    """Return the lane of each slice, in order of start, and how many lanes there are."""
    free: list[int] = []
    busy: list[tuple[int, int]] = []
    lanes = []
    count = 0
    for start, end in zip(starts, ends, strict=True):
        while busy and busy[0][0] <= start:
            heapq.heappush(free, heapq.heappop(busy)[1])
        if free:
            lane = heapq.heappop(free)
        else:
            lane, count = count, count + 1
        heapq.heappush(busy, (end, lane))
        lanes.append(lane)
    return lanes, count
