"""How often K/V come back from DRAM, in closed form, without a mask: one function a policy.

CTAs of one wave walk K/V together, so a wave reads the K/V of each group (K/V head of a batch entry) it holds once. A
persistent grid does not pause between groups: a wave that holds the end of one group and the start of the next reads
both. Everything is an integer or an integer array; `refetched_bytes` returns K/V bytes read beyond the first time.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from simfa.analytical.equations import Whole, ceil_quotient, l2_fits
from simfa.analytical.policies import CLOSED_POLICIES
from simfa.errors import AnalyticalError

_INT64_SAFE = 2.0**62


class Reuse(NamedTuple):
    """What decides about reuse of K/V.

    `groups`: K/V heads times batch. `group_tiles`: query tiles that read one of them. `concurrent`: N_conc, tiles in
    flight. `kv_bytes`: K and V of one group. `wave_bytes`: Q and O tiles of one wave. `l2_bytes`: effective capacity.
    """

    groups: Whole
    group_tiles: Whole
    concurrent: Whole
    kv_bytes: Whole
    wave_bytes: Whole
    l2_bytes: Whole


class Passes(NamedTuple):
    """Passes over K/V of a persistent grid in lockstep, all groups together.

    `total` counts (wave, group) pairs. Those beyond one a group repeat K/V that the wave before read: `alone` with
    nothing else in either wave, `beside` with a second group in one of the two, `between` with others in both.
    A wave of a long run holds `crowd_groups` / `crowd_waves` groups on average.
    """

    total: Whole
    crowd_groups: Whole
    crowd_waves: Whole
    alone: Whole
    beside: Whole
    between: Whole


def lockstep_passes(reuse: Reuse) -> Passes:
    """Return how many passes the groups need when tiles fill waves without gaps.

    A group boundary inside a wave costs one pass more than a boundary between waves: the total is
    ceil(n T / N) + (n - 1) - aligned boundaries, for n groups of T tiles on N places.
    """
    groups, tiles, places = reuse.groups, reuse.group_tiles, reuse.concurrent
    waves = ceil_quotient(groups * tiles, places)
    divisor = np.gcd(tiles, places) if isinstance(waves, np.ndarray) else math.gcd(tiles, places)
    inside = (groups - 1) - (groups - 1) * divisor // places
    repeated = waves + inside - groups
    # Every boundary inside a wave has a repeated pass on either side. Groups shorter than a wave repeat only between
    # two boundaries; groups of two waves and more never do. In between, the last group can end in a wave of its own.
    start = (groups - 1) * tiles % places
    last = ceil_quotient(start + tiles, places) - 1 - _choose(start > 0, 1 + 0 * start, 0 * start)
    medium = (tiles < 2 * places) & (groups > 1)
    alone = _choose(tiles < places, 0 * repeated, _choose(medium, last, repeated - 2 * inside))
    between = _choose(tiles < places, repeated, _choose(medium, 2 * inside - repeated + last, 0 * repeated))
    # Waves begin at every multiple of the divisor inside a group: 1 + (N - divisor) / T groups a wave, at least 2
    # where a group is longer than a wave, as `between` needs a boundary in both waves.
    short = tiles < places
    return Passes(
        total=waves + inside,
        crowd_groups=_choose(short, places + tiles - divisor, 2 * tiles),
        crowd_waves=tiles,
        alone=alone,
        beside=repeated - between - alone,
        between=between,
    )


def groups_in_flight(reuse: Reuse) -> Whole:
    """Return how many groups a wave of full groups holds: ceil(N_conc / tiles of a group), at most all."""
    wanted = ceil_quotient(reuse.concurrent, reuse.group_tiles)
    return _choose(wanted < reuse.groups, wanted, reuse.groups)


def fits(policy: str, reuse: Reuse) -> Any:
    """Return whether the policy's working set fits: Eq. 4 for `paper`, with Q, O and all groups in flight otherwise."""
    if policy == "paper":
        return l2_fits(l2_capacity_bytes=reuse.l2_bytes, kv_bytes=reuse.kv_bytes)
    if policy == "random":
        return reuse.l2_bytes >= groups_in_flight(reuse) * reuse.kv_bytes
    return reuse.l2_bytes > groups_in_flight(reuse) * reuse.kv_bytes + reuse.wave_bytes


def refetched_bytes(policy: str, reuse: Reuse, sawtooth: bool = False) -> Whole:
    """Return K/V bytes that come from DRAM again under a closed-form policy; raises `AnalyticalError` for others."""
    if policy not in CLOSED_POLICIES:
        raise AnalyticalError(f"policy {policy!r} has no closed form; expected one of {', '.join(CLOSED_POLICIES)}")
    if sawtooth and policy != "capacity":
        raise AnalyticalError(f"policy {policy!r} knows no sawtooth order; use capacity or lru")
    reuse = _widened(reuse)
    if policy == "paper":
        return _paper(reuse)
    if policy == "random":
        return _random(reuse)
    return _sawtooth(reuse) if sawtooth else _capacity(reuse)


def _widened(reuse: Reuse) -> Reuse:
    """Return array inputs as Python integers where 64 bits might not hold a sum of the formulas."""
    if not any(isinstance(value, np.ndarray) for value in reuse):
        return reuse
    passes = np.asarray(reuse.group_tiles, dtype=np.float64) / reuse.concurrent + 3.0
    largest = np.max((passes * reuse.groups) * (np.asarray(reuse.kv_bytes, dtype=np.float64) + reuse.l2_bytes))
    kind = np.int64 if largest < _INT64_SAFE else object
    return Reuse(*(np.asarray(value, dtype=kind) for value in reuse))


def _paper(reuse: Reuse) -> Whole:
    """Eq. 4 chooses between Eq. 3 and Eq. 6: all K/V again in every wave of Eq. 5, or never."""
    wave_count = ceil_quotient(reuse.group_tiles, reuse.concurrent)
    again = reuse.groups * reuse.kv_bytes * (wave_count - 1)
    return _choose(fits("paper", reuse), 0 * again, again)


def _capacity(reuse: Reuse) -> Whole:
    """LRU stack distances of the wave model.

    Between two reads of a K/V row lie all other rows of its group, the O tiles of the wave before and the Q tiles of
    this one, and the rows of other groups in these two waves. With one group beside, rows read early in one wave and
    late in the other see more of it: the share that misses grows linearly from C = 2 KV + QO down to C = KV + QO.
    """
    passes = lockstep_passes(reuse)
    kv, room = reuse.kv_bytes, reuse.l2_bytes - reuse.wave_bytes
    alone = _choose(kv < room, 0 * kv, kv)
    beside = _clip(2 * kv - room, 0, kv)
    between = _choose(passes.crowd_groups * kv < passes.crowd_waves * room, 0 * kv, kv)
    return passes.alone * alone + passes.beside * beside + passes.between * between


def _sawtooth(reuse: Reuse) -> Whole:
    """The same with the direction turned after every tile: what was read last is read first, so C - QO is kept.

    Around a turn the cache fills with the rows near it, of as many groups as the two waves hold.
    """
    passes = lockstep_passes(reuse)
    kv, room = reuse.kv_bytes, _clip(reuse.l2_bytes - reuse.wave_bytes, 0, reuse.l2_bytes)
    several = room * passes.crowd_waves // (2 * passes.crowd_groups - passes.crowd_waves)
    return (
        passes.alone * _clip(kv - room, 0, kv)
        + passes.beside * _clip(kv - room // 2, 0, kv)
        + passes.between * _clip(kv - several, 0, kv)
    )


def random_miss_ratio(pressure: Any) -> Any:
    """Return the non-zero root m of m = 1 - exp(-m x) for working set over capacity x; 0 up to x = 1.

    Under random replacement a line survives until its next use if none of the m x C misses in between hits it.
    """
    x = np.maximum(np.asarray(pressure, dtype=np.float64), 1.0)
    miss = np.ones_like(x)
    for _ in range(60):
        # Newton from above converges monotonically: m + exp(-m x) - 1 is convex.
        decay = np.exp(-miss * x)
        slope = 1.0 - x * decay
        step = np.where(slope > 0, (miss + decay - 1.0) / np.where(slope > 0, slope, 1.0), 0.0)
        miss = miss - step
        if np.max(step, initial=0.0) < 1e-15:
            break
    return np.where(x > 1.0, np.clip(miss, 0.0, 1.0), 0.0)


def _random(reuse: Reuse) -> Whole:
    """Random replacement: every repeated pass misses the same share of its K/V."""
    passes = lockstep_passes(reuse)
    repeated = passes.total - reuse.groups
    pressure = np.asarray(groups_in_flight(reuse) * reuse.kv_bytes / reuse.l2_bytes, dtype=np.float64)
    misses = random_miss_ratio(pressure) * np.asarray(repeated * reuse.kv_bytes, dtype=np.float64)
    if isinstance(repeated, np.ndarray):
        return np.rint(misses).astype(np.int64 if repeated.dtype != object else object)
    return round(float(misses))


def _choose(condition: Any, yes: Whole, no: Whole) -> Whole:
    if isinstance(condition, np.ndarray):
        return np.where(condition, yes, no)
    return yes if condition else no


def _clip(value: Whole, low: Whole, high: Whole) -> Whole:
    if isinstance(value, np.ndarray) or isinstance(high, np.ndarray):
        return np.clip(value, low, high)
    return max(low, min(value, high))
