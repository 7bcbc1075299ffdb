"""`simfa sensitivity`: every number of a preset moved a little, one at a time, on one attention shape."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from simfa.kernel import KERNEL_VERSIONS, kernel_for
from simfa.options import gpu_options, load_gpu, shape_options, study_options
from simfa.outputs import OutputFile
from simfa.workload import AttentionShape

if TYPE_CHECKING:
    from simfa.hardware import HardwareSpec
    from simfa.progress import Meter
    from simfa.sensitivity import Latency


@click.command()
@shape_options
@gpu_options
@click.option("--kernel-version", type=click.Choice(KERNEL_VERSIONS), default="latest", show_default=True)
@click.option("--perturbation", type=float, default=0.2, show_default=True, help="Fraction that each value moves by.")
@click.option("--top", type=click.IntRange(1), default=20, show_default=True, help="Values in the table and the plot.")
@click.option("--plot", type=OutputFile(), help="Tornado plot, .svg or .png.")
@study_options
def sensitivity(
    shape: AttentionShape,
    gpu: str,
    overlays: tuple[str, ...],
    overrides: tuple[str, ...],
    sm_clock_mhz: float | None,
    kernel_version: str,
    perturbation: float,
    top: int,
    jobs: int,
    plot: str | None,
    outputs: tuple[str, ...],
    figures: str | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Move every number of a preset up and down, one at a time, and tell which ones a shape's latency depends on.

    Whole numbers move to the nearest value that is valid; names, switches, zeros and what no simulation reads are
    listed with the reason why they stay.
    """
    from simfa.extras import need
    from simfa.files import atomic_write, json_bytes, write_manifest
    from simfa.pipeline import kernel_trace
    from simfa.progress import Meter
    from simfa.sensitivity import check_perturbation
    from simfa.sensitivity import sensitivity as run_study
    from simfa.sensitivity_text import sensitivity_csv, sensitivity_index, sensitivity_text
    from simfa.simulate.engine import check
    from simfa.study_files import check_endings, toml_inputs, write_figures, write_study

    check_endings(outputs)
    check_perturbation(perturbation)
    if plot is not None and Path(plot).suffix not in (".svg", ".png"):
        raise click.UsageError(f"--plot {plot}: expected a name ending in .svg or .png")
    if plot is not None or figures is not None:
        need("matplotlib", "the tornado plot", "report")
    preset = load_gpu(gpu, overlays, overrides, sm_clock_mhz)
    meter = Meter("sensitivity", 1.0, quiet=quiet or as_json)

    def run_all(variants: Sequence[HardwareSpec]) -> list[Latency]:
        return simulate_all(shape, kernel_version, variants, jobs, meter)

    kernel = kernel_for(shape, kernel_version)
    trace_of = functools.cache(lambda sm_count: kernel_trace(shape, kernel, sm_count))

    def can_run(hardware: HardwareSpec) -> None:
        check(trace_of(hardware.gpu.sm_count), hardware)

    can_run(preset.spec)
    study = run_study(preset, shape.describe(), kernel_version, perturbation, run_all, can_run)
    inputs = toml_inputs((gpu, *overlays))
    for output in outputs:
        write_study(output, "sensitivity", study, sensitivity_csv(study), inputs)
    if plot is not None:
        from simfa.report.tornado import tornado

        image = tornado(study, top, Path(plot).suffix.lstrip("."))
        with atomic_write(plot, "wb") as handle:
            handle.write(image)
        write_manifest(plot, "sensitivity", inputs)
    if figures is not None:
        from simfa.report.tornado import FILE_NAME, figure_file, tornado

        image = tornado(study, top, "svg")
        write_figures(figures, sensitivity_index(study, top, figure_file(study, top, image)), {FILE_NAME: image})
    click.echo(json_bytes(study).decode() if as_json else sensitivity_text(study, top), nl=not as_json)


def simulate_all(
    shape: AttentionShape, kernel_version: str, variants: Sequence[HardwareSpec], jobs: int, meter: Meter
) -> list[Latency]:
    """Return cycles and latency of a shape on every variant of a preset, `jobs` at a time."""
    from simfa.pipeline import Point, predict_all

    points = [Point(shape, kernel_version, hardware) for hardware in variants]
    return [(result.cycles, result.latency_us) for result in predict_all(points, jobs, meter)]
