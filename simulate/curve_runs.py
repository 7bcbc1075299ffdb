"""Simulates every point of a measured curve: latency chase, TMA streams, L2 reads."""

import math
from collections.abc import Callable, Sequence

from simfa.hardware import HardwareSpec
from simfa.simulate.chase import run_chase
from simfa.simulate.curves import Compared, L2BandwidthPoint, LatencyPoint, ProducerPoint, TmaBandwidthPoint
from simfa.simulate.l2_stream import run_l2_stream
from simfa.simulate.tma_stream import StreamResult, Tensor, run_stream

Report = Callable[[int], None]

CHASE_STEPS = 1500
CHASE_WARM_PASSES = 12
# A grid's CTAs start over 1.24 us when there are 128 or more (flash-vla hardware-unit-test/sm90).
RAMP_NS = 1240.0
# One turn of a producer warp's loop, from 1 to 32 KB (flash-vla hardware-unit-test/sm90).
PRODUCER_LOOP_NS = 248.0
L2_LINES = 300_000
L2_WARM_PASSES = 3

_KIB, _MIB, _GIB = 1 << 10, 1 << 20, 1 << 30
_REGIMES = ((25, "to 25 MiB"), (50, "25 to 50 MiB"), (math.inf, "above 50 MiB"))
_STREAM_BYTES = 4 * _GIB
_PRODUCER_DEPTH = 4


def latency_curve(
    hardware: HardwareSpec, points: Sequence[LatencyPoint], done: Report, *, steps: int, warm_passes: int
) -> list[Compared]:
    """Chase pointers through every working set; groups are the three regimes of the curve."""
    found = []
    for number, point in enumerate(points):
        working_set = round(point.working_set_kib * _KIB)
        result = run_chase(
            hardware, working_set_bytes=working_set, method=point.method, steps=steps, warm_passes=warm_passes
        )
        found.append(
            Compared(
                axis={"method": point.method, "working_set_mib": working_set / _MIB},
                group=next(name for limit, name in _REGIMES if working_set / _MIB <= limit),
                unit="cycles",
                split=point.split,
                measured=point.latency_cycles,
                simulated=result.latency_cycles,
                counters={"hop_share": result.hop_share, "memory_share": result.memory_share},
            )
        )
        done(number + 1)
    return found


def tensor_of(point: TmaBandwidthPoint) -> Tensor:
    """Return the 4 GiB tensor a stream of this kind reads: one, two or three equal dimensions."""
    box = tuple(int(extent) for extent in point.box.split("x"))
    elements = _STREAM_BYTES // point.element_bytes
    edge = round(elements ** (1 / len(box)))
    return Tensor((edge,) * len(box), box, point.element_bytes, bulk=point.kind == "bulk")


def tma_bandwidth_curve(hardware: HardwareSpec, points: Sequence[TmaBandwidthPoint], done: Report) -> list[Compared]:
    """Stream every kind of box; groups are the kinds."""
    found = []
    for number, point in enumerate(points):
        result = run_stream(hardware, tensor_of(point), ctas=point.ctas, spread_ns=RAMP_NS)
        axis: dict[str, str | float] = {"kind": point.kind, "box": point.box, "ctas": point.ctas}
        found.append(_rate(axis, point.kind, point, result))
        done(number + 1)
    return found


def producer_curve(hardware: HardwareSpec, points: Sequence[ProducerPoint], done: Report) -> list[Compared]:
    """Stream boxes of whole lines through rings of four copies; groups are the source's sweeps."""
    found = []
    for number, point in enumerate(points):
        box_bytes = point.box_kib * _KIB
        tensor = Tensor((64, _STREAM_BYTES // 128), (64, box_bytes // 128), 2)
        result = run_stream(
            hardware,
            tensor,
            ctas=point.ctas,
            depth=_PRODUCER_DEPTH,
            warps=point.producers,
            spread_ns=RAMP_NS,
            loop_ns=PRODUCER_LOOP_NS,
        )
        axis: dict[str, str | float] = {"ctas": point.ctas, "producers": point.producers, "box_kib": point.box_kib}
        found.append(_rate(axis, point.sweep, point, result))
        done(number + 1)
    return found


def l2_curve(hardware: HardwareSpec, points: Sequence[L2BandwidthPoint], done: Report) -> list[Compared]:
    """Read every working set again and again; groups are sets that fit half of L2, all of it, and neither."""
    capacity_kib = hardware.l2.capacity_bytes / _KIB
    found = []
    for number, point in enumerate(points):
        result = run_l2_stream(
            hardware, working_set_bytes=round(point.working_set_kb * _KIB), lines=L2_LINES, warm_passes=L2_WARM_PASSES
        )
        share = point.working_set_kb / capacity_kib
        found.append(
            Compared(
                axis={"working_set_mib": point.working_set_kb / _KIB},
                group="to half of L2" if share <= 0.5 else "to L2" if share <= 1 else "above L2",
                unit="GB/s",
                split=point.split,
                measured=point.bandwidth_gb_s,
                simulated=result.bytes_per_s / 1e9,
                counters={"l2_hit_rate": result.l2_hit_rate, "copy_share": result.copy_share},
            )
        )
        done(number + 1)
    return found


def _rate(
    axis: dict[str, str | float], group: str, point: TmaBandwidthPoint | ProducerPoint, result: StreamResult
) -> Compared:
    return Compared(
        axis=axis,
        group=group,
        unit="GB/s",
        split=point.split,
        measured=point.bandwidth_gb_s,
        simulated=result.bytes_per_s / 1e9,
        counters={
            "copy_cycles": result.copy_cycles,
            "l2_hit_rate": result.l2_hit_rate,
            "tma_limit_cycles": result.tma_limit_cycles,
            "blocked_mshr_cycles": result.blocked_mshr_cycles,
        },
    )
