"""One DRAM channel driven as fast as its queues accept: fraction of peak, read latency, row hits."""

import time
from collections.abc import Callable
from fractions import Fraction

import msgspec
import numpy as np
from numpy.typing import NDArray

from simfa.dram import Dram, load_device
from simfa.errors import SimulationError
from simfa.simulate import _core
from simfa.simulate.dram_device import core_channel

Bursts = NDArray[np.uint32]
Stream = tuple[Bursts, NDArray[np.uint8]]

_ACCESS = 2  # bursts of 32 bytes in an access of 64 bytes
_SEED = 1


class BenchResult(msgspec.Struct, frozen=True, kw_only=True):
    """What the channel did with one pattern; latencies are missing where nothing was read."""

    pattern: str
    transfers: int
    fraction_of_peak: float
    mean_read_latency_ns: float | None
    mean_read_latency_from_offer_ns: float | None
    row_hit_rate: float
    requests_per_host_second: float
    simulated_ns: float
    peak_bytes_per_s: float
    activates: int
    refreshes: int
    forwarded_reads: int
    absorbed_writes: int


def _stream_read(count: int, capacity: int) -> Stream:
    """Bursts in address order."""
    return np.arange(count, dtype=np.uint32) % np.uint32(capacity), np.zeros(count, np.uint8)


def _stream_write(count: int, capacity: int) -> Stream:
    """The same, written."""
    bursts, writes = _stream_read(count, capacity)
    return bursts, writes + np.uint8(1)


def _read_write(count: int, capacity: int) -> Stream:
    """128 bytes read, 64 bytes written; reads run through the lower half of the channel, writes through the upper."""
    turn, place = np.divmod(np.arange(count), 3 * _ACCESS)
    writes = place >= 2 * _ACCESS
    read = (2 * _ACCESS * turn + place) % (capacity // 2)
    write = capacity // 2 + (_ACCESS * turn + place - 2 * _ACCESS) % (capacity // 2)
    return np.where(writes, write, read).astype(np.uint32), writes.astype(np.uint8)


def _random_read(count: int, capacity: int) -> Stream:
    """Accesses of 64 bytes at random places."""
    accesses = np.random.default_rng(_SEED).integers(capacity // _ACCESS, size=-(-count // _ACCESS))
    bursts = (_ACCESS * accesses[:, None] + np.arange(_ACCESS)).ravel()[:count]
    return bursts.astype(np.uint32), np.zeros(count, np.uint8)


def _stride_read(count: int, capacity: int) -> Stream:
    """One burst every 2048 bytes."""
    return (np.arange(count) * (2048 // 32) % capacity).astype(np.uint32), np.zeros(count, np.uint8)


PATTERNS: dict[str, Callable[[int, int], Stream]] = {
    "stream-read": _stream_read,
    "stream-write": _stream_write,
    "read-write-2to1": _read_write,
    "random-read-64": _random_read,
    "stride-2048-read": _stride_read,
}


def run_bench(dram: Dram, *, pattern: str, data_rate_bits_per_s: float, transfers: int) -> BenchResult:
    """Drive one channel of `dram` with `transfers` bursts of 32 bytes of a pattern; refreshes and queues are its own.

    A transfer is offered when the one before has been accepted. Latencies run to the last data at the controller; the
    path to the SMs is left out. A row hit is a burst that needed no activate of its own. Raises `HardwareError` for an
    unknown name, `SimulationError` for values the controller refuses.
    """
    device = load_device(dram.standard, dram.organisation, data_rate_bits_per_s)
    burst_bytes = device.organisation.burst_bytes
    try:
        channel = core_channel(device, dram, half_clocks_per_cycle=Fraction(1), line_bytes=burst_bytes, path_cycles=0)
        bursts, writes = PATTERNS[pattern](transfers, device.organisation.channel_bytes // burst_bytes)
        begin = time.thread_time()
        result = _core.run_dram_bench(channel, bursts, writes)
        seconds = time.thread_time() - begin
    except ValueError as error:
        raise SimulationError(str(error)) from error
    tick_ns = float(1_000_000_000 / device.half_clock_hz)
    simulated_ns = result["ticks"] * tick_ns
    moved = result["dram_reads"] + result["dram_writes"]
    reads, latency, wait = result["completed_reads"], result["read_latency_ticks"], result["read_wait_ticks"]
    return BenchResult(
        pattern=pattern,
        transfers=transfers,
        fraction_of_peak=moved * burst_bytes / (simulated_ns * 1e-9) / device.peak_bytes_per_s,
        mean_read_latency_ns=latency * tick_ns / reads if reads else None,
        mean_read_latency_from_offer_ns=(latency + wait) * tick_ns / reads if reads else None,
        row_hit_rate=1 - result["dram_activates"] / moved,
        requests_per_host_second=transfers / seconds,
        simulated_ns=simulated_ns,
        peak_bytes_per_s=device.peak_bytes_per_s,
        activates=result["dram_activates"],
        refreshes=result["dram_refreshes"],
        forwarded_reads=result["dram_forwarded_reads"],
        absorbed_writes=result["dram_absorbed_writes"],
    )
