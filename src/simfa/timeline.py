"""The timeline of a run: what each track did from when to when, counters over time, and the file `timeline.npz`.

Tracks are called `<place>/<unit>`: place `sm3`, or `cta7` with a source before it where two timelines are shown
together. Units of a simulated SM:

=================== =================================================== ==========================================
unit                slices                                              `arg`
=================== =================================================== ==========================================
producer, consumer1 why the role did not go on; they join without gaps  tile of the CTA
tensor              the pipe works on an accumulator, or `drain`s       role
tma                 a load, from its start to its last line's arrival   fill of the ring
tma_issue           the engine sends the lines of a copy, or `store`    fill, or store group
K stage 0, ...      `loading` until all bytes are there, then `full`    fill
barrier 9, ...      a role is `waiting`, or signals have `arrived`      role, or signals
=================== =================================================== ==========================================
"""

import json
import math
import os
import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from simfa.errors import ReportError
from simfa.files import atomic_write

SLICE_COLUMNS = ("track", "name", "start_cycle", "end_cycle", "arg")
TILE_COLUMNS = ("tile_sm", "tile_ordinal", "tile_m_block", "tile_head", "tile_batch", "tile_begin_cycle")
_NAMES = ("track_name", "slice_name")
_COUNTERS = ("counter_name", "counter_unit", "counter_cycle", "counter_value")
# Dimensions and kinds of the arrays that are no lists of whole numbers.
_KINDS = {
    **dict.fromkeys((*_NAMES, "counter_name", "counter_unit"), (1, "U")),
    "counter_value": (2, "f"),
    "sm_clock_hz": (0, "f"),
    "meta": (0, "U"),
}
REQUIRED = (*_NAMES, *SLICE_COLUMNS, "sm_clock_hz", "meta")

# What numpy raises for an array file whose bytes are not what they were.
_DAMAGED = (
    ValueError,
    TypeError,
    EOFError,
    SyntaxError,
    RuntimeError,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)

Integers = NDArray[np.int32]
Cycles = NDArray[np.int64]
Floats = NDArray[np.float64]


def _none(kind: type[np.generic]) -> Any:
    return msgspec.field(default_factory=lambda: np.zeros(0, kind))


class Timeline(msgspec.Struct, frozen=True, kw_only=True):
    """Slices as parallel arrays of one length, sorted by track and start; counters; the tiles that recorded CTAs began.

    `track` and `name` are indices into `track_name` and `slice_name`; cycles are those of the SM clock. Counters share
    the samples' cycles `counter_cycle`, shape (samples,); `counter_value`, shape (counters, samples), holds what stood
    at that cycle, or for rates the mean up to the next sample; NaN where a rate has nothing to count.
    """

    track_name: list[str]
    slice_name: list[str]
    track: Integers
    name: Integers
    start_cycle: Cycles
    end_cycle: Cycles
    arg: Integers
    sm_clock_hz: float
    meta: dict[str, Any] = {}
    counter_name: list[str] = []
    counter_unit: list[str] = []
    counter_cycle: Cycles = _none(np.int64)
    counter_value: Floats = msgspec.field(default_factory=lambda: np.zeros((0, 0)))
    tile_sm: Integers = _none(np.int32)
    tile_ordinal: Integers = _none(np.int32)
    tile_m_block: Integers = _none(np.int32)
    tile_head: Integers = _none(np.int32)
    tile_batch: Integers = _none(np.int32)
    tile_begin_cycle: Cycles = _none(np.int64)

    def __len__(self) -> int:
        """Return the number of slices."""
        return len(self.track)

    def chosen(self, keep: NDArray[np.bool_]) -> "Timeline":
        """Return the slices where `keep` is true."""
        return msgspec.structs.replace(self, **{name: getattr(self, name)[keep] for name in SLICE_COLUMNS})

    def window(self, begin_cycle: int, end_cycle: int) -> "Timeline":
        """Return the slices that overlap `[begin_cycle, end_cycle)`, at their full length, and the samples in it."""
        cut = self.chosen((self.end_cycle > begin_cycle) & (self.start_cycle < end_cycle))
        inside = (self.counter_cycle >= begin_cycle) & (self.counter_cycle < end_cycle)
        return msgspec.structs.replace(
            cut, counter_cycle=self.counter_cycle[inside], counter_value=self.counter_value[:, inside]
        )

    def places(self) -> list[str]:
        """Return the places that have a track, in the order of the tracks."""
        return list(dict.fromkeys(name.rpartition("/")[0] for name in self.track_name))

    def sm(self, number: int) -> "Timeline":
        """Return the slices, counters and tiles of one SM; raises `ReportError` when it was not recorded."""
        if f"sm{number}" not in self.places():
            have = ", ".join(sorted(self.places()))
            raise ReportError(f"SM {number} was not recorded; the timeline holds {have}")
        return self.of_places({f"sm{number}"})

    def of_places(self, places: set[str]) -> "Timeline":
        """Return the slices, counters and tiles of some places, with the counters that belong to no SM."""
        tracks = [i for i, name in enumerate(self.track_name) if name.rpartition("/")[0] in places]
        owners = [name.rpartition("/")[0] for name in self.counter_name]
        rows = [i for i, owner in enumerate(owners) if owner in places or not owner.startswith("sm")]
        tiles = np.isin(self.tile_sm, [int(place.lstrip("smcta")) for place in places])
        return msgspec.structs.replace(
            self.chosen(np.isin(self.track, tracks)),
            counter_name=[self.counter_name[i] for i in rows],
            counter_unit=[self.counter_unit[i] for i in rows],
            counter_value=self.counter_value[rows],
            **{name: getattr(self, name)[tiles] for name in TILE_COLUMNS},
        )

    def of_track(self, name: str) -> "Timeline":
        """Return the slices of the track of that name; none if there is no such track."""
        number = self.track_name.index(name) if name in self.track_name else -1
        return self.chosen(self.track == number)

    def labels(self) -> list[str]:
        """Return the name of each slice."""
        return [self.slice_name[name] for name in self.name.tolist()]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write `timeline.npz`, atomically."""
        lists: dict[str, Any] = {name: np.array(getattr(self, name), np.str_) for name in (*_NAMES, *_COUNTERS[:2])}
        arrays: dict[str, Any] = {name: getattr(self, name) for name in (*SLICE_COLUMNS, *_COUNTERS[2:], *TILE_COLUMNS)}
        with atomic_write(path, "wb") as handle:
            np.savez_compressed(
                handle,
                **lists,
                **arrays,
                sm_clock_hz=np.float64(self.sm_clock_hz),
                meta=np.array(json.dumps(self.meta, sort_keys=True)),
            )


def place_title(place: str) -> str:
    """Return the heading of a place: `SM 3` of `sm3`, `CTA 7` of `cta7`, any other as it is."""
    for prefix in ("sm", "cta"):
        if place.removeprefix(prefix).isdecimal() and place.startswith(prefix):
            return f"{prefix.upper()} {place.removeprefix(prefix)}"
    return place


def read_timeline(path: str | Path) -> Timeline:
    """Return a `timeline.npz`; raises `ReportError` when it is no timeline or its arrays do not fit together."""
    file = Path(path)
    try:
        with file.open("rb") as handle:
            if not zipfile.is_zipfile(handle):
                raise ReportError(f"{file}: not a timeline.npz; expected what simulate or predict --timeline wrote")
        with np.load(file, allow_pickle=False) as arrays:
            missing = [name for name in REQUIRED if name not in arrays]
            if missing:
                raise ReportError(f"{file}: array {', '.join(missing)} is missing; expected a timeline.npz of simulate")
            optional = [name for name in (*_COUNTERS, *TILE_COLUMNS) if name in arrays]
            data = {name: arrays[name] for name in (*REQUIRED, *optional)}
            meta = json.loads(str(data["meta"]))
    except OSError as error:
        raise ReportError(f"{file}: cannot be read: {error}") from error
    except _DAMAGED as error:
        raise ReportError(f"{file}: damaged, record it again: {error}") from error
    _check(file, data, meta)
    lists = {name: [str(text) for text in data[name]] for name in (*_NAMES, *_COUNTERS[:2]) if name in data}
    rest = {name: data[name] for name in (*SLICE_COLUMNS, *_COUNTERS[2:], *TILE_COLUMNS) if name in data}
    return Timeline(**(lists | rest), sm_clock_hz=float(data["sm_clock_hz"]), meta=meta)


def _check(file: Path, data: dict[str, NDArray[Any]], meta: object) -> None:
    """Refuse arrays that do not fit together."""
    for name, array in data.items():
        dimensions, kinds = _KINDS.get(name, (1, "iu"))
        if array.ndim != dimensions or array.dtype.kind not in kinds:
            raise ReportError(
                f"{file}: array {name} has {array.ndim} dimensions of {array.dtype}; simulate writes others"
            )
    if not isinstance(meta, dict):
        raise ReportError(f"{file}: meta is no JSON object")
    if not 0 < float(data["sm_clock_hz"]) < math.inf:
        raise ReportError(f"{file}: sm_clock_hz is {float(data['sm_clock_hz'])}; expected a clock above zero")
    if len({len(data[name]) for name in SLICE_COLUMNS}) != 1:
        raise ReportError(f"{file}: arrays {', '.join(SLICE_COLUMNS)} differ in length")
    for index, names in (("track", "track_name"), ("name", "slice_name")):
        if len(data[index]) and not 0 <= data[index].min() <= data[index].max() < len(data[names]):
            raise ReportError(f"{file}: a slice names a track or a label that does not exist")
    if (data["end_cycle"] < data["start_cycle"]).any():
        raise ReportError(f"{file}: a slice ends before it starts")
    if "counter_value" in data and data["counter_value"].shape != (
        len(data["counter_name"]),
        len(data["counter_cycle"]),
    ):
        raise ReportError(f"{file}: counter_value has shape {data['counter_value'].shape}; expected counters x samples")
