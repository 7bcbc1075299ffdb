"""Tensor maps and rings of an FA3 launch: where Q, K, V and O lie, and what one TMA instruction moves."""

from typing import NamedTuple

from simfa.kernel import KernelSpec, ceil_div
from simfa.trace import Ring, TensorMap
from simfa.workload import AttentionShape

BASE_ALIGNMENT = 2 * 1024 * 1024  # device allocations start on 2 MiB pages
SWIZZLE_BYTES = 128  # FA3 keeps tiles in 128-byte swizzled rows, so a box is one swizzle row wide


class Layout(NamedTuple):
    """How tiles are cut into boxes: columns of one box, boxes side by side, and CTAs that share a K/V tile."""

    box_columns: int
    boxes: int
    sharers: int


def source_layout(shape: AttentionShape, kernel: KernelSpec) -> Layout:
    """Return FA3's layout: 128-byte wide boxes, and multicast halves of K and V in clusters."""
    columns = min(shape.head_dim, SWIZZLE_BYTES // shape.element_bytes)
    return Layout(columns, shape.head_dim // columns, kernel.cluster)


def paper_layout(shape: AttentionShape) -> Layout:
    """Return the layout of section 5.2: one TMA_TENSOR a tile, nothing shared."""
    return Layout(shape.head_dim, 1, 1)


def tensor_maps(shape: AttentionShape, kernel: KernelSpec, layout: Layout) -> tuple[TensorMap, ...]:
    """Return the maps of Q, K, V and O: dims (column, row, head, batch) of (batch, seqlen, heads, head_dim) tensors.

    The four tensors follow one another in this order, each from the next multiple of 2 MiB on.
    """
    maps: list[TensorMap] = []
    base = 0
    for name, rows, heads, box_rows in (
        ("Q", shape.seqlen_q, shape.heads_q, kernel.tile_m),
        ("K", shape.seqlen_kv, shape.heads_kv, kernel.tile_n // layout.sharers),
        ("V", shape.seqlen_kv, shape.heads_kv, kernel.tile_n // layout.sharers),
        ("O", shape.seqlen_q, shape.heads_q, kernel.tile_m),
    ):
        head_bytes = shape.head_dim * shape.element_bytes
        row_bytes = heads * head_bytes
        maps.append(
            TensorMap(
                name=name,
                base=base,
                dims=(shape.head_dim, rows, heads, shape.batch),
                strides=(row_bytes, head_bytes, rows * row_bytes),
                box=(layout.box_columns, box_rows, 1, 1),
                element_bytes=shape.element_bytes,  # type: ignore[arg-type]  # 1 or 2 by dtype
                origin="query" if name in "QO" else "kv",
            )
        )
        base += ceil_div(shape.batch * rows * row_bytes, BASE_ALIGNMENT) * BASE_ALIGNMENT
    return tuple(maps)


def source_rings(shape: AttentionShape, kernel: KernelSpec) -> tuple[Ring, ...]:
    """Return FA3's rings.

    K and V have an mbarrier pipeline each. Q is freed by the named barrier QueryEmpty. O is no load: barrier_O keeps
    the loads of the next tile away from the shared memory of V, which O reuses, until the storing warp of each CTA of
    the cluster has stored.
    """
    row_bytes = shape.head_dim * shape.element_bytes
    releases = kernel.consumers * kernel.cluster
    return (
        Ring(name="K", stages=kernel.stages, bytes=kernel.tile_n * row_bytes, releases=releases),
        Ring(name="V", stages=kernel.stages, bytes=kernel.tile_n * row_bytes, releases=releases),
        Ring(name="Q", stages=1, bytes=kernel.tile_m * row_bytes, releases=kernel.consumers, empty="named"),
        Ring(name="O", stages=1, bytes=0, releases=kernel.cluster),
    )


def paper_rings(shape: AttentionShape, kernel: KernelSpec) -> tuple[Ring, ...]:
    """Return the rings of section 5.2: K and V, and a buffer for Q, each freed by the CTA's own consumers."""
    row_bytes = shape.head_dim * shape.element_bytes
    return (
        Ring(name="K", stages=kernel.stages, bytes=kernel.tile_n * row_bytes, releases=kernel.consumers),
        Ring(name="V", stages=kernel.stages, bytes=kernel.tile_n * row_bytes, releases=kernel.consumers),
        Ring(name="Q", stages=1, bytes=kernel.tile_m * row_bytes, releases=kernel.consumers),
    )
