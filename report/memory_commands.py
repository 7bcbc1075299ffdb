"""`simfa memory-figures`: microbenchmark curves beside the measured ones."""

from pathlib import Path

import click

from simfa.outputs import OutputFolder


def parse_mshr(_: click.Context, __: click.Parameter, texts: tuple[str, ...]) -> dict[int, Path]:
    """Return MSHR entries and table of each `ENTRIES=CSV`."""
    tables = {}
    for text in texts:
        entries, separator, path = text.partition("=")
        if not separator or not entries.isdecimal():
            raise click.BadParameter(f"{text!r}: expected ENTRIES=CSV, e.g. 256=bandwidth.csv")
        tables[int(entries)] = Path(path)
    return tables


@click.command("memory-figures")
@click.option("--latency", type=click.Path(path_type=Path), required=True, help="Table of microbench tma-latency.")
@click.option("--latency-off", type=click.Path(path_type=Path), help="The same with --overlay no-remote-copy.")
@click.option("--bandwidth", type=click.Path(path_type=Path), required=True, help="Table of microbench tma-bandwidth.")
@click.option(
    "--mshr",
    multiple=True,
    callback=parse_mshr,
    metavar="ENTRIES=CSV",
    help="The same with --set l2.mshr_entries=ENTRIES (repeatable).",
)
@click.option("-o", "--output", type=OutputFolder("figures.json", path_type=Path), required=True, help="Folder.")
@click.option("--quiet", is_flag=True, help="No progress line.")
def memory_figures(
    latency: Path, latency_off: Path | None, bandwidth: Path, mshr: dict[int, Path], output: Path, quiet: bool
) -> None:
    """Draw Figures 3 to 5 of arXiv:2605.00555 from tables that `simfa microbench -o` wrote."""
    from simfa.report.memory_curves import write_memory_figures

    click.echo(f"{write_memory_figures(output, latency, latency_off, bandwidth, mshr, quiet=quiet)}", err=True)
