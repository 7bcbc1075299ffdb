"""Random tensor maps, shapes and tile coordinates: rank 1-5, boxes that end out of range, unaligned short rows."""

from typing import Literal

from simfa.kernel import KernelSpec
from simfa.trace import TensorMap, TileBinding
from simfa.workload import AttentionShape
from tests.oracle.chooser import Chooser

SHAPE = AttentionShape(batch=2, seqlen_q=12, seqlen_kv=20, heads_q=4, heads_kv=2, head_dim=8)
KERNEL = KernelSpec(
    version="latest",
    tile_m=4,
    tile_n=4,
    stages=2,
    consumers=1,
    cluster=1,
    schedule="static",
    ping_pong=False,
    overlap=False,
    p_in_registers=True,
    rescale_before_pv=False,
)


def draw_map(chooser: Chooser, name: str, attention: bool, least_rank: int = 1) -> TensorMap:
    """Return a map whose whole box holds a few hundred bytes; `attention` allows the origins of a shape's tiles."""
    integer, pick = chooser.integer, chooser.pick
    origins: tuple[Literal["none", "query", "kv"], ...] = ("none", "query", "kv")
    origin = pick(origins) if attention else "none"
    rank = integer(max(least_rank, 1 if origin == "none" else 4), 5)
    sizes: tuple[Literal[2, 1, 4, 8], ...] = (2, 1, 4, 8)
    element_bytes = pick(sizes)
    row = pick([5, 16, 32, 100, 128, 200]) // element_bytes or 1
    dims, box, strides = [], [], []
    for dimension in range(rank):
        if dimension == 0:
            box.append(row)
            dims.append(pick([row, row + 3, 2 * row, max(1, row // 2)]))
            continue
        box.append(integer(1, 5) if dimension == 1 else pick([1, 1, 2]))
        dims.append(pick([16, 6, 2, 24]) if dimension == 1 else integer(1, 3))
        strides.append(pick([dims[0] * element_bytes, 48, 256, 1000, 7]))
    return TensorMap(
        name=name,
        base=pick([0, 1024, 72, 4093]),
        dims=tuple(dims),
        strides=tuple(strides),
        box=tuple(box),
        element_bytes=element_bytes,
        origin=origin,
    )


def draw_place(chooser: Chooser, tensor: TensorMap) -> tuple[int, int, int]:
    """Return a box's first column and row, mostly inside the tensor, and the rows it moves in each iteration."""
    x = chooser.pick([0, 0, 0, 1, tensor.dims[0] // 2, tensor.dims[0]])
    if len(tensor.dims) == 1:
        return x, 0, 0
    return x, chooser.pick([0, 0, 1, 3, 8]), chooser.pick([0, 1, 2])


def draw_binding(chooser: Chooser, kind: int) -> TileBinding:
    """Return a tile of `SHAPE` for a tile kind."""
    return TileBinding(kind, chooser.integer(0, 2), chooser.integer(0, SHAPE.heads_q - 1), chooser.integer(0, 1))
