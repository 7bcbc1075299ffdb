"""The simulated tile-level LRU: against a slow one, against an earlier study, against the closed form."""

from collections import OrderedDict

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simfa.analytical import traffic
from simfa.analytical.attention import Attention
from simfa.analytical.kernels import Kernel, fa3_kernel
from simfa.analytical.lru import order_shape, section_width, simulate_lru, tile_runs
from simfa.analytical.reuse import fits, refetched_bytes
from simfa.kernel import kernel_for
from simfa.schedule import section_heads, tile_order
from simfa.workload import AttentionShape, model_shape
from tests.unit.analytical_cases import (
    GB10_BYTES,
    GB10_SMS,
    H800_BYTES,
    HOPPER_SMS,
    call,
    group,
    plain_kernel,
    repeatable,
    reuse,
)


class Tile:
    """A tile of the slow cache: where it runs, and the K/V blocks it still has to read."""

    def __init__(self, place: int, turn: int, group: int, blocks: list[int], step: int) -> None:
        self.place, self.group, self.blocks = place, group, blocks
        self.together = (step, group, tuple(blocks), turn)  # Q and O of tiles that start together move together


def slow_lru(attention: Attention, kernel: Kernel, l2_bytes: int, places: int) -> int:
    """K/V bytes read beyond the first time, one `tile_n` block and one tile at a time, nothing cut short."""
    cache: OrderedDict[tuple[object, ...], int] = OrderedDict()

    def touch(key: tuple[object, ...], size: int) -> int:
        if key in cache:
            cache.move_to_end(key)
            return 0
        cache[key] = size
        while sum(cache.values()) > l2_bytes:
            cache.popitem(last=False)
        return size

    def touch_together(kind: str, tiles: list[Tile], size: int) -> None:
        for key in dict.fromkeys(tile.together for tile in tiles):
            touch((kind, key), size * sum(tile.together == key for tile in tiles))

    def blocks_of(m_block: int, turn: int) -> list[int]:
        first, last = kernel.kv_range(attention, m_block)
        blocks = list(range(first // kernel.tile_n, -(-last // kernel.tile_n)))
        return blocks[::-1] if kernel.kv_order == "cyclic" or turn % 2 == 0 else blocks

    waiting = [(run.group, run.m_block) for run in tile_runs(attention, kernel) for _ in range(run.tiles)]
    running: list[Tile] = []
    turns = [0] * places
    free = list(range(places))
    missed = step = 0
    while waiting or running:
        started = []
        while free and waiting:
            place, (head, m_block) = free.pop(0), waiting.pop(0)
            started.append(Tile(place, turns[place], head, blocks_of(m_block, turns[place]), step))
            turns[place] += 1
        touch_together("q", started, kernel.tile_m * attention.q_row_bytes)
        running += started
        for tile in running:
            block = tile.blocks.pop(0)
            rows = min(kernel.tile_n, attention.seqlen_kv - block * kernel.tile_n)
            missed += touch(("kv", tile.group, block), rows * attention.kv_row_bytes)
        done = [tile for tile in running if not tile.blocks]
        touch_together("o", done, kernel.tile_m * attention.o_row_bytes)
        free += [tile.place for tile in done]
        running = [tile for tile in running if tile.blocks]
        step += 1
    return missed - attention.kv_bytes


@repeatable
@given(
    st.integers(1, 3),
    st.integers(1, 3),
    st.integers(1, 24),
    st.integers(1, 12),
    st.sampled_from(["cyclic", "sawtooth"]),
    st.sampled_from(["full", "lpt_l2_sections", "single_tile"]),
    st.integers(4, 60),
)
def test_equals_a_slow_cache(
    heads_kv: int, group_size: int, blocks: int, places: int, order: str, schedule: str, kilobytes: int
) -> None:
    full = schedule == "full"
    attention = call(blocks * 16, heads_q=heads_kv * group_size, heads_kv=heads_kv, head_dim=16, causal=not full)
    kernel = plain_kernel(16, 16, kv_order=order, schedule="static" if full else schedule)
    found = simulate_lru(attention, kernel, kilobytes * 1024, places)
    if found.simulated_units == found.units:
        assert found.refetched_bytes == slow_lru(attention, kernel, kilobytes * 1024, places)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    ("heads_q", "heads_kv", "batch", "seqlen"), [(8, 2, 2, 1000), (4, 4, 1, 20000), (6, 3, 3, 300)]
)
def test_tiles_come_in_the_kernels_order(causal: bool, heads_q: int, heads_kv: int, batch: int, seqlen: int) -> None:
    shape = AttentionShape(
        batch=batch, seqlen_q=seqlen, seqlen_kv=seqlen, heads_q=heads_q, heads_kv=heads_kv, head_dim=128, causal=causal
    )
    attention, spec = Attention.of(shape), kernel_for(shape)
    kernel = msgspec.structs.replace(fa3_kernel(attention), pack_gqa=False)
    expected = [
        (tile.batch * heads_kv + tile.head // shape.group_size, tile.m_block if causal else 0)
        for tile in tile_order(shape, spec)
    ]
    found = [(run.group, run.m_block) for run in tile_runs(attention, kernel) for _ in range(run.tiles)]
    assert found == expected
    if causal:
        assert section_heads(order_shape(attention, kernel)) == section_heads(shape)
        assert section_width(attention, kernel) == min(section_heads(shape) // shape.group_size, batch * heads_kv)


# One K/V head of two query heads, cold, all rows of K and V: LRU over Eq. 3 and over Eq. 6 of an independent study.
STUDY = [
    (HOPPER_SMS, 128, H800_BYTES, 31744, 1.00, 0.50),
    (HOPPER_SMS, 128, H800_BYTES, 32256, 1.66, 0.83),
    (HOPPER_SMS, 128, H800_BYTES, 33792, 1.99, 0.996),
    (HOPPER_SMS, 128, H800_BYTES, 36864, 1.99, 0.854),
    (HOPPER_SMS, 128, H800_BYTES, 40960, 2.33, 1.000),
    (HOPPER_SMS, 128, H800_BYTES, 65536, 3.33, 1.000),
    (GB10_SMS, 64, GB10_BYTES, 45056, 1.00, 0.09),
    (GB10_SMS, 64, GB10_BYTES, 47104, 10.9, 0.995),
    (GB10_SMS, 64, GB10_BYTES, 49152, 11.3, 1.000),
]


@pytest.mark.parametrize(("sm_count", "tile_m", "l2_bytes", "seqlen", "over_eq3", "over_eq6"), STUDY)
def test_agrees_with_an_independent_study(
    sm_count: int, tile_m: int, l2_bytes: int, seqlen: int, over_eq3: float, over_eq6: float
) -> None:
    attention, kernel = group(seqlen, 2), plain_kernel(tile_m, 32)
    ideal = attention.q_bytes + attention.kv_bytes + attention.output_bytes
    waves = -(-kernel.tiles_per_group(attention) // sm_count)
    found = ideal + simulate_lru(attention, kernel, l2_bytes, sm_count).refetched_bytes
    assert found / ideal == pytest.approx(over_eq3, rel=0.01)
    assert found / (ideal + (waves - 1) * attention.kv_bytes) == pytest.approx(over_eq6, abs=0.006)


GRID = [
    (sm_count, tile_m, l2_bytes, group_size, groups)
    for sm_count, tile_m, l2_bytes in ((HOPPER_SMS, 128, H800_BYTES), (GB10_SMS, 64, GB10_BYTES))
    for group_size in (1, 4, 16)
    for groups in (1, 8)
]


@pytest.mark.parametrize("order", ["cyclic", "sawtooth"])
@pytest.mark.parametrize(("sm_count", "tile_m", "l2_bytes", "group_size", "groups"), GRID)
def test_agrees_with_the_closed_form_off_the_edge(
    sm_count: int, tile_m: int, l2_bytes: int, group_size: int, groups: int, order: str
) -> None:
    """Within 1 % where all K/V in flight fit, and from 1.25 times the edge on; in between both are reported.

    Sawtooth has no such edge: its misses grow with length, and a short last wave keeps more than the closed form says.
    """
    kernel = plain_kernel(tile_m, 32, kv_order=order)
    compared = 0
    for seqlen in (2048, 8192, 12288, 20480, 28672, 32768, 40960, 57344, 81920):
        attention = group(seqlen, group_size, groups)
        sizes = reuse(attention, kernel, sm_count, l2_bytes)
        edge = l2_bytes - sizes.wave_bytes
        in_flight = 2 if groups > 1 else 1  # a wave holds the end of one group and the start of the next
        if sizes.group_tiles < sm_count or edge / in_flight < sizes.kv_bytes < 1.25 * edge:
            continue
        ideal = attention.q_bytes + attention.kv_bytes + attention.output_bytes
        simulated = ideal + simulate_lru(attention, kernel, l2_bytes, sm_count).refetched_bytes
        closed = ideal + refetched_bytes("capacity", sizes, order == "sawtooth")
        assert simulated == pytest.approx(closed, rel=0.01 if order == "cyclic" else 0.06), seqlen
        compared += 1
    assert compared >= 2


@pytest.mark.parametrize("model", ["llama3-8b", "llama3.1-405b"])
@pytest.mark.parametrize("seqlen", [4096, 16384, 24576, 65536])
def test_agrees_with_the_closed_form_under_a_causal_mask(model: str, seqlen: int) -> None:
    closed, simulated = (
        traffic(model_shape(model, seqlen, causal=True), "h800-sxm", policy).dram_bytes
        for policy in ("capacity", "lru")
    )
    assert simulated == pytest.approx(closed, rel=0.04)


def test_near_the_edge_the_two_differ_and_say_so() -> None:
    """36K on H800: a short last wave leaves room for K/V, which only the simulated cache sees."""
    kernel = plain_kernel()
    attention = group(36864, 2)
    sizes = reuse(attention, kernel, HOPPER_SMS, H800_BYTES)
    assert not fits("capacity", sizes)
    simulated = simulate_lru(attention, kernel, H800_BYTES, HOPPER_SMS).refetched_bytes
    assert simulated == refetched_bytes("capacity", sizes) - attention.kv_bytes


def test_what_fits_is_read_once_and_nothing_else_is() -> None:
    for attention in (call(8192), call(8192, causal=True)):
        kernel = plain_kernel(schedule="single_tile" if attention.causal else "static")
        assert simulate_lru(attention, kernel, 10**9, HOPPER_SMS).refetched_bytes == 0
        assert simulate_lru(attention, kernel, 10**6, HOPPER_SMS).refetched_bytes > 0


def test_cuts_of_many_heads_equal_the_whole() -> None:
    """Eight K/V heads are simulated whole; of sixteen and of sixty-four, eight stand for the rest."""
    kernel = plain_kernel(128, 128)
    per_head = []
    for groups in (8, 16, 64):
        result = simulate_lru(group(40960, 4, groups), kernel, H800_BYTES, HOPPER_SMS)
        assert (result.simulated_units, result.units) == (8, groups)
        per_head.append(result.refetched_bytes / groups)
    assert per_head[1] == pytest.approx(per_head[0], rel=0.02)
    assert per_head[2] == pytest.approx(per_head[1], rel=0.02)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("gpu", ["h800-sxm", "gb10"])
@pytest.mark.parametrize("seqlen", [4096, 65536, 131072])
def test_the_work_is_bounded(gpu: str, seqlen: int, causal: bool) -> None:
    attention = call(seqlen, heads_q=128, causal=causal)
    kernel = traffic(call(seqlen, heads_q=128), gpu).kernel
    if causal:
        kernel = plain_kernel(kernel.tile_m, kernel.tile_n, schedule="lpt_l2_sections")
    assert simulate_lru(attention, kernel, 24 * 10**6, 132).reads < 200_000


def test_o_of_the_last_tiles_is_dirty_at_the_end() -> None:
    attention = call(1024)
    result = simulate_lru(attention, plain_kernel(), 10**9, HOPPER_SMS)
    assert result.dirty_bytes == attention.output_bytes
