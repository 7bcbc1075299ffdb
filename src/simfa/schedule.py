"""In which order FA3 hands out output tiles, for its static and its dynamic persistent tile schedulers."""

from collections.abc import Iterator
from typing import NamedTuple

from simfa.kernel import KernelSpec
from simfa.workload import AttentionShape

# K and V bytes that the causal scheduler lets one section of heads occupy (FA3's `size_l2`).
SECTION_BYTES = 32 * 1024 * 1024


class Tile(NamedTuple):
    """One output tile: query block, query head, batch entry."""

    m_block: int
    head: int
    batch: int


def section_heads(shape: AttentionShape) -> int:
    """Return how many query heads share a causal section: a power of two of K/V heads within 32 MiB, times G."""
    kv_head_bytes = shape.seqlen_kv * 2 * shape.head_dim * shape.element_bytes
    kv_heads = 1 if kv_head_bytes > SECTION_BYTES else 1 << ((SECTION_BYTES // kv_head_bytes).bit_length() - 1)
    return kv_heads * shape.group_size


def tile_order(shape: AttentionShape, kernel: KernelSpec) -> Iterator[Tile]:
    """Yield all tiles in the order of their linear index.

    `static` and `dynamic-in-order`: query block fastest, then head, then batch. `dynamic`: sections of `section_heads`
    (head, batch) pairs; inside a section the longest query block of every head comes first.
    """
    query_blocks = kernel.query_blocks(shape)
    pairs = shape.heads_q * shape.batch
    if kernel.schedule != "dynamic":
        for pair in range(pairs):
            for m_block in range(query_blocks):
                yield Tile(m_block, pair % shape.heads_q, pair // shape.heads_q)
        return
    width = section_heads(shape)
    for first in range(0, pairs, width):
        section = range(first, min(first + width, pairs))
        for m_block in reversed(range(query_blocks)):
            for pair in section:
                yield Tile(m_block, pair % shape.heads_q, pair // shape.heads_q)


def tile_count(shape: AttentionShape, kernel: KernelSpec) -> int:
    """Return the number of output tiles of the whole call."""
    return kernel.query_blocks(shape) * shape.heads_q * shape.batch


def static_tiles(shape: AttentionShape, kernel: KernelSpec, grid: int, cta: int) -> Iterator[Tile]:
    """Yield the tiles CTA `cta` of `grid` runs under the static persistent scheduler: `cta`, `cta + grid`, ..."""
    query_blocks = kernel.query_blocks(shape)
    for index in range(cta, tile_count(shape, kernel), grid):
        pair, m_block = divmod(index, query_blocks)
        batch, head = divmod(pair, shape.heads_q)
        yield Tile(m_block, head, batch)
