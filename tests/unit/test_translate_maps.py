"""Where the tensors lie and how tiles are cut into boxes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simfa.kernel import KERNEL_VERSIONS, kernel_for
from simfa.translate.tensor_maps import (
    BASE_ALIGNMENT,
    paper_layout,
    paper_rings,
    source_layout,
    source_rings,
    tensor_maps,
)
from simfa.workload import AttentionShape, model_shape


@settings(max_examples=30, deadline=None)
@given(
    batch=st.integers(1, 4),
    lengths=st.tuples(st.integers(1, 5000), st.integers(1, 5000)),
    heads=st.tuples(st.integers(1, 8), st.integers(1, 8)),
    head_dim=st.sampled_from([64, 128, 256]),
    version=st.sampled_from(KERNEL_VERSIONS),
)
def test_tensors_are_disjoint_and_boxes_make_up_tiles(
    batch: int, lengths: tuple[int, int], heads: tuple[int, int], head_dim: int, version: str
) -> None:
    shape = AttentionShape(
        batch=batch,
        seqlen_q=lengths[0],
        seqlen_kv=lengths[1],
        heads_q=heads[0] * heads[1],
        heads_kv=heads[1],
        head_dim=head_dim,
    )
    kernel = kernel_for(shape, version)
    for layout, rings in (
        (source_layout(shape, kernel), source_rings(shape, kernel)),
        (paper_layout(shape), paper_rings(shape, kernel)),
    ):
        maps = tensor_maps(shape, kernel, layout)
        assert [item.name for item in maps] == ["Q", "K", "V", "O"]
        end = 0
        for item in maps:
            assert item.base % BASE_ALIGNMENT == 0
            assert end <= item.base < end + BASE_ALIGNMENT
            columns, rows, count, entries = item.dims
            assert item.strides == (columns * count * 2, columns * 2, columns * count * rows * 2)
            assert (columns, entries) == (head_dim, batch)
            assert all(extent <= 256 for extent in item.box)
            end = item.base + columns * rows * count * entries * item.element_bytes
            for ring in rings:
                if ring.name == item.name and item.name != "O":
                    sharers = layout.sharers if item.origin == "kv" else 1
                    assert ring.bytes == item.box_bytes * layout.boxes * sharers
        assert [(item.dims[1], item.dims[2]) for item in maps] == [
            (shape.seqlen_q, shape.heads_q),
            (shape.seqlen_kv, shape.heads_kv),
            (shape.seqlen_kv, shape.heads_kv),
            (shape.seqlen_q, shape.heads_q),
        ]


def test_llama_70b_by_hand() -> None:
    """Tile 128 x 176, cluster of two: 64-column boxes, halves of 88 rows; 32 KiB of Q and 44 KiB stages of K and V."""
    shape = model_shape("llama3-70b", 4096)
    kernel = kernel_for(shape)
    boxes = {item.name: item.box for item in tensor_maps(shape, kernel, source_layout(shape, kernel))}
    assert boxes == {"Q": (64, 128, 1, 1), "K": (64, 88, 1, 1), "V": (64, 88, 1, 1), "O": (64, 128, 1, 1)}
    rings = {ring.name: ring for ring in source_rings(shape, kernel)}
    assert {name: (ring.stages, ring.bytes, ring.releases, ring.empty) for name, ring in rings.items()} == {
        "K": (2, 44 * 1024, 4, "mbarrier"),
        "V": (2, 44 * 1024, 4, "mbarrier"),
        "Q": (1, 32 * 1024, 2, "named"),
        "O": (1, 0, 2, "mbarrier"),
    }


@pytest.mark.parametrize(
    ("head_dim", "causal", "sharers"), [(128, False, 2), (128, True, 1), (64, False, 1), (256, False, 2)]
)
def test_only_full_masks_of_wide_heads_share_tiles(head_dim: int, causal: bool, sharers: int) -> None:
    shape = AttentionShape(
        batch=1, seqlen_q=512, seqlen_kv=512, heads_q=1, heads_kv=1, head_dim=head_dim, causal=causal
    )
    assert source_layout(shape, kernel_for(shape)).sharers == sharers
