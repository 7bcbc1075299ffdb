"""Every unit spelling the profilers print, as data: what it measures and its power of ten over the base unit.

Base units: ns, byte, byte/s, hz, cycle, sector, %. All prefixes are decimal (`Kbyte` is 1000 bytes: on real exports
rate x duration equals bytes only so).
"""

from typing import NamedTuple


class Unit(NamedTuple):
    """What a unit measures, and the exponent of ten that turns a number into the base unit of that dimension."""

    dimension: str
    exponent: int


TIME, BYTES, RATE, CLOCK, CYCLES, SECTORS, PERCENT, OTHER = (
    "time",
    "bytes",
    "byte rate",
    "clock",
    "cycles",
    "sectors",
    "percent",
    "other",
)

# Spellings by exponent over ns: `ns` is current, `nsecond` was Nsight Compute until 2022, `nsec` is `nsys --timeunit`.
_TIMES = {
    0: ("ns", "nsecond", "nsec", "nanosecond", "nanoseconds"),
    3: ("us", "usecond", "usec", "microsecond", "microseconds", "\u00b5s", "\u03bcs"),
    6: ("ms", "msecond", "msec", "millisecond", "milliseconds"),
    9: ("s", "second", "sec", "seconds"),
}
_PREFIXES = {"": 0, "K": 3, "M": 6, "G": 9, "T": 12, "P": 15}
# Known units that no quantity here is measured in; a metric of the same label in one of these is another metric.
_OTHERS = (
    "inst",
    "request",
    "warp",
    "thread",
    "block",
    "register",
    "instruction",
    "register/thread",
    "byte/block",
    "Kbyte/block",
    "Mbyte/block",
    "thread/inst",
    "inst/cycle",
    "inst/warp",
    "warp/cycle",
    "sector/request",
    "byte/cycle",
    "byte/inst",
    "SM",
    "pass",
)


def _spellings() -> dict[str, Unit]:
    table: dict[str, Unit] = {}
    for exponent, names in _TIMES.items():
        table.update({name: Unit(TIME, exponent) for name in names})
    for prefix, power in _PREFIXES.items():
        table[f"{prefix}byte"] = Unit(BYTES, power)
        table[f"{prefix}B"] = Unit(BYTES, power)
        table[f"{prefix}hz"] = Unit(CLOCK, power)
        table[f"{prefix}Hz"] = Unit(CLOCK, power)
        table[f"{prefix}sector"] = Unit(SECTORS, power)
        table[f"{prefix}cycle"] = Unit(CYCLES, power)
        for exponent, names in _TIMES.items():
            for name in names:
                table[f"{prefix}byte/{name}"] = Unit(RATE, power + 9 - exponent)
                table[f"{prefix}cycle/{name}"] = Unit(CLOCK, power + 9 - exponent)
        table[f"{prefix}bytes/sec"] = Unit(RATE, power)
    table["%"] = Unit(PERCENT, 0)
    table.update({name: Unit(OTHER, 0) for name in _OTHERS})
    return table


UNITS = _spellings()
