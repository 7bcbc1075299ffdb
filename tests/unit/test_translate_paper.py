"""Section 5.2 of the paper to the letter, with the five corrections of `docs/translation.md`."""

import pytest
from hypothesis import given, settings

from simfa import isa
from simfa.kernel import KernelSpec, kernel_for
from simfa.workload import AttentionShape
from tests.unit.lowered_tiles import SHAPE, flat_programs, launches, mnemonics, text_of, trace_of, waits_on


def test_paper_programs_of_two_blocks_by_hand() -> None:
    """Section 5.2: eight WGMMAs a product, one copy a tile, BAR_ARRIVE before QK and BAR_WAIT before softmax."""
    trace = trace_of(SHAPE, kernel_for(SHAPE), "paper", level=1)
    producer, first, second = map(text_of, flat_programs(trace, 0))
    assert producer == [
        "ACQUIRE_STAGE K[0]",
        "TMA_TENSOR K[0] map=K x=0 y=176",
        "ACQUIRE_STAGE Q[0]",
        "TMA_TENSOR Q[0] map=Q x=0 y=0",
        "ACQUIRE_STAGE K[1]",
        "TMA_TENSOR K[1] map=K x=0 y=0",
        "ACQUIRE_STAGE V[0]",
        "TMA_TENSOR V[0] map=V x=0 y=176",
        "ACQUIRE_STAGE V[1]",
        "TMA_TENSOR V[1] map=V x=0 y=0",
    ]

    def consumer(before_qk: str, before_softmax: str, waits: bool) -> list[str]:
        return [
            "MB_WAIT Q[0]",
            "MB_WAIT K[0]",
            before_qk,
            "WGMMA m=64 n=176 k=16 count=8 mode=SS d=S a=Q[0] b=K[0] group=0",
            "WGMMA_COMMIT group=0",
            "WGMMA_WAIT group=0 outstanding=0",
            "RELEASE_STAGE K[0]",
            *(["MB_WAIT K[1]"] if waits else []),
            before_qk,
            "WGMMA m=64 n=176 k=16 count=8 mode=SS d=S a=Q[0] b=K[1] group=1",
            "WGMMA_COMMIT group=1",
            "MB_WAIT V[0]",
            "WGMMA m=64 n=128 k=16 count=8 mode=RS d=O a=P b=V[0] group=2",
            "WGMMA_COMMIT group=2",
            "WGMMA_WAIT group=2 outstanding=1",
            "RELEASE_STAGE K[1]",
            "RELEASE_STAGE Q[0]",
            before_softmax,
            "BUBBLES softmax elements=11264 rescale=8192",
            "WGMMA_WAIT group=2 outstanding=0",
            "RELEASE_STAGE V[0]",
            "MB_WAIT V[1]",
            "WGMMA m=64 n=128 k=16 count=8 mode=RS d=O a=P b=V[1] group=3",
            "WGMMA_COMMIT group=3",
            "WGMMA_WAIT group=3 outstanding=0",
            "RELEASE_STAGE V[1]",
        ]

    assert first == consumer("BAR_ARRIVE 2", "BAR_WAIT 1 arrivals=1", True)
    assert second == consumer("BAR_WAIT 2 arrivals=1", "BAR_ARRIVE 1", False)
    assert trace.schedule.cluster == 1
    assert trace.prologue == (None, None, None)


@settings(max_examples=30, deadline=None)
@given(launch=launches())
def test_paper_counts(launch: tuple[AttentionShape, KernelSpec]) -> None:
    shape, kernel = launch
    trace = trace_of(shape, kernel, "paper", level=1)
    for kind in range(len(trace.tile_kinds)):
        producer, *consumers = flat_programs(trace, kind)
        blocks = mnemonics(producer)["ACQUIRE_STAGE"] // 2
        assert mnemonics(producer) == {"ACQUIRE_STAGE": 2 * blocks + 1, "TMA_TENSOR": 2 * blocks + 1}
        for body in consumers:
            products = [item for item in body if isinstance(item, isa.Wgmma)]
            assert len(products) == 2 * blocks
            assert all(item.count == 8 for item in products)
            assert mnemonics(body)["BUBBLES"] == blocks - 1
            assert waits_on(body, "V") == blocks


def test_rules_paper_gives_the_same_from_either_level() -> None:
    kernel = kernel_for(SHAPE)
    low, high = (trace_of(SHAPE, kernel, "paper", level=level) for level in (1, 2))
    assert low.programs == high.programs


def test_three_consumers_follow_the_first() -> None:
    """P4: consumer 1 signals both others before QK and waits for both before softmax."""
    shape = AttentionShape(batch=1, seqlen_q=192, seqlen_kv=576, heads_q=1, heads_kv=1, head_dim=64)
    _, first, *others = flat_programs(trace_of(shape, kernel_for(shape), "paper"), 0)
    assert [item.barrier for item in first if isinstance(item, isa.BarArrive)] == [2, 3] * 3
    assert [(item.barrier, item.arrivals) for item in first if isinstance(item, isa.BarWait)] == [(1, 2)] * 2
    for role, body in enumerate(others, 2):
        assert [item.barrier for item in body if isinstance(item, isa.BarWait)] == [role] * 3
        assert [item.barrier for item in body if isinstance(item, isa.BarArrive)] == [1] * 2


@pytest.mark.parametrize("head_dim", [128, 256])
def test_only_ping_pong_kernels_have_barriers(head_dim: int) -> None:
    shape = AttentionShape(batch=1, seqlen_q=128, seqlen_kv=704, heads_q=1, heads_kv=1, head_dim=head_dim)
    for body in flat_programs(trace_of(shape, kernel_for(shape), "paper"), 0)[1:]:
        assert (mnemonics(body)["BAR_WAIT"] > 0) == (head_dim == 128)
