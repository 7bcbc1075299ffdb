"""From a preset to the engine's `Config`: integers of SM cycles, bytes and millionths.

Everything that belongs to another clock than the SM's is converted here, once.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from simfa.errors import SimulationError
from simfa.hardware import HardwareSpec, value_at
from simfa.simulate import _core
from simfa.simulate.dram_device import preset_channel
from simfa.units import ns_to_cycles

_HASH = {"xor": 0, "modulo": 1, "strong": 2, "side": 3}
_SCHEDULER = {"gto": 0, "lrr": 1, "oldest": 2}
_PPM = 1_000_000
_OF_64_BITS = ("seed", "max_cycles", "channel_line_cycles_numerator", "channel_line_cycles_denominator")
# A line's time on its channel is kept as a fraction of this denominator at most.
_MOST_DENOMINATOR = 1 << 16

# Values that the engine takes as they are: groups of the preset, and the names they have in group and engine.
_AS_THEY_ARE: dict[str, tuple[str, ...]] = {
    "sm": ("issue_width",),
    "tensor_core": (
        *("wgmma_issue_cycles", "wgmma_tail_ss_cycles", "wgmma_tail_rs_cycles", "wgmma_window_ss", "wgmma_window_rs"),
        "group_drain_cycles",
    ),
    "cuda_core": ("quantum_cycles",),
    "tma": (
        *("level_0_latency_cycles", "tensor_map_cycles", "descriptor_cache_entries", "descriptor_miss_cycles"),
        *("issue_gap_cycles", "max_lines_in_flight", "deduplicate", "request_bytes", "store_read_cycles"),
    ),
    "crossbar": ("near_latency_cycles", "far_latency_cycles"),
    "l2": (
        *("line_bytes", "sector_bytes", "fetch_bytes", "slices", "ways", "request_queue_entries"),
        *("response_queue_entries", "mshr_entries", "mshr_merges"),
    ),
    "grid": ("tile_fetch_cycles", "tile_edge_cycles"),
}

# Values that only have another name in the engine.
_RENAMED: dict[str, str] = {
    "sms": "gpu.sm_count",
    "tma_level": "tma.level",
    "tma_launch_cycles": "tma.launch_cycles",
    "mbarrier_arrive_cycles": "mbarrier.arrive_cycles",
    "mbarrier_remote_arrive_cycles": "mbarrier.remote_arrive_cycles",
    "mbarrier_wait_cycles": "mbarrier.wait_cycles",
    "mbarrier_wake_cycles": "mbarrier.wake_cycles",
    "named_arrive_cycles": "named_barrier.arrive_cycles",
    "named_wait_cycles": "named_barrier.wait_cycles",
    "named_wake_cycles": "named_barrier.wake_cycles",
    "lrc_enabled": "lrc.enabled",
    "lrc_multicast": "lrc.multicast",
    "lrc_entries": "lrc.entries",
    "lrc_max_merges": "lrc.max_merges",
    "lrc_hold_cycles": "lrc.hold_cycles",
    "remote_copy": "l2.remote_copy.enabled",
    "channel_write_queue_entries": "memory.write_queue_entries",
}


def _in_ppm(value: float) -> int:
    return round(value * _PPM)


def _line_cycles(hardware: HardwareSpec) -> Fraction:
    """Return the SM cycles a channel needs for a line."""
    sustained = hardware.memory.peak_bytes_per_s * hardware.memory.efficiency / hardware.l2.slices
    cycles = hardware.l2.line_bytes * hardware.gpu.sm_clock_hz / sustained
    return Fraction(cycles).limit_denominator(_MOST_DENOMINATOR)


def _ideal_latency_cycles(hardware: HardwareSpec) -> int:
    """Return the mean round trip of a line that hits and meets no queue: half of the slices are near, half far."""
    if hardware.memory.model != "ideal":
        return 0
    return (hardware.crossbar.near_latency_cycles + hardware.crossbar.far_latency_cycles) // 2


def _sets(hardware: HardwareSpec) -> int:
    return hardware.l2.capacity_bytes // (hardware.l2.slices * hardware.l2.ways * hardware.l2.line_bytes)


_LINE_TIME = "memory.peak_bytes_per_s memory.efficiency gpu.sm_clock_hz"

# Values that are counted in other units in the engine: what decides them, and the conversion. Rates in bytes a cycle
# become lines a cycle and cycles a line, of which one is 1.
_CONVERTED: dict[str, tuple[str, Callable[[HardwareSpec], Any]]] = {
    "scheduler": ("sm.scheduler", lambda preset: _SCHEDULER[preset.sm.scheduler]),
    "cuda_shared": ("cuda_core.sharing", lambda preset: preset.cuda_core.sharing == "shared"),
    "cuda_round_robin": ("cuda_core.order", lambda preset: preset.cuda_core.order == "round_robin"),
    "register_pressure_ppm": (
        "cuda_core.register_pressure",
        lambda preset: _in_ppm(preset.cuda_core.register_pressure),
    ),
    "lines_per_cycle": (
        "tma.issue_bytes_per_cycle",
        lambda preset: max(1, preset.tma.issue_bytes_per_cycle // preset.l2.line_bytes),
    ),
    "cycles_per_line": (
        "tma.issue_bytes_per_cycle",
        lambda preset: max(1, preset.l2.line_bytes // preset.tma.issue_bytes_per_cycle),
    ),
    "port_lines_per_cycle": (
        "crossbar.sm_port_bytes_per_cycle",
        lambda preset: max(1, preset.crossbar.sm_port_bytes_per_cycle // preset.l2.line_bytes),
    ),
    "port_cycles_per_line": (
        "crossbar.sm_port_bytes_per_cycle",
        lambda preset: max(1, preset.l2.line_bytes // preset.crossbar.sm_port_bytes_per_cycle),
    ),
    "sets": ("l2.capacity_bytes", _sets),
    "hash": ("l2.hash", lambda preset: _HASH[preset.l2.hash]),
    "slice_service_cycles": (
        "l2.bytes_per_cycle_per_slice",
        lambda preset: max(1, preset.l2.line_bytes // preset.l2.bytes_per_cycle_per_slice),
    ),
    "remote_copy_probability_ppm": (
        "l2.remote_copy.max_insertion_probability",
        lambda preset: _in_ppm(preset.l2.remote_copy.max_insertion_probability),
    ),
    "remote_copy_threshold_ppm": (
        "l2.remote_copy.occupancy_threshold",
        lambda preset: _in_ppm(preset.l2.remote_copy.occupancy_threshold),
    ),
    "channel_line_cycles_numerator": (_LINE_TIME, lambda preset: _line_cycles(preset).numerator),
    "channel_line_cycles_denominator": (_LINE_TIME, lambda preset: _line_cycles(preset).denominator),
    "channel_latency_cycles": (
        "memory.latency_ns gpu.sm_clock_hz",
        lambda preset: ns_to_cycles(preset.memory.latency_ns, preset.gpu.sm_clock_hz),
    ),
    "channel_write_cost_ppm": ("memory.write_cost", lambda preset: _in_ppm(preset.memory.write_cost)),
    "dram": (
        "memory.dram.path_latency_ns gpu.sm_clock_hz memory.peak_bytes_per_s",
        lambda preset: preset_channel(preset) if preset.memory.model == "hbm3" else None,
    ),
    "ideal_latency_cycles": ("crossbar.near_latency_cycles crossbar.far_latency_cycles", _ideal_latency_cycles),
    "launch_cycles": (
        "grid.launch_ns gpu.sm_clock_hz",
        lambda preset: ns_to_cycles(preset.grid.launch_ns, preset.gpu.sm_clock_hz),
    ),
}


def engine_config(hardware: HardwareSpec, **run: Any) -> _core.Config:
    """Return the engine's configuration for a preset; `run` sets run-time fields (threads, timeline, ...).

    Raises `SimulationError` for a GPU that is not Hopper, as its preset serves the analytical model alone, and for a
    value that the engine cannot hold, by the name it has in the preset.
    """
    if not hardware.gpu.compute_capability.startswith("9."):
        raise SimulationError(
            f"{hardware.gpu.name} (compute capability {hardware.gpu.compute_capability}) is not a Hopper GPU; "
            "FA3 and the simulator need one, `simfa analytical` does not"
        )
    plain = {name: f"{group}.{name}" for group, names in _AS_THEY_ARE.items() for name in names} | _RENAMED
    config = _core.Config()
    for name, path in plain.items():
        value = value_at(hardware, path)
        try:
            setattr(config, name, value)
        except TypeError as error:
            raise SimulationError(f"{path} is {value}; expected a number of 32 bits") from error
    for name, (paths, convert) in _CONVERTED.items():
        try:
            setattr(config, name, convert(hardware))
        except (TypeError, OverflowError) as error:
            given = ", ".join(f"{path} {value_at(hardware, path)}" for path in paths.split())
            raise SimulationError(f"{given}: expected {name} to be {_integer(name)}") from error
    for name, value in run.items():
        try:
            setattr(config, name, value)
        except TypeError as error:
            raise SimulationError(f"{name} is {value}; expected {_integer(name)}") from error
    return config


def _integer(name: str) -> str:
    return f"a number of {64 if name in _OF_64_BITS else 32} bits"
