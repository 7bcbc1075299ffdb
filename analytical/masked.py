"""K/V bytes that come back from DRAM under a causal mask or a window.

FA3's causal schedule finishes one *section* of K/V heads before the next and takes the longest tile of every head
first. A wave is N_conc consecutive tiles of a section; successive waves read ever shorter prefixes (or a window that
slides towards the start).
"""

from typing import NamedTuple

from simfa.analytical.attention import Attention
from simfa.analytical.kernels import Kernel
from simfa.analytical.lru import section_width
from simfa.analytical.reuse import random_miss_ratio
from simfa.errors import AnalyticalError
from simfa.kernel import ceil_div


class Extent(NamedTuple):
    """Rows of K/V, `first` to one before `last`, that one wave reads of each of its `groups` K/V heads.

    `longest` is how many of them its longest tile reads.
    """

    first: int
    last: int
    groups: int
    longest: int

    @property
    def rows(self) -> int:
        """Rows read of one K/V head."""
        return self.last - self.first


def section_widths(attention: Attention, kernel: Kernel) -> list[tuple[int, int]]:
    """Return (K/V heads of a section, how many such sections): full ones, and the last where it is narrower."""
    groups, width = attention.batch * attention.heads_kv, section_width(attention, kernel)
    rest = [(groups % width, 1)] if groups % width else []
    return [(width, groups // width), *rest]


def wave_extents(attention: Attention, kernel: Kernel, width: int, places: int) -> list[Extent]:
    """Return what each wave of a section of `width` K/V heads reads, in order."""
    blocks, per_group = kernel.query_blocks(attention), kernel.sequences_per_group(attention)
    row = per_group * width  # tiles of one query block, all heads
    extents = []
    for start in range(0, blocks * row, places):
        stop = min(start + places, blocks * row) - 1
        low, high = blocks - 1 - stop // row, blocks - 1 - start // row
        begin, end = kernel.kv_range(attention, high)
        extents.append(
            Extent(
                first=kernel.kv_range(attention, low)[0],
                last=end,
                groups=min(width, stop // per_group - start // per_group + 1),
                longest=end - begin,
            )
        )
    return extents


def masked_refetched_bytes(policy: str, attention: Attention, kernel: Kernel, places: int, l2_bytes: int) -> int:
    """Return K/V bytes read from DRAM beyond the first time, for a causal call under `capacity` or `random`.

    `capacity`: rows that a wave shares with the one before hit if its longest tile's rows, of all heads in the section,
    and Q and O of a wave stay below `l2_bytes`; so passes are weighted by the prefix they read. It is the wave's own
    tile that counts, not the longer ones before: it starts when the shortest of these ends. `random`: shared rows miss
    with the ratio that the section's longest tiles give.

    Raises `AnalyticalError` for `paper`, whose equations have no mask, for a sawtooth order, and for other schedules
    where K/V do not fit.
    """
    if policy not in ("capacity", "random"):
        raise AnalyticalError(f"policy {policy!r} has no causal mask (Eq. 1-12 have none); use capacity, lru or random")
    if kernel.kv_order == "sawtooth":
        raise AnalyticalError(f"policy {policy!r} knows no sawtooth order under a mask; use lru")
    if kernel.schedule != "lpt_l2_sections":
        return _unsectioned(policy, attention, kernel, places, l2_bytes)
    total = 0
    for width, count in section_widths(attention, kernel):
        extents = wave_extents(attention, kernel, width, places)
        wave_bytes = min(places, kernel.tiles_per_group(attention) * width) * _tile_bytes(attention, kernel)
        held = width * attention.kv_row_bytes
        once = attention.visible_rows * width
        if policy == "random":
            shared = sum(extent.groups * extent.rows for extent in extents) - once
            pressure = held * extents[0].longest / l2_bytes
            rows = round(float(random_miss_ratio(pressure)) * max(0, shared))
        else:
            rows = max(0, _rows_read(extents, width, held, l2_bytes - wave_bytes) - once)
        total += count * rows * attention.kv_row_bytes
    return total


def _rows_read(extents: list[Extent], width: int, held: int, room: int) -> int:
    """Return K/V rows that miss over all waves of a section, first reads included."""
    # With fewer places than tiles of one query block, a head comes back only every few waves.
    rounds = ceil_div(width, max(extent.groups for extent in extents))
    read = sum(extent.groups * extent.rows for extent in extents[:rounds])
    for before, extent in zip(extents, extents[rounds:], strict=False):
        overlap = max(0, min(before.last, extent.last) - max(before.first, extent.first))
        hits = overlap if held * extent.longest < room else 0
        read += extent.groups * (extent.rows - hits)
    return read


def _unsectioned(policy: str, attention: Attention, kernel: Kernel, places: int, l2_bytes: int) -> int:
    """Nothing comes back where K/V of the groups in flight, with Q and O, fit; there is no closed form beyond."""
    tiles = kernel.tiles_per_group(attention)
    groups = min(attention.batch * attention.heads_kv, ceil_div(places, tiles) + 1)
    working_set = groups * attention.kv_group_bytes + places * _tile_bytes(attention, kernel)
    if working_set < l2_bytes:
        return 0
    raise AnalyticalError(
        f"policy {policy!r} has no closed form for a mask in {kernel.schedule} order once K/V do not fit "
        f"({working_set} B in flight, {l2_bytes} B of L2): tiles of unequal length drift apart; use lru"
    )


def _tile_bytes(attention: Attention, kernel: Kernel) -> int:
    return kernel.tile_m * (attention.q_row_bytes + attention.o_row_bytes)
