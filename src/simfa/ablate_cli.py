"""`simfa ablate`: one mechanism changed at a time, on the paper's cases and on measured ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from simfa.options import study_options

if TYPE_CHECKING:
    from simfa.ablation import CaseGroup, Figures, StudyCase, Task
    from simfa.progress import Meter

PAPER_PRESETS = ("h800-sxm-paper", "h800-sxm")


@click.command()
@click.option(
    "--overlay", "overlays", multiple=True, help="This one, or a .toml file [default: every shipped overlay]."
)
@click.option("--cases", "patterns", multiple=True, help="paper, clean, a case, or a pattern [default: all].")
@click.option(
    "--gpu", "gpus", multiple=True, help=f"Preset of the paper's cases [default: {' and '.join(PAPER_PRESETS)}]."
)
@click.option("--max-seqlen", type=click.IntRange(1), help="Leave out longer cases.")
@study_options
def ablate(
    overlays: tuple[str, ...],
    patterns: tuple[str, ...],
    gpus: tuple[str, ...],
    max_seqlen: int | None,
    jobs: int,
    outputs: tuple[str, ...],
    figures: str | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Simulate cases with one overlay at a time: slowdown, change of MAPE, and the counter that explains each.

    Cases are the paper's 15 (group paper, on each --gpu) and the twelve measured at 1500 MHz (group clean, on the
    preset of the GPU they were measured on).
    """
    from simfa.ablation import ablate as run_study
    from simfa.ablation import choose_cases, choose_overlays, paper_group
    from simfa.ablation_text import ablation_csv, ablation_index, ablation_text
    from simfa.files import json_bytes
    from simfa.progress import Meter
    from simfa.report.attribution import REASONS
    from simfa.study_files import check_endings, toml_inputs, write_figures, write_study

    check_endings(outputs)
    groups = choose_cases([paper_group(gpu) for gpu in gpus or PAPER_PRESETS] + clean_groups(), patterns, max_seqlen)
    infos = choose_overlays(overlays)
    meter = Meter("ablate", 1.0, quiet=quiet or as_json)

    def run_all(tasks: Sequence[Task]) -> list[Figures]:
        return simulate_all(tasks, jobs, meter)

    study = run_study(groups, infos, run_all, errors_of, {name: reason.means for name, reason in REASONS.items()})
    for output in outputs:
        write_study(output, "ablate", study, ablation_csv(study), toml_inputs((*overlays, *gpus)))
    if figures is not None:
        write_figures(figures, ablation_index(study), {})
    click.echo(json_bytes(study).decode() if as_json else ablation_text(study), nl=not as_json)


def clean_groups() -> list[CaseGroup]:
    """Return the cases measured at 1500 MHz, one group for each preset they were measured on."""
    from simfa.ablation import CaseGroup, StudyCase
    from simfa.measure.cases import load_set
    from simfa.measure.results import clock_of

    by_preset: dict[str, list[StudyCase]] = {}
    for case in load_set("ncu-1500").cases:
        entry = StudyCase(
            name=case.id,
            shape=case.shape,
            kernel_version=case.kernel_version,
            sm_clock_hz=clock_of(case),
            measured_us=case.latency_us,
        )
        by_preset.setdefault(case.preset, []).append(entry)
    return [CaseGroup("clean", preset, tuple(cases)) for preset, cases in by_preset.items()]


def errors_of(pairs: Sequence[tuple[StudyCase, Figures]]) -> tuple[float | None, float | None]:
    """Return MAPE and largest APE of the measured cases among some, or None for both."""
    from simfa.measure.accuracy import Comparison, summarize

    accuracy = summarize(
        [
            Comparison(
                id=case.name,
                measured_us=case.measured_us,
                simulated_us=figures["latency_us"],
                seqlen=case.shape.seqlen_kv,
            )
            for case, figures in pairs
            if case.measured_us is not None
        ]
    )
    return accuracy.mape, accuracy.max_ape


def simulate_all(tasks: Sequence[Task], jobs: int, meter: Meter) -> list[Figures]:
    """Return the figures of every simulation, `jobs` at a time."""
    from simfa.pipeline import Point, predict_all

    points = [Point(task.case.shape, task.case.kernel_version, task.hardware) for task in tasks]
    return [result.to_json() for result in predict_all(points, jobs, meter)]
