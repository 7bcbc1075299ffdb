"""flash-attention's `benchmark_attn.py`: one mean time per implementation under a heading with the shape."""

import re
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

from simfa.errors import MeasureError
from simfa.measure.benchmark_shape import Interval, shape_of
from simfa.measure.launch import Launch, Source, Stated, make_launch
from simfa.measure.ncu_log import replayed
from simfa.measure.opening import Notes, lines
from simfa.measure.quantity import CellError, Reading, StopError, parse_number, plain, scaled
from simfa.measure.unit_spellings import RATE, TIME

HEADING = re.compile(r"#+\s*(?=\w+\s*=)(?P<pairs>.*?(?:headdim|seqlen).*?)\s*#*\s*$")
RESULT = re.compile(
    r"\s*(?P<name>\w[\w .+-]{0,60}?\s+(?:fwd|bwd)(?:\s*\+\s*bwd)?)\s*:\s*(?P<time>[\d.,]+)\s*ms\b(?P<rest>.*)$",
    re.ASCII,
)
# Results that the simulator's kernel, FA3 forward, can be compared with.
_FA3_FORWARD = re.compile(r"(fav3|fa3|flash(attn)?3)\s+fwd", re.IGNORECASE)
_RATE = re.compile(r"[\s,]*(?P<rate>[\d.,]+)\s*TFLOP[Ss]?\b", re.ASCII)
_TERA_EXPONENT = 12
# FlashAttention-2's script prints rates alone.
RATE_ONLY = re.compile(r"\s*\w[\w .+-]*\s+fwd\s*:\s*[\d.]+\s*TFLOPs?/s", re.ASCII)
_PAIR = re.compile(r"(\w+)\s*=\s*([^\s,#]+)")
_MS_EXPONENT = 6
_REASON = "benchmark_attn.py prints a mean time per shape, no launches"
_COUNTERS = "a benchmark has no counters; use ncu"


def read(path: Path, notes: Notes, stated: Stated) -> Iterator[Launch]:
    """Yield one row per printed time, in file order; `case` holds the heading's values as printed.

    Raises `MeasureError` for output without times, or printed under ncu, whose replay lies inside the timed region.
    """
    case: dict[str, str] = {}
    source = Source(notes.name, "benchmark-attn", "benchmark_attn")
    found: list[Launch] = []
    for line in lines(path, notes):
        if line.text.startswith("==PROF=="):
            raise replayed(path, line.number)
        heading = HEADING.match(line.text)
        result = RESULT.match(line.text)
        if (heading or result) and not line.whole:
            notes.drop(f"line {line.number}", "the file ends inside it")
        elif heading:
            case = dict(_PAIR.findall(heading["pairs"]))
        elif result:
            launch = _launch(path, line.number, result, case, source, notes, stated, len(found))
            if launch is not None:
                found.append(launch)
        elif RATE_ONLY.match(line.text):
            notes.drop(f"line {line.number}", "a rate without a time; the time depends on how FLOPs were counted")
        else:
            notes.outside(line.number, line.text, line.whole)
    if not found:
        raise MeasureError(f"{path}: has no whole line such as `Fav3 fwd: 0.520ms, 660.1 TFLOPS` of benchmark_attn.py")
    yield from found


def _launch(
    path: Path,
    number: int,
    result: re.Match[str],
    case: dict[str, str],
    source: Source,
    notes: Notes,
    stated: Stated,
    position: int,
) -> Launch | None:
    try:
        value, step = parse_number(result["time"])
    except StopError as error:
        raise MeasureError(f"{path}:{number}: {error}") from error
    except CellError as error:
        notes.drop(f"line {number}", str(error))
        return None
    time = scaled(value, step, _MS_EXPONENT, TIME)
    name = " ".join(result["name"].split())
    shape = None
    flags: tuple[str, ...] = ()
    if _FA3_FORWARD.fullmatch(name):
        shape, flags = shape_of(case, _flops(time, result["rest"]))
    values: dict[str, object] = {
        "launch_id": str(position),
        "kernel": name,
        "duration_ns": plain(time.value),
        "quantisation": {"duration_ns": (plain(time.low), plain(time.high))},
        "counters": {"duration_ns": "mean of repeated launches"},
        "clock_control": "none",
        "cache_control": "none",
        "case": case,
        "source_row": number,
        "flags": ("benchmark", "mean_of=unknown", *flags),
        "shape": shape,
    }
    return make_launch(source, values, _REASONS, _COUNTERS, stated=stated)


def _flops(time: Reading, rest: str) -> Interval | None:
    """Return the operations behind a time (ns) and the rate printed after it; `None` without a rate."""
    found = _RATE.match(rest)
    try:
        rate = scaled(*parse_number(found["rate"]), _TERA_EXPONENT, RATE) if found else None
    except CellError:
        rate = None
    if rate is None:
        return None
    ends = ((time.low, rate.low), (time.high, rate.high))
    low, high = (Fraction(ns) * Fraction(per_s) / 10**9 for ns, per_s in ends)
    return Interval(low, high)


_REASONS = tuple(
    (column, _REASON) for column in ("kernel_demangled", "grid", "block", "cluster", "device", "stream", "start_ns")
)
