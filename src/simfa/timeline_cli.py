"""`simfa timeline`: a recorded run, a log, or both on one axis, as a trace for viewers, a chart or a table."""

import math
from pathlib import Path
from typing import TYPE_CHECKING

import click

from simfa.errors import ReportError
from simfa.files import atomic_write, json_bytes, write_manifest
from simfa.outputs import OutputFile, check_not_input
from simfa.recording import LIMIT_SLICES, parse_numbers, parse_tiles, parse_window

if TYPE_CHECKING:
    from simfa.report.matched import PhaseDifference
    from simfa.salog import Log
    from simfa.timeline import Timeline

# Differences of more times the logged cycles than that are not told in percent: there was next to nothing.
MOST_TOLD = 10.0
FORMATS = {
    ".pftrace": "perfetto",
    ".perfetto-trace": "perfetto",
    ".json": "chrome",
    ".png": "png",
    ".svg": "svg",
    ".parquet": "parquet",
    ".npz": "npz",
}


@click.command()
@click.argument("path", metavar="TIMELINE", type=click.Path(exists=True))
@click.option("--log", "log_path", type=click.Path(exists=True, dir_okay=False), help="Show this .salog above the run.")
@click.option(
    "--format", "kind", type=click.Choice(sorted(set(FORMATS.values()))), help="[default: by the ending of -o]"
)
@click.option(
    "--sm",
    "--cta",
    "sms",
    callback=parse_numbers,
    metavar="LIST",
    help="Only these SMs of a run or CTAs of a log, e.g. 0,4-7 [charts: the first].",
)
@click.option(
    "--tile",
    "tiles",
    callback=parse_tiles,
    metavar="FIRST:LAST|M,H,B",
    help="Only these tiles of each CTA, or one: query block, head, batch.",
)
@click.option("--window", callback=parse_window, metavar="BEGIN:END", help="Only these cycles.")
@click.option("--limit", type=click.IntRange(1), default=10 * LIMIT_SLICES, show_default=True, help="Most slices.")
@click.option("--json", "as_json", is_flag=True, help="With --log: print the differences as JSON.")
@click.option("--quiet", is_flag=True, help="No progress line.")
@click.option("-o", "--output", type=OutputFile(), help="File to write; with --log it can be left out.")
def timeline(
    path: str,
    log_path: str | None,
    kind: str | None,
    sms: tuple[int, ...],
    tiles: tuple[int, ...],
    window: tuple[int, int] | None,
    limit: int,
    as_json: bool,
    quiet: bool,
    output: str | None,
) -> None:
    """Write a timeline for Perfetto (.pftrace), as Chrome events (.json), a Gantt chart (.png, .svg) or a table.

    TIMELINE is a timeline.npz, the folder of a run that has one, or a .salog. With --log the logged tiles are matched
    with the simulated ones: logged above, simulated below, and the difference of each phase is printed.
    """
    from simfa.report.selection import of_places, of_tiles

    if output is None and log_path is None:
        raise click.UsageError("give -o FILE to write, or --log to compare with a log")
    kind = kind or FORMATS.get(Path(output).suffix if output is not None else "")
    if output is not None and kind is None:
        raise click.UsageError(f"{output}: give --format, or an ending {', '.join(FORMATS)}")
    source = Path(path) / "timeline.npz" if Path(path).is_dir() else Path(path)
    inputs: dict[str, str | Path] = {"timeline": source}
    if log_path is not None:
        inputs["log"] = log_path
    if output is not None:
        check_not_input(output, inputs.values())
    if log_path is not None:
        shown, found = _compared(source, log_path, sms, tiles, quiet)
        _print(found, as_json)
    else:
        shown = _load(source, sms, quiet)
        shown = of_places(shown, sms) if sms else shown
        shown = of_tiles(shown, tiles) if tiles else shown
    if output is None:
        return
    if window is not None:
        shown = shown.window(*window)
    if not len(shown):
        raise ReportError(f"{source}: no slice lies in the chosen SMs, tiles and cycles")
    if len(shown) > limit:
        raise ReportError(
            f"{source}: {len(shown):,} slices are more than --limit {limit:,}; choose with --sm, --tile or --window"
        )
    _write(shown, output, str(kind), window, quiet)
    write_manifest(output, "timeline", inputs)


def _is_log(path: Path) -> bool:
    """Return whether a file is a log, by its first bytes."""
    from simfa.salog import MAGIC

    with path.open("rb") as handle:
        return handle.read(len(MAGIC)) == MAGIC


def _load(source: Path, ctas: tuple[int, ...], quiet: bool) -> "Timeline":
    """Return the timeline of a recorded run, or of some CTAs of a log."""
    from simfa.salog import open_log
    from simfa.timeline import read_timeline

    if source.is_file() and _is_log(source):
        return _of_log(open_log(source), ctas, str(source), quiet)
    return read_timeline(source)


def _of_log(log: "Log", ctas: tuple[int, ...], name: str, quiet: bool) -> "Timeline":
    """Return a log's timeline in cycles of its median SM clock, counted from the begin of its first warp."""
    import msgspec

    from simfa.instrument.clock import fit_clocks
    from simfa.report.log_timeline import log_timeline
    from simfa.watched_log import WatchedLog

    rows = log.rows
    columns = ("smid", "globaltimer_begin", "clock_begin", "globaltimer_end", "clock_end")
    fit = fit_clocks(*(rows[column] for column in columns))
    hertz = log.metadata.sm_clock_hz or fit.frequency_hz
    roles = set(zip(rows["block"].tolist(), rows["role"].tolist(), strict=True))
    reads = sum(not ctas or block in ctas for block, _ in roles)
    with WatchedLog(log, "reading rows", reads=reads, quiet=quiet) as watched:
        found = log_timeline(watched, lambda smid, clock: fit.to_ns(smid, clock) * hertz / 1e9, hertz, ctas, name)
    meta = {"log_source": log.metadata.source, "shape": msgspec.to_builtins(log.metadata.shape)}
    return msgspec.structs.replace(found, meta=meta)


def _compared(
    source: Path, log_path: str, sms: tuple[int, ...], tiles: tuple[int, ...], quiet: bool
) -> "tuple[Timeline, list[PhaseDifference]]":
    """Return a run and a log on one axis, and how their phases differ."""
    from simfa.report.matched import check_same_kernel, differences, match, side_by_side
    from simfa.report.selection import of_tiles
    from simfa.salog import open_log
    from simfa.timeline import read_timeline

    run = read_timeline(source)
    log = open_log(log_path)
    check_same_kernel(run.meta, log.metadata.shape, log.metadata.kernel, log_path)
    if log.metadata.tiles == "lost":
        raise ReportError(f"{log_path}: the log does not say which tiles its CTAs ran; capture it at level 2")
    logged = _of_log(log, sms, log_path, quiet)
    if tiles:
        logged = of_tiles(logged, tiles)
    matched = match(logged, run)
    tiles_text = "1 tile" if len(matched.logged) == 1 else f"{len(matched.logged)} tiles"
    click.echo(
        f"{tiles_text} of a {log.metadata.source} log at {logged.sm_clock_hz / 1e6:,.0f} MHz and of a "
        f"run at {run.sm_clock_hz / 1e6:,.0f} MHz, in cycles of either clock",
        err=True,
    )
    return side_by_side(logged, run, matched), differences(logged, run, matched)


def _print(found: "list[PhaseDifference]", as_json: bool) -> None:
    """Print the differences of phases."""
    import msgspec

    if as_json:
        rows = [msgspec.to_builtins(row) | {"difference_cycles": row.difference_cycles} for row in found]
        click.echo(json_bytes(rows).decode(), nl=False)
        return
    click.echo(f"{'cycles a tile':<34} {'logged':>10} {'simulated':>10} {'difference':>11}")
    for row in found:
        ratio = row.difference_cycles / row.logged_cycles if row.logged_cycles else math.inf
        share = f" {ratio:+.1%}" if abs(ratio) < MOST_TOLD else ""
        click.echo(
            f"{row.role:<10} {row.phase:<23} {row.logged_cycles:>10,.0f} {row.simulated_cycles:>10,.0f} "
            f"{row.difference_cycles:>+11,.0f}{share}"
        )


def _write(shown: "Timeline", output: str, kind: str, window: tuple[int, int] | None, quiet: bool) -> None:
    """Write a timeline in one of the formats."""
    from simfa.progress import Meter
    from simfa.report.chrome import chrome_json
    from simfa.report.gantt import gantt_chart
    from simfa.report.slice_table import parquet_bytes
    from simfa.simulate.perfetto import perfetto_trace

    if kind == "npz":
        shown.save(output)
        return
    if kind == "perfetto":
        with Meter("writing", len(shown), unit="slices", quiet=quiet) as meter, atomic_write(output, "wb") as handle:
            handle.writelines(perfetto_trace(shown, meter.update))
        return
    if kind == "chrome":
        data = chrome_json(shown).encode()
    elif kind == "parquet":
        data = parquet_bytes(shown)
    else:
        place = shown.track_name[shown.track[0]].rpartition("/")[0]
        data = gantt_chart(shown, place, window, kind)
    with atomic_write(output, "wb") as handle:
        handle.write(data)
