"""Streams of TMA copies from device memory: every CTA issues, waits, repeats; bytes a second of the whole chip."""

from typing import NamedTuple

import msgspec

from simfa.errors import SimulationError
from simfa.hardware import HardwareSpec
from simfa.simulate.bench_traces import Copy, copy_trace
from simfa.simulate.engine import run
from simfa.trace import TensorMap
from simfa.units import ns_to_cycles

MAX_RESIDENT = 4  # roles of a CTA in a trace
_BASE = 1 << 21
_ELEMENT_BYTES = (1, 2, 4, 8)


class StreamResult(msgspec.Struct, frozen=True, kw_only=True):
    """Rate of the whole chip, the time of one copy by Little's law, and what held copies back."""

    bytes_per_s: float
    copy_cycles: float
    l2_hit_rate: float
    tma_limit_cycles: int
    mshr_peak: int


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
    copies: int,
    depth: int = 1,
    warps: int = 1,
    ramp_ns: float,
    loop_ns: float = 0,
) -> StreamResult:
    """Stream boxes through `ctas` CTAs: `copies` in each of their `warps`, up to `depth` under way at once.

    Box k of warp w of CTA c is number (k * warps + w) * ctas + c of the tensor. CTAs beyond the SMs share them. CTAs
    start one after the other over `ramp_ns`; the rate counts from the middle of that. `loop_ns` is a warp's time for
    one turn of its loop when no copy is waited for: it hides behind copies only if `depth` is above 1. Raises
    `SimulationError` for more than `MAX_RESIDENT` warps or CTAs on an SM, and for CTAs that do not fill the SMs evenly.
    """
    sms = hardware.gpu.sm_count
    resident, rest = divmod(ctas, sms) if ctas > sms else (1, 0)
    used, roles = ctas // resident, resident * warps
    if rest or roles > MAX_RESIDENT:
        raise SimulationError(
            f"{ctas} CTAs of {warps} warps on {sms} SMs: expected up to {sms} CTAs, or a multiple of that, and up to "
            f"{MAX_RESIDENT} warps on each SM"
        )
    ramp = ns_to_cycles(ramp_ns, hardware.gpu.sm_clock_hz)
    maps: dict[tuple[int, ...], TensorMap] = {}
    work = [
        [
            [_copy(tensor, maps, step * roles * used + role * used + sm) for step in range(copies)]
            for role in range(roles)
        ]
        for sm in range(used)
    ]
    starts = [[ramp * (role * used + sm) // (roles * used) for role in range(roles)] for sm in range(used)]
    trace = copy_trace(
        work,
        box_bytes=tensor.box_bytes,
        depth=depth,
        maps=list(maps.values()),
        starts=starts,
        meet=depth == 1,
        loop_cycles=_loop_cycles(hardware, loop_ns),
    )
    result = run(trace, _alone(hardware))
    cycles = result.cycles - ramp / 2
    return StreamResult(
        bytes_per_s=tensor.box_bytes * copies * roles * used * hardware.gpu.sm_clock_hz / cycles,
        copy_cycles=cycles / copies * depth,
        l2_hit_rate=result.l2_hit_rate or 0.0,
        tma_limit_cycles=result.counters["tma_limit_cycles"],
        mshr_peak=result.counters["mshr_peak"],
    )


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
