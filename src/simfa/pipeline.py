"""Stages composed in memory: what `predict`, `validate` and the Python API run without files."""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

from simfa.errors import SimulationError
from simfa.hardware import HardwareSpec, Preset, load_preset
from simfa.kernel import KernelSpec, check_kernel_spec, kernel_for
from simfa.parallel import StopFlag, ordered_map
from simfa.progress import Meter
from simfa.recording import Recording
from simfa.schedule import tile_count
from simfa.workload import AttentionShape

if TYPE_CHECKING:
    from simfa.simulate.engine import Progress
    from simfa.simulate.results import RunResult
    from simfa.trace import Trace


def grid_ctas(shape: AttentionShape, kernel: KernelSpec, sm_count: int) -> int:
    """Return the CTAs of a persistent grid that get a tile: one an SM, whole clusters, no more than there are tiles."""
    ctas = min(sm_count, tile_count(shape, kernel))
    return ctas - ctas % kernel.cluster


def kernel_trace(
    shape: AttentionShape, kernel: KernelSpec, sm_count: int, rules: Literal["source", "paper"] = "source"
) -> "Trace":
    """Return the verified trace of `kernel` on `shape`, from the order of its events and without a log."""
    from simfa.instrument.event_order import begin_events, tile_events
    from simfa.translate.trace_builder import trace_from_kernel

    level = 2 if rules == "source" else 1
    return trace_from_kernel(
        shape,
        kernel,
        grid_ctas(shape, kernel, sm_count),
        lambda role, blocks: tile_events(kernel, role, blocks, level),
        level=level,
        rules=rules,
        begin_of=lambda role: begin_events(kernel, role, level),
    )


def predict(
    shape: AttentionShape,
    gpu: Preset | str = "h100-sxm",
    *,
    kernel: KernelSpec | None = None,
    kernel_version: str = "latest",
    sm_clock_hz: float | None = None,
    rules: Literal["source", "paper"] = "source",
    threads: int = 1,
    max_cycles: int | None = None,
    timeline: Recording | None = None,
    progress: "Callable[[Progress], None] | None" = None,
) -> "RunResult":
    """Simulate one attention call on `gpu` at `sm_clock_hz`: `kernel`, else the one FA3 picks for `shape`.

    `gpu` is a loaded preset or the name of one. A kernel of your own starts from `kernel_for(shape)`. Raises
    `ShapeError` for shapes without a kernel, `HardwareError` for a bad preset, `SimulationError` for what cannot run.
    """
    from simfa.simulate.engine import run

    if rules not in ("source", "paper"):
        raise SimulationError(f"rules {rules!r} are unknown; expected source or paper")
    if threads < 1 or (max_cycles is not None and max_cycles < 1):
        raise SimulationError(f"threads {threads}, max_cycles {max_cycles}: expected at least 1")
    if sm_clock_hz is not None and not 0 < sm_clock_hz < math.inf:
        raise SimulationError(f"sm_clock_hz is {sm_clock_hz}; expected a clock above 0")
    loaded = load_preset(gpu) if isinstance(gpu, str) else gpu
    hardware = loaded.spec
    if sm_clock_hz is not None:
        hardware = msgspec.structs.replace(hardware, gpu=msgspec.structs.replace(hardware.gpu, sm_clock_hz=sm_clock_hz))
    kernel = kernel_for(shape, kernel_version) if kernel is None else kernel
    check_kernel_spec(kernel)
    trace = kernel_trace(shape, kernel, hardware.gpu.sm_count, rules)
    return run(
        trace,
        hardware,
        threads=threads,
        max_cycles=max_cycles,
        timeline=timeline,
        progress=progress,
    )


class Point(NamedTuple):
    """One call of a study: a shape, the kernel version that FA3's choice is taken from, and the hardware."""

    shape: AttentionShape
    kernel_version: str
    hardware: HardwareSpec


def predict_all(points: Sequence[Point], jobs: int, meter: Meter) -> "list[RunResult]":
    """Return `predict` of every point, in order, `jobs` at a time; `meter` (of total 1) hears how far it is.

    Raises what the earliest point that fails raises; the others are stopped.
    """

    def simulate(point: Point, stop: StopFlag) -> "RunResult":
        stop.check()
        preset = Preset(name="", spec=point.hardware, provenance={})
        return predict(point.shape, preset, kernel_version=point.kernel_version, progress=stop.check)

    def done(count: int) -> None:
        meter.update(count / len(points), f"{count} of {len(points)} runs")

    with meter:
        return ordered_map(simulate, points, jobs, done)
