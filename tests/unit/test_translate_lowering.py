"""From events to instructions: counts of the FA3 source, programs written by hand, and what level 1 leaves out."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simfa import isa
from simfa.errors import LogError
from simfa.events import RECORD_DTYPE, Event
from simfa.instrument.event_order import begin_events, of_level_1, tile_events
from simfa.kernel import KernelSpec, ceil_div, kernel_for
from simfa.translate import lower
from simfa.translate.compress import expand
from simfa.translate.events import Step, codes_of, codes_of_steps
from simfa.translate.programs import Rules
from simfa.translate.reconstruct import complete_prologue, complete_tile
from simfa.translate.trace_builder import trace_from_kernel
from simfa.workload import AttentionShape
from tests.unit.lowered_tiles import (
    SHAPE,
    flat_programs,
    launches,
    mnemonics,
    releases_of,
    text_of,
    trace_of,
    waits_on,
)

RULES: list[Rules] = ["source", "paper"]


@settings(max_examples=15, deadline=None)
@given(launch=launches())
def test_counts_of_a_tile_are_those_of_the_source(launch: tuple[AttentionShape, KernelSpec]) -> None:
    """The table of counts per warpgroup and tile of the FA3 source, with N key blocks."""
    shape, kernel = launch
    trace = trace_of(shape, kernel)
    for tiles in trace.schedule.tiles:
        for tile in tiles:
            blocks = kernel.key_blocks(shape, tile.m_block)
            producer, *consumers = flat_programs(trace, tile.kind)
            boxes = shape.head_dim // 64
            assert mnemonics(producer) == {"ACQUIRE_STAGE": 2 * blocks + 2, "TMA_TENSOR": boxes * (2 * blocks + 1)}
            for role, body in enumerate(consumers, 1):
                turns = blocks - 1 if kernel.ping_pong else 0
                waits = 1 if kernel.ping_pong and role > 1 else blocks
                count = mnemonics(body)
                assert waits_on(body, "Q") == 1
                assert waits_on(body, "K") == waits_on(body, "V") == waits
                assert releases_of(body, "K") == releases_of(body, "V") == blocks
                assert releases_of(body, "Q") == 1
                assert count["WGMMA"] == count["WGMMA_COMMIT"] == 2 * blocks
                waiting = [item.outstanding for item in body if isinstance(item, isa.WgmmaWait)]
                assert (waiting.count(1), waiting.count(0)) == (blocks - 1, blocks + 1)
                sides = kernel.consumers - 1
                last = role == kernel.consumers
                assert count["BAR_WAIT"] == turns + 1 + last
                assert count["BAR_ARRIVE"] == turns + sides + (not last)
                assert count["TMA_STORE"] == (boxes if last else 0)
                assert releases_of(body, "O") == last


@settings(max_examples=15, deadline=None)
@given(launch=launches())
def test_work_of_a_tile_is_that_of_the_shape(launch: tuple[AttentionShape, KernelSpec]) -> None:
    shape, kernel = launch
    trace = trace_of(shape, kernel)
    boxes = {item.name: item.box_bytes for item in trace.maps}
    rings = {ring.name: ring for ring in trace.rings}
    for tiles in trace.schedule.tiles:
        for tile in tiles:
            blocks = kernel.key_blocks(shape, tile.m_block)
            masked = kernel.masked_blocks(shape, tile.m_block)
            scores = 64 * kernel.tile_n
            producer, *consumers = flat_programs(trace, tile.kind)
            loaded: Counter[str] = Counter()
            for item in producer:
                if isinstance(item, isa.TmaTensor):
                    loaded[item.map] += boxes[item.map] * (kernel.cluster if item.multicast else 1)
            row_bytes = shape.head_dim * shape.element_bytes
            assert loaded == {
                "Q": kernel.tile_m * row_bytes,
                "K": blocks * kernel.tile_n * row_bytes,
                "V": blocks * kernel.tile_n * row_bytes,
            }
            assert all(loaded[name] % rings[name].bytes == 0 for name in loaded)
            for body in consumers:
                flops = sum(2 * i.m * i.n * i.k * i.count for i in body if isinstance(i, isa.Wgmma))
                assert flops == 4 * 64 * blocks * kernel.tile_n * shape.head_dim
                bubbles = [item for item in body if isinstance(item, isa.Bubbles)]
                softmax = [item for item in bubbles if item.kind == "softmax" and item.elements]
                rescale = [item.rescale for item in bubbles if item.rescale]
                assert [item.elements for item in softmax] == [scores] * blocks
                assert [item.masked for item in softmax] == [scores] * masked + [0] * (blocks - masked)
                rescales = blocks if kernel.rescale_before_pv else blocks - 1
                assert rescale == [64 * shape.head_dim] * rescales
                assert [i.elements for i in bubbles if i.kind == "epilogue"] == [64 * shape.head_dim]


@settings(max_examples=15, deadline=None)
@given(launch=launches())
def test_blocks_are_visited_from_the_last_to_the_first(launch: tuple[AttentionShape, KernelSpec]) -> None:
    shape, kernel = launch
    for rules in RULES:
        trace = trace_of(shape, kernel, rules)
        tile = trace.schedule.tiles[0][0]
        blocks = kernel.key_blocks(shape, tile.m_block)
        producer = flat_programs(trace, tile.kind)[0]
        for name in ("K", "V"):
            rows = [(i.slot.index.start, i.y.start) for i in producer if isinstance(i, isa.TmaTensor) and i.map == name]
            assert sorted(set(rows)) == [(fill, (blocks - 1 - fill) * kernel.tile_n) for fill in range(blocks)]


@settings(max_examples=40, deadline=None)
@given(launch=launches(), blocks=st.integers(1, 9), data=st.data())
def test_level_1_reconstructs_what_level_2_logs(
    launch: tuple[AttentionShape, KernelSpec], blocks: int, data: st.DataObject
) -> None:
    _, kernel = launch
    role = data.draw(st.integers(0, kernel.consumers))
    full = tile_events(kernel, role, blocks, 2)
    completed = complete_tile(codes_of(full[of_level_1(full)]), kernel, role, 1)
    assert completed.reconstructed
    assert np.array_equal(completed.codes, codes_of(full))
    assert not complete_tile(codes_of(full), kernel, role, 2).reconstructed
    begin = lower.lower_prologue(codes_of(begin_events(kernel, role, 2)), role)
    assert (
        lower.lower_prologue(complete_prologue(codes_of(begin_events(kernel, role, 1)), kernel, role, 1).codes, role)
        == begin
    )


def test_the_store_is_added_where_its_warp_did_not_log() -> None:
    kernel = kernel_for(SHAPE)
    full = tile_events(kernel, 2, 3, 2, warp=3)
    other = tile_events(kernel, 2, 3, 2, warp=0)
    assert len(other) == len(full) - 2
    completed = complete_tile(codes_of(other), kernel, 2, 2)
    assert completed.reconstructed
    assert np.array_equal(completed.codes, codes_of(full))


def test_source_programs_of_two_blocks_by_hand() -> None:
    """FA3's D 128 kernel with two key blocks of 176: the order of its main loop, its ping-pong and its epilogue."""
    trace = trace_of(SHAPE, kernel_for(SHAPE))
    producer, first, second = map(text_of, flat_programs(trace, 0))
    assert producer == [
        "ACQUIRE_STAGE K[0]",
        "TMA_TENSOR K[0] map=K x=0 y=176 multicast",
        "TMA_TENSOR K[0] map=K x=64 y=176 multicast",
        "ACQUIRE_STAGE Q[0]",
        "TMA_TENSOR Q[0] map=Q x=0 y=0",
        "TMA_TENSOR Q[0] map=Q x=64 y=0",
        "ACQUIRE_STAGE O[0]",
        "ACQUIRE_STAGE K[1]",
        "TMA_TENSOR K[1] map=K x=0 y=0 multicast",
        "TMA_TENSOR K[1] map=K x=64 y=0 multicast",
        "ACQUIRE_STAGE V[0]",
        "TMA_TENSOR V[0] map=V x=0 y=176 multicast",
        "TMA_TENSOR V[0] map=V x=64 y=176 multicast",
        "ACQUIRE_STAGE V[1]",
        "TMA_TENSOR V[1] map=V x=0 y=0 multicast",
        "TMA_TENSOR V[1] map=V x=64 y=0 multicast",
    ]

    def consumer(own: int, other: int, waits: bool, end: list[str]) -> list[str]:
        return [
            "MB_WAIT Q[0]",
            "MB_WAIT K[0]",
            "WGMMA m=64 n=176 k=16 count=8 mode=SS d=S a=Q[0] b=K[0] group=0",
            "WGMMA_COMMIT group=0",
            "WGMMA_WAIT group=0 outstanding=0",
            "RELEASE_STAGE K[0] remote",
            "BUBBLES softmax elements=11264 masked=11264",
            *(["MB_WAIT K[1]"] if waits else []),
            f"BAR_WAIT {8 + own} arrivals=1",
            "WGMMA m=64 n=176 k=16 count=8 mode=SS d=S a=Q[0] b=K[1] group=1",
            "WGMMA_COMMIT group=1",
            *(["MB_WAIT V[0]"] if waits else []),
            "WGMMA m=64 n=128 k=16 count=11 mode=RS d=O a=P b=V[0] group=2",
            "WGMMA_COMMIT group=2",
            f"BAR_ARRIVE {8 + other}",
            "WGMMA_WAIT group=2 outstanding=1",
            "RELEASE_STAGE K[1] remote",
            "BUBBLES softmax elements=11264",
            "WGMMA_WAIT group=2 outstanding=0",
            "RELEASE_STAGE V[0] remote",
            "BUBBLES softmax rescale=8192",
            "RELEASE_STAGE Q[0]",
            "MB_WAIT V[1]",
            "WGMMA m=64 n=128 k=16 count=11 mode=RS d=O a=P b=V[1] group=3",
            "WGMMA_COMMIT group=3",
            "WGMMA_WAIT group=3 outstanding=0",
            "RELEASE_STAGE V[1] remote",
            f"BAR_ARRIVE {other}",
            f"BAR_WAIT {own} arrivals=1",
            "BUBBLES epilogue elements=8192",
            *end,
        ]

    store = [
        "BAR_WAIT 4 arrivals=1",
        "TMA_STORE map=O x=0 y=0 group=0",
        "TMA_STORE map=O x=64 y=0 group=0",
        "TMA_COMMIT group=0",
        "TMA_WAIT group=0 outstanding=0 read",
        "RELEASE_STAGE O[0] remote",
    ]
    assert first == consumer(1, 2, True, ["BAR_ARRIVE 4"])
    assert second == consumer(2, 1, False, store)
    programs = {program.name: text_of(expand(program.body)) for program in trace.programs}
    assert [programs.get(name or "") for name in trace.prologue] == [None, ["BAR_ARRIVE 9"], None]


def test_rescale_stands_before_the_pv_product_for_head_dim_256() -> None:
    shape = AttentionShape(batch=1, seqlen_q=128, seqlen_kv=160, heads_q=1, heads_kv=1, head_dim=256)
    trace = trace_of(shape, kernel_for(shape))
    body = text_of(flat_programs(trace, 0)[2])
    rescale = "BUBBLES softmax rescale=16384"
    places = [number for number, line in enumerate(body) if line == rescale]
    assert [body[place - 1] for place in places] == ["WGMMA_COMMIT group=1", "RELEASE_STAGE Q[0]"]
    assert [body[place + 1] for place in places] == ["MB_WAIT V[0]", "MB_WAIT V[1]"]
    assert not any(line.startswith(("BAR_WAIT 9", "BAR_WAIT 10")) for line in body)


def test_three_consumers_pass_the_turn_around() -> None:
    shape = AttentionShape(batch=1, seqlen_q=192, seqlen_kv=576, heads_q=1, heads_kv=1, head_dim=64)
    trace = trace_of(shape, kernel_for(shape))
    for role, body in enumerate(flat_programs(trace, 0)[1:], 1):
        waits = [item.barrier for item in body if isinstance(item, isa.BarWait) and item.barrier > 8]
        signals = [item.barrier for item in body if isinstance(item, isa.BarArrive) and item.barrier > 8]
        assert waits == [8 + role] * 2
        assert signals == [8 + {1: 2, 2: 3, 3: 1}[role]] * 2
        assert {item.mode for item in body if isinstance(item, isa.Wgmma)} == {"SS"}


@settings(max_examples=15, deadline=None)
@given(launch=launches(), noise=st.integers(0, 1 << 32))
def test_timestamps_change_nothing(launch: tuple[AttentionShape, KernelSpec], noise: int) -> None:
    shape, kernel = launch
    random = np.random.default_rng(noise)

    def noisy(role: int, blocks: int) -> Any:
        records = tile_events(kernel, role, blocks, 2)
        records["timestamp"] = random.integers(0, 1 << 63, len(records), dtype=np.uint64)
        records["aux"] = random.integers(0, 1 << 16, len(records), dtype=np.uint16)
        return records

    assert trace_from_kernel(shape, kernel, 4, noisy) == trace_from_kernel(
        shape, kernel, 4, lambda role, blocks: tile_events(kernel, role, blocks, 2)
    )


@settings(max_examples=15, deadline=None)
@given(launch=launches(), ctas=st.integers(1, 6))
def test_every_tile_is_bound_once(launch: tuple[AttentionShape, KernelSpec], ctas: int) -> None:
    shape, kernel = launch
    trace = trace_of(shape, kernel, ctas=ctas * kernel.cluster)
    bound = [tile[1:] for tiles in trace.schedule.tiles for tile in tiles]
    blocks = range(ceil_div(shape.seqlen_q, kernel.tile_m))
    wanted = {(m, h, b) for m in blocks for h in range(shape.heads_q) for b in range(shape.batch)}
    assert len(bound) == len(wanted)
    assert set(bound) == wanted
    assert trace.schedule.mode == ("dynamic" if shape.causal else "static")


def test_equal_programs_are_stored_once_and_named_for_people() -> None:
    shape = AttentionShape(batch=1, seqlen_q=384, seqlen_kv=384, heads_q=2, heads_kv=1, head_dim=128, causal=True)
    trace = trace_of(shape, kernel_for(shape))
    assert [kind.name for kind in trace.tile_kinds] == ["n3.m1", "n2.m1", "n1.m1"]
    assert trace.tile_kinds[0].programs == ("producer.n3", "consumer1.n3.m1", "consumer2.n3.m1")
    bodies = [(program.role, program.body) for program in trace.programs]
    assert len(set(bodies)) == len(bodies)
    full = AttentionShape(batch=1, seqlen_q=384, seqlen_kv=384, heads_q=2, heads_kv=1, head_dim=128)
    assert [kind.name for kind in trace_of(full, kernel_for(full)).tile_kinds] == ["n3"]


def test_events_without_a_place_are_refused() -> None:
    kernel = kernel_for(SHAPE)
    sync = codes_of_steps([Step(Event.BAR_SYNC_START, 1)])
    with pytest.raises(LogError, match="ping-pong on named barrier 1; FA3 uses 9 and up"):
        lower.lower_tile(sync, SHAPE, kernel, 1, 1)
    with pytest.raises(LogError, match="role 1: GEMM_QK_ISSUE before the first TILE"):
        lower.lower_prologue(codes_of_steps([Step(Event.GEMM_QK_ISSUE)]), 1)
    serial = KernelSpec(**{**{name: getattr(kernel, name) for name in kernel.__struct_fields__}, "overlap": False})
    with pytest.raises(LogError, match="without overlap inside a warpgroup"):
        trace_from_kernel(SHAPE, serial, 2, lambda role, blocks: np.zeros(0, RECORD_DTYPE))
