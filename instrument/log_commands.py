"""Commands around `.salog` files: `simfa synth` makes one, `simfa log` looks into one."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from simfa.errors import LogError
from simfa.kernel import KERNEL_VERSIONS, kernel_for
from simfa.options import gpu_options, load_gpu, shape_options
from simfa.outputs import OutputFile
from simfa.workload import AttentionShape

if TYPE_CHECKING:
    from simfa.instrument.log_compare import Compared


def parse_ctas(_: click.Context, __: click.Parameter, text: str | None) -> list[int] | None:
    """Return the CTAs that a filter such as `0-3,8` names."""
    if text is None:
        return None
    ctas: list[int] = []
    for part in text.split(","):
        first, separator, last = part.strip().partition("-")
        if not first.isdecimal() or (separator and not last.isdecimal()):
            raise click.BadParameter(f"{part!r} is no CTA; expected numbers and ranges such as 0-3,8")
        chosen = range(int(first), int(last or first) + 1)
        if not chosen:
            raise click.BadParameter(f"{part!r} is an empty range; expected the lower CTA first")
        ctas.extend(chosen)
    return ctas


def _parse_faults(_: click.Context, __: click.Parameter, texts: tuple[str, ...]) -> list[Any]:
    """Return the perturbations that `--perturb` asks for."""
    from simfa.instrument.perturb import parse_perturbation

    try:
        return [parse_perturbation(text) for text in texts]
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


@click.command()
@shape_options
@gpu_options
@click.option("--kernel-version", type=click.Choice(KERNEL_VERSIONS), default="latest", show_default=True)
@click.option("--level", type=click.IntRange(1, 2), default=2, show_default=True, help="1: Table 4; 2: all events.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of clocks, skews and faults.")
@click.option("--ctas", callback=parse_ctas, metavar="FILTER", help="Log some CTAs only, e.g. 0-3,8.")
@click.option("--one-warp", is_flag=True, help="Log one warp of each warpgroup, not all that work.")
@click.option(
    "--perturb",
    "faults",
    callback=_parse_faults,
    metavar="FAULT",
    multiple=True,
    help="Put in a fault: skew=CYCLES, drop=COUNT, overflow=RECORDS, disagree or truncate=BYTES.",
)
@click.option("-o", "output", required=True, type=OutputFile(), help="The .salog to write.")
@click.option("--quiet", is_flag=True, help="No progress line.")
def synth(
    *,
    shape: AttentionShape,
    kernel_version: str,
    level: int,
    seed: int,
    ctas: list[int] | None,
    one_warp: bool,
    faults: list[Any],
    output: str,
    quiet: bool,
    **gpu: Any,
) -> None:
    """Write the log that the probed FA3 kernel would write for a shape.

    Order, counts and coordinates of the events are the kernel's; timestamps come from a simple timing model. The log
    says in its metadata that it is synthetic.
    """
    from simfa.files import write_manifest
    from simfa.instrument.perturb import PerturbedLog, truncate_file
    from simfa.instrument.synthetic import synthesize
    from simfa.salog import LogSource, write_log
    from simfa.watched_log import WatchedLog

    preset = load_gpu(**gpu)
    log: LogSource = synthesize(
        shape, kernel_for(shape, kernel_version), preset, level=level, seed=seed, one_warp=one_warp, ctas=ctas
    )
    for fault in faults:
        log = PerturbedLog(log, fault, seed)
    with WatchedLog(log, "writing rows", quiet=quiet) as watched:
        write_log(output, watched)
    for fault in faults:
        if fault.kind == "truncate":
            truncate_file(output, fault.size)
    write_manifest(
        output, "synth", {}, log_source="synthetic", seed=seed, gpu=preset.name, gpu_sha256=preset.spec.sha256()
    )
    click.echo(
        f"{output}: synthetic, {shape.describe()}, {len(log.rows)} rows, {int(log.rows['records'].sum())} records",
        err=True,
    )


@click.group()
def log() -> None:
    """Look into a .salog: what it is, how long its warps waited, its records."""


def _log_options(function: Any) -> Any:
    """Add the log's path, `--allow-truncated` and `--quiet`."""
    function = click.option("--quiet", is_flag=True, help="No progress line.")(function)
    function = click.option(
        "--allow-truncated", is_flag=True, help="Read a log that is cut short or dropped records all the same."
    )(function)
    return click.argument("path", type=click.Path())(function)


@log.command()
@_log_options
@click.option("--json", "as_json", is_flag=True, help="Machine-readable output.")
def info(*, path: str, allow_truncated: bool, as_json: bool, quiet: bool) -> None:
    """Say what a log holds, after checking every record of it."""
    from simfa.files import json_bytes
    from simfa.instrument.log_info import describe_log
    from simfa.salog import open_log

    facts = describe_log(open_log(path, allow_truncated=allow_truncated), quiet=quiet)
    if as_json:
        click.echo(json_bytes(facts), nl=False)
        return
    for name, value in facts.lines():
        click.echo(f"{name:<12} {value}")


@log.command()
@_log_options
@click.option(
    "--run", type=click.Path(file_okay=False), help="Compare with the simulator: DIR of `simfa simulate -o DIR`."
)
@click.option("--json", "as_json", is_flag=True, help="Machine-readable output.")
def stats(*, path: str, allow_truncated: bool, run: str | None, as_json: bool, quiet: bool) -> None:
    """Show how long the roles waited and worked, in SM cycles between the events they stamped.

    With --run, beside what a simulated run of the same kernel books for the same waits and work.
    """
    from simfa.files import json_bytes
    from simfa.instrument.log_compare import compare_with_run
    from simfa.instrument.log_stats import LIMITS, representatives, span_statistics
    from simfa.salog import open_log
    from simfa.watched_log import WatchedLog

    opened = open_log(path, allow_truncated=allow_truncated)
    metadata = opened.metadata
    with WatchedLog(opened, "reading rows", reads=len(representatives(opened)), quiet=quiet) as watched:
        compared = None if run is None else compare_with_run(watched, Path(run, "stats.json"), path)
        spans = span_statistics(watched, path) if compared is None else []
    if compared is not None:
        _print_comparison(compared, metadata.source, as_json)
        return
    if as_json:
        click.echo(
            json_bytes(
                {"source": metadata.source, "level": metadata.level, "limits": LIMITS[metadata.level], "spans": spans}
            ),
            nl=False,
        )
        return
    click.echo(f"{metadata.source} log, level {metadata.level}, SM cycles; one warp per warpgroup")
    click.echo(f"{'role':<12}{'span':<22}{'count':>9}{'mean':>11}{'p50':>9}{'p95':>9}  from .. to")
    for span in spans:
        click.echo(
            f"{_role(span.role):<12}{span.span:<22}{span.count:>9}{span.mean_cycles:>11.1f}{span.p50_cycles:>9.0f}"
            f"{span.p95_cycles:>9.0f}  {span.starts} .. {span.ends}"
        )
    click.echo(f"note: {LIMITS[metadata.level]}")


def _role(number: int) -> str:
    return f"consumer {number}" if number else "producer"


def _print_comparison(found: "list[Compared]", source: str, as_json: bool) -> None:
    from simfa.files import json_bytes
    from simfa.tables import text_table

    if as_json:
        click.echo(json_bytes([line._asdict() for line in found]), nl=False)
        return
    click.echo(f"{source} log and simulated run, mean SM cycles a tile")
    rows = [
        (_role(line.role), line.spans, f"{line.log_cycles:.1f}", line.reasons, f"{line.simulated_cycles:.1f}")
        for line in found
    ]
    click.echo(text_table(("role", "stamped", "log", "simulated reasons", "simulator"), rows, right=(2, 4)))


@log.command()
@_log_options
@click.option("--block", type=click.IntRange(0), help="Only this CTA.")
@click.option("--warp", type=click.IntRange(0), help="Only this warp of each CTA.")
@click.option("--limit", type=click.IntRange(0), default=0, help="Show so many records of each row at most.")
def dump(*, path: str, allow_truncated: bool, block: int | None, warp: int | None, limit: int, quiet: bool) -> None:
    """Print records as tab-separated lines, cycles counted from the row's first clock stamp."""
    from simfa.events import Event
    from simfa.salog import open_log
    from simfa.watched_log import WatchedLog

    opened = open_log(path, allow_truncated=allow_truncated)
    names = {event.value: event.name for event in Event}
    chosen = [
        row
        for row, header in enumerate(opened.rows)
        if block in (None, header["block"]) and warp in (None, header["warp"])
    ]
    if not chosen:
        raise LogError(f"{path}: no row of block {block} and warp {warp}; `simfa log info` lists what was logged")
    click.echo("block\twarp\trole\trecord\tcycle\tevent\tstage\tpayload\taux")
    # Records that run over the terminal are progress enough.
    with WatchedLog(opened, "printing rows", reads=len(chosen), quiet=quiet or sys.stdout.isatty()) as watched:
        for row in chosen:
            header, records = opened.rows[row], watched.records(row)
            begin = int(header["clock_begin"])
            place = f"{header['block']}\t{header['warp']}\t{header['role']}"
            for index, (timestamp, event, stage, payload, aux) in enumerate(records[: limit or None].tolist()):
                click.echo(f"{place}\t{index}\t{timestamp - begin}\t{names[event]}\t{stage}\t{payload}\t{aux}")
