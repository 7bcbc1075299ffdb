"""The recorded slices of a run, `timeline.npz`, checked and cut to a window."""

import json
import zipfile
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from simfa.errors import ReportError

ARRAYS = ("track_name", "slice_name", "track", "name", "start_cycle", "end_cycle", "arg", "sm_clock_hz", "meta")


class Timeline(msgspec.Struct, frozen=True, kw_only=True):
    """Slices of the recorded SMs as parallel arrays of one length.

    `track` and `name` are indices into `track_name` and `slice_name`; cycles are those of the SM clock; `arg` is the
    tile or fill ordinal.
    """

    track_name: list[str]
    slice_name: list[str]
    track: NDArray[np.int32]
    name: NDArray[np.int32]
    start_cycle: NDArray[np.int64]
    end_cycle: NDArray[np.int64]
    arg: NDArray[np.int32]
    sm_clock_hz: float
    meta: dict[str, Any]

    def __len__(self) -> int:
        """Return the number of slices."""
        return len(self.track)

    def chosen(self, keep: NDArray[np.bool_]) -> "Timeline":
        """Return the slices where `keep` is true."""
        arrays = {name: getattr(self, name)[keep] for name in ("track", "name", "start_cycle", "end_cycle", "arg")}
        return msgspec.structs.replace(self, **arrays)

    def window(self, begin_cycle: int, end_cycle: int) -> "Timeline":
        """Return the slices that overlap `[begin_cycle, end_cycle)`, at their full length."""
        return self.chosen((self.end_cycle > begin_cycle) & (self.start_cycle < end_cycle))

    def sm(self, number: int) -> "Timeline":
        """Return the slices of one SM; raises `ReportError` when it was not recorded."""
        prefix = f"sm{number}/"
        tracks = [index for index, name in enumerate(self.track_name) if name.startswith(prefix)]
        if not tracks:
            have = sorted({name.split("/")[0] for name in self.track_name})
            raise ReportError(f"SM {number} was not recorded; the timeline holds {', '.join(have)}")
        return self.chosen(np.isin(self.track, tracks))


def read_timeline(path: str | Path) -> Timeline:
    """Return a `timeline.npz`; raises `ReportError` when it is no timeline or its arrays do not fit together."""
    file = Path(path)
    try:
        with np.load(file, allow_pickle=False) as arrays:
            missing = [name for name in ARRAYS if name not in arrays]
            if missing:
                raise ReportError(f"{file}: array {', '.join(missing)} is missing; expected a timeline.npz of simulate")
            data = {name: arrays[name] for name in ARRAYS}
    except OSError as error:
        raise ReportError(f"{file}: cannot be read: {error}") from error
    except (ValueError, zipfile.BadZipFile) as error:
        raise ReportError(f"{file}: not a timeline.npz: {error}") from error
    columns = ("track", "name", "start_cycle", "end_cycle", "arg")
    if len({len(data[name]) for name in columns}) != 1:
        raise ReportError(f"{file}: arrays {', '.join(columns)} differ in length")
    if len(data["track"]) and (
        data["track"].max() >= len(data["track_name"]) or data["name"].max() >= len(data["slice_name"])
    ):
        raise ReportError(f"{file}: a slice names a track or a label that does not exist")
    if (data["end_cycle"] < data["start_cycle"]).any():
        raise ReportError(f"{file}: a slice ends before it starts")
    return Timeline(
        track_name=[str(name) for name in data["track_name"]],
        slice_name=[str(name) for name in data["slice_name"]],
        **{name: data[name] for name in columns},
        sm_clock_hz=float(data["sm_clock_hz"]),
        meta=json.loads(str(data["meta"])),
    )


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
