"""Shapes, and the kernel FA3 picks for them; expected values are those of FA3's Hopper sources of three dates."""

import pytest

from simfa.errors import ShapeError
from simfa.kernel import kernel_for
from simfa.schedule import section_heads, static_tiles, tile_count, tile_order
from simfa.workload import AttentionShape, model_shape


def shape(**changes) -> AttentionShape:
    fields = {"batch": 1, "seqlen_q": 1024, "seqlen_kv": 1024, "heads_q": 8, "heads_kv": 2, "head_dim": 128}
    return AttentionShape(**(fields | changes))


def test_flops_follow_the_benchmark_convention() -> None:
    assert shape().flops == 4 * 8 * 1024 * 1024 * 128
    assert shape(causal=True).flops == shape().flops // 2
    assert shape().group_size == 4


@pytest.mark.parametrize(
    ("model", "heads"), [("llama3-8b", (32, 8)), ("llama3-70b", (64, 8)), ("llama3.1-405b", (128, 8))]
)
def test_models_of_table_6(model: str, heads: tuple[int, int]) -> None:
    made = model_shape(model, 512)
    assert (made.heads_q, made.heads_kv) == heads
    assert (made.batch, made.head_dim, made.causal) == (1, 128, False)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seqlen_q": 0}, "seqlen_q is 0; expected a positive whole number"),
        ({"heads_kv": 3}, "heads_q 8 is not a multiple of heads_kv 3"),
        ({"dtype": "fp4"}, "dtype 'fp4' is unknown; expected one of fp16, bf16, fp8"),
    ],
)
def test_shapes_that_cannot_exist(changes, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        shape(**changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"head_dim": 80}, "head_dim 80 is not supported; expected 64, 128 or 256"),
        ({"dtype": "fp8"}, "fp8 kernels are not supported yet"),
        ({"causal": True, "seqlen_kv": 512}, "causal with seqlen_q 1024 > seqlen_kv 512"),
    ],
)
def test_shapes_without_a_kernel(changes, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        kernel_for(shape(**changes))


def test_unknown_model_and_version() -> None:
    with pytest.raises(ShapeError, match="model 'llama4' is unknown"):
        model_shape("llama4", 512)
    with pytest.raises(ShapeError, match="kernel version '2023' is unknown; expected one of 2024-07, 2025-01, latest"):
        kernel_for(shape(), "2023")


@pytest.mark.parametrize(
    ("head_dim", "causal", "version", "tile", "consumers", "p_in_registers"),
    [
        (64, False, "2024-07", (192, 128), 3, True),
        (64, False, "latest", (192, 192), 3, False),
        (64, True, "latest", (192, 128), 3, True),
        (128, False, "2025-01", (128, 176), 2, True),
        (128, True, "latest", (128, 128), 2, True),
        (256, False, "latest", (128, 80), 2, True),
    ],
)
def test_tiles(head_dim, causal, version, tile, consumers, p_in_registers) -> None:
    kernel = kernel_for(shape(head_dim=head_dim, causal=causal), version)
    assert (kernel.tile_m, kernel.tile_n) == tile
    assert (kernel.consumers, kernel.p_in_registers, kernel.stages) == (consumers, p_in_registers, 2)
    assert kernel.ping_pong == (head_dim <= 128)
    assert kernel.schedule == ("dynamic" if causal else "static")


@pytest.mark.parametrize(
    ("changes", "cluster"),
    [({}, 2), ({"seqlen_q": 1025}, 1), ({"causal": True}, 1), ({"head_dim": 64}, 1), ({"head_dim": 256}, 2)],
)
def test_cluster_needs_full_mask_head_128_up_and_even_row_blocks(changes, cluster: int) -> None:
    assert kernel_for(shape(**changes)).cluster == cluster


def test_key_and_masked_blocks() -> None:
    full, causal = shape(), shape(causal=True)
    kernel = kernel_for(full)
    assert [kernel.key_blocks(full, block) for block in (0, 7)] == [6, 6]
    assert kernel.masked_blocks(full, 0) == 1
    diagonal = kernel_for(causal)
    # 128 x 128 tiles: block i sees keys up to its own diagonal block.
    assert [diagonal.key_blocks(causal, block) for block in range(8)] == list(range(1, 9))
    assert {diagonal.masked_blocks(causal, block) for block in range(8)} == {1}
    narrow = shape(causal=True, head_dim=64, seqlen_q=1152, seqlen_kv=1152)
    # 192 x 128: the diagonal of a row block crosses two key blocks.
    assert {kernel_for(narrow).masked_blocks(narrow, block) for block in range(6)} == {2}


def test_static_order_is_row_block_then_head_then_batch() -> None:
    two = shape(batch=2, seqlen_q=256, seqlen_kv=256)
    kernel = kernel_for(two)
    tiles = list(tile_order(two, kernel))
    assert len(tiles) == tile_count(two, kernel) == 2 * 8 * 2
    assert tiles[:3] == [(0, 0, 0), (1, 0, 0), (0, 1, 0)]
    assert tiles[16] == (0, 0, 1)
    assert list(static_tiles(two, kernel, 5, 2)) == tiles[2::5]


def test_causal_tiles_came_in_static_order_from_a_counter_before_2025() -> None:
    causal = shape(causal=True, seqlen_q=384, seqlen_kv=384)
    for version, schedule, first in (
        ("2024-07", "dynamic-in-order", [(0, 0, 0), (1, 0, 0), (2, 0, 0), (0, 1, 0)]),
        ("2025-01", "dynamic", [(2, 0, 0), (2, 1, 0), (2, 2, 0), (2, 3, 0)]),
        ("latest", "dynamic", [(2, 0, 0), (2, 1, 0), (2, 2, 0), (2, 3, 0)]),
    ):
        kernel = kernel_for(causal, version)
        assert kernel.schedule == schedule
        assert list(tile_order(causal, kernel))[:4] == first
        assert kernel_for(shape(), version).schedule == "static"


def test_causal_order_is_longest_first_inside_sections() -> None:
    causal = shape(causal=True, seqlen_q=256, seqlen_kv=256)
    tiles = list(tile_order(causal, kernel_for(causal)))
    assert [tile.m_block for tile in tiles] == [1] * 8 + [0] * 8
    # 32 MiB hold 2 K/V heads of 32768 tokens (16 MiB each), times 4 query heads a group.
    long = shape(causal=True, seqlen_q=32768, seqlen_kv=32768)
    assert section_heads(long) == 2 * 4
    assert [tile.head for tile in tile_order(long, kernel_for(long))][:9] == [0, 1, 2, 3, 4, 5, 6, 7, 0]
