"""The kernel as the closed forms see it: tile, residency, tile order, packing; and the K/V rows that tiles read."""

from typing import Literal

import msgspec

from simfa.analytical.attention import Attention
from simfa.errors import AnalyticalError, ShapeError
from simfa.kernel import KernelSpec, ceil_div, kernel_for
from simfa.workload import AttentionShape

Schedule = Literal["static", "lpt_l2_sections", "single_tile"]
KvOrder = Literal["cyclic", "sawtooth"]

# FA3 tile_n of FP8 kernels since January 2025; tile_m is that of 16-bit inputs, and no cluster is used.
_FP8_TILE_N = {64: 160, 128: 224, 256: 128}
# FA3 packs the query heads of a K/V head into one tile when that uses rows better by this factor.
_PACK_GAIN_PERCENT = 90


class Kernel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An attention kernel.

    `tile_m`, `tile_n`: rows of Q and of K/V per CTA (T_M is per CTA, not per warpgroup). `ctas_per_sm`: O_limit.
    `cluster`: CTAs that share each K/V load by multicast. `schedule`: `static` (persistent, query block fastest),
    `lpt_l2_sections` (FA3 causal: longest tile first inside sections of heads) or `single_tile` (whoever is free takes
    the next tile in the order of `static`: one tile a CTA, or FA3's causal counter before 2025). `kv_order`: every tile
    walks K/V the same way, or the direction alternates from one tile of a CTA to its next (`sawtooth`). Under a mask
    `static` is not modelled: its tiles of unequal length drift apart without bound. `pack_gqa`: rows of the G query
    heads share tiles. `splits`: CTAs that share the K/V of one tile.
    """

    name: str
    tile_m: int
    tile_n: int
    ctas_per_sm: int = 1
    cluster: int = 1
    schedule: Schedule = "static"
    kv_order: KvOrder = "cyclic"
    pack_gqa: bool = False
    splits: int = 1

    def __post_init__(self) -> None:
        """Refuse sizes that cannot exist, with the field's name."""
        for field in ("tile_m", "tile_n", "ctas_per_sm", "cluster", "splits"):
            value = getattr(self, field)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise AnalyticalError(f"{field} is {value!r}; expected a positive whole number")

    def packed_rows(self, attention: Attention) -> int:
        """Query rows that one tile sequence covers: L, or G L when packed."""
        return attention.seqlen_q * (attention.group_size if self.pack_gqa else 1)

    def query_blocks(self, attention: Attention) -> int:
        """Query tiles of one tile sequence (a query head, or a K/V head when packed)."""
        return ceil_div(self.packed_rows(attention), self.tile_m)

    def tiles_per_group(self, attention: Attention) -> int:
        """Query tiles that read the same K/V head: G ceil(L / T_M), or ceil(G L / T_M) when packed."""
        return self.query_blocks(attention) * self.sequences_per_group(attention)

    def sequences_per_group(self, attention: Attention) -> int:
        """Tile sequences that read the same K/V head: G, or 1 when packed."""
        return 1 if self.pack_gqa else attention.group_size

    def kv_range(self, attention: Attention, m_block: int) -> tuple[int, int]:
        """Rows of K/V, first and one past the last, that query tile `m_block` reads."""
        if not attention.causal:
            return 0, attention.seqlen_kv
        rows_per_query = attention.group_size if self.pack_gqa else 1
        offset = attention.seqlen_kv - attention.seqlen_q
        last = min(attention.seqlen_kv, ceil_div((m_block + 1) * self.tile_m, rows_per_query) + offset)
        if attention.window is None:
            return 0, last
        return max(0, m_block * self.tile_m // rows_per_query + offset - attention.window), last

    def kv_rows(self, attention: Attention) -> int:
        """Rows of K/V that the tiles of one tile sequence read together; ceil(L / T_M) S without a mask."""
        blocks = self.query_blocks(attention)
        if not attention.causal:
            return blocks * attention.seqlen_kv
        if attention.window is None and not self.pack_gqa:
            # All but the last tile end on a tile edge: an arithmetic series.
            offset = attention.seqlen_kv - attention.seqlen_q
            return self.tile_m * blocks * (blocks - 1) // 2 + (blocks - 1) * offset + attention.seqlen_kv
        ranges = (self.kv_range(attention, block) for block in range(blocks))
        return sum(last - first for first, last in ranges)

    def score_blocks(self, attention: Attention) -> int:
        """Blocks of `tile_m` x `tile_n` scores that the tiles of one tile sequence compute."""
        blocks = self.query_blocks(attention)
        if not attention.causal:
            return blocks * ceil_div(attention.seqlen_kv, self.tile_n)
        ranges = (self.kv_range(attention, block) for block in range(blocks))
        return sum(ceil_div(last, self.tile_n) - first // self.tile_n for first, last in ranges)

    def sequences(self, attention: Attention) -> int:
        """Tile sequences: B H_Q, or B H_KV when packed."""
        return attention.batch * attention.heads_kv * self.sequences_per_group(attention)

    def issued_flops(self, attention: Attention) -> int:
        """Operations that whole tiles issue, masked and padded scores included."""
        scores = self.score_blocks(attention) * self.tile_m * self.tile_n
        return 2 * self.sequences(attention) * scores * (attention.head_dim + attention.value_dim)


def fa3_kernel(attention: Attention, version: str = "latest", splits: int = 1) -> Kernel:
    """Return FA3's kernel for a call: tile, cluster and order of `kernel_for`, packing by FA3's rule.

    Split K/V runs one tile a CTA, without clusters, with query heads packed.

    Raises `AnalyticalError` for a head dimension FA3 has no tile for here; a kernel of one's own takes any.
    """
    fp8 = attention.qk_bytes == 1
    shape = AttentionShape(
        batch=attention.batch,
        seqlen_q=attention.seqlen_q,
        seqlen_kv=attention.seqlen_kv,
        heads_q=attention.heads_q,
        heads_kv=attention.heads_kv,
        head_dim=attention.head_dim,
        causal=attention.causal,
    )
    try:
        spec = kernel_for(shape, version)
    except ShapeError as error:
        raise AnalyticalError(f"{error}; for another kernel give --tile-m and --tile-n") from error
    if attention.value_dim != attention.head_dim or attention.latent:
        raise AnalyticalError("no FA3 tile is known for value_dim != head_dim; give --tile-m and --tile-n")
    return Kernel(
        name=f"fa3-{version}",
        tile_m=spec.tile_m,
        tile_n=_FP8_TILE_N[attention.head_dim] if fp8 else spec.tile_n,
        cluster=1 if fp8 or splits > 1 else spec.cluster,
        schedule=_schedule(spec, splits),
        pack_gqa=packs_gqa(attention, spec.tile_m, splits),
        splits=splits,
    )


def _schedule(spec: KernelSpec, splits: int) -> Schedule:
    if splits > 1 or spec.schedule == "dynamic-in-order":
        return "single_tile"
    return "static" if spec.schedule == "static" else "lpt_l2_sections"


def packs_gqa(attention: Attention, tile_m: int, splits: int = 1) -> bool:
    """Whether FA3 packs query heads: when K/V are split, or when packing uses tile rows better by over 11 %.

    Row use is L over its tiles' rows, against G L over the packed tiles' rows.
    """
    if attention.group_size == 1:
        return False
    if splits > 1:
        return True
    rows, packed = attention.seqlen_q, attention.seqlen_q * attention.group_size
    plain_tiles, packed_tiles = ceil_div(rows, tile_m), ceil_div(packed, tile_m)
    return rows * packed_tiles * 100 < _PACK_GAIN_PERCENT * packed * plain_tiles


def cutile_kernel(attention: Attention, splits: int = 1) -> Kernel:
    """Return the cuTile kernel of the paper's GB10 runs: T_M 64, T_N 32 (section 6.1), one CTA an SM.

    One CTA an SM follows from 370 M missed sectors (`data/measured/traffic_measured.csv`); two would give 193 M.
    """
    schedule: Schedule = "single_tile" if attention.causal or splits > 1 else "static"
    return Kernel(name="cutile", tile_m=64, tile_n=32, schedule=schedule, splits=splits)
