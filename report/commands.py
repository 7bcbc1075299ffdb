"""Commands of the report stage: `simfa explain`, `simfa timeline`, `simfa report`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from simfa.errors import ReportError
from simfa.files import atomic_write, write_manifest

if TYPE_CHECKING:
    from simfa.report.html import Pipeline


@click.command()
@click.argument("run", type=click.Path(exists=True))
@click.option("--compare", type=click.Path(exists=True), help="Another run: show how its shares differ.")
@click.option("--json", "as_json", is_flag=True, help="Print the shares as JSON.")
def explain(run: str, compare: str | None, as_json: bool) -> None:
    """Say where every cycle of RUN went: RUN is the -o folder of simulate or predict, or its stats.json."""
    from simfa.files import json_bytes
    from simfa.report.attribution import causes, findings
    from simfa.report.explain import compare_text, explain_text
    from simfa.report.inputs import read_run

    runs = [read_run(path) for path in (run, compare) if path is not None]
    if as_json:
        document = [
            {
                "run": entry.name,
                "shares": {role: {c.reason: c.share for c in found} for role, found in causes(entry.stats).items()},
                "findings": [finding.sentence() for finding in findings(entry.stats)],
            }
            for entry in runs
        ]
        click.echo(json_bytes(document).decode(), nl=False)
    elif len(runs) == 2:
        click.echo(compare_text(*runs))
    else:
        click.echo(explain_text(runs[0]))


def parse_window(_: click.Context, __: click.Parameter, text: str | None) -> tuple[int, int] | None:
    """Return the cycles of `BEGIN:END`."""
    if text is None:
        return None
    begin, separator, end = text.partition(":")
    if not separator or not begin.isdecimal() or not end.isdecimal() or int(begin) >= int(end):
        raise click.BadParameter(f"{text!r}: expected BEGIN:END in cycles, e.g. 10000:20000")
    return int(begin), int(end)


@click.command()
@click.argument("path", metavar="TIMELINE", type=click.Path(exists=True))
@click.option("--format", "kind", type=click.Choice(["png", "chrome"]), help="[default: by the ending of -o]")
@click.option("--sm", type=click.IntRange(0), help="Only this SM [png: 0, chrome: all].")
@click.option("--window", callback=parse_window, metavar="BEGIN:END", help="Only these cycles.")
@click.option("-o", "--output", type=click.Path(dir_okay=False), required=True, help="The .png or .json to write.")
def timeline(path: str, kind: str | None, sm: int | None, window: tuple[int, int] | None, output: str) -> None:
    """Write a recorded timeline as a Gantt chart (PNG) or as Chrome trace events (JSON).

    TIMELINE is a timeline.npz, or the folder of a run that has one.
    """
    from simfa.report.chrome import chrome_json
    from simfa.report.gantt import gantt_png
    from simfa.report.timeline import read_timeline

    file = Path(path) / "timeline.npz" if Path(path).is_dir() else Path(path)
    slices = read_timeline(file)
    if kind is None:
        kind = {".png": "png", ".json": "chrome"}.get(Path(output).suffix)
    if kind is None:
        raise click.UsageError(f"{output}: give --format, or an ending .png or .json")
    if kind == "png":
        data = gantt_png(slices, sm or 0, window)
    else:
        chosen = slices if sm is None else slices.sm(sm)
        data = chrome_json(chosen if window is None else chosen.window(*window)).encode()
    with atomic_write(output, "wb") as handle:
        handle.write(data)
    write_manifest(output, "timeline", {"timeline": file})


@click.command()
@click.option(
    "--summary",
    "summary_paths",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False),
    required=True,
    help="summary.json of validate (repeatable).",
)
@click.option("--run", "run_paths", multiple=True, type=click.Path(exists=True), help="Explain this run (repeatable).")
@click.option("--timeline", "timeline_path", type=click.Path(exists=True), help="Draw this timeline.npz.")
@click.option(
    "--figures",
    "figures_paths",
    multiple=True,
    type=click.Path(exists=True, file_okay=False),
    help="Show this folder of figures (repeatable), as figures, ablate and sensitivity write them.",
)
@click.option("-o", "--output", type=click.Path(file_okay=False), required=True, help="Folder for the report.")
def report(
    summary_paths: tuple[str, ...],
    run_paths: tuple[str, ...],
    timeline_path: str | None,
    figures_paths: tuple[str, ...],
    output: str,
) -> None:
    """Write report.html, one self-contained file, and gantt.png if a timeline is given.

    A timeline's own run, the stats.json beside it, is explained too.
    """
    from simfa.figure_files import index_path
    from simfa.report.embedded import read_sections
    from simfa.report.html import render
    from simfa.report.inputs import read_run, read_summaries

    comparison = read_summaries(summary_paths)
    stats_paths = [_stats_file(path) for path in run_paths]
    pipeline = None
    if timeline_path is not None:
        beside = _timeline_file(timeline_path).with_name("stats.json")
        if beside.is_file() and beside.resolve() not in [path.resolve() for path in stats_paths]:
            stats_paths.append(beside)
        pipeline = _pipeline(_timeline_file(timeline_path), beside)
    runs = [read_run(path) for path in stats_paths]
    page = render(comparison, runs, pipeline, read_sections(figures_paths))
    folder = Path(output)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ReportError(f"{folder}: cannot be made: {error.strerror}") from error
    if pipeline is not None:
        with atomic_write(folder / "gantt.png", "wb") as handle:
            handle.write(pipeline.png)
    with atomic_write(folder / "report.html") as handle:
        handle.write(page)
    inputs: dict[str, str | Path] = {}
    inputs |= {f"summary {number}": path for number, path in enumerate(summary_paths)}
    inputs |= {f"run {run.name}": path for run, path in zip(runs, stats_paths, strict=True)}
    inputs |= {f"figures {number}": index_path(path) for number, path in enumerate(figures_paths)}
    if timeline_path is not None:
        inputs["timeline"] = _timeline_file(timeline_path)
    write_manifest(folder / "report.html", "report", inputs)
    click.echo(f"{folder / 'report.html'}", err=True)


def _pipeline(file: Path, stats: Path) -> Pipeline:
    """Return the chart of a timeline, with the shape of its run where that lies beside it."""
    from simfa.report.gantt import default_window, gantt_png
    from simfa.report.gantt_view import gantt_view
    from simfa.report.html import Pipeline
    from simfa.report.inputs import read_run
    from simfa.report.timeline import read_timeline

    slices = read_timeline(file)
    begin, end = default_window(slices, 0)
    run = read_run(stats) if stats.is_file() else None
    shape = f"{run.stats.shape.describe()} on {run.stats.manifest.gpu_preset}: " if run and run.stats.shape else ""
    view = gantt_view(slices)
    first, last = view["shown"]
    cut = "" if view["complete"] else f" Of the slices, those of cycles {first:,} to {last:,} are in this page."
    caption = f"{shape}{', '.join(view['places'])} over {view['end'] - view['begin']:,} cycles.{cut}"
    return Pipeline(view, gantt_png(slices, 0, (begin, end)), caption)


def _timeline_file(path: str) -> Path:
    """Return the `timeline.npz` of a run given as folder or file."""
    return Path(path) / "timeline.npz" if Path(path).is_dir() else Path(path)


def _stats_file(path: str) -> Path:
    """Return the `stats.json` of a run given as folder or file."""
    return Path(path) / "stats.json" if Path(path).is_dir() else Path(path)
