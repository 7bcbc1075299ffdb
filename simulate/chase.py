"""Random pointer chase: one thread, each access waits for the one before; mean latency over the working set."""

from typing import Literal

import msgspec
import numpy as np

from simfa.hardware import HardwareSpec
from simfa.simulate.bench_traces import Copy, copy_trace
from simfa.simulate.engine import run

Method = Literal["tma", "load"]
_COPY_BYTES = 16
_SEED = 1
WARM_CAPACITIES = 4


class ChaseResult(msgspec.Struct, frozen=True, kw_only=True):
    """Mean latency of a timed access; shares of them that crossed to the far side, and that came from memory."""

    method: Method
    working_set_bytes: int
    latency_cycles: float
    hop_share: float
    memory_share: float


def run_chase(
    hardware: HardwareSpec, *, working_set_bytes: int, method: Method, steps: int, warm_passes: int
) -> ChaseResult:
    """Chase pointers 128 bytes apart through `working_set_bytes` in one random cycle, from SM 0.

    `tma`: 16-byte bulk copies, each waited for at its mbarrier. `load`: the same accesses without the costs of TMA
    launch and mbarrier. Before that the chain has gone `warm_passes` times through the set (L2 only, no time), or has
    read `WARM_CAPACITIES` times what L2 holds, if that is less; then `steps` accesses are timed.
    """
    line_bytes = hardware.l2.line_bytes
    lines = np.random.default_rng(_SEED).permutation(working_set_bytes // line_bytes).astype(np.uint32)
    timed = lines[np.arange(steps) % len(lines)].tolist()
    copies = [Copy(address=line * line_bytes, length=_COPY_BYTES) for line in timed]
    trace = copy_trace([[copies]], box_bytes=_COPY_BYTES)
    most = -(-WARM_CAPACITIES * hardware.l2.capacity_bytes // line_bytes)
    warm = np.tile(lines, min(warm_passes, -(-most // len(lines))))[-most:]
    inside = timed_inside(hardware)
    result = run(trace, plain_loads(inside) if method == "load" else inside, warm=[(0, warm)])
    counters = result.counters
    return ChaseResult(
        method=method,
        working_set_bytes=working_set_bytes,
        latency_cycles=result.cycles / steps,
        hop_share=counters["l2_hops"] / steps,
        memory_share=counters["l2_read_misses"] / steps,
    )


def timed_inside(hardware: HardwareSpec) -> HardwareSpec:
    """Return the hardware as a clock inside the kernel sees it: without launch."""
    return msgspec.structs.replace(hardware, grid=msgspec.structs.replace(hardware.grid, launch_ns=0.0))


def plain_loads(hardware: HardwareSpec) -> HardwareSpec:
    """Return hardware whose copies cost what a plain load does: no TMA launch, no descriptor, no mbarrier."""
    replace = msgspec.structs.replace
    return replace(
        hardware,
        tma=replace(hardware.tma, launch_cycles=0, issue_gap_cycles=0),
        mbarrier=replace(hardware.mbarrier, arrive_cycles=0, wait_cycles=1, wake_cycles=0),
    )
