"""Rules `source`: each event of a role becomes the instructions that the FA3 source stands for at that place.

One function an event; `docs/translation.md` says where each comes from in the kernel.
"""

from collections.abc import Callable
from typing import NamedTuple

from simfa import isa
from simfa.errors import LogError
from simfa.events import Event
from simfa.isa import Affine, Instruction, Slot
from simfa.kernel import KernelSpec
from simfa.translate import softmax_work
from simfa.translate.builder import WGMMA_DEPTH, Lowered, ProgramBuilder
from simfa.translate.events import Codes, count, steps_of
from simfa.translate.fold import Folded, lower_steps
from simfa.translate.tensor_maps import Layout, source_layout
from simfa.workload import AttentionShape

# Named barriers of one waiting role each. FA3's epilogue barrier 1 is one symmetric barrier: here consumer i waits on
# EPILOGUE_BARRIER + i for the others, and the storing one on STORE_BARRIER for their part of O.
EPILOGUE_BARRIER = 0
STORE_BARRIER = 4
QUERY = Slot("Q", Affine(0))


class TileLowering(NamedTuple):
    """What the functions below need to know of the tile, and the program they add to."""

    shape: AttentionShape
    kernel: KernelSpec
    layout: Layout
    role: int
    key_blocks: int
    masked: int
    out: ProgramBuilder

    @property
    def columns(self) -> range:
        """First columns of the boxes that make up a tile of Q, K, V or O."""
        return range(0, self.layout.boxes * self.layout.box_columns, self.layout.box_columns)

    @property
    def remote(self) -> bool:
        """Whether releases reach the other CTA of the cluster, too."""
        return self.layout.sharers > 1


def lower_tile(
    codes: Codes, shape: AttentionShape, kernel: KernelSpec, role: int, masked: int, folded: Folded | None = None
) -> Lowered:
    """Return the instructions of one role for one tile from its complete level-2 events.

    `masked` is the number of blocks, from the first on, whose scores are compared with a mask. With `folded`, which
    `fold` made of `codes`, they have a hole.
    """
    tile = TileLowering(
        shape=shape,
        kernel=kernel,
        layout=source_layout(shape, kernel),
        role=role,
        key_blocks=count(codes, Event.GEMM_QK_ISSUE) if role else count(codes, Event.TMA_K_ISSUE),
        masked=masked,
        out=ProgramBuilder(),
    )
    hole = lower_steps(codes, folded, tile.out, lambda step: _LOWER[step.event](tile, step.payload))
    return Lowered(tuple(tile.out.body), hole)


def lower_prologue(codes: Codes, role: int) -> tuple[Instruction, ...]:
    """Return what a role does before its first tile: the signals it gives.

    QueryEmpty's first arrival is left out: a ring starts free.
    """
    body: list[Instruction] = []
    for step in steps_of(codes):
        if step.event is Event.BAR_ARRIVE:
            body.append(isa.BarArrive(barrier=step.payload))
        elif step.event is not Event.QUERY_EMPTY_ARRIVE:
            raise LogError(f"role {role}: {step.event.name} before the first TILE; expected BAR_ARRIVE at most")
    return tuple(body)


def _acquire_k(tile: TileLowering, block: int) -> None:
    tile.out.acquire("K")


def _acquire_v(tile: TileLowering, block: int) -> None:
    tile.out.acquire("V")


def _query_empty_wait(tile: TileLowering, payload: int) -> None:
    tile.out.acquire("Q")


def _wait_o(tile: TileLowering, payload: int) -> None:
    tile.out.acquire("O")


def _tma_k(tile: TileLowering, block: int) -> None:
    tile.out.load("K", block * tile.kernel.tile_n, tile.columns, multicast=tile.remote)


def _tma_v(tile: TileLowering, block: int) -> None:
    tile.out.load("V", block * tile.kernel.tile_n, tile.columns, multicast=tile.remote)


def _tma_q(tile: TileLowering, payload: int) -> None:
    tile.out.load("Q", 0, tile.columns)


def _wait_q(tile: TileLowering, payload: int) -> None:
    tile.out.add(isa.MbWait(slot=QUERY))


def _wait_k(tile: TileLowering, block: int) -> None:
    tile.out.wait_until_filled("K")


def _wait_v(tile: TileLowering, block: int) -> None:
    tile.out.wait_until_filled("V")


def _bar_sync(tile: TileLowering, barrier: int) -> None:
    _check_barrier(barrier)
    tile.out.add(isa.BarWait(barrier=barrier, arrivals=1))


def _bar_arrive(tile: TileLowering, barrier: int) -> None:
    _check_barrier(barrier)
    tile.out.add(isa.BarArrive(barrier=barrier))


def _check_barrier(barrier: int) -> None:
    if barrier <= STORE_BARRIER:
        raise LogError(f"ping-pong on named barrier {barrier}; FA3 uses 9 and up, and the epilogue those up to 4")


def _gemm_qk(tile: TileLowering, block: int) -> None:
    first = tile.out.used("multiply", "K") == 0
    tile.out.multiply(
        "K",
        d="S",
        a=QUERY,
        n=tile.kernel.tile_n,
        count=tile.shape.head_dim // WGMMA_DEPTH,
        registers=False,
        dtype=tile.shape.dtype,
    )
    if tile.kernel.rescale_before_pv and not first:
        tile.out.add(softmax_work.rescale(tile.shape))


def _gemm_pv(tile: TileLowering, block: int) -> None:
    tile.out.multiply(
        "V",
        d="O",
        a="P",
        n=tile.shape.head_dim,
        count=tile.kernel.tile_n // WGMMA_DEPTH,
        registers=tile.kernel.p_in_registers,
        dtype=tile.shape.dtype,
    )


def _wait_wg_1(tile: TileLowering, block: int) -> None:
    tile.out.wait_for_products(1)


def _wait_wg_0(tile: TileLowering, block: int) -> None:
    tile.out.wait_for_products(0)


def _release_k(tile: TileLowering, block: int) -> None:
    tile.out.release("K", remote=tile.remote)


def _release_v(tile: TileLowering, block: int) -> None:
    tile.out.release("V", remote=tile.remote)
    last = tile.out.used("release", "V") == tile.key_blocks
    if not tile.kernel.rescale_before_pv and not last:
        tile.out.add(softmax_work.rescale(tile.shape))


def _softmax_end(tile: TileLowering, block: int) -> None:
    done = tile.key_blocks - 1 - block
    tile.out.add(softmax_work.softmax(tile.kernel, masked=done < tile.masked))


def _query_empty_arrive(tile: TileLowering, payload: int) -> None:
    tile.out.release("Q")
    if tile.kernel.rescale_before_pv:
        tile.out.add(softmax_work.rescale(tile.shape))


def _epilogue_start(tile: TileLowering, payload: int) -> None:
    consumers = range(1, tile.kernel.consumers + 1)
    others = [role for role in consumers if role != tile.role]
    for role in others:
        tile.out.add(isa.BarArrive(barrier=EPILOGUE_BARRIER + role))
    if others:
        tile.out.add(isa.BarWait(barrier=EPILOGUE_BARRIER + tile.role, arrivals=len(others)))
    tile.out.add(softmax_work.epilogue(tile.shape))
    if tile.role != tile.kernel.consumers:
        tile.out.add(isa.BarArrive(barrier=STORE_BARRIER))


def _tma_o(tile: TileLowering, payload: int) -> None:
    if tile.kernel.consumers > 1:
        tile.out.add(isa.BarWait(barrier=STORE_BARRIER, arrivals=tile.kernel.consumers - 1))
    tile.out.store("O", tile.columns)


def _tma_o_wait_end(tile: TileLowering, payload: int) -> None:
    tile.out.wait_for_store()
    tile.out.release("O", remote=tile.remote)


_LOWER: dict[Event, Callable[[TileLowering, int], None]] = {
    Event.ACQUIRE_K_START: _acquire_k,
    Event.ACQUIRE_V_START: _acquire_v,
    Event.QUERY_EMPTY_WAIT: _query_empty_wait,
    Event.WAIT_O_START: _wait_o,
    Event.TMA_K_ISSUE: _tma_k,
    Event.TMA_V_ISSUE: _tma_v,
    Event.TMA_Q_ISSUE: _tma_q,
    Event.WAIT_Q_START: _wait_q,
    Event.WAIT_K_START: _wait_k,
    Event.WAIT_V_START: _wait_v,
    Event.BAR_SYNC_START: _bar_sync,
    Event.BAR_ARRIVE: _bar_arrive,
    Event.GEMM_QK_ISSUE: _gemm_qk,
    Event.GEMM_PV_ISSUE: _gemm_pv,
    Event.WAIT_WG_1: _wait_wg_1,
    Event.WAIT_WG_0: _wait_wg_0,
    Event.RELEASE_K: _release_k,
    Event.RELEASE_V: _release_v,
    Event.SOFTMAX_END: _softmax_end,
    Event.QUERY_EMPTY_ARRIVE: _query_empty_arrive,
    Event.EPILOGUE_START: _epilogue_start,
    Event.TMA_O_ISSUE: _tma_o,
    Event.TMA_O_WAIT_END: _tma_o_wait_end,
}
