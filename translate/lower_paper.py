"""Rules `paper`: section 5.2 of the paper on the events of Table 4, one function an event.

Where the letter would hang or read a slot before it is filled, the least is added; `docs/translation.md` numbers these
corrections P1 to P5, and so do the comments here.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from simfa import isa
from simfa.events import LEVEL_1_EVENTS, Event
from simfa.isa import Affine, Slot
from simfa.kernel import KernelSpec
from simfa.translate import softmax_work
from simfa.translate.builder import Lowered, ProgramBuilder
from simfa.translate.events import Codes, count
from simfa.translate.fold import Folded, lower_steps
from simfa.translate.tensor_maps import paper_layout
from simfa.workload import AttentionShape

WGMMAS_PER_PRODUCT = 8  # "expanded into eight WGMMA instructions"
QUERY = Slot("Q", Affine(0))


class PaperTile(NamedTuple):
    """What the functions below need to know of the tile, and the program they add to."""

    shape: AttentionShape
    kernel: KernelSpec
    role: int
    key_blocks: int
    columns: tuple[int, ...]
    waits_for_v: int
    out: ProgramBuilder


def of_table_4(codes: Codes) -> Codes:
    """Return the events of Table 4 among codes."""
    kept: Codes = codes[np.isin(codes & 0xFFFF, list(LEVEL_1_EVENTS))]
    return kept


def lower_tile(
    codes: Codes, shape: AttentionShape, kernel: KernelSpec, role: int, folded: Folded | None = None
) -> Lowered:
    """Return the instructions of one role for one tile from its Table 4 events.

    With `folded`, which `fold` made of `codes`, they have a hole.
    """
    layout = paper_layout(shape)
    tile = PaperTile(
        shape=shape,
        kernel=kernel,
        role=role,
        key_blocks=count(codes, Event.GEMM_QK_ISSUE),
        columns=tuple(range(0, layout.boxes * layout.box_columns, layout.box_columns)),
        waits_for_v=count(codes, Event.WAIT_V_START),
        out=ProgramBuilder(),
    )
    hole = lower_steps(codes, folded, tile.out, lambda step: _LOWER[step.event](tile, step.payload))
    return Lowered(tuple(tile.out.body), hole)


def _tma_q(tile: PaperTile, payload: int) -> None:
    tile.out.acquire("Q")
    tile.out.load("Q", 0, tile.columns)


def _tma_k(tile: PaperTile, block: int) -> None:
    tile.out.acquire("K")
    tile.out.load("K", block * tile.kernel.tile_n, tile.columns)


def _tma_v(tile: PaperTile, block: int) -> None:
    tile.out.acquire("V")
    tile.out.load("V", block * tile.kernel.tile_n, tile.columns)


def _wait_k(tile: PaperTile, block: int) -> None:
    if tile.out.used("multiply", "K") == 0:
        tile.out.add(isa.MbWait(slot=QUERY))  # P1: Table 4 has no wait for Q
    tile.out.wait_until_filled("K")


def _wait_v(tile: PaperTile, block: int) -> None:
    if tile.waits_for_v == tile.key_blocks:
        tile.out.wait_until_filled("V")


def _gemm_qk(tile: PaperTile, block: int) -> None:
    if tile.kernel.ping_pong:
        if tile.role == 1:
            for follower in range(2, tile.kernel.consumers + 1):  # P4: with three consumers both others follow
                tile.out.add(isa.BarArrive(barrier=follower))
        else:
            tile.out.add(isa.BarWait(barrier=tile.role, arrivals=1))
    _product(tile, "K", d="S", a=QUERY, n=tile.kernel.tile_n, registers=False)


def _gemm_pv(tile: PaperTile, block: int) -> None:
    if tile.waits_for_v != tile.key_blocks:
        tile.out.wait_until_filled("V")  # P2: in the loop only consumer 1 logs WAIT_V_START
    _product(tile, "V", d="O", a="P", n=tile.shape.head_dim, registers=tile.kernel.p_in_registers)


def _product(tile: PaperTile, ring: str, *, d: str, a: str | Slot, n: int, registers: bool) -> None:
    dtype = tile.shape.dtype
    tile.out.multiply(ring, d=d, a=a, n=n, count=WGMMAS_PER_PRODUCT, registers=registers, dtype=dtype)


def _release_k(tile: PaperTile) -> None:
    tile.out.release("K")
    if tile.out.used("release", "K") == tile.key_blocks:
        tile.out.release("Q")  # P1: after the last QK product


def _wait_wg_1(tile: PaperTile, block: int) -> None:
    tile.out.wait_for_products(1)
    _release_k(tile)
    if tile.kernel.ping_pong:
        if tile.role == 1:
            tile.out.add(isa.BarWait(barrier=1, arrivals=tile.kernel.consumers - 1))  # P4, P5
        else:
            tile.out.add(isa.BarArrive(barrier=1))
    tile.out.add(softmax_work.paper_softmax(tile.shape, tile.kernel))


def _wait_wg_0(tile: PaperTile, block: int) -> None:
    tile.out.wait_for_products(0)
    if tile.out.used("multiply", "V") == 0:
        _release_k(tile)  # P3: the first one of a tile ends QK; nothing of V was read
    else:
        tile.out.release("V")


_LOWER: dict[Event, Callable[[PaperTile, int], None]] = {
    Event.TMA_Q_ISSUE: _tma_q,
    Event.TMA_K_ISSUE: _tma_k,
    Event.TMA_V_ISSUE: _tma_v,
    Event.WAIT_K_START: _wait_k,
    Event.GEMM_QK_ISSUE: _gemm_qk,
    Event.WAIT_V_START: _wait_v,
    Event.GEMM_PV_ISSUE: _gemm_pv,
    Event.WAIT_WG_1: _wait_wg_1,
    Event.WAIT_WG_0: _wait_wg_0,
}
