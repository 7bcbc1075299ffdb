"""Which part of a timeline a figure shows."""

from simfa.errors import ReportError
from simfa.timeline import Timeline, read_timeline

__all__ = ["Timeline", "iterations_window", "read_timeline"]


def iterations_window(timeline: Timeline, track: str, label: str, skip: int, count: int) -> tuple[int, int]:
    """Return the cycles from the start of slice `skip` of `label` on a track over `count` slices to the next one.

    A consumer's softmax slices count the iterations of the main loop. Without such slices it is the whole timeline.
    """
    if not len(timeline):
        raise ReportError("the timeline holds no slice; record some SMs with --timeline")
    whole = (int(timeline.start_cycle.min()), int(timeline.end_cycle.max()))
    if track not in timeline.track_name or label not in timeline.slice_name:
        return whole
    here = (timeline.track == timeline.track_name.index(track)) & (timeline.name == timeline.slice_name.index(label))
    starts = timeline.start_cycle[here]
    if len(starts) < 2:
        return whole
    first = min(skip, len(starts) - 2)
    last = min(first + count, len(starts) - 1)
    return int(starts[first]), int(starts[last])
