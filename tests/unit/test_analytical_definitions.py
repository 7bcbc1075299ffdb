"""What the equations leave open: masks, windows, packing, splits, latents, precisions, tiles."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simfa.analytical import batch_traffic, policy_span, traffic
from simfa.analytical import equations as eq
from simfa.analytical.attention import Attention
from simfa.analytical.kernels import cutile_kernel, fa3_kernel, packs_gqa
from simfa.analytical.model import profiled_write_bytes
from simfa.errors import AnalyticalError
from simfa.kernel import kernel_for
from simfa.workload import AttentionShape, model_shape
from tests.unit.analytical_cases import call, plain_kernel, repeatable


def masked(seqlen_q: int, more_keys: int, window: int | None, heads_q: int = 1, heads_kv: int = 1) -> Attention:
    return Attention(
        batch=1,
        seqlen_q=seqlen_q,
        seqlen_kv=seqlen_q + more_keys,
        heads_q=heads_q,
        heads_kv=heads_kv,
        head_dim=64,
        value_dim=64,
        causal=True,
        window=window,
    )


def visible_keys(attention: Attention, row: int) -> range:
    """Keys that one query row sees, straight from the definition of the mask."""
    diagonal = row + attention.seqlen_kv - attention.seqlen_q
    first = 0 if attention.window is None else max(0, diagonal - attention.window)
    return range(first, diagonal + 1)


windows = st.one_of(st.none(), st.integers(0, 300))


@repeatable
@given(st.integers(1, 200), st.integers(0, 100), windows)
def test_scores_of_a_mask_are_counted_exactly(seqlen_q: int, more_keys: int, window: int | None) -> None:
    attention = masked(seqlen_q, more_keys, window)
    assert attention.score_count == sum(len(visible_keys(attention, row)) for row in range(seqlen_q))
    seen = {key for row in range(seqlen_q) for key in visible_keys(attention, row)}
    assert attention.visible_rows == len(seen)


@repeatable
@given(st.integers(1, 200), st.integers(0, 100), windows, st.integers(1, 70), st.sampled_from([1, 2, 4]))
def test_a_tile_reads_the_rows_its_queries_see(
    seqlen_q: int, more_keys: int, window: int | None, tile_m: int, group_size: int
) -> None:
    attention = masked(seqlen_q, more_keys, window, heads_q=group_size)
    for kernel in (plain_kernel(tile_m), plain_kernel(tile_m, pack_gqa=True)):
        per_query = group_size if kernel.pack_gqa else 1
        total = 0
        for block in range(kernel.query_blocks(attention)):
            packed = range(block * tile_m, min((block + 1) * tile_m, seqlen_q * per_query))
            keys = [visible_keys(attention, row // per_query) for row in packed]
            assert kernel.kv_range(attention, block) == (min(k.start for k in keys), max(k.stop for k in keys))
            total += max(k.stop for k in keys) - min(k.start for k in keys)
        assert kernel.kv_rows(attention) == total


def test_a_window_tile_reads_at_most_window_plus_tile_rows() -> None:
    attention = masked(4096, 0, 1023)
    kernel = plain_kernel(128)
    rows = [last - first for first, last in (kernel.kv_range(attention, block) for block in range(32))]
    assert rows[0] == 128 and rows[-1] == max(rows) == 1023 + 128


def test_causal_rows_by_hand() -> None:
    # Tiles of 128 rows at 1024 tokens read 128, 256 ... 1024 rows.
    assert plain_kernel(128).kv_rows(call(1024, causal=True)) == 128 * 36


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("head_dim", [64, 128, 256])
@pytest.mark.parametrize("seqlen", [512, 4096, 8320])
def test_fa3_tiles_are_those_of_kernel_for(head_dim: int, causal: bool, seqlen: int) -> None:
    shape = AttentionShape(
        batch=1, seqlen_q=seqlen, seqlen_kv=seqlen, heads_q=4, heads_kv=4, head_dim=head_dim, causal=causal
    )
    spec = kernel_for(shape)
    attention = Attention.of(shape)
    kernel = fa3_kernel(attention)
    assert (kernel.tile_m, kernel.tile_n, kernel.cluster) == (spec.tile_m, spec.tile_n, spec.cluster)
    assert kernel.schedule == ("lpt_l2_sections" if causal else "static")
    blocks = sum(spec.key_blocks(shape, block) for block in range(spec.query_blocks(shape)))
    assert kernel.score_blocks(attention) == blocks
    issued = 4 * blocks * spec.tile_m * spec.tile_n * 4 * head_dim
    assert kernel.issued_flops(attention) == issued >= attention.flops


def test_fa3_fp8_has_its_own_tile_and_no_cluster() -> None:
    shape = model_shape("llama3-8b", 4096, dtype="fp8")
    attention = Attention.of(shape)
    assert (attention.qk_bytes, attention.v_bytes, attention.o_bytes) == (1, 1, 2)
    kernel = fa3_kernel(attention)
    assert (kernel.tile_m, kernel.tile_n, kernel.cluster) == (128, 224, 1)


def test_cutile_kernel_is_that_of_the_paper() -> None:
    kernel = cutile_kernel(call(4096))
    assert (kernel.tile_m, kernel.tile_n, kernel.ctas_per_sm, kernel.cluster) == (64, 32, 1, 1)


def test_multicast_halves_requests_where_fa3_uses_clusters() -> None:
    paired, odd = traffic(call(4096)), traffic(call(4096 + 128))
    io = 2 * 8 * 4096 * 256
    assert paired.kernel.cluster == 2 and paired.l2_request_bytes == io + (paired.l2_bytes - io) // 2
    assert odd.kernel.cluster == 1 and odd.l2_request_bytes == odd.l2_bytes
    assert traffic(call(4096, causal=True)).kernel.cluster == 1
    assert traffic(call(4096), "gb10").l2_request_bytes == traffic(call(4096), "gb10").l2_bytes


def test_plain_calls_equal_the_equations() -> None:
    answer = traffic(model_shape("llama3.1-405b", 65536), "gb10", "paper")
    shape = {"batch": 1, "seqlen_q": 65536, "seqlen_kv": 65536, "group_size": 16, "heads_kv": 8, "head_dim": 128}
    places = {"tile_m": 64, "sm_count": 48, "ctas_per_sm": 1}
    assert answer.flops == eq.total_flops(**shape)
    assert answer.l2_bytes == eq.l2_bytes(**shape, tile_m=64, element_bytes=2)
    assert answer.dram_ideal_bytes == eq.dram_ideal_bytes(**shape, element_bytes=2)
    assert (
        answer.dram_bytes == answer.dram_realistic_bytes == eq.dram_realistic_bytes(**shape, element_bytes=2, **places)
    )
    assert answer.waves == 342 and answer.regime == "realistic"


def test_regime_switch_of_the_paper_on_both_gpus() -> None:
    by_gpu = {
        gpu: [traffic(model_shape("llama3.1-405b", length), gpu, "paper").regime for length in (32768, 49152)]
        for gpu in ("gb10", "h800-sxm")
    }
    assert by_gpu == {gpu: ["ideal", "realistic"] for gpu in by_gpu}


def test_gqa_of_one_is_mha() -> None:
    kernel = plain_kernel()
    grouped = traffic(call(4096, heads_q=8, heads_kv=8), kernel=kernel)
    packed = traffic(call(4096, heads_q=8, heads_kv=8), kernel=msgspec.structs.replace(kernel, pack_gqa=True))
    assert {name: getattr(grouped, name) for name in ("flops", "l2_bytes", "dram_bytes", "waves")} == {
        name: getattr(packed, name) for name in ("flops", "l2_bytes", "dram_bytes", "waves")
    }


@pytest.mark.parametrize("policy", ["capacity", "lru", "random"])
def test_a_window_as_long_as_k_is_none(policy: str) -> None:
    causal = traffic(call(8192, heads_q=32, causal=True), policy=policy)
    window = traffic(call(8192, heads_q=32, causal=True, window=8192), policy=policy)
    assert window == msgspec.structs.replace(causal, attention=window.attention)
    assert traffic(call(8192, heads_q=32, causal=True, window=8191), policy=policy).flops == causal.flops
    assert traffic(call(8192, heads_q=32, causal=True, window=1023), policy=policy).flops < causal.flops


def test_one_query_row_sees_everything_with_or_without_a_mask() -> None:
    decode = Attention(batch=4, seqlen_q=1, seqlen_kv=8192, heads_q=32, heads_kv=8, head_dim=128, value_dim=128)
    kernel = plain_kernel(pack_gqa=True)
    full = traffic(decode, kernel=kernel)
    causal = traffic(msgspec.structs.replace(decode, causal=True), kernel=kernel)
    assert causal == msgspec.structs.replace(full, attention=causal.attention)


def test_packing_reads_kv_once_a_group_in_decode() -> None:
    decode = Attention(batch=4, seqlen_q=1, seqlen_kv=8192, heads_q=32, heads_kv=8, head_dim=128, value_dim=128)
    packed = traffic(decode)
    assert packed.kernel.pack_gqa and packed.kernel.tiles_per_group(decode) == 1
    kv = 4 * 8 * 8192 * 512
    assert packed.l2_bytes == packed.dram_bytes == kv + 2 * 4 * 32 * 256
    loose = traffic(decode, kernel=msgspec.structs.replace(packed.kernel, pack_gqa=False))
    assert loose.l2_bytes == 4 * kv + 2 * 4 * 32 * 256


@pytest.mark.parametrize(
    ("seqlen_q", "group_size", "expected"),
    [(1, 4, True), (1, 1, False), (4096, 4, False), (64, 8, True), (120, 4, False)],
)
def test_fa3_packs_when_rows_are_used_better(seqlen_q: int, group_size: int, expected: bool) -> None:
    attention = call(4096, heads_q=8 * group_size, seqlen_q=seqlen_q)
    assert packs_gqa(attention, 128) is expected
    assert packs_gqa(attention, 128, splits=2) is (group_size > 1)


def test_splits_add_partials() -> None:
    decode = Attention(batch=1, seqlen_q=1, seqlen_kv=65536, heads_q=32, heads_kv=8, head_dim=128, value_dim=128)
    whole = traffic(decode)
    split = traffic(decode, kernel=fa3_kernel(decode, splits=16))
    partials = 2 * 4 * 16 * 32 * (128 + 1)  # FP32 O and log-sum-exp, written and read
    assert split.l2_bytes == whole.l2_bytes + partials
    assert split.dram_bytes == whole.dram_bytes  # they stay in L2
    assert split.latency_bound_us < whole.latency_bound_us
    assert (split.kernel.schedule, split.kernel.pack_gqa, split.kernel.cluster) == ("single_tile", True, 1)


def test_value_dimension_of_its_own() -> None:
    attention = call(1024, value_dim=64)
    answer = traffic(attention, kernel=plain_kernel())
    assert answer.flops == 2 * 8 * 1024 * 1024 * (128 + 64)
    assert answer.kv_head_bytes == 1024 * 2 * (128 + 64)
    assert answer.dram_bytes == 8 * 1024 * 2 * 2 * (128 + 64)


def test_absorbed_mla_moves_the_latent_once() -> None:
    attention = Attention(
        batch=8,
        seqlen_q=1,
        seqlen_kv=4096,
        heads_q=128,
        heads_kv=1,
        head_dim=576,
        value_dim=512,
        latent=True,
    )
    answer = traffic(attention, kernel=plain_kernel(64, 64, pack_gqa=True))
    assert answer.kv_head_bytes == 4096 * 2 * 576
    assert answer.dram_bytes == 8 * (4096 * 2 * 576 + 128 * 2 * (576 + 512))
    assert answer.flops == 2 * 8 * 128 * 4096 * (576 + 512)
    assert answer.l2_bytes == 8 * (2 * 4096 * 2 * 576 + 128 * 2 * (576 + 512))  # two packed tiles a sequence


def test_precisions_scales_and_log_sum_exp() -> None:
    attention = call(1024, qk_bytes=1, v_bytes=1, o_bytes=2, scale_bytes=4, lse=True)
    answer = traffic(attention, kernel=plain_kernel())
    q, kv, o = 8 * 1024 * (128 + 4), 8 * 1024 * 2 * (128 + 4), 8 * 1024 * (256 + 4)
    assert (answer.dram_read_bytes, answer.dram_write_bytes) == (q + kv, o)


def test_o_left_in_l2_is_not_seen_by_a_profiler() -> None:
    assert profiled_write_bytes(33_554_432, 12_500_000) == 21_054_432
    assert profiled_write_bytes(5, 9) == 0


def test_ragged_batches_are_summed() -> None:
    calls = [call(length) for length in (100, 2000, 30000)]
    total = batch_traffic(calls)
    each = [traffic(one) for one in calls]
    assert total.sequences == 3
    assert total.dram_bytes == sum(one.dram_bytes for one in each)
    assert (total.flops, total.l2_bytes) == (sum(one.flops for one in each), sum(one.l2_bytes for one in each))
    with pytest.raises(AnalyticalError, match="empty"):
        batch_traffic([])


@pytest.mark.parametrize(
    "changes",
    [{"causal": True}, {"value_dim": 64}, {"o_bytes": 4}, {"lse": True}, {"scale_bytes": 4}],
    ids=lambda changes: next(iter(changes)),
)
def test_the_papers_policy_refuses_what_its_equations_lack(changes: dict[str, object]) -> None:
    attention = call(1024, **changes)
    kernel = plain_kernel(schedule="single_tile")
    with pytest.raises(AnalyticalError, match="'paper'"):
        traffic(attention, policy="paper", kernel=kernel)
    assert "paper" not in policy_span(attention, kernel=kernel)
    assert {"capacity", "random"} <= policy_span(attention, kernel=kernel).keys()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seqlen_q": 0}, "seqlen_q is 0"),
        ({"batch": -1}, "batch is -1"),
        ({"head_dim": 12.5}, "head_dim is 12.5"),
        ({"o_bytes": 0.5}, "o_bytes is 0.5"),
        ({"heads_q": 9}, "heads_q 9 is not a multiple of heads_kv 8"),
        ({"causal": True, "seqlen_kv": 10}, "would see no key"),
        ({"window": 5}, "window needs the causal mask"),
        ({"window": -1, "causal": True}, "window is -1"),
        ({"latent": True}, "latent K/V has one K/V head"),
    ],
)
def test_impossible_calls_are_named(changes: dict[str, object], message: str) -> None:
    with pytest.raises(AnalyticalError, match=message):
        call(1024, **changes)


@pytest.mark.parametrize(
    ("attention", "kernel", "policy", "message"),
    [
        (call(64, head_dim=96), None, "capacity", "give --tile-m"),
        (call(64, value_dim=96), None, "capacity", "give --tile-m"),
        (call(64, causal=True), plain_kernel(schedule="static"), "capacity", "static order is not modelled"),
        (call(64), plain_kernel(splits=2), "lru", "split K/V is not modelled"),
        (call(64), plain_kernel(splits=2), "paper", "no split K/V"),
        (call(64), plain_kernel(), "belady", "unknown; expected one of paper, capacity, lru, random"),
        (call(64), plain_kernel(kv_order="sawtooth"), "random", "knows no sawtooth"),
        (call(64, causal=True), plain_kernel(kv_order="sawtooth", schedule="single_tile"), "capacity", "sawtooth"),
    ],
)
def test_what_a_policy_does_not_cover_is_said(attention: Attention, kernel: object, policy: str, message: str) -> None:
    with pytest.raises(AnalyticalError, match=message):
        traffic(attention, "h100-sxm", policy, kernel)
