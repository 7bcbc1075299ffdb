"""What `simfa capture` does, one function for each of its three modes."""

import shlex
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

import click
import msgspec

from simfa.files import json_bytes, write_manifest
from simfa.instrument.build import read_manifest
from simfa.instrument.capture import capture
from simfa.instrument.gpu import Gpu, open_gpu, profiler_range
from simfa.instrument.instantiation import instantiation_for
from simfa.instrument.launcher import Launcher
from simfa.instrument.pair import build_pair
from simfa.instrument.profilers import SUFFIXES, ncu_commands, nsys_commands, require_profiler, run_commands
from simfa.instrument.session import Call, open_libraries, require_kernel
from simfa.instrument.sources import find_sources
from simfa.salog import write_log
from simfa.watched_log import WatchedLog
from simfa.workload import AttentionShape

# Launches that nsys sees; its median is as good as ours.
PROFILED_REPEATS = 20


def run_capture(
    shape: AttentionShape,
    output: str,
    *,
    ctas: list[int] | None,
    one_warp: bool,
    row_records: int | None,
    warm_up: int,
    repeats: int,
    seed: int,
    quiet: bool,
    **flags: Any,
) -> None:
    """Capture one log into `output` and its manifest beside it."""
    with tempfile.TemporaryDirectory(prefix="simfa-capture-") as scratch:
        gpu, plain, probed = _open(shape, scratch, quiet=quiet, **flags)
        log, report = capture(
            gpu,
            plain,
            probed,
            shape,
            ctas=ctas,
            one_warp=one_warp,
            row_records=row_records,
            warm_up=warm_up,
            repeats=repeats,
            seed=seed,
            quiet=quiet,
        )
        with WatchedLog(log, "writing rows", quiet=quiet) as watched:
            write_log(output, watched)
        built = read_manifest(probed.path)
        write_manifest(
            output,
            "capture",
            {"plain": plain.path, "probed": probed.path},
            log_source="captured",
            gpu=log.metadata.gpu,
            build={name: built[name] for name in ("source", "source_sha256", "nvcc", "flags", "kernels_ptxas")},
            **msgspec.to_builtins(report),
        )
    latency, overhead = report.latency_us, report.overhead_percent
    click.echo(
        f"{output}: captured, {shape.describe()}, {report.rows} rows, {sum(report.events.values())} records\n"
        f"latency {latency['plain_us']:.2f} us plain, {latency['probe_idle_us']:.2f} us with idle probes "
        f"({overhead['probe_idle']:+.1f} %), {latency['probe_active_us']:.2f} us tracing "
        f"({overhead['probe_active']:+.1f} %)\n"
        f"SM clock {report.clock['frequency_hz'] / 1e6:.1f} MHz, timeline good to "
        f"{report.clock['largest_residual_ns']:.0f} ns",
        err=True,
    )


def time_plain(shape: AttentionShape, *, warm_up: int, repeats: int, seed: int, **flags: Any) -> None:
    """Launch the plain kernel `warm_up` + `repeats` times and print its median time as JSON."""
    with tempfile.TemporaryDirectory(prefix="simfa-capture-") as scratch:
        gpu, plain, _ = _open(shape, scratch, **flags)
        sms = plain.sm_count()
        call = Call(gpu, shape, seed)

        def launch() -> None:
            plain.run(shape, call.tensors, sms)

        for _ in range(warm_up):
            launch()
        with profiler_range("plain"):
            times = gpu.time_us(launch, repeats)
    facts = {"shape": shape.describe(), "repeats": repeats, "median_us": statistics.median(times)}
    click.echo(json_bytes(facts), nl=False)


def profile_plain(
    shape: AttentionShape,
    report: Path,
    *,
    profile: str,
    cache_control: str,
    dry_run: bool,
    library: str | None,
    level: int,
    source: str | None,
    cutlass_dir: str | None,
    warm_up: int,
    backend: str | None,
    seed: int,
    quiet: bool,
    **_: Any,
) -> None:
    """Measure the plain kernel with a profiler, or print the commands that would; anything is built beforehand."""
    if report.suffix != SUFFIXES[profile]:
        raise click.UsageError(f"-o {report}: {profile} writes a file that ends in {SUFFIXES[profile]}")
    if library is None and dry_run:
        raise click.UsageError("--dry-run with --profile needs --library: the commands name it")
    if not dry_run:
        require_profiler(profile)
    with tempfile.TemporaryDirectory(prefix="simfa-capture-") as scratch:
        folder = library or _build(shape, scratch, level, source, cutlass_dir, quiet)
        target = [sys.executable, "-P", "-m", "simfa", "capture", *_shape_flags(shape), "--library", folder]
        target += ["--plain-only", "--warm-up", str(warm_up), "--repeats", str(PROFILED_REPEATS), "--seed", str(seed)]
        target += [] if backend is None else ["--backend", backend]
        if profile == "nsys":
            commands = nsys_commands(target, report)
        else:
            commands = ncu_commands(target, report, warm_up=warm_up, cache_control=cache_control)
        if dry_run:
            for command in commands:
                click.echo(shlex.join(command))
            return
        run_commands(commands, quiet=quiet)
    click.echo(f"{report}: {profile}, {shape.describe()}; read it with `simfa ingest`", err=True)


def _build(
    shape: AttentionShape, folder: str, level: int, source: str | None, cutlass_dir: str | None, quiet: bool
) -> str:
    """Build both libraries with the kernel of `shape` into `folder`, through the cache, and return it."""
    build_pair(find_sources(source, cutlass_dir), level, [instantiation_for(shape)], Path(folder), quiet=quiet)
    return folder


def _open(
    shape: AttentionShape,
    scratch: str,
    *,
    library: str | None,
    level: int,
    source: str | None,
    cutlass_dir: str | None,
    backend: str | None,
    quiet: bool,
    **_: Any,
) -> tuple[Gpu, Launcher, Launcher]:
    """Return the GPU and both libraries; without `library` they are built for the shape, in the cache."""
    gpu = open_gpu(backend)
    plain, probed = open_libraries(Path(library or _build(shape, scratch, level, source, cutlass_dir, quiet)))
    require_kernel(plain, shape)
    return gpu, plain, probed


def _shape_flags(shape: AttentionShape) -> list[str]:
    """Return the SHAPE flags that describe `shape`."""
    sizes = ("batch", "seqlen_q", "seqlen_kv", "heads_q", "heads_kv", "head_dim", "dtype")
    flags = [part for name in sizes for part in (f"--{name.replace('_', '-')}", str(getattr(shape, name)))]
    return [*flags, "--causal" if shape.causal else "--full"]
