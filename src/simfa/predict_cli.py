"""`simfa predict`: one attention shape, one answer."""

import click

from simfa.clock import CLOCK_MODELS, ClockModel
from simfa.kernel import KERNEL_VERSIONS
from simfa.options import gpu_options, load_gpu, run_options, shape_options
from simfa.outputs import OutputFolder
from simfa.recording import Recording
from simfa.workload import AttentionShape


@click.command()
@shape_options
@gpu_options
@run_options
@click.option("--kernel-version", type=click.Choice(KERNEL_VERSIONS), default="latest", show_default=True)
@click.option("--rules", type=click.Choice(["source", "paper"]), default="source", show_default=True)
@click.option(
    "--clock-model",
    type=click.Choice(CLOCK_MODELS),
    default="nominal",
    show_default=True,
    help="sustained: also the latency at the clock the part holds when the kernel is repeated.",
)
@click.option(
    "-o", "--output", type=OutputFolder("stats.json", "timeline.npz"), help="Folder for stats.json and timeline.npz."
)
@click.option("--json", "as_json", is_flag=True, help="Print stats.json instead of a table.")
def predict(
    shape: AttentionShape,
    gpu: str,
    overlays: tuple[str, ...],
    overrides: tuple[str, ...],
    sm_clock_mhz: float | None,
    threads: int,
    max_cycles: int | None,
    timeline: Recording | None,
    quiet: bool,
    kernel_version: str,
    rules: str,
    clock_model: ClockModel,
    output: str | None,
    as_json: bool,
) -> None:
    """Simulate FA3's forward kernel on an attention shape: synth, translate and simulate in memory."""
    from simfa.kernel import kernel_for
    from simfa.pipeline import kernel_trace
    from simfa.simulate.engine import run
    from simfa.simulate.run_files import RunMeter, run_stats, show, write_run

    preset = load_gpu(gpu, overlays, overrides, sm_clock_mhz)
    kernel = kernel_for(shape, kernel_version)
    trace = kernel_trace(shape, kernel, preset.spec.gpu.sm_count, "paper" if rules == "paper" else "source")
    with RunMeter(shape.describe(), quiet=quiet or as_json) as meter:
        result = run(
            trace,
            preset.spec,
            threads=threads,
            max_cycles=max_cycles,
            timeline=timeline,
            progress=meter.update,
        )
    if output is None:
        stats = run_stats(result, preset, trace, command="predict", inputs={}, clock_model=clock_model)
    else:
        stats = write_run(output, result, preset, trace, command="predict", inputs={}, clock_model=clock_model)
    if not as_json:
        click.echo(shape.describe())
    show(stats, result, as_json=as_json)
