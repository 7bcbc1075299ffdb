"""Commands around the real kernel: `simfa instrument` makes a probed one, `simfa capture` runs it on a Hopper GPU."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from simfa.instrument.log_commands import parse_ctas
from simfa.options import shape_options
from simfa.outputs import OutputFile, OutputFolder
from simfa.workload import AttentionShape

if TYPE_CHECKING:
    from simfa.instrument.fidelity import Difference, KernelReport
    from simfa.instrument.instantiation import Instantiation

PAPER_KERNELS = ("hdim128-fp16-full-cluster1", "hdim128-fp16-full-cluster2")


def _source_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add where the FA3 and CUTLASS sources are."""
    function = click.option(
        "--cutlass-dir",
        type=click.Path(exists=True, file_okay=False),
        help="CUTLASS checkout or include folder [default: the one that comes with the sources].",
    )(function)
    return click.option(
        "--source",
        type=click.Path(exists=True, file_okay=False),
        help="flash-attention checkout [default: what `simfa instrument fetch` brought].",
    )(function)


def _level_option(function: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--level",
        type=click.IntRange(1, 2),
        default=2,
        show_default=True,
        help="Probes: 1: the nine events of Table 4; 2: all events.",
    )(function)


def _parse_kernels(_: click.Context, __: click.Parameter, names: tuple[str, ...]) -> "list[Instantiation]":
    from simfa.errors import InstrumentError
    from simfa.instrument.instantiation import parse_kernel

    try:
        return [parse_kernel(name) for name in names or PAPER_KERNELS]
    except InstrumentError as error:
        raise click.BadParameter(str(error)) from error


@click.group()
def instrument() -> None:
    """FA3 sources: fetch, patch, build and verify the probed kernel. No GPU is needed."""


@instrument.command()
@_source_options
@click.option("--release", help="Which pinned xformers release carries the sources [default: the newest].")
@click.option("--cutlass", is_flag=True, help="Fetch CUTLASS headers too, for a checkout without its submodule.")
@click.option("--json", "as_json", is_flag=True, help="Machine-readable output.")
@click.option("--quiet", is_flag=True, help="No progress line.")
def fetch(
    *,
    source: str | None,
    cutlass_dir: str | None,
    release: str | None,
    cutlass: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Get genuine FA3 sources into the user's cache with pip, by hash; or check that a checkout holds them."""
    from simfa.files import json_bytes
    from simfa.instrument.sources import DEFAULT_RELEASE, fetch_cutlass, fetch_release, find_sources

    if source is not None and release is not None:
        raise click.UsageError("--source names a checkout and --release a download; give one of them")
    if cutlass:
        click.echo(f"CUTLASS headers: {fetch_cutlass(quiet=quiet)}", err=True)
    if source is None:
        fetch_release(release or DEFAULT_RELEASE, quiet=quiet)
    found = find_sources(source, cutlass_dir, release or DEFAULT_RELEASE)
    facts = {"origin": found.origin, "hopper": str(found.hopper), "cutlass": str(found.cutlass)}
    _print(facts, as_json, json_bytes)


@instrument.command()
@_source_options
@_level_option
@click.option("--diff", is_flag=True, help="Print what changes as a unified diff.")
@click.option("-o", "output", type=OutputFolder(), help="Write the patched headers below this folder.")
def patch(*, source: str | None, cutlass_dir: str | None, level: int, diff: bool, output: str | None) -> None:
    """Insert the probes into a copy of the sources; unknown trees are refused. `build` does this by itself."""
    from simfa.errors import InstrumentError
    from simfa.instrument.build import write_tree
    from simfa.instrument.patch import PATCHED_FILES, patch_sources, unified_diff
    from simfa.instrument.sources import find_sources

    found = find_sources(source, cutlass_dir)
    before = found.headers()
    patched = patch_sources({name: before[name] for name in PATCHED_FILES if name in before}, level)
    if diff:
        click.echo(unified_diff({name: before[name] for name in patched.texts}, patched.texts), nl=False)
    if output is not None:
        folder = Path(output)
        if (folder / "hopper").resolve() == found.hopper.resolve():
            raise InstrumentError(f"{folder}: these are the original sources; write the patched copy elsewhere")
        write_tree(folder, before, patched)
    sites = sum(hit.hits for hit in patched.hits)
    click.echo(f"{found.origin}: level {level}, {len(patched.hits)} rules, {sites} insertions", err=True)


@instrument.command()
@_source_options
@_level_option
@click.option(
    "--kernel",
    "kernels",
    multiple=True,
    callback=_parse_kernels,
    metavar="NAME",
    help=f"Kernel to build, repeatable, e.g. hdim128-bf16-causal-cluster1 [default: {' '.join(PAPER_KERNELS)}].",
)
@click.option("--json", "as_json", is_flag=True, help="Machine-readable output.")
@click.option("-o", "output", type=OutputFolder(), help="Copy the libraries to plain/ and probed/ here.")
@click.option("--quiet", is_flag=True, help="No progress line.")
def build(
    *,
    source: str | None,
    cutlass_dir: str | None,
    level: int,
    kernels: "list[Instantiation]",
    as_json: bool,
    output: str | None,
    quiet: bool,
) -> None:
    """Compile the plain and the probed kernels, one nvcc job after the other; the cache spares what is there.

    A job takes one to three minutes and 4.3 GB of memory.
    """
    from simfa.files import json_bytes
    from simfa.instrument.pair import build_pair
    from simfa.instrument.sources import find_sources

    folder = None if output is None else Path(output)
    builds = build_pair(find_sources(source, cutlass_dir), level, kernels, folder, quiet=quiet)
    for name, built in builds.items():
        facts = {"library": str(built.library), "cached": built.cached, **built.manifest}
        if as_json:
            click.echo(json_bytes({name: facts}), nl=False)
            continue
        click.echo(f"{name:<7} {built.library}{' (cached)' if built.cached else ''}")
        for entry in built.manifest["kernels_ptxas"]:
            click.echo(
                f"        {entry['registers']} registers, {entry['stack_bytes']} bytes of stack, spills "
                f"{entry['spill_store_bytes']} stored and {entry['spill_load_bytes']} loaded"
            )


@instrument.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False))
@click.option("--json", "as_json", is_flag=True, help="Machine-readable output.")
@click.option(
    "--allow-reloads",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Loads of spilled registers a turn that the probed main loop may have beyond the plain one's.",
)
@click.option("-o", "output", type=OutputFile(), help="Write the report as JSON.")
@click.option("--quiet", is_flag=True, help="No progress line.")
def verify(*, folder: str, as_json: bool, allow_reloads: int, output: str | None, quiet: bool) -> None:
    """Read the machine code of the plain and the probed library in FOLDER and say how their schedules differ.

    Exit code 1 when a kernel's WGMMAs are serialised, its main loop spills, or its probes are out of order.
    """
    from simfa.files import json_bytes, write_json
    from simfa.instrument.fidelity import compare, report_plain, report_probed
    from simfa.instrument.pair import pair_paths
    from simfa.instrument.toolchain import find_disassembler

    tools = find_disassembler()
    plain_path, probed_path, level = pair_paths(Path(folder))
    plain = report_plain(plain_path, tools, quiet=quiet)
    probed = report_probed(probed_path, level, tools, plain, allow_reloads, quiet=quiet)
    differences = [compare(before, after) for before, after in zip(plain, probed, strict=True)]
    report = {"nvdisasm": tools.build, "plain": plain, "probed": probed, "differences": differences}
    if output is not None:
        write_json(output, report)
    if as_json:
        click.echo(json_bytes(report), nl=False)
    else:
        for before, after, difference in zip(plain, probed, differences, strict=True):
            _print_kernel(before, after, difference)
    if any(kernel.problems for kernel in (*plain, *probed)):
        sys.exit(1)


def _print_kernel(plain: "KernelReport", probed: "KernelReport", difference: "Difference") -> None:
    from simfa.tables import text_table

    click.echo(plain.name)
    columns = ("", "plain", f"level {probed.level}")
    rows: list[tuple[str, ...]] = [("code bytes", str(plain.code_bytes), str(probed.code_bytes))]
    rows.append(("WGMMA (expected)", *(f"{kernel.wgmma} ({kernel.wgmma_expected})" for kernel in (plain, probed))))
    rows.append(("stamps", str(plain.stamps), str(probed.stamps)))
    rows += [
        (f"spills, {role}", str(plain.spills[role]), str(probed.spills[role])) for role in ("producer", "consumer")
    ]
    for before, after in zip(plain.loops, probed.loops, strict=False):
        splits = [f"{loop.exp2_before_wait_0} / {loop.exp2_after_wait_0}" for loop in (before, after)]
        rows.append(("exp2 before / after wait<0>", *splits))
        spills = [f"{loop.spill_stores} / {loop.spill_loads}" for loop in (before, after)]
        rows.append(("main loop spills, stores / loads", *spills))
    click.echo(text_table(columns, rows))
    click.echo(f"verdict: {difference.verdict}")
    for kernel in (plain, probed):
        for problem in kernel.problems:
            click.echo(f"problem, level {kernel.level}: {problem}")


@click.command()
@shape_options
@_source_options
@_level_option
@click.option(
    "--library",
    type=click.Path(exists=True, file_okay=False),
    help="Folder of `simfa instrument build -o` [default: build what the shape needs].",
)
@click.option("--ctas", callback=parse_ctas, metavar="FILTER", help="Log some CTAs only, e.g. 0-3,8.")
@click.option("--one-warp", is_flag=True, help="Log one warp of each warpgroup, not all that work.")
@click.option("--row-records", type=click.IntRange(1), help="Records a row holds [default: what the shape needs].")
@click.option("--warm-up", type=click.IntRange(0), default=5, show_default=True, help="Launches before each timing.")
@click.option("--repeats", type=click.IntRange(20), default=20, show_default=True, help="Timed launches; median.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of the random tensors.")
@click.option("--backend", type=click.Choice(["cupy", "pycuda", "torch"]), help="GPU library [default: the first].")
@click.option("--plain-only", is_flag=True, help="Only launch and time the plain kernel: what profilers run.")
@click.option("--profile", type=click.Choice(["nsys", "ncu"]), help="Measure the plain kernel with Nsight instead.")
@click.option("--cache-control", type=click.Choice(["none", "all"]), default="none", help="Of ncu: all flushes caches.")
@click.option("--dry-run", is_flag=True, help="With --profile: print the commands and run nothing.")
@click.option("--quiet", is_flag=True, help="No progress line.")
@click.option("-o", "output", type=OutputFile(), help="The .salog, or with --profile the report.")
def capture(*, shape: AttentionShape, output: str | None, **flags: Any) -> None:
    """Run plain and probed kernels on a Hopper GPU, check their results and write the log of one launch.

    The manifest beside the log has the latencies of the plain, the idle and the tracing kernel, the largest errors
    against float64, the counts of events, and how well the SMs' clocks fit one timeline.
    """
    from simfa.instrument.capture_command import profile_plain, run_capture, time_plain

    if flags["profile"] is None and not flags["plain_only"] and output is None:
        raise click.UsageError("missing option '-o': the .salog to write")
    if flags["profile"] is not None:
        if output is None:
            raise click.UsageError("missing option '-o': the report the profiler writes")
        profile_plain(shape, Path(output), **flags)
    elif flags["plain_only"]:
        time_plain(shape, **flags)
    else:
        assert output is not None
        run_capture(shape, output, **flags)


def _print(facts: dict[str, str], as_json: bool, json_bytes: Callable[[object], bytes]) -> None:
    if as_json:
        click.echo(json_bytes(facts), nl=False)
    else:
        for name, value in facts.items():
            click.echo(f"{name:<8} {value}")
