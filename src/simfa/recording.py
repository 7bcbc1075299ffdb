"""Which part of a run a timeline holds, as a value and as command-line flags."""

import functools
from collections.abc import Callable
from typing import Any

import click
import msgspec

LIMIT_SLICES = 2_000_000
PERIOD_CYCLES = 1000
MOST_SMS = 65536
_MOST_DIGITS = 18  # numbers that the engine's 64 bits hold


class Recording(msgspec.Struct, frozen=True, kw_only=True):
    """What of a run to record.

    `sms` are SM numbers, which are CTA numbers too, as CTA c runs on SM c; empty for all. `window` are cycles, begin
    and end. `ordinals` are the first and the last of each CTA's tiles to keep; `tile` is one tile: m_block, head,
    batch. Slices that overlap the window and the time of the chosen tiles are kept, at their full length. Counters are
    sampled every `period_cycles`, 0 for never. A run that records more than `limit_slices` is refused.
    """

    sms: tuple[int, ...] = ()
    window: tuple[int, int] | None = None
    ordinals: tuple[int, int] | None = None
    tile: tuple[int, int, int] | None = None
    period_cycles: int = PERIOD_CYCLES
    limit_slices: int = LIMIT_SLICES


def parse_window(_: click.Context, __: click.Parameter, text: str | None) -> tuple[int, int] | None:
    """Return the cycles of `BEGIN:END`."""
    if text is None:
        return None
    begin, separator, end = text.partition(":")
    if not separator or not _is_number(begin) or not _is_number(end) or int(begin) >= int(end):
        raise click.BadParameter(f"{text!r}: expected BEGIN:END in cycles, e.g. 10000:20000")
    return int(begin), int(end)


def parse_numbers(_: click.Context, __: click.Parameter, text: str | None) -> tuple[int, ...]:
    """Return the numbers of a list such as `0,4-7`, sorted."""
    if text is None:
        return ()
    numbers: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if not _is_number(first) or (dash and not _is_number(last)) or (dash and int(last) < int(first)):
            raise click.BadParameter(f"{text!r}: expected numbers and ranges, e.g. 0,4-7")
        if int(last or first) >= MOST_SMS:
            raise click.BadParameter(f"{text!r}: no chip has an SM {last or first}")
        numbers.update(range(int(first), int(last or first) + 1))
    return tuple(sorted(numbers))


def parse_tiles(_: click.Context, __: click.Parameter, text: str | None) -> tuple[int, ...]:
    """Return the two ordinals of `FIRST:LAST` or the three coordinates of `M_BLOCK,HEAD,BATCH`."""
    if text is None:
        return ()
    parts = text.split("," if "," in text else ":")
    wanted = 3 if "," in text else 2
    if len(parts) != wanted or not all(_is_number(part) for part in parts):
        raise click.BadParameter(f"{text!r}: expected FIRST:LAST, ordinals of a CTA's tiles, or M_BLOCK,HEAD,BATCH")
    numbers = tuple(int(part) for part in parts)
    if wanted == 2 and numbers[0] > numbers[1]:
        raise click.BadParameter(f"{text!r}: the first tile comes after the last")
    return numbers


def _is_number(text: str) -> bool:
    """Return whether a text is a whole number that the engine can hold."""
    return text.isdecimal() and len(text) <= _MOST_DIGITS


def recording_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the `--timeline...` flags to a command and pass it one `timeline: Recording | None` in their place."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        flags = {name: kwargs.pop(f"timeline_{name}") for name in ("sm", "tile", "window", "period", "limit")}
        return function(*args, timeline=recording_from_flags(kwargs.pop("timeline"), **flags), **kwargs)

    for option in reversed(
        [
            click.option(
                "--timeline", type=click.IntRange(0, MOST_SMS), default=0, help="Record slices of the first N SMs."
            ),
            click.option(
                "--timeline-sm",
                "--timeline-cta",
                "timeline_sm",
                callback=parse_numbers,
                metavar="LIST",
                help="Record these SMs, e.g. 0,4-7; CTA c runs on SM c.",
            ),
            click.option(
                "--timeline-tile",
                callback=parse_tiles,
                metavar="FIRST:LAST|M,H,B",
                help="Record these tiles of each CTA, or one tile: query block, head, batch.",
            ),
            click.option(
                "--timeline-window", callback=parse_window, metavar="BEGIN:END", help="Record these cycles only."
            ),
            click.option(
                "--timeline-period",
                type=click.IntRange(0, (1 << 31) - 1),
                default=PERIOD_CYCLES,
                show_default=True,
                help="Cycles between samples of the counters; 0 for none.",
            ),
            click.option(
                "--timeline-limit",
                type=click.IntRange(1),
                default=LIMIT_SLICES,
                show_default=True,
                help="Refuse to record more slices.",
            ),
        ]
    ):
        wrapper = option(wrapper)
    return wrapper


def recording_from_flags(
    first_sms: int,
    *,
    sm: tuple[int, ...],
    tile: tuple[int, ...],
    window: tuple[int, int] | None,
    period: int,
    limit: int,
) -> Recording | None:
    """Return what the flags ask for, None without any; raises `click.UsageError` when SMs are named twice."""
    if first_sms and sm:
        raise click.UsageError("--timeline N takes the first N SMs; give it or --timeline-sm, not both")
    if not first_sms and not sm and not tile:
        if window is not None:
            raise click.UsageError("--timeline-window needs SMs; give --timeline N or --timeline-sm LIST too")
        return None
    return Recording(
        sms=sm or tuple(range(first_sms)),
        window=window,
        ordinals=(tile[0], tile[1]) if len(tile) == 2 else None,
        tile=(tile[0], tile[1], tile[2]) if len(tile) == 3 else None,
        period_cycles=period,
        limit_slices=limit,
    )
