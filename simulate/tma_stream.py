"""Streams of TMA copies from device memory or L2: every CTA issues, waits, repeats; bytes a second of the whole chip."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from simfa.errors import SimulationError
from simfa.hardware import HardwareSpec
from simfa.simulate.bench_traces import Copy, copy_trace
from simfa.simulate.engine import run
from simfa.trace import TensorMap

MAX_RESIDENT = 4  # roles of a CTA in a trace
_BASE = 1 << 21


class StreamResult(msgspec.Struct, frozen=True, kw_only=True):
    """One point: rate over the whole run, time of one copy by Little's law, and what it met on its way."""

    bytes_per_s: float
    copy_cycles: float
    cycles: int
    l2_hit_rate: float
    tma_limit_cycles: int
    mshr_peak: int


class Tensor(NamedTuple):
    """A tensor streamed box by box, dimension 0 fastest; without a map if it has one dimension and `bulk`."""

    dims: tuple[int, ...]
    box: tuple[int, ...]
    element_bytes: int
    bulk: bool = False

    @property
    def strides(self) -> tuple[int, ...]:
        """Byte strides of dimensions 1 and up of the packed tensor."""
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
        """First element of box `number`, counted with dimension 0 fastest and from the start again after the last."""
        corner = []
        for extent, edge in zip(self.dims, self.box, strict=True):
            number, place = divmod(number, extent // edge)
            corner.append(place * edge)
        return tuple(corner)


def run_stream(hardware: HardwareSpec, tensor: Tensor, *, ctas: int, copies: int, depth: int = 1) -> StreamResult:
    """Stream `copies` boxes through each of `ctas` CTAs, box k of CTA c being number k * ctas + c of the tensor.

    CTAs beyond the SMs share them: up to `MAX_RESIDENT` on each SM. Raises `SimulationError` for more.
    """
    sms = hardware.gpu.sm_count
    resident, rest = divmod(ctas, sms)
    if ctas > sms and (rest or resident > MAX_RESIDENT):
        raise SimulationError(
            f"{ctas} CTAs on {sms} SMs; expected up to {sms}, or a multiple of it up to {MAX_RESIDENT} on each"
        )
    resident, used = max(1, resident), min(ctas, sms)
    maps: dict[tuple[int, ...], TensorMap] = {}
    work = [
        [
            [_copy(tensor, maps, step * ctas + role * used + sm) for step in range(copies)]
            for role in range(resident)
        ]
        for sm in range(used)
    ]
    import os
    R=int(os.environ.get("RAMP","0"))
    starts=[[R*(role*used+sm)//ctas for role in range(resident)] for sm in range(used)]
    trace = copy_trace(work, starts=starts, meet=depth==1, box_bytes=tensor.box_bytes, depth=depth, maps=list(maps.values()))
    replace = msgspec.structs.replace
    result = run(trace, replace(hardware, grid=replace(hardware.grid, launch_ns=0.0)))
    total = tensor.box_bytes * copies * ctas
    return StreamResult(
        bytes_per_s=total / ((result.cycles - R/2) / hardware.gpu.sm_clock_hz),
        copy_cycles=(result.cycles-R/2) / copies * depth,
        cycles=result.cycles,
        l2_hit_rate=result.l2_hit_rate or 0.0,
        tma_limit_cycles=result.counters["tma_limit_cycles"],
        mshr_peak=result.counters["mshr_peak"],
    )


def _copy(tensor: Tensor, maps: dict[tuple[int, ...], TensorMap], number: int) -> Copy:
    """Return box `number`; planes above the second dimension get maps of their own, moved by their offset."""
    corner = tensor.corner(number)
    if tensor.bulk:
        return Copy(address=_BASE + corner[0] * tensor.element_bytes, length=tensor.box_bytes)
    plane = corner[2:]
    if plane not in maps:
        offset = sum(at * stride for at, stride in zip(plane, tensor.strides[1:], strict=True))
        dims = (*tensor.dims[:2], *(extent - at for extent, at in zip(tensor.dims[2:], plane, strict=True)))
        maps[plane] = TensorMap(
            name="M" + "_".join(map(str, plane)),
            base=_BASE + offset,
            dims=dims,
            strides=tensor.strides,
            box=tensor.box,
            element_bytes=tensor.element_bytes,  # type: ignore[arg-type]
            origin="none",
        )
    return Copy(map_name=maps[plane].name, x=corner[0], y=corner[1] if len(corner) > 1 else 0)
