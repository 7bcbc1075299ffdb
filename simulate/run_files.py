"""Files and words of a finished run: `stats.json`, `timeline.npz`, the table on stdout, the progress line."""

import contextlib
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import click
import msgspec

from simfa.clock import ClockModel, activity, cuda_busy_cycles, repeated
from simfa.errors import SimulationError
from simfa.files import json_bytes, manifest, write_json
from simfa.hardware import Preset
from simfa.outputs import make_folder
from simfa.progress import Meter
from simfa.simulate.engine import Progress
from simfa.simulate.results import RunResult
from simfa.trace import Trace


class RunMeter:
    """The progress line of one run, or of several that follow each other, wiped when a block ends."""

    def __init__(self, what: str, total: float = 1.0, *, quiet: bool = False) -> None:
        """Measure the run called `what`, or runs of a known size in all; `total` is 0 where nobody knows it."""
        self._meter = Meter(what, total, quiet=quiet)
        self._before, self._size, self._name = 0.0, total, ""

    @contextlib.contextmanager
    def part(self, name: str, size: float) -> Iterator["RunMeter"]:
        """Measure one of several runs, which makes up so much of the total."""
        self._name, self._size = f"{name}, ", size
        with self:
            yield self
        self._before += size

    def update(self, progress: Progress) -> None:
        """Draw how far the run is, by tiles begun."""
        rate = progress.cycles / progress.seconds if progress.seconds else 0.0
        share = progress.tiles_begun / progress.tiles if progress.tiles else 0.0
        detail = f"{self._name}cycle {progress.cycles:,}, {rate / 1e3:,.0f} k cycles/s"
        self._meter.update(self._before + self._size * share, detail)

    def __enter__(self) -> "RunMeter":
        """Start."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wipe the line."""
        self._meter.close()


def run_stats(
    result: RunResult,
    preset: Preset,
    trace: Trace,
    *,
    command: str,
    inputs: Mapping[str, str],
    clock_model: ClockModel = "nominal",
) -> dict[str, Any]:
    """Return what `stats.json` holds: the result's figures, the launch, and the manifest.

    `latency_us` is at the clock that was simulated; the `sustained` clock model adds its clock and latency to it.
    """
    stats = result.to_json()
    stats["shape"] = msgspec.to_builtins(trace.shape)
    stats["kernel"] = msgspec.to_builtins(trace.kernel)
    stats["manifest"] = manifest(
        command,
        inputs,
        gpu_preset=preset.name,
        gpu_preset_sha256=preset.spec.sha256(),
        log_source=trace.origin.log_source,
        rules=trace.origin.rules,
        reconstructed=trace.origin.reconstructed,
    )
    stats["clock_model"] = clock_model
    if clock_model == "sustained":
        shares = activity(
            preset.spec,
            cycles=result.cycles,
            clock_hz=result.sm_clock_hz,
            tensor_share=result.tensor_utilization,
            cuda_cycles=cuda_busy_cycles(result.stall_cycles),
            l2_read_bytes=result.l2_read_bytes,
            dram_bytes=result.dram_read_bytes + result.dram_write_bytes,
        )
        stats["sustained_latency_us"], stats["sustained_clock_hz"] = repeated(
            preset.spec,
            shares,
            cycles=result.cycles,
            clock_hz=result.sm_clock_hz,
            clears_counter=trace.schedule.mode == "dynamic",
        )
    return stats


def write_run(
    folder: str,
    result: RunResult,
    preset: Preset,
    trace: Trace,
    *,
    command: str,
    inputs: Mapping[str, str],
    clock_model: ClockModel = "nominal",
) -> dict[str, Any]:
    """Write `stats.json` and, if slices were recorded, `timeline.npz` into `folder`; return the former."""
    target = Path(folder)
    make_folder(target)
    stats = run_stats(result, preset, trace, command=command, inputs=inputs, clock_model=clock_model)
    write_json(target / "stats.json", stats)
    if result.timeline is not None:
        meta = {name: stats[name] for name in ("manifest", "cycles", "shape", "kernel")}
        msgspec.structs.replace(result.timeline, meta=meta).save(target / "timeline.npz")
        if not len(result.timeline):
            raise SimulationError(
                f"{target / 'timeline.npz'}: no slice lies in the chosen SMs, tiles and cycles; the run ended at cycle "
                f"{result.cycles:,}. The other results are complete"
            )
    return stats


def _clock_text(stats: Mapping[str, Any]) -> str:
    """Return the clock model of a run, and what a sustained clock makes of its latency."""
    if stats["clock_model"] == "nominal":
        return "nominal"
    return (
        f"sustained: {stats['sustained_latency_us']:,.2f} us at {stats['sustained_clock_hz'] / 1e6:,.0f} MHz "
        "when repeated (empirical)"
    )


def show(stats: Mapping[str, Any], result: RunResult, *, as_json: bool) -> None:
    """Print a run as JSON or as a short table."""
    if as_json:
        sys.stdout.write(json_bytes(stats).decode())
        return
    rows = [
        ("latency", f"{result.latency_us:,.2f} us at {result.sm_clock_hz / 1e6:,.0f} MHz"),
        ("clock model", _clock_text(stats)),
        ("cycles", f"{result.cycles:,}{' (stopped before the end)' if result.partial else ''}"),
        ("throughput", "-" if result.tflops is None else f"{result.tflops:,.1f} TFLOPS"),
        ("tensor pipe busy", f"{result.tensor_utilization:.1%}"),
        ("L2 reads", f"{result.l2_read_bytes / 1e6:,.1f} MB of {result.sm_read_bytes / 1e6:,.1f} MB read by SMs"),
        ("L2 hit rate", "-" if result.l2_hit_rate is None else f"{result.l2_hit_rate:.1%}"),
        ("DRAM", f"{result.dram_read_bytes / 1e6:,.1f} MB read, {result.dram_write_bytes / 1e6:,.1f} MB written"),
        ("simulated", f"{result.host_seconds:.2f} s, {result.simulated_cycles_per_second / 1e3:,.0f} k cycles/s"),
    ]
    click.echo(result.gpu)
    for name, text in rows:
        click.echo(f"  {name:<17} {text}")
    for role, reasons in result.stall_cycles.items():
        total = sum(reasons.values())
        worst = sorted(reasons.items(), key=lambda item: -item[1])[:4]
        click.echo(f"  {role:<17} " + ", ".join(f"{reason} {cycles / total:.0%}" for reason, cycles in worst))
