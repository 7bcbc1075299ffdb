"""Durations of a CTA's work on a GPU preset, for the timestamps of synthetic logs."""

from typing import NamedTuple

from simfa.hardware import HardwareSpec
from simfa.kernel import KernelSpec, ceil_div
from simfa.units import ns_to_cycles
from simfa.workload import AttentionShape


class Costs(NamedTuple):
    """Durations in SM cycles of what a CTA's roles do."""

    mbarrier_wait: int
    mbarrier_wake: int
    release: int
    named_wait: int
    named_wake: int
    named_arrive: int
    wgmma_issue: int
    wgmma_window: int
    wgmma_tail: int
    group_drain: int
    qk: tuple[int, int]  # WGMMAs of a product, cycles of each
    pv: tuple[int, int]
    shared_cores: bool
    first_softmax: int
    softmax: int
    mask: int
    epilogue: int
    load_hit: int
    load_miss: int
    store: int


def costs_of(shape: AttentionShape, kernel: KernelSpec, spec: HardwareSpec) -> Costs:
    """Return the durations for a shape and kernel on a GPU preset."""
    core, tensor, tma = spec.cuda_core, spec.tensor_core, spec.tma
    scores = 64 * kernel.tile_n

    def wgmma(columns: int) -> int:
        busy = ceil_div(2 * 64 * columns * 16, tensor.flop_per_cycle) + tensor.wgmma_overhead_cycles
        return max(tensor.wgmma_min_cycles, busy)

    def work(elements: int, *rates: int) -> int:
        return sum(ceil_div(elements, rate) for rate in rates if rate)

    block_bytes = kernel.tile_n * shape.head_dim * shape.element_bytes
    issue = tma.launch_cycles + tma.tensor_map_cycles + ceil_div(block_bytes, spec.crossbar.sm_port_bytes_per_cycle)
    remote = spec.mbarrier.remote_arrive_cycles if kernel.cluster > 1 else 0
    softmax = work(
        scores, core.exp_per_cycle, core.max_per_cycle, core.scale_per_cycle, core.sum_per_cycle, core.convert_per_cycle
    )
    return Costs(
        mbarrier_wait=spec.mbarrier.wait_cycles,
        mbarrier_wake=spec.mbarrier.wake_cycles,
        release=max(spec.mbarrier.arrive_cycles, remote),
        named_wait=spec.named_barrier.wait_cycles,
        named_wake=spec.named_barrier.wake_cycles,
        named_arrive=spec.named_barrier.arrive_cycles,
        wgmma_issue=tensor.wgmma_issue_cycles,
        wgmma_window=tensor.wgmma_window_ss,
        wgmma_tail=tensor.wgmma_tail_ss_cycles,
        group_drain=tensor.group_drain_cycles,
        qk=(shape.head_dim // 16, wgmma(kernel.tile_n)),
        pv=(kernel.tile_n // 16, wgmma(shape.head_dim)),
        shared_cores=core.sharing == "shared",
        first_softmax=softmax,
        softmax=softmax + work(64 * shape.head_dim, core.rescale_per_cycle),
        mask=work(scores, core.mask_per_cycle),
        epilogue=work(64 * shape.head_dim, core.epilogue_per_cycle),
        load_hit=issue + (spec.crossbar.near_latency_cycles + spec.crossbar.far_latency_cycles) // 2,
        load_miss=issue + spec.crossbar.far_latency_cycles + ns_to_cycles(spec.memory.latency_ns, spec.gpu.sm_clock_hz),
        store=tma.launch_cycles + tma.tensor_map_cycles + tma.store_read_cycles + spec.crossbar.far_latency_cycles,
    )
