"""`simfa simulate`: run a `.satrace` cycle by cycle."""

from pathlib import Path

import click

from simfa.options import gpu_options, load_gpu, run_options
from simfa.outputs import OutputFolder
from simfa.recording import Recording


@click.command()
@click.argument("trace", type=click.Path(exists=True, dir_okay=False))
@gpu_options
@run_options
@click.option(
    "-o", "--output", type=OutputFolder("stats.json", "timeline.npz"), required=True, help="Folder for stats.json."
)
@click.option("--json", "as_json", is_flag=True, help="Print stats.json instead of a table.")
def simulate(
    trace: str,
    gpu: str,
    overlays: tuple[str, ...],
    overrides: tuple[str, ...],
    sm_clock_mhz: float | None,
    threads: int,
    max_cycles: int | None,
    timeline: Recording | None,
    quiet: bool,
    output: str,
    as_json: bool,
) -> None:
    """Simulate TRACE on a GPU preset and write stats.json (and timeline.npz) into a folder."""
    from simfa.simulate.engine import run
    from simfa.simulate.run_files import RunMeter, show, write_run
    from simfa.trace_text import read_trace
    from simfa.verify import verify

    preset = load_gpu(gpu, overlays, overrides, sm_clock_mhz)
    parsed = read_trace(trace)
    verify(parsed.trace, parsed.places)
    with RunMeter(Path(trace).name, quiet=quiet) as meter:
        result = run(
            parsed.trace,
            preset.spec,
            threads=threads,
            max_cycles=max_cycles,
            timeline=timeline,
            progress=meter.update,
        )
    stats = write_run(output, result, preset, parsed.trace, command="simulate", inputs={"trace": trace})
    show(stats, result, as_json=as_json)
