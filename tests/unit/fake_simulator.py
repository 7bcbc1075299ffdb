"""A simulator stand-in for tests of what surrounds it: latency from arithmetic, statistics with all keys."""

from typing import Any

import msgspec

from simfa.hardware import load_preset
from simfa.kernel import kernel_for
from simfa.measure.cases import MeasuredCase
from simfa.measure.results import clock_of
from simfa.workload import AttentionShape


def statistics(
    shape: AttentionShape,
    *,
    preset: str = "h100-sxm",
    kernel_version: str = "latest",
    sm_clock_hz: float = 1.5e9,
    latency_us: float = 100.0,
    log_source: str = "none",
) -> dict[str, Any]:
    """Return the keys of `stats.json` for a run of `latency_us`."""
    cycles = round(latency_us * sm_clock_hz / 1e6)
    return {
        "cycles": cycles,
        "latency_us": latency_us,
        "tflops": shape.flops / latency_us / 1e6,
        "tensor_utilization": 0.5,
        "l2_read_bytes": 1 << 20,
        "sm_read_bytes": 1 << 21,
        "sm_write_bytes": 1 << 19,
        "l2_hit_rate": 0.75,
        "dram_read_bytes": 1 << 19,
        "dram_write_bytes": 1 << 18,
        "lrc_merge_rate": 0.25,
        "stall_cycles": {
            "producer": {"issue": cycles // 4, "acquire_stage": cycles - cycles // 4},
            "consumer1": {
                "issue": cycles // 2,
                "wgmma_wait": cycles // 8,
                "softmax": cycles - cycles // 2 - cycles // 8,
            },
        },
        "lines": 1 << 14,
        "host_seconds": 0.5,
        "simulated_cycles_per_second": cycles / 0.5,
        "gpu": load_preset(preset).spec.gpu.name,
        "sm_clock_hz": sm_clock_hz,
        "partial": False,
        "shape": msgspec.to_builtins(shape),
        "kernel": msgspec.to_builtins(kernel_for(shape, kernel_version)),
        "manifest": {
            "tool": "simfa",
            "tool_version": "0",
            "command": "validate",
            "inputs": {},
            "gpu_preset": load_preset(preset).name,
            "gpu_preset_sha256": load_preset(preset).spec.sha256(),
            "log_source": log_source,
            "rules": "source",
            "reconstructed": False,
        },
    }


def ten_percent_slow(case: MeasuredCase) -> dict[str, Any]:
    """Return statistics of a run 10 % slower than measured."""
    return statistics(
        case.shape,
        preset=case.preset,
        kernel_version=case.kernel_version,
        sm_clock_hz=clock_of(case),
        latency_us=case.latency_us * 1.1,
    )
