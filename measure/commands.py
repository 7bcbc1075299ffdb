"""`simfa ingest`: profiler exports to one table of kernel launches."""

import sys
from pathlib import Path

import click

from simfa.errors import MeasureError
from simfa.files import write_manifest
from simfa.measure.detect import FORMATS
from simfa.outputs import OutputFile, check_not_input
from simfa.progress import Meter

_EPILOG = "Formats: " + "; ".join(f"{name}: {what}" for name, what in FORMATS.items()) + "."


@click.command(epilog=_EPILOG)
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE...")
@click.option("--format", "form", type=click.Choice(list(FORMATS)), help="Read as this format instead of detecting it.")
@click.option("--kernel", metavar="REGEX", help="Keep kernels whose name, without template arguments, matches.")
@click.option("--kernel-full", metavar="REGEX", help="Keep kernels whose whole demangled name matches.")
@click.option("--several", is_flag=True, help="Let the patterns match more than one kernel.")
@click.option("--helpers", is_flag=True, help="Keep helper kernels too (combine, scheduler, cache reshape).")
@click.option("--skip", type=click.IntRange(min=0), default=0, show_default=True, help="Warm-up launches to leave out.")
@click.option("--median", is_flag=True, help="One row for each kernel and launch configuration: the median.")
@click.option("--gpu", help="GPU name, where the file does not say.")
@click.option("--clock-control", type=click.Choice(["base", "none", "boost"]), help="As given to ncu, likewise.")
@click.option("--cache-control", type=click.Choice(["all", "none"]), help="As given to ncu, likewise.")
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
@click.option("-o", "--output", type=OutputFile(path_type=Path), help="Write .csv or .parquet.")
@click.option("--quiet", is_flag=True, help="No progress line.")
def ingest(
    files: tuple[Path, ...],
    form: str | None,
    kernel: str | None,
    kernel_full: str | None,
    several: bool,
    helpers: bool,
    skip: int,
    median: bool,
    gpu: str | None,
    clock_control: str | None,
    cache_control: str | None,
    as_json: bool,
    output: Path | None,
    quiet: bool,
) -> None:
    """Read Nsight Compute, Nsight Systems, PyTorch, benchmark_attn.py and nvbench output into one table.

    One row is one kernel launch (one kernel for summaries and benchmarks, flagged). Without --json or -o the command
    only says what it found. Missing values stay empty, with a reason.
    """
    from simfa.measure.describe import describe
    from simfa.measure.reader import Choice, Stated, read
    from simfa.measure.selection import pattern
    from simfa.measure.write import SUFFIXES, json_parts, write

    for flag, text in (("--kernel", kernel), ("--kernel-full", kernel_full)):
        try:
            pattern(text)
        except MeasureError as error:
            raise click.BadParameter(str(error), param_hint=flag) from error
    if output is not None and output.suffix not in SUFFIXES:
        raise click.BadParameter(f"{output} must end in {' or '.join(SUFFIXES)}", param_hint="-o")
    if output is not None:
        check_not_input(output, files)
    choice = Choice(kernel=kernel, kernel_full=kernel_full, several=several, helpers=helpers, skip=skip, median=median)
    sizes = {path: path.stat().st_size for path in files if path.is_file()}
    with Meter("reading", sum(sizes.values()), unit="bytes", quiet=quiet) as meter:

        def told(path: Path, share: float) -> None:
            before = sum(sizes[other] for other in files[: files.index(path)])
            meter.update(before + share * sizes[path], path.name)

        stated = Stated(gpu, clock_control, cache_control)
        found = read(*files, format=form, choice=choice, stated=stated, progress=told)
    if output is not None:
        write(output, found)
        inputs = {f"file{position}": path for position, path in enumerate(files)}
        write_manifest(output, "ingest", inputs, format=found.format, gpu=found.gpu, launches=len(found.launches))
    if as_json:
        stream = sys.stdout.buffer
        for part in json_parts(found):
            stream.write(part)
        stream.flush()
    else:
        click.echo(describe(found))
    for warning in found.warnings:
        click.echo(f"warning: {warning}", err=True)
