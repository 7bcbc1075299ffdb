"""A tile-level LRU cache under the kernel's tile order: which K/V granules hit when CTAs advance in step.

Every CTA reads one granule of K and V a step, its Q tile before and its O tile after; CTAs take the next tile when
they finish. L2 is fully associative, write-back, and counts bytes. Nothing here is shared with the closed forms.
"""

from collections import OrderedDict
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from simfa.analytical.attention import Attention
from simfa.analytical.kernels import Kernel
from simfa.kernel import ceil_div
from simfa.schedule import section_heads
from simfa.workload import AttentionShape

# Granule reads that a run aims at: about 20 ms of Python.
_BUDGET = 40_000
_MAX_POSITIONS = 256
_MIN_POSITIONS = 16


class Run(NamedTuple):
    """Consecutive tiles that read the same K/V: group, query block, how many, and the section they belong to."""

    group: int
    m_block: int
    tiles: int
    unit: int


class LruResult(NamedTuple):
    """Outcome: K/V bytes read from DRAM beyond the first time, O bytes still dirty at the end, and the work done."""

    refetched_bytes: int
    dirty_bytes: int
    reads: int
    simulated_units: int
    units: int


def order_shape(attention: Attention, kernel: Kernel) -> AttentionShape:
    """Return the plain shape whose tile order and head sections are those of the call."""
    return AttentionShape(
        batch=attention.batch,
        seqlen_q=kernel.packed_rows(attention),
        seqlen_kv=attention.seqlen_kv,
        heads_q=attention.heads_kv if kernel.pack_gqa else attention.heads_q,
        heads_kv=attention.heads_kv,
        # Sections depend on bytes of a K and V row alone: 2 x head_dim x 1 byte here.
        head_dim=ceil_div(attention.kv_row_bytes, 2),
        dtype="fp8",
        causal=attention.causal,
    )


def section_width(attention: Attention, kernel: Kernel) -> int:
    """Return how many K/V heads share a causal section."""
    width = section_heads(order_shape(attention, kernel)) // kernel.sequences_per_group(attention)
    return min(width, attention.batch * attention.heads_kv)


def tile_runs(attention: Attention, kernel: Kernel) -> Iterator[Run]:
    """Yield the tiles in the order of `simfa.schedule.tile_order`, equal neighbours together.

    Units: sections, or K/V heads without a mask, or query heads with one.
    """
    blocks = kernel.query_blocks(attention)
    per_group = kernel.sequences_per_group(attention)
    groups = attention.batch * attention.heads_kv
    if kernel.schedule != "lpt_l2_sections":
        for sequence in range(groups * per_group):
            group = sequence // per_group
            if attention.causal:
                for block in range(blocks):
                    yield Run(group, block, 1, sequence)
            elif sequence % per_group == 0:
                yield Run(group, 0, blocks * per_group, group)
        return
    width = section_width(attention, kernel)
    for unit, first in enumerate(range(0, groups, width)):
        for block in reversed(range(blocks)):
            for group in range(first, min(first + width, groups)):
                yield Run(group, block, per_group, unit)


class _Cache:
    """LRU over keys with sizes; negative odd keys are O tiles (dirty)."""

    def __init__(self, capacity: int) -> None:
        self.lines: OrderedDict[int, int] = OrderedDict()
        self.room = capacity

    def read(self, key: int, size: int) -> bool:
        """Touch `key`; return whether it was there."""
        lines = self.lines
        if key in lines:
            lines.move_to_end(key)
            return True
        lines[key] = size
        self.room -= size
        while self.room < 0:
            self.room += lines.popitem(last=False)[1]
        return False

    def dirty_bytes(self) -> int:
        return sum(size for key, size in self.lines.items() if key < 0 and key % 2)


class _Cohort:
    """CTAs that started together on the same K/V: `position` to `end` granules, then O."""

    __slots__ = ("count", "end", "generation", "group", "position", "step", "unit")

    def __init__(self, run: Run, count: int, first: int, last: int, generation: int, backwards: bool) -> None:
        self.group, self.unit, self.count, self.generation = run.group, run.unit, count, generation
        self.position, self.end, self.step = (last - 1, first - 1, -1) if backwards else (first, last, 1)


class _Machine:
    """The running state: cache, cohorts in flight, free places, and bytes missed by unit."""

    def __init__(self, attention: Attention, kernel: Kernel, l2_bytes: int, places: int, positions: int) -> None:
        self.attention, self.kernel = attention, kernel
        self.granule_rows = ceil_div(attention.seqlen_kv, positions)
        self.positions = ceil_div(attention.seqlen_kv, self.granule_rows)
        rest = attention.seqlen_kv - (self.positions - 1) * self.granule_rows
        self.sizes = [self.granule_rows * attention.kv_row_bytes] * (self.positions - 1)
        self.sizes.append(rest * attention.kv_row_bytes)
        self.q_bytes = kernel.tile_m * attention.q_row_bytes
        self.o_bytes = kernel.tile_m * attention.o_row_bytes
        self.cache = _Cache(l2_bytes)
        self.active: list[_Cohort] = []
        self.free: list[tuple[int, int]] = [(0, places)]
        self.misses: dict[int, int] = {}
        self.reads = 0
        self._serial = 0

    def start(self, run: Run) -> int:
        """Give free places tiles of `run`; return how many tiles are left of it."""
        left = run.tiles
        first_row, last_row = self.kernel.kv_range(self.attention, run.m_block)
        first, last = first_row // self.granule_rows, ceil_div(last_row, self.granule_rows)
        while left and self.free:
            generation, places = self.free[0]
            taken = min(left, places)
            left -= taken
            if taken == places:
                self.free.pop(0)
            else:
                self.free[0] = (generation, places - taken)
            # FA3 walks K/V from the last block to the first.
            backwards = self.kernel.kv_order == "cyclic" or generation % 2 == 0
            self.active.append(_Cohort(run, taken, first, last, generation, backwards))
            self._serial += 1
            self.cache.read(-2 * self._serial, taken * self.q_bytes)
        return left

    def advance(self) -> None:
        """Let every CTA read one granule; finished ones write O and free their places."""
        cache, positions, sizes, misses = self.cache, self.positions, self.sizes, self.misses
        done = False
        for cohort in self.active:
            position = cohort.position
            if not cache.read(cohort.group * positions + position, sizes[position]):
                misses[cohort.unit] = misses.get(cohort.unit, 0) + sizes[position]
            cohort.position = position + cohort.step
            done = done or cohort.position == cohort.end
        self.reads += len(self.active)
        if not done:
            return
        still = []
        for cohort in self.active:
            if cohort.position != cohort.end:
                still.append(cohort)
                continue
            self._serial += 1
            cache.read(-2 * self._serial + 1, cohort.count * self.o_bytes)
            generation, places = cohort.generation + 1, cohort.count
            if self.free and self.free[-1][0] == generation:
                places += self.free.pop()[1]
            self.free.append((generation, places))
        self.active = still


class _Plan(NamedTuple):
    """How much is simulated: the (possibly smaller) call, its K/V positions, and the weight of each unit's misses."""

    attention: Attention
    positions: int
    weights: list[float]
    units: int
    wave: int | None  # tiles of a wave, where waves may repeat and be skipped


def _plan(attention: Attention, kernel: Kernel, places: int) -> _Plan:
    """Choose sizes so that a run stays near `_BUDGET` reads; the first units are simulated, the rest repeats them."""
    groups, per_group = attention.batch * attention.heads_kv, kernel.sequences_per_group(attention)
    blocks = kernel.query_blocks(attention)
    wave = None
    if kernel.schedule == "lpt_l2_sections":
        width = section_width(attention, kernel)
        units = ceil_div(groups, width)
        rest = (groups - (units - 1) * width) / width
        weights = [1.0] * units if units <= 3 else [1.0, units - 2 + rest, 0.0]
        tiles = len(weights) * width * blocks
    elif not attention.causal:
        units = groups
        weights = [1.0] * units if units <= 8 else [1.0, *[(units - 1) / 6] * 6, 0.0]
        wave = places
        tiles = len(weights) * (min(8, ceil_div(blocks * per_group, places)) + 1)
    else:
        units = groups * per_group
        heads = min(per_group, 3)
        kept = min(groups, 2 if heads * blocks < 4000 else 1)
        weights = _head_weights(groups, per_group, kept, heads)
        tiles = len(weights) * blocks
        queries = attention.group_size if kernel.pack_gqa else heads
        attention = msgspec.structs.replace(attention, batch=1, heads_q=kept * queries, heads_kv=kept)
    # A tile reads this share of K/V, in at least four granules; positions count over all of S.
    share = kernel.kv_rows(attention) / (blocks * attention.seqlen_kv)
    positions = max(_MIN_POSITIONS, 4 / share, min(_MAX_POSITIONS, _BUDGET / tiles / share))
    return _Plan(attention, min(int(positions), ceil_div(attention.seqlen_kv, kernel.tile_n)), weights, units, wave)


def _head_weights(groups: int, per_group: int, kept: int, heads: int) -> list[float]:
    """Return weights of `kept` x `heads` simulated query heads: first heads of a group stand for first heads."""
    if (kept, heads) == (groups, per_group):
        return [1.0] * (groups * per_group)
    later = kept * (heads - 1)
    repeats = groups * (per_group - 1) / later if later else 0.0
    return [groups / kept if unit % heads == 0 else repeats for unit in range(kept * heads)]


def simulate_lru(attention: Attention, kernel: Kernel, l2_bytes: int, sm_count: int) -> LruResult:
    """Return what a fully associative LRU of `l2_bytes` does to K/V, in bytes.

    Long problems are cut: of many groups (or sections, or heads under a mask) the first are simulated and the rest
    repeat them; inside a group, full waves whose misses repeat are skipped. `kernel.splits` must be 1.
    """
    places = sm_count * kernel.ctas_per_sm
    plan = _plan(attention, kernel, places)
    machine = _Machine(plan.attention, kernel, l2_bytes, places, plan.positions)
    for run in tile_runs(plan.attention, kernel):
        if run.unit >= len(plan.weights):
            break
        _run_tiles(machine, run, plan.wave)
    while machine.active:
        machine.advance()
    missed = [machine.misses.get(unit, 0) for unit in range(len(plan.weights))]
    whole = all(weight == 1.0 for weight in plan.weights)
    total = sum(missed) if whole else round(sum(map(float.__mul__, plan.weights, map(float, missed))))
    return LruResult(
        refetched_bytes=max(0, total - attention.kv_bytes),
        dirty_bytes=machine.cache.dirty_bytes(),
        reads=machine.reads,
        simulated_units=len(missed),
        units=plan.units,
    )


def _run_tiles(machine: _Machine, run: Run, wave: int | None) -> None:
    """Start all tiles of `run`, advancing time while no place is free; skip waves that repeat (`wave` tiles each)."""
    history: list[int] = []
    while True:
        left = machine.start(run)
        if not left:
            return
        before = machine.misses.get(run.unit, 0)
        while not machine.free:
            machine.advance()
        if wave is not None and left >= wave and len(machine.free) == 1:
            history.append(machine.misses.get(run.unit, 0) - before)
            repeats = (left // wave - 1) // 2 * 2
            if repeats > 0 and len(history) > 3 and len(set(history[-3:])) == 1:
                machine.misses[run.unit] = machine.misses.get(run.unit, 0) + repeats * history[-1]
                left -= repeats * wave
        run = run._replace(tiles=left)
