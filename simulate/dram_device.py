"""From a preset's `memory.dram` to the engine's bank-level channel."""

from fractions import Fraction

from simfa.dram import Device, Dram, data_rate_of, load_device, load_mapping
from simfa.errors import HardwareError
from simfa.hardware import HardwareSpec
from simfa.simulate import _core
from simfa.units import ns_to_cycles

_REFRESH = {"none": 0, "all-bank": 1, "per-bank": 2}
# Half clocks in an SM cycle are kept as a fraction of numbers up to 2^22, which the engine can multiply with cycles.
_MOST = 1 << 20
_MOST_CLOCKS = (1 << 31) - 1


def core_channel(
    device: Device, dram: Dram, *, half_clocks_per_cycle: Fraction, line_bytes: int, path_cycles: int
) -> _core.DramChannel:
    """Return the engine's description of one channel; raises `ValueError` naming the value that cannot be."""
    mapping = load_mapping(dram.mapping, device.organisation)
    ticks = half_clocks_per_cycle.limit_denominator(_MOST)
    if max(device.timing.values()) > _MOST_CLOCKS:
        raise ValueError(
            f"DRAM clock: {float(device.half_clock_hz):g} half clocks a second are beyond what the engine holds"
        )
    organisation = {name: getattr(device.organisation, name) for name in device.organisation.__struct_fields__}
    control = {
        "read_queue_entries": dram.read_queue_entries,
        "write_queue_entries": dram.write_queue_entries,
        "opened_entries": dram.opened_entries,
        "drain_above_percent": round(100 * dram.drain_above),
        "drain_below_percent": round(100 * dram.drain_below),
        "row_hit_cap": dram.row_hit_cap,
        "ecc_overhead_ppm": round(1_000_000 * dram.ecc_overhead),
    }
    return _core.DramChannel(
        organisation=organisation,
        timing=device.timing,
        control=control,
        closed_rows=dram.row_policy == "closed",
        refresh=_REFRESH[dram.refresh],
        segments=list(mapping.segments),
        xor=list(mapping.xor),
        ticks_numerator=ticks.numerator,
        ticks_denominator=ticks.denominator,
        line_bytes=line_bytes,
        path_cycles=path_cycles,
    )


def preset_channel(hardware: HardwareSpec) -> _core.DramChannel:
    """Return the channel behind each slice of a preset; its data rate follows from the peak of all channels.

    Raises `HardwareError` for an unknown standard, density or mapping and for clocks that no part has, and `ValueError`
    for values that cannot be.
    """
    dram, clock_hz = hardware.memory.dram, hardware.gpu.sm_clock_hz
    rate = data_rate_of(dram.standard, hardware.memory.peak_bytes_per_s, hardware.l2.slices)
    device = load_device(dram.standard, dram.organisation, rate)
    cycles_per_s = Fraction(clock_hz).limit_denominator(1)
    if not cycles_per_s:
        raise HardwareError(f"gpu.sm_clock_hz {clock_hz:g} is below one cycle a second")
    return core_channel(
        device,
        dram,
        half_clocks_per_cycle=device.half_clock_hz / cycles_per_s,
        line_bytes=hardware.l2.line_bytes,
        path_cycles=ns_to_cycles(dram.path_latency_ns, clock_hz),
    )
