"""The only conversions between cycles and seconds, each demanding the clock it belongs to; units in names of values."""


def cycles_to_us(cycles: float, clock_hz: float) -> float:
    """Return microseconds that `cycles` take at `clock_hz`."""
    return cycles * 1e6 / clock_hz


def us_to_cycles(microseconds: float, clock_hz: float) -> float:
    """Return cycles (not rounded) of `clock_hz` in `microseconds`."""
    return microseconds * clock_hz / 1e6


def ns_to_cycles(nanoseconds: float, clock_hz: float) -> int:
    """Return whole cycles of `clock_hz` nearest to `nanoseconds`; halves round up."""
    return int(nanoseconds * clock_hz / 1e9 + 0.5)


def unit_of(path: str) -> str:
    """Return the unit that a value's name carries, or an empty string for counts, names and switches."""
    leaf = path.rsplit(".", 1)[-1]
    for suffix, unit in (
        ("bytes_per_cycle_per_slice", "B/cycle"),
        ("_bytes_per_cycle", "B/cycle"),
        ("flop_per_cycle", "FLOP/cycle"),
        ("_per_cycle", "1/cycle"),
        ("_bytes_per_s", "B/s"),
        ("_cycles", "cycles"),
        ("_ns", "ns"),
        ("_hz", "Hz"),
        ("_bytes", "B"),
    ):
        if leaf.endswith(suffix):
            return unit
    return ""
