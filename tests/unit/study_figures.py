"""A stand-in simulator for studies: cycles and counters are arithmetic on the hardware's values and the shape."""

from typing import Any

from simfa.hardware import HardwareSpec
from simfa.studies import Ablation
from simfa.workload import AttentionShape

TILES = 10


def figures(shape: AttentionShape, hardware: HardwareSpec) -> dict[str, Any]:
    """Return figures of a run of 1000 cycles a token, times what `slow_down` gives, that waits for V when slower."""
    factor = slow_down(hardware)
    cycles = round(1000 * shape.seqlen_q * factor)
    pieces = 1 if hardware.tma.deduplicate else hardware.l2.line_bytes // hardware.tma.request_bytes
    reads = 160 * pieces * (1 if hardware.lrc.multicast else 2)
    busiest = 4 if hardware.l2.hash == "modulo" else 1
    busy, total = 1000 * shape.seqlen_q // 2, cycles
    counters = {
        "tiles": TILES,
        "requests": reads * TILES,
        "l2_read_requests": reads * TILES,
        "l2_write_requests": 0,
        "lrc_merges": 0,
        "slice_requests_peak": busiest * reads * TILES // hardware.l2.slices,
        "staging_cycles": 10 * busiest * reads * TILES,
        "request_queue_cycles": 0,
        "blocked_mshr_entries_cycles": 0,
        "l2_shadow_hits": 0,
        "tma_limit_cycles": cycles * hardware.gpu.sm_count // hardware.tma.max_lines_in_flight,
        "cuda_busy_cycles": 500 * TILES,
        "memory_read_bytes": 50 * 128 * TILES,
        "memory_write_bytes": 10 * 128 * TILES,
    }
    return {
        "cycles": cycles,
        "latency_us": cycles / hardware.gpu.sm_clock_hz * 1e6,
        "counters": counters,
        "stall_cycles": {
            "producer": {"acquire_stage": cycles},
            "consumer1": {"softmax": cycles - cycles // 4, "cuda_contention": cycles // 4},
            "tensor_pipe": {"busy": busy, "softmax": busy // 4, "wait_v": total - busy - busy // 4},
        },
    }


def slow_down(hardware: HardwareSpec) -> float:
    """Return how much slower than usual the values are: 4 without deduplication, 1.5 by modulo, 2 without multicast."""
    factor = 1.0 if hardware.tma.deduplicate else 4.0
    factor *= 1.5 if hardware.l2.hash == "modulo" else 1.0
    return factor * (1.0 if hardware.lrc.multicast else 2.0)


def study_of(document: Ablation, group: str, preset: str) -> dict[str, Any]:
    """Return the rows of one group by overlay."""
    (found,) = [entry for entry in document.groups if (entry.name, entry.preset) == (group, preset)]
    return {row.overlay: row for row in found.rows}
