"""Random numbers as hashes of what they are for: the same on every machine and NumPy, in any order of asking."""

import zlib

_MASK = (1 << 64) - 1


def draw(bound: int, seed: int, purpose: str, *keys: int) -> int:
    """Return a number below `bound` that depends on all arguments alone (SplitMix64 finaliser over each key)."""
    state = _mix(seed & _MASK)
    for key in (zlib.crc32(purpose.encode()), *keys):
        state = _mix((state ^ key) & _MASK)
    return state % bound


def _mix(value: int) -> int:
    """Return SplitMix64's output for the state `value` (Steele, Lea, Flood 2014)."""
    value = (value + 0x9E3779B97F4A7C15) & _MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)
