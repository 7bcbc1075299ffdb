"""Commands of the report stage: `simfa explain` and `simfa report`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from simfa.files import atomic_write, write_manifest
from simfa.outputs import OutputFolder, make_folder

if TYPE_CHECKING:
    from simfa.report.html import Pipeline

# Of making a report: the chart, the figures, the page.
_STEPS = 3
# SMs that are named one by one above the chart.
_NAMED_PLACES = 4


@click.command()
@click.argument("run", type=click.Path(exists=True))
@click.option("--compare", type=click.Path(exists=True), help="Another run: show how its shares differ.")
@click.option("--json", "as_json", is_flag=True, help="Print the shares as JSON.")
def explain(run: str, compare: str | None, as_json: bool) -> None:
    """Say where every cycle of RUN went: RUN is the -o folder of simulate or predict, or its stats.json."""
    from simfa.files import json_bytes
    from simfa.report.attribution import causes, findings, pipe_idle
    from simfa.report.explain import compare_text, explain_text
    from simfa.report.inputs import read_run

    runs = [read_run(path) for path in (run, compare) if path is not None]
    if as_json:
        document = [
            {
                "run": entry.name,
                "shares": {role: {c.reason: c.share for c in found} for role, found in causes(entry.stats).items()},
                "findings": [finding.sentence() for finding in findings(entry.stats)],
                "tensor_pipe_idle": [cause._asdict() for cause in pipe_idle(entry.stats)],
            }
            for entry in runs
        ]
        click.echo(json_bytes(document).decode(), nl=False)
    elif len(runs) == 2:
        click.echo(compare_text(*runs))
    else:
        click.echo(explain_text(runs[0]))


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
@click.option(
    "-o", "--output", type=OutputFolder("report.html", "gantt.png"), required=True, help="Folder for the report."
)
@click.option("--quiet", is_flag=True, help="No progress line.")
def report(
    summary_paths: tuple[str, ...],
    run_paths: tuple[str, ...],
    timeline_path: str | None,
    figures_paths: tuple[str, ...],
    output: str,
    quiet: bool,
) -> None:
    """Write report.html, one self-contained file, and gantt.png if a timeline is given.

    A timeline's own run, the stats.json beside it, is explained too.
    """
    from simfa.figure_files import index_path
    from simfa.progress import Meter
    from simfa.report.embedded import read_sections
    from simfa.report.html import render
    from simfa.report.inputs import read_run, read_summaries

    comparison = read_summaries(summary_paths)
    stats_paths = [_stats_file(path) for path in run_paths]
    pipeline = None
    with Meter("report", _STEPS, quiet=quiet) as meter:
        if timeline_path is not None:
            beside = _timeline_file(timeline_path).with_name("stats.json")
            if beside.is_file() and beside.resolve() not in [path.resolve() for path in stats_paths]:
                stats_paths.append(beside)
            pipeline = _pipeline(_timeline_file(timeline_path), beside)
        meter.update(1)
        runs = [read_run(path) for path in stats_paths]
        sections = read_sections(figures_paths)
        meter.update(2)
        page = render(comparison, runs, pipeline, sections)
    folder = Path(output)
    make_folder(folder)
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
    import numpy as np

    from simfa.report.gantt import gantt_chart
    from simfa.report.gantt_view import busy_shares, gantt_view
    from simfa.report.html import Pipeline
    from simfa.report.inputs import read_run
    from simfa.timeline import place_title, read_timeline

    slices = read_timeline(file)
    png = gantt_chart(slices, next(iter(slices.places()), ""))
    run = read_run(stats) if stats.is_file() else None
    shape = f"{run.stats.shape.describe()} on {run.stats.manifest.gpu_preset}: " if run and run.stats.shape else ""
    view = gantt_view(slices)
    first, last = view["shown"]
    cut = "" if view["complete"] else f" Of the slices, those of cycles {first:,} to {last:,} are in this page."
    places = [place_title(place) for place in view["places"]]
    named = ", ".join(places) if len(places) <= _NAMED_PLACES else f"{places[0]} to {places[-1]}, {len(places)} of them"
    (busy,) = busy_shares(slices, view["places"][0], np.array(view["window"], float))
    loop = f" The chart opens on turns of the main loop in which the tensor pipe computes {busy:.1%} of the cycles."
    caption = f"{shape}{named} over {view['end'] - view['begin']:,} cycles.{loop if busy else ''}{cut}"
    return Pipeline(view, png, caption)


def _timeline_file(path: str) -> Path:
    """Return the `timeline.npz` of a run given as folder or file."""
    return Path(path) / "timeline.npz" if Path(path).is_dir() else Path(path)


def _stats_file(path: str) -> Path:
    """Return the `stats.json` of a run given as folder or file."""
    return Path(path) / "stats.json" if Path(path).is_dir() else Path(path)
