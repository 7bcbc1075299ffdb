"""PyTorch profiler (Kineto) and other Chrome traces: kernel events, streamed, so that gigabytes need little memory.

`ts` and `dur` are microseconds always; `displayTimeUnit` only tells viewers what to show. Traces of before 2024 have
whole microseconds.
"""

import codecs
import io
import json
import re
from collections.abc import Iterator
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

import ijson

from simfa.errors import MeasureError
from simfa.measure import kernel_names
from simfa.measure.launch import Extent, Launch, Source, Stated, make_launch
from simfa.measure.opening import Notes, encoding_of, head_of, reading
from simfa.measure.quantity import CellError, Number, plain

_BUFFER_BYTES = 1 << 18
# deviceProperties stands before the events.
_LOOK_BYTES = 1 << 20
# Older traces capitalise the category.
_KERNEL = ("kernel", "Kernel")
_US_EXPONENT = 3
_LARGEST_US = 10**20
_TIMED = {"duration_ns": "dur"}
# Brackets that one buffer may leave open; names with a bracket cut off leave some too.
_DEEPEST = 4000
_DIGITS = 1000
_SHORT_NS = 10_000
_LONG_NS = 1_000_000_000
_COUNTERS = "a trace has no counters; use ncu"
_REASONS = tuple(
    {
        "tool_version": "the trace does not name PyTorch's version",
        "cluster": "the trace has no cluster sizes",
        "grid": "the event has no grid",
        "block": "the event has no block",
        "device": "the event has no device",
        "stream": "the event has no stream",
        "kernel_demangled": "the trace has mangled names only",
    }.items()
)


def read(path: Path, notes: Notes, stated: Stated) -> Iterator[Launch]:
    """Yield the kernel events of a trace in file order; a trace that ends early gives what came before, with a warning.

    Raises `MeasureError` for JSON that is malformed or no trace, and for traces without kernels.
    """
    gpus = _gpus(path)
    source = Source(
        notes.name, "kineto-json", "pytorch", gpu=next(iter(gpus.values()), None) if len(gpus) == 1 else None
    )
    kernels = events = 0
    whole_us = True
    short = False
    for index, event in enumerate(_events(path, notes)):
        events += 1
        if not isinstance(event, dict) or event.get("ph") != "X" or event.get("cat") not in _KERNEL:
            continue
        try:
            launch = _launch(index, event, source, gpus, stated)
        except CellError as error:
            notes.drop(f"event {index}", str(error))
            continue
        kernels += 1
        whole_us = whole_us and launch.duration_ns is not None and launch.duration_ns % 1000 == 0
        short = short or (launch.duration_ns or 0) < _SHORT_NS
        if (launch.duration_ns or 0) >= _LONG_NS:
            notes.warn(
                "a kernel lasts a second or more: the trace may hold ns where µs belong (some exporters write so)"
            )
        yield launch
    if not kernels:
        raise MeasureError(_nothing(path, events))
    if whole_us and short:
        notes.warn(
            "durations are whole µs and some under 10 µs, where that truncation matters; "
            "traces since 2024 have ns digits"
        )


def _nothing(path: Path, events: int) -> str:
    if events:
        return (
            f"{path}: has {events} events and no GPU kernel among them (CPU and API events are no GPU work); "
            "profile with ProfilerActivity.CUDA; under WSL, without access to CUPTI and inside CUDA graphs kernels "
            "may not be recorded"
        )
    return f"{path}: is JSON without a traceEvents list, or that list is empty; it is no PyTorch or Chrome trace"


def _launch(index: int, event: dict[str, Any], source: Source, gpus: dict[int, str], stated: Stated) -> Launch:
    duration, whole = _ns(event.get("dur"), "dur")
    start, _ = _ns(event.get("ts"), "ts")
    args = event.get("args")
    args = args if isinstance(args, dict) else {}
    full = event.get("name")
    if not isinstance(full, str) or not full:
        raise CellError("kernel event without a name")
    name = kernel_names.parse(full)
    device = _whole(args.get("device", event.get("pid")))
    correlation = args.get("correlation")
    values: dict[str, object] = {
        "launch_id": str(correlation) if isinstance(correlation, int) else str(index),
        "kernel": name.function,
        "kernel_demangled": None if name.mangled else name.full,
        "kernel_mangled": name.full if name.mangled else None,
        "grid": _extent(args.get("grid")),
        "block": _extent(args.get("block")),
        "device": device,
        "stream": _whole(args.get("stream", event.get("tid"))),
        "start_ns": start,
        "duration_ns": duration,
        "clock_control": "none",
        "cache_control": "none",
        "counters": _TIMED,
        "source_row": index,
        "flags": ("name_cut",) if name.cut else (),
    }
    if whole:
        values["quantisation"] = {"duration_ns": (max(0, duration - 1000), duration + 1000)}
    if device is not None and device in gpus:
        values["gpu"] = gpus[device]
    return make_launch(source, values, _REASONS, _COUNTERS, stated=stated)


def _ns(value: object, key: str) -> tuple[Number, bool]:
    """Return microseconds as ns, and whether they were whole in the trace.

    Decimals are the ns that were recorded, so exact; whole microseconds come from a truncated start and end, so they
    are open by one microsecond each way.
    """
    if type(value) is int and 0 <= value < _LARGEST_US:
        return value * 1000, True
    if isinstance(value, Decimal) and value.is_finite() and value >= 0 and (not value or -12 < value.adjusted() < 20):
        return plain(value.scaleb(_US_EXPONENT)), False
    raise CellError(f"{key} is {str(value)[:40]!r}, not a number of microseconds")


@lru_cache(maxsize=4096)
def _sizes(x: object, y: object, z: object) -> Extent | None:
    sizes = (_whole(x), _whole(y), _whole(z))
    return cast(Extent, sizes) if None not in sizes else None


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 62 else None


def _extent(value: object) -> Extent | None:
    if not isinstance(value, list) or len(value) != 3:
        return None
    return _sizes(*value) if all(type(size) is int for size in value) else None


def _events(path: Path, notes: Notes) -> Iterator[Any]:
    """Yield the elements of the list of events, whether it is the whole document or under `traceEvents`."""
    head = head_of(path)
    encoding = encoding_of(head) or "utf-8"
    text = head.decode(encoding, "replace").lstrip("\ufeff \t\r\n")
    prefix = "item" if text.startswith("[") else "traceEvents.item"
    count = 0
    size = path.stat().st_size
    with reading(path) as handle:
        try:
            for event in ijson.items(_Utf8(handle, encoding), prefix, buf_size=_BUFFER_BYTES):
                count += 1
                notes.follow(count, handle, size)
                yield event
        except EOFError:
            notes.warn(f"its gzip data ends early, after event {count}; what follows is lost")
        except ijson.IncompleteJSONError as error:
            if "premature EOF" not in str(error) and "Incomplete" not in str(error):
                raise MeasureError(f"{path}: is malformed JSON after event {count}: {_first_line(error)}") from error
            notes.warn(f"the trace ends early, after event {count}; what follows is lost (was the program stopped?)")
        except ijson.JSONError as error:
            raise MeasureError(f"{path}: is malformed JSON after event {count}: {_first_line(error)}") from error
        except (ValueError, ArithmeticError) as error:
            raise MeasureError(f"{path}: cannot be read after event {count}: {error}") from error


def _first_line(error: Exception) -> str:
    said = error.args[0] if error.args else ""
    text = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
    return (text.strip().splitlines() or ["unreadable"])[0][:200]


class _Utf8:
    """The trace as UTF-8 bytes without a byte-order mark, refusing what would hurt the parser.

    It has `read` alone, so that nobody reads past the recoding, and gives what there is before a cut in gzip data.
    """

    def __init__(self, handle: io.BufferedReader, encoding: str) -> None:
        self._handle = handle
        self._decoder = None if encoding == "utf-8" else codecs.getincrementaldecoder(encoding)("replace")
        self._cut: EOFError | None = None

    def read(self, size: int) -> bytes:
        """Return about `size` bytes, none at the end.

        Raises `ValueError` for lists that open without end (the parser's memory grows with the square of the depth, a
        trace is about six deep) and for endless numbers (over 4300 digits crash the parser's C code).
        """
        data = self._gather(size if self._decoder is None else size // 2)
        if self._decoder is not None:
            data = self._decoder.decode(data).removeprefix("\ufeff").encode()
        if data.count(b"[") + data.count(b"{") - data.count(b"]") - data.count(b"}") > _DEEPEST:
            raise ValueError(f"lists or objects nested over {_DEEPEST} deep")
        if any(data[at : at + _DIGITS].isdigit() for at in range(0, len(data) - _DIGITS + 1, _DIGITS)):
            raise ValueError(f"a number of over {_DIGITS} digits")
        return data

    def _gather(self, size: int) -> bytes:
        if self._cut is not None:
            raise self._cut
        parts: list[bytes] = []
        try:
            while size > 0 and (more := self._handle.read1(size)):
                parts.append(more)
                size -= len(more)
        except EOFError as error:
            self._cut = error
            if not parts:
                raise
        return b"".join(parts)


def _gpus(path: Path) -> dict[int, str]:
    """Return GPU names by device number from `deviceProperties`, looked for at the trace's beginning."""
    head = head_of(path, _LOOK_BYTES)
    text = head.decode(encoding_of(head) or "utf-8", "replace")
    found = re.search(r'"deviceProperties"\s*:\s*(?=\[)', text)
    if not found:
        return {}
    try:
        devices, _ = json.JSONDecoder().raw_decode(text, found.end())
    except (ValueError, RecursionError):
        return {}
    gpus: dict[int, str] = {}
    for device in devices:
        if isinstance(device, dict) and isinstance(device.get("name"), str) and _whole(device.get("id")) is not None:
            gpus[device["id"]] = device["name"]
    return gpus
