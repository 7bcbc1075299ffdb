"""Commands of the report stage: `simfa explain`, `simfa timeline`, `simfa report`."""

from pathlib import Path

import click

from simfa.errors import ReportError
from simfa.files import atomic_write, write_manifest


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
    "--summary", type=click.Path(exists=True, dir_okay=False), required=True, help="summary.json of validate."
)
@click.option("--run", "run_paths", multiple=True, type=click.Path(exists=True), help="Explain this run (repeatable).")
@click.option("--timeline", "timeline_path", type=click.Path(exists=True), help="Draw this timeline.npz.")
@click.option(
    "--figures",
    "figures_paths",
    multiple=True,
    type=click.Path(exists=True, file_okay=False),
    help="Show this folder of `simfa figures` or `simfa memory-figures` (repeatable).",
)
@click.option("-o", "--output", type=click.Path(file_okay=False), required=True, help="Folder for the report.")
def report(
    summary: str,
    run_paths: tuple[str, ...],
    timeline_path: str | None,
    figures_paths: tuple[str, ...],
    output: str,
) -> None:
    """Write report.html, one self-contained file, and gantt.png if a timeline is given."""
    from simfa.figure_files import index_path
    from simfa.report.embedded import read_section
    from simfa.report.gantt import default_window, gantt_png
    from simfa.report.html import render
    from simfa.report.inputs import read_run, read_summary
    from simfa.report.timeline import read_timeline

    comparison = read_summary(summary)
    runs = [read_run(path) for path in run_paths]
    png, caption = None, ""
    if timeline_path is not None:
        slices = read_timeline(timeline_path)
        begin, end = default_window(slices, 0)
        png = gantt_png(slices, 0, (begin, end))
        caption = f"{_shape_beside(Path(timeline_path))}SM 0, cycles {begin:,} to {end:,}"
    page = render(comparison, runs, png, caption, [read_section(path) for path in figures_paths])
    folder = Path(output)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ReportError(f"{folder}: cannot be made: {error.strerror}") from error
    if png is not None:
        with atomic_write(folder / "gantt.png", "wb") as handle:
            handle.write(png)
    with atomic_write(folder / "report.html") as handle:
        handle.write(page)
    inputs: dict[str, str | Path] = {"summary": summary}
    inputs |= {f"run {run.name}": _stats_file(path) for run, path in zip(runs, run_paths, strict=True)}
    inputs |= {f"figures {Path(path).name}": index_path(path) for path in figures_paths}
    write_manifest(folder / "report.html", "report", inputs)
    click.echo(f"{folder / 'report.html'}", err=True)


def _shape_beside(timeline_path: Path) -> str:
    """Return the shape of the run that a timeline lies beside, ready to stand in a caption."""
    from simfa.report.inputs import read_run

    stats = timeline_path.with_name("stats.json")
    shape = read_run(stats).stats.shape if stats.is_file() else None
    return "" if shape is None else f"{shape.describe()}, "


def _stats_file(path: str) -> Path:
    """Return the `stats.json` of a run given as folder or file."""
    return Path(path) / "stats.json" if Path(path).is_dir() else Path(path)
