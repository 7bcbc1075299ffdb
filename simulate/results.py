"""What a run gives back: the figures of `stats.json` and the timeline of `timeline.npz`."""

from typing import TYPE_CHECKING, Any

import msgspec

from simfa.frames import row_frame
from simfa.hardware import HardwareSpec
from simfa.simulate.timeline_rows import ROLE_NAMES
from simfa.timeline import Timeline
from simfa.trace import Trace
from simfa.units import cycles_to_us

if TYPE_CHECKING:
    import pandas


class RunResult(msgspec.Struct, frozen=True, kw_only=True):
    """One simulated kernel launch.

    `lines` counts lines delivered to shared memory plus lines stored, so a multicast line counts for both SMs; a line
    asked for in part counts as one. `sm_read_bytes` and `sm_write_bytes` are what was asked for of them, and
    `l2_read_bytes` what reached L2 of the reads after coalescing. `stall_cycles` maps role and reason to cycles summed
    over all CTAs; each role's sum is `cycles` times the CTAs. Its `tensor_pipe` is busy, drains after a group, or idles
    for what the warpgroup was doing that used it next. `host_seconds` is the engine alone. `counters` are the engine's
    other counts.
    """

    cycles: int
    latency_us: float
    tflops: float | None
    tensor_utilization: float
    l2_read_bytes: int
    sm_read_bytes: int
    sm_write_bytes: int
    l2_hit_rate: float | None
    dram_read_bytes: int
    dram_write_bytes: int
    lrc_merge_rate: float | None
    stall_cycles: dict[str, dict[str, int]]
    lines: int
    host_seconds: float
    simulated_cycles_per_second: float
    gpu: str
    sm_clock_hz: float
    partial: bool
    counters: dict[str, int]
    timeline: Timeline | None = None

    def to_json(self) -> dict[str, Any]:
        """Return all fields but the timeline, for `stats.json`."""
        return {name: getattr(self, name) for name in self.__struct_fields__ if name != "timeline"}

    def to_frame(self) -> "pandas.DataFrame":
        """Return a frame of one row, a column for each figure; stalls, counters and slices are not among them."""
        return row_frame(self, ("stall_cycles", "counters", "timeline"))

    def stalls_to_frame(self) -> "pandas.DataFrame":
        """Return where cycles went: `role`, `reason`, `cycles` over all CTAs, and their `share` of the role's."""
        import pandas

        rows = [(role, reason, n) for role, reasons in self.stall_cycles.items() for reason, n in reasons.items()]
        frame = pandas.DataFrame(rows, columns=["role", "reason", "cycles"])
        return frame.assign(share=frame["cycles"] / frame.groupby("role")["cycles"].transform("sum"))


def run_result(
    stats: dict[str, Any],
    trace: Trace,
    hardware: HardwareSpec,
    host_seconds: float,
    *,
    partial: bool,
    timeline: Timeline | None,
) -> RunResult:
    """Return the figures of a run from the engine's counters."""
    cycles = stats["cycles"]
    clock = hardware.gpu.sm_clock_hz
    latency_us = cycles_to_us(cycles, clock)
    served = stats["l2_read_hits"] + stats["l2_shadow_hits"] + stats["l2_read_merges"]
    looked_up = served + stats["l2_read_misses"]
    stalls = {ROLE_NAMES[role]: dict(sorted(reasons.items())) for role, reasons in stats["stalls"].items() if reasons}
    pipe = {"busy": stats["tensor_busy_cycles"], "drain": stats["tensor_drain_cycles"], **stats["tensor_idle"]}
    stalls["tensor_pipe"] = {reason: pipe[reason] for reason in sorted(pipe) if pipe[reason]}
    whole = trace.shape is not None and not partial and cycles > 0
    return RunResult(
        cycles=cycles,
        latency_us=latency_us,
        tflops=trace.shape.flops / latency_us / 1e6 if trace.shape is not None and whole else None,
        tensor_utilization=stats["tensor_busy_cycles"] / (cycles * hardware.gpu.sm_count) if cycles else 0.0,
        l2_read_bytes=stats["l2_read_bytes"],
        sm_read_bytes=stats["read_bytes"],
        sm_write_bytes=stats["write_bytes"],
        l2_hit_rate=served / looked_up if looked_up else None,
        dram_read_bytes=stats["memory_read_bytes"],
        dram_write_bytes=stats["memory_write_bytes"],
        lrc_merge_rate=stats["lrc_merges"] / stats["read_lines"] if stats["read_lines"] else None,
        stall_cycles=stalls,
        lines=stats["read_lines"] + stats["write_lines"],
        host_seconds=host_seconds,
        simulated_cycles_per_second=cycles / host_seconds if host_seconds else 0.0,
        gpu=hardware.gpu.name,
        sm_clock_hz=clock,
        partial=partial,
        counters={name: value for name, value in stats.items() if name not in ("cycles", "stalls", "tensor_idle")},
        timeline=timeline,
    )
