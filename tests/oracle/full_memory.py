"""Cases with the full memory hierarchy instead of ideal memory, and everything that such a run gives back."""

from typing import Any

import msgspec
import numpy as np

from simfa.hardware import HardwareSpec
from simfa.recording import Recording
from simfa.simulate.engine import run
from simfa.trace import Trace
from tests.oracle.chooser import Chooser

HOST_FIGURES = ("host_seconds", "simulated_cycles_per_second")


def draw_memory(chooser: Chooser, hardware: HardwareSpec) -> HardwareSpec:
    """Return the hardware with a random small memory hierarchy: short latencies, few entries, caches that overflow."""
    integer, pick, chance = chooser.integer, chooser.pick, chooser.chance
    replace = msgspec.structs.replace
    near = integer(2, 60)
    line = hardware.l2.line_bytes
    slices, ways, sets = pick([2, 4, 6]), pick([1, 2, 4]), pick([1, 2, 8])
    clock = hardware.gpu.sm_clock_hz
    return replace(
        hardware,
        lrc=replace(
            hardware.lrc,
            enabled=chance(75),
            multicast=chance(75),
            entries=pick([1, 2, 5, 64]),
            max_merges=pick([1, 2, 8]),
            hold_cycles=pick([0, 0, 1, 40]),
        ),
        crossbar=replace(
            hardware.crossbar,
            near_latency_cycles=near,
            far_latency_cycles=near + integer(2, 40),
            sm_port_bytes_per_cycle=pick([line // 2, line, 2 * line]),
        ),
        l2=replace(
            hardware.l2,
            slices=slices,
            ways=ways,
            capacity_bytes=slices * ways * sets * line,
            fetch_bytes=pick([hardware.l2.sector_bytes, line // 2, line]),
            hash=pick(["xor", "modulo", "strong"]),
            bytes_per_cycle_per_slice=pick([line, line // 2, line // 4]),
            request_queue_entries=pick([1, 3, 32]),
            response_queue_entries=pick([1, 4, 128]),
            mshr_entries=pick([1, 2, 16]),
            mshr_merges=pick([1, 2, 8]),
            remote_copy=replace(
                hardware.l2.remote_copy,
                enabled=chance(40),
                max_insertion_probability=pick([0.0, 0.5, 1.0]),
                occupancy_threshold=pick([0.0, 0.5, 1.0]),
            ),
        ),
        memory=replace(
            hardware.memory,
            model="channel",
            peak_bytes_per_s=pick([1.0, 0.3, 0.02]) * slices * line * clock,
            efficiency=pick([1.0, 0.83]),
            latency_ns=pick([0.0, 11.5, 80.0]),
            write_cost=pick([1.0, 1.5]),
            write_queue_entries=pick([1, 3, 32]),
        ),
    )


def everything(trace: Trace, hardware: HardwareSpec, **options: Any) -> dict[str, Any]:
    """Return all that a run gives back but the host's time, slices of all SMs included."""
    result = run(trace, hardware, timeline=Recording(period_cycles=37), **options)
    found = {name: value for name, value in result.to_json().items() if name not in HOST_FIGURES}
    assert result.timeline is not None
    timeline = msgspec.structs.asdict(result.timeline)
    found["timeline"] = {
        # No rate is -1: NaN, for a rate without anything to count, would differ from itself.
        name: np.nan_to_num(values, nan=-1).tolist() if hasattr(values, "tolist") else values
        for name, values in timeline.items()
    }
    return found


def differing(first: dict[str, Any], second: dict[str, Any]) -> list[str]:
    """Return the names of the figures in which two results differ, with both values."""
    names = [name for name in first if first[name] != second.get(name)]
    return [f"{name}: {str(first[name])[:200]} and {str(second.get(name))[:200]}" for name in names]
