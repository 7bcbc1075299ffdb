"""The only conversions between cycles and seconds; each demands the clock it belongs to."""


def cycles_to_us(cycles: float, clock_hz: float) -> float:
    """Return microseconds that `cycles` take at `clock_hz`."""
    return cycles * 1e6 / clock_hz


def us_to_cycles(microseconds: float, clock_hz: float) -> float:
    """Return cycles (not rounded) of `clock_hz` in `microseconds`."""
    return microseconds * clock_hz / 1e6


def ns_to_cycles(nanoseconds: float, clock_hz: float) -> int:
    """Return whole cycles of `clock_hz` nearest to `nanoseconds`; halves round up."""
    return int(nanoseconds * clock_hz / 1e9 + 0.5)
