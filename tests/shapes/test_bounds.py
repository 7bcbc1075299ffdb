"""Programs that are bound by one resource take what this resource needs: never less, at most 1 % more."""

from tests.shapes.streams import LINE_BYTES, cycles_after_launch, h100, multiplying_trace, reading_trace, result_of

SHARE = 1.01


def _check(cycles, bound):
    assert bound <= cycles <= SHARE * bound, f"{cycles} cycles, bound {bound:.0f}: {cycles / bound:.4f}"


def test_tensor_bound():
    # m64n256k16 is 2 * 64 * 256 * 16 = 524,288 FLOP, 128 cycles at 4096 a cycle. Two consumers with 200 groups of 16
    # each, and the pipe drains for 45 cycles after each group: 400 * (16 * 128 + 45) cycles of one pipe.
    hardware = h100()
    bound = 2 * 200 * (16 * 128 + hardware.tensor_core.group_drain_cycles)
    _check(cycles_after_launch(multiplying_trace(2, groups=200, wgmmas=16, n=256), hardware), bound)


def test_tensor_utilization_without_drain():
    hardware = h100("tensor_core.group_drain_cycles=0", "grid.launch_ns=0", "gpu.sm_count=4")
    result = result_of(multiplying_trace(4, groups=200, wgmmas=16, n=256), hardware)
    assert 0.99 < result.tensor_utilization <= 1


def test_small_products_are_bound_by_their_issue():
    # m64n8k16 would take 4 cycles of the pipe but at least 19; one warpgroup can issue one every 17.
    hardware = h100("tensor_core.group_drain_cycles=0")
    bound = 2 * 100 * 64 * 19
    _check(cycles_after_launch(multiplying_trace(2, groups=100, wgmmas=64, n=8), hardware), bound)


def test_tma_issue_bound():
    # One SM, which sends one line of 128 bytes a cycle; 1024 lines may be under way, more than the latency of any hit.
    # 128 passes over 256 KiB, of which only the first comes from memory.
    hardware = h100("tma.max_lines_in_flight=1024")
    trace = reading_trace(1, passes=128, blocks=8, block_bytes=32_768, shift_bytes=0, offsets=1)
    lines = 128 * 8 * 32_768 // LINE_BYTES
    _check(cycles_after_launch(trace, hardware), lines)


def test_slow_tma_issue_bound():
    # 32 bytes a cycle: a line every four cycles.
    hardware = h100("tma.issue_bytes_per_cycle=32")
    trace = reading_trace(1, passes=32, blocks=8, block_bytes=32_768, shift_bytes=0, offsets=1)
    lines = 32 * 8 * 32_768 // LINE_BYTES
    _check(cycles_after_launch(trace, hardware), 4 * lines)


def test_bound_by_lines_in_flight():
    # Little's law: 64 lines under way, each for the 400 cycles of an L2 hit, are 64 / 400 lines a cycle.
    hardware = h100("tma.max_lines_in_flight=64", "crossbar.near_latency_cycles=400", "crossbar.far_latency_cycles=400")
    trace = reading_trace(1, passes=128, blocks=8, block_bytes=32_768, shift_bytes=0, offsets=1)
    lines = 128 * 8 * 32_768 // LINE_BYTES
    _check(cycles_after_launch(trace, hardware), lines * 400 / 64)


def test_response_port_bound():
    # The port into an SM takes 64 bytes a cycle, two cycles a line; two SMs of a pair have a port each.
    hardware = h100("crossbar.sm_port_bytes_per_cycle=64", "lrc.enabled=false")
    trace = reading_trace(2, passes=64, blocks=8, block_bytes=32_768, shift_bytes=262_144, offsets=2)
    lines = 64 * 8 * 32_768 // LINE_BYTES
    _check(cycles_after_launch(trace, hardware), 2 * lines)


def test_l2_bound():
    # 132 SMs ask for a line a cycle each; 80 slices answer one in two cycles (64 of 128 bytes), 40 a cycle together.
    # Everybody reads 1,280 lines again and again, 16 of each slice, from 12 different places on; nothing is coalesced.
    hardware = h100("lrc.enabled=false", "l2.hash=modulo")
    trace = reading_trace(132, passes=24, blocks=16, block_bytes=10_240, shift_bytes=10_240, offsets=12)
    lines = 132 * 24 * 16 * 10_240 // LINE_BYTES
    _check(cycles_after_launch(trace, hardware), lines * 2 / hardware.l2.slices)


def test_dram_bound():
    # Every SM streams a megabyte of its own through the chip, all of it from memory, at 82.6 % of 3352 GB/s.
    hardware = h100()
    trace = reading_trace(132, passes=1, blocks=64, block_bytes=16_384, shift_bytes=1 << 20, offsets=132)
    seconds = 132 * (1 << 20) / (hardware.memory.peak_bytes_per_s * hardware.memory.efficiency)
    _check(cycles_after_launch(trace, hardware), seconds * hardware.gpu.sm_clock_hz)
