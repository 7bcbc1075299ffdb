"""The timing model of synthetic logs: causes come before effects, and the steady loop costs what its units cost."""

import numpy as np
import pytest

from simfa.events import Event
from simfa.hardware import load_preset
from simfa.instrument.costs import costs_of
from simfa.instrument.event_order import tile_events
from simfa.instrument.row_clock import RowClock
from simfa.instrument.seeded import draw
from simfa.instrument.timing_model import LONGEST_WALK, TileKind, TimingModel
from simfa.kernel import kernel_for
from simfa.workload import AttentionShape

SPEC = load_preset("h100-sxm").spec


def model_of(head_dim, causal=False):
    shape = AttentionShape(
        batch=1, seqlen_q=6144, seqlen_kv=6144, heads_q=1, heads_kv=1, head_dim=head_dim, causal=causal
    )
    kernel = kernel_for(shape)
    costs = costs_of(shape, kernel, SPEC)
    return kernel, costs, TimingModel(kernel, costs)


MODELS = {(head_dim, causal): model_of(head_dim, causal) for head_dim in (64, 128, 256) for causal in (False, True)}
KINDS = [TileKind(blocks, 1, cold) for blocks in (1, 2, 5, LONGEST_WALK, 40) for cold in (True, False)]


@pytest.mark.parametrize("key", MODELS, ids=str)
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_times_of_a_role_rise(key, kind):
    kernel, _, model = MODELS[key]
    for role in range(kernel.consumers + 1):
        times = model.events(kind, role)
        assert len(times) == len(tile_events(kernel, role, kind.key_blocks, 2))
        assert (np.diff(times) >= 0).all()
        assert model.end(kind, role) == times[-1]
    assert model.events(kind, 1)[0] == 0
    assert model.cycles(kind) > model.end(kind, 1)


@pytest.mark.parametrize("key", MODELS, ids=str)
def test_data_arrive_before_they_are_used_and_are_used_before_release(key):
    kernel, costs, model = MODELS[key]
    kind = TileKind(6, 1, True)
    at = {}
    for role in range(kernel.consumers + 1):
        records = tile_events(kernel, role, kind.key_blocks, 2)
        for record, cycle in zip(records, model.events(kind, role), strict=True):
            at.setdefault((role, Event(record["event"])), {}).setdefault(int(record["payload"]), []).append(int(cycle))
    for block in range(kind.key_blocks):
        for ring, wait, product, release in (
            ("K", Event.WAIT_K_END, Event.GEMM_QK_ISSUE, Event.RELEASE_K),
            ("V", Event.WAIT_V_END, Event.GEMM_PV_ISSUE, Event.RELEASE_V),
        ):
            loaded = at[0, Event[f"TMA_{ring}_ISSUE"]][block][0]
            assert at[1, wait][block][0] >= loaded + costs.load_hit
            for role in range(1, kernel.consumers + 1):
                assert at[role, product][block][0] > loaded + costs.load_hit
                work = np.prod(costs.qk if ring == "K" else costs.pv)
                assert at[role, release][block][0] >= at[role, product][block][0] + work
            if block >= kernel.stages:
                reused = at[0, Event[f"TMA_{ring}_ISSUE"]][block - kernel.stages][0]
                assert all(reused > at[role, release][block][0] for role in range(1, kernel.consumers + 1))


def test_products_of_the_two_consumers_take_turns():
    kernel, _, model = MODELS[128, False]
    kind = TileKind(8, 1, False)
    issues = []
    for role in (1, 2):
        events = tile_events(kernel, role, kind.key_blocks, 2)["event"]
        issues += [(cycle, role) for cycle in model.events(kind, role)[events == Event.GEMM_QK_ISSUE]]
    assert [role for _, role in sorted(issues)] == [1, 2] * 8


def test_the_steady_loop_of_head_dimension_128_is_bound_by_the_tensor_pipe():
    # Per block and consumer: 8 QK WGMMAs of 176 columns and 11 PV WGMMAs of 128 at N / 2 cycles, two drains of 45.
    _, _, model = MODELS[128, False]
    period = model.cycles(TileKind(60, 1, False)) - model.cycles(TileKind(59, 1, False))
    bound = 2 * (8 * 88 + 11 * 64 + 2 * 45)
    assert bound <= period <= 1.02 * bound


def test_the_steady_loop_of_head_dimension_64_is_bound_by_the_cuda_cores():
    # Three consumers, 192 columns at 12 cycles an element of a thread, and 32 to rescale O.
    _, _, model = MODELS[64, False]
    period = model.cycles(TileKind(60, 1, False)) - model.cycles(TileKind(59, 1, False))
    bound = 3 * (192 * 12 + 32)
    assert bound <= 2 * period
    assert 0.95 * bound / 2 <= period <= 1.05 * bound


def test_long_tiles_go_on_at_the_pace_of_the_loop():
    _, _, model = MODELS[128, True]
    short, long = TileKind(LONGEST_WALK, 1, False), TileKind(LONGEST_WALK + 7, 1, False)
    assert model.cycles(long) > model.cycles(short)
    pace = (model.cycles(long) - model.cycles(short)) / 7
    assert pace == pytest.approx(model.cycles(short) / LONGEST_WALK, rel=0.1)


def test_a_masked_block_takes_longer():
    _, costs, model = MODELS[64, True]
    assert costs.mask > 0
    assert model.cycles(TileKind(4, 2, True)) > model.cycles(TileKind(4, 1, True))


def test_a_cold_tile_is_slower_and_starts_with_the_producer():
    for kernel, _, model in MODELS.values():
        for blocks in (1, 4):
            assert model.cycles(TileKind(blocks, 1, True)) > model.cycles(TileKind(blocks, 1, False))
        assert model.events(TileKind(4, 1, True), 0)[0] == 0
        assert model.events(TileKind(4, 1, False), 0)[0] < 0
        assert kernel.stages == 2


def test_draws_are_fixed_for_ever():
    # SplitMix64 from state 0 gives E220A8397B1DCDAF first (Steele, Lea, Flood 2014; Vigna's splitmix64.c).
    from simfa.instrument.seeded import _mix

    assert _mix(0) == 0xE220A8397B1DCDAF
    values = [draw(10, 0, "test", key) for key in range(2000)]
    assert set(values) == set(range(10))
    assert np.bincount(values).min() > 150
    assert draw(1 << 60, 0, "a", 1, 2) != draw(1 << 60, 0, "a", 2, 1) != draw(1 << 60, 0, "b", 2, 1)


@pytest.mark.parametrize("clock_hz", [1_500_000_000, 1_830_000_000])
def test_clock_pairs_are_read_at_a_tick_and_agree(clock_hz):
    clock = RowClock(clock_hz, 3, 2)
    for cta in (0, 1, 77):
        begin_ns, begin = clock.begin(cta)
        assert begin_ns % 32 == 0
        assert begin <= clock.origin(cta)
        for cycles in (0, 1, 999_999_937):
            end_ns, end = clock.end(cta, cycles)
            assert end_ns % 32 == 0
            assert end >= clock.origin(cta) + cycles
            assert end - clock.origin(cta) - cycles < 32 * clock_hz / 1e9 + 1
            assert end - begin == pytest.approx((end_ns - begin_ns) * clock_hz / 1e9, abs=1)
