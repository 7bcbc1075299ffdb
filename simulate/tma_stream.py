"""Streams of TMA copies from device memory: every CTA issues, waits, repeats; bytes a second of the whole chip."""

import math
import random
from typing import NamedTuple

import msgspec

from simfa.errors import SimulationError
from simfa.hardware import HardwareSpec
from simfa.simulate.bench_traces import Copy, copy_trace
from simfa.simulate.engine import count_between
from simfa.trace import TensorMap
from simfa.units import ns_to_cycles

MAX_RESIDENT = 4  # roles of a CTA in a trace
WARM_UP_CYCLES = 2000  # after the last start, for queues to fill
WINDOW_CYCLES = 10_000  # over a refresh interval, within which channels take turns
_BASE = 1 << 21
_SEED = 1
_ELEMENT_BYTES = (1, 2, 4, 8)


class StreamResult(msgspec.Struct, frozen=True, kw_only=True):
    """Rate of the whole chip, the time of one copy by Little's law, and what held copies back."""

    bytes_per_s: float
    copy_cycles: float | None
    l2_hit_rate: float | None
    tma_limit_cycles: int
    blocked_mshr_cycles: int


class Tensor(NamedTuple):
    """A packed tensor streamed box by box, dimension 0 fastest; with `bulk` by copies that need no tensor map."""

    dims: tuple[int, ...]
    box: tuple[int, ...]
    element_bytes: int
    bulk: bool = False

    @property
    def strides(self) -> tuple[int, ...]:
        """Byte strides of dimensions 1 and up."""
        strides = []
        stride = self.element_bytes
        for extent in self.dims[:-1]:
            stride *= extent
            strides.append(stride)
        return tuple(strides)

    @property
    def box_bytes(self) -> int:
        """Bytes of one box."""
        total = self.element_bytes
        for extent in self.box:
            total *= extent
        return total

    def lines(self, line_bytes: int) -> int:
        """Lines of one box; rows of boxes that are not whole lines share theirs with neighbours."""
        row_bytes = self.box[0] * self.element_bytes
        rows = self.box_bytes // row_bytes
        return rows * max(1, row_bytes // line_bytes)

    def corner(self, number: int) -> tuple[int, ...]:
        """First element of box `number`; after the last box comes the first again."""
        corner = []
        for extent, edge in zip(self.dims, self.box, strict=True):
            number, place = divmod(number, extent // edge)
            corner.append(place * edge)
        return tuple(corner)


def run_stream(
    hardware: HardwareSpec,
    tensor: Tensor,
    *,
    ctas: int,
    depth: int = 1,
    warps: int = 1,
    spread_ns: float,
    loop_ns: float = 0,
) -> StreamResult:
    """Stream boxes through `ctas` CTAs and count lines that come over `WINDOW_CYCLES`, when all are under way.

    Each of the `warps` of a CTA keeps up to `depth` copies under way. Box k of warp w of CTA c is number
    (k * warps + w) * ctas + c of the tensor. CTAs beyond the SMs share them. CTAs start evenly over `spread_ns`, in an
    order drawn once: those whose boxes are neighbours do not run in step. `loop_ns` is a warp's time for one turn of
    its loop when no copy is waited for: it hides behind copies only if `depth` is above 1. Raises `SimulationError` for
    more than `MAX_RESIDENT` warps or CTAs on an SM, and for CTAs that do not fill the SMs evenly.
    """
    sms = hardware.gpu.sm_count
    resident, rest = divmod(ctas, sms) if ctas > sms else (1, 0)
    used, roles = ctas // resident, resident * warps
    if rest or roles > MAX_RESIDENT:
        raise SimulationError(
            f"{ctas} CTAs of {warps} warps on {sms} SMs: expected up to {sms} CTAs, or a multiple of that, and up to "
            f"{MAX_RESIDENT} warps on each SM"
        )
    spread = ns_to_cycles(spread_ns, hardware.gpu.sm_clock_hz)
    begin = spread + WARM_UP_CYCLES
    copies = _enough_copies(hardware, tensor, streams=roles * used, depth=depth, cycles=begin + WINDOW_CYCLES)
    order = random.Random(_SEED).sample(range(roles * used), roles * used)
    maps: dict[tuple[int, ...], TensorMap] = {}
    work = [
        [[_copy(tensor, maps, (step * roles + role) * used + sm) for step in range(copies)] for role in range(roles)]
        for sm in range(used)
    ]
    trace = copy_trace(
        work,
        box_bytes=tensor.box_bytes,
        depth=depth,
        maps=list(maps.values()),
        starts=[[spread * order[role * used + sm] // (roles * used) for role in range(roles)] for sm in range(used)],
        meet=depth == 1,
        loop_cycles=_loop_cycles(hardware, loop_ns),
    )
    counts, cycles = count_between(trace, _alone(hardware), begin_cycle=begin, end_cycle=begin + WINDOW_CYCLES)
    # Answers of L2, and for each of them as many lines as asked for after coalescing.
    lines = counts["l2_responses"] * counts["read_lines"] / max(1, counts["l2_read_requests"])
    boxes = lines / tensor.lines(hardware.l2.line_bytes)
    served = counts["l2_read_hits"] + counts["l2_shadow_hits"] + counts["l2_read_merges"]
    looked_up = served + counts["l2_read_misses"]
    return StreamResult(
        bytes_per_s=tensor.box_bytes * boxes * hardware.gpu.sm_clock_hz / cycles,
        copy_cycles=cycles * roles * used * depth / boxes if boxes else None,
        l2_hit_rate=served / looked_up if looked_up else None,
        tma_limit_cycles=counts["tma_limit_cycles"],
        blocked_mshr_cycles=counts["blocked_mshr_entries_cycles"],
    )


def _enough_copies(hardware: HardwareSpec, tensor: Tensor, *, streams: int, depth: int, cycles: int) -> int:
    """Return how many copies a stream cannot have made after `cycles`, by memory's peak and by its own latency."""
    peak_bytes = hardware.memory.peak_bytes_per_s / hardware.gpu.sm_clock_hz * cycles
    by_memory = math.ceil(peak_bytes / (streams * tensor.box_bytes))
    by_latency = math.ceil(cycles / hardware.crossbar.near_latency_cycles) * depth
    return 2 * depth + min(2 * by_memory, by_latency)


def _alone(hardware: HardwareSpec) -> HardwareSpec:
    """Return the hardware as a clock inside the kernel sees it, with waiting warps that do not share CUDA cores."""
    replace = msgspec.structs.replace
    return replace(
        hardware,
        grid=replace(hardware.grid, launch_ns=0.0),
        cuda_core=replace(hardware.cuda_core, sharing="private"),
    )


def _loop_cycles(hardware: HardwareSpec, loop_ns: float) -> int:
    """Return what is left of a turn after the two barriers that every turn passes and its four instructions."""
    barriers = 2 * hardware.mbarrier.wait_cycles
    return max(0, ns_to_cycles(loop_ns, hardware.gpu.sm_clock_hz) - barriers - 2)


def _copy(tensor: Tensor, maps: dict[tuple[int, ...], TensorMap], number: int) -> Copy:
    """Return box `number`. A trace has two coordinates: each place along higher dimensions gets a map moved there."""
    corner = tensor.corner(number)
    if tensor.bulk:
        return Copy(address=_BASE + corner[0] * tensor.element_bytes, length=tensor.box_bytes)
    plane = corner[2:]
    if plane not in maps:
        offset = sum(at * stride for at, stride in zip(plane, tensor.strides[1:], strict=False))
        above = (extent - at for extent, at in zip(tensor.dims[2:], plane, strict=True))
        assert tensor.element_bytes in _ELEMENT_BYTES
        maps[plane] = TensorMap(
            name="M" + "_".join(map(str, plane)),
            base=_BASE + offset,
            dims=(*tensor.dims[:2], *above),
            strides=tensor.strides,
            box=tensor.box,
            element_bytes=tensor.element_bytes,  # type: ignore[arg-type]  # one of the four
            origin="none",
        )
    return Copy(map_name=maps[plane].name, x=corner[0], y=corner[1] if len(corner) > 1 else 0)
