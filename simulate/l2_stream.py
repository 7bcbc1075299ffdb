"""All SMs read a working set again and again: bytes a second over its size."""

import msgspec
import numpy as np
from numpy.typing import NDArray

from simfa.hardware import HardwareSpec
from simfa.simulate.bench_traces import Copy, copy_trace
from simfa.simulate.chase import plain_loads, timed_inside
from simfa.simulate.engine import run

_CHUNK_BYTES = 4096  # read by one CTA in one go
_DEPTH = 4
_WARPS = 2


class L2Result(msgspec.Struct, frozen=True, kw_only=True):
    """Rate of all SMs together and where reads were answered; None for shares of reads when L2 got none."""

    bytes_per_s: float
    l2_hit_rate: float | None
    copy_share: float | None


def run_l2_stream(hardware: HardwareSpec, *, working_set_bytes: int, lines: int, warm_passes: int) -> L2Result:
    """Read chunk after chunk of the working set, dealt to the SMs in turn, as plain loads with many under way.

    About `lines` lines are timed, after `warm_passes` through the set (L2 only, no time).
    """
    sms = hardware.gpu.sm_count
    copies = -(-lines * hardware.l2.line_bytes // (_CHUNK_BYTES * _WARPS * sms))
    chunks = max(1, working_set_bytes // _CHUNK_BYTES)
    first = chunks * warm_passes
    work = [
        [
            [
                Copy(address=(first + (step * _WARPS + warp) * sms + sm) % chunks * _CHUNK_BYTES, length=_CHUNK_BYTES)
                for step in range(copies)
            ]
            for warp in range(_WARPS)
        ]
        for sm in range(sms)
    ]
    trace = copy_trace(work, box_bytes=_CHUNK_BYTES, depth=_DEPTH)
    result = run(trace, plain_loads(timed_inside(hardware)), warm=_earlier_reads(hardware, chunks, first))
    reads = result.counters["l2_read_requests"]
    return L2Result(
        bytes_per_s=_CHUNK_BYTES * copies * _WARPS * sms * hardware.gpu.sm_clock_hz / result.cycles,
        l2_hit_rate=result.l2_hit_rate,
        copy_share=result.counters["l2_shadow_hits"] / reads if reads else None,
    )


def _earlier_reads(hardware: HardwareSpec, chunks: int, count: int) -> list[tuple[int, NDArray[np.uint32]]]:
    """Return `count` chunk reads before the timed ones, a run for each side in turn: L2 knows sides, not SMs."""
    lines_per_chunk = _CHUNK_BYTES // hardware.l2.line_bytes
    half = hardware.gpu.sm_count // 2
    reads = []
    for run_number, start in enumerate(range(0, count, half)):
        numbers = np.arange(start, min(start + half, count)) % chunks
        lines = numbers[:, None] * lines_per_chunk + np.arange(lines_per_chunk)
        sm = 0 if run_number % 2 == 0 else hardware.gpu.sm_count - 1
        reads.append((sm, lines.ravel().astype(np.uint32)))
    return reads
