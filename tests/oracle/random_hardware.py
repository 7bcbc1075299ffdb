"""Random small hardware: every constant that docs/isa.md names, mostly near its smallest value."""

import msgspec

from simfa.hardware import HardwareSpec, load_preset
from tests.oracle.chooser import Chooser

SM_COUNT = 16
_BASE = load_preset("h100-sxm").spec


def draw_hardware(chooser: Chooser) -> HardwareSpec:
    """Return a valid `HardwareSpec` whose constants are small, so that mechanisms meet often."""
    integer, pick, chance = chooser.integer, chooser.pick, chooser.chance
    replace = msgspec.structs.replace
    line = pick([128, 64, 32])
    return replace(
        _BASE,
        gpu=replace(_BASE.gpu, sm_count=SM_COUNT, sm_clock_hz=pick([1e9, 1.83e9, 1.5e9])),
        sm=replace(_BASE.sm, issue_width=pick([1, 1, 2, 3]), scheduler=pick(["gto", "lrr", "oldest"])),
        tensor_core=replace(
            _BASE.tensor_core,
            flop_per_cycle=pick([4096, 1024, 777]),
            wgmma_min_cycles=pick([0, 3, 19]),
            wgmma_overhead_cycles=pick([0, 1, 3]),
            wgmma_issue_cycles=pick([1, 2, 5, 17]),
            wgmma_tail_ss_cycles=integer(0, 12),
            wgmma_tail_rs_cycles=integer(0, 12),
            wgmma_window_ss=integer(1, 6),
            wgmma_window_rs=integer(1, 6),
            group_drain_cycles=pick([0, 1, 9, 45]),
        ),
        cuda_core=replace(
            _BASE.cuda_core,
            sharing=pick(["shared", "shared", "private"]),
            order=pick(["fifo", "round_robin"]),
            quantum_cycles=pick([1, 3, 8, 64]),
            exp_per_cycle=pick([0, 1, 16]),
            max_per_cycle=pick([0, 3, 64]),
            scale_per_cycle=pick([0, 7]),
            sum_per_cycle=pick([0, 5, 128]),
            convert_per_cycle=pick([0, 4]),
            rescale_per_cycle=pick([0, 6, 128]),
            mask_per_cycle=pick([0, 9, 32]),
            epilogue_per_cycle=pick([0, 2, 64]),
            register_pressure=pick([0.0, 0.1, 0.37, 1.0]),
        ),
        tma=replace(
            _BASE.tma,
            level=0 if chance(12) else 1,
            level_0_latency_cycles=pick([0, 1, 20]),
            launch_cycles=pick([0, 1, 7]),
            tensor_map_cycles=pick([0, 5]),
            descriptor_cache_entries=pick([1, 2, 2, 3]),
            descriptor_miss_cycles=pick([0, 1, 25]),
            issue_gap_cycles=pick([0, 1, 6, 32]),
            issue_bytes_per_cycle=pick([line, 2 * line, 4 * line, line // 2, line // 4]),
            max_lines_in_flight=pick([1, 2, 3, 8, 384]),
            deduplicate=not chance(25),
            request_bytes=pick([32, 16, 8]),
            store_read_cycles=pick([0, 1, 15]),
        ),
        mbarrier=replace(
            _BASE.mbarrier,
            arrive_cycles=pick([0, 1, 6]),
            remote_arrive_cycles=pick([0, 1, 11]),
            wait_cycles=pick([1, 2, 7]),
            wake_cycles=pick([0, 1, 8]),
        ),
        named_barrier=replace(
            _BASE.named_barrier,
            arrive_cycles=pick([0, 1, 5]),
            wait_cycles=pick([1, 2, 6]),
            wake_cycles=pick([0, 1, 6]),
        ),
        lrc=replace(_BASE.lrc, enabled=not chance(10), multicast=not chance(10)),
        l2=replace(_BASE.l2, line_bytes=line, sector_bytes=line // 4, fetch_bytes=line // 2),
        grid=replace(
            _BASE.grid,
            launch_ns=pick([0.0, 3.5, 10.7]),
            tile_fetch_cycles=pick([1, 2, 40]),
            tile_edge_cycles=pick([0, 1, 6]),
        ),
    )
