"""`simfa validate`: simulate measured cases, or join finished runs with them, and print errors case by case."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from simfa import __version__
from simfa.clock import CLOCK_MODELS, ClockModel
from simfa.errors import AnalyticalError, HardwareError, MeasureError
from simfa.files import atomic_write, json_bytes, write_json, write_manifest
from simfa.outputs import OutputFolder, check_not_input, make_folder

if TYPE_CHECKING:
    from simfa.measure.cases import CaseSet, MeasuredCase
    from simfa.measure.results import SimulatedRun
    from simfa.measure.traffic import ModelTraffic
    from simfa.summary import Summary

SUMMARY_FILES = ("summary.csv", "summary.json", "traffic.csv")
Simulator = Callable[["MeasuredCase"], dict[str, Any]]


@click.command()
@click.option("--set", "names", multiple=True, help="Bundled set: ncu-1500, calib, valid, h20, s01 ... (repeatable).")
@click.option(
    "--measured",
    "tables",
    multiple=True,
    type=click.Path(exists=True),
    help="Your own table of latencies, or what ingest wrote (CSV).",
)
@click.option("--mapping", type=click.Path(exists=True), help="TOML: which ingested launches computed which shape.")
@click.option("--allow-mixed", is_flag=True, help="One table for all tools and clock or cache policies of launches.")
@click.option("--gpu", help="Simulate every case on this preset instead of the one its GPU is mapped to.")
@click.option("--case", "only", multiple=True, metavar="ID", help="Only this case (repeatable).")
@click.option("--max-seqlen", type=click.IntRange(1), help="Leave out longer cases; they are listed as excluded.")
@click.option(
    "--results",
    "folders",
    multiple=True,
    type=click.Path(exists=True),
    help="Join a finished run, or all below a folder.",
)
@click.option(
    "--clock-model",
    type=click.Choice(CLOCK_MODELS),
    default="nominal",
    show_default=True,
    help="sustained: compare looped cases at the clock their part holds (docs/accuracy.md).",
)
@click.option("--stats", type=OutputFolder(), help="Also write DIR/ID/stats.json for each simulated case.")
@click.option(
    "-o",
    "--output",
    type=OutputFolder(*SUMMARY_FILES),
    help="Write summary.csv and summary.json into this folder.",
)
@click.option("--threads", type=click.IntRange(1), default=1, help="Host threads; never changes a result.")
@click.option("--quiet", is_flag=True, help="No progress line.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
def validate(
    names: tuple[str, ...],
    tables: tuple[str, ...],
    mapping: str | None,
    allow_mixed: bool,
    gpu: str | None,
    only: tuple[str, ...],
    max_seqlen: int | None,
    folders: tuple[str, ...],
    clock_model: ClockModel,
    stats: str | None,
    output: str | None,
    threads: int,
    quiet: bool,
    as_json: bool,
) -> None:
    """Compare simulation with measurements, case by case: errors, MAPE, maximum, bias, trend with length.

    Each case is simulated at the SM clock and with the kernel version it was measured with. Without --set and
    --measured the set is ncu-1500. Launches that `simfa ingest -o` wrote need --mapping or shape columns
    (docs/ingest.md); each tool and clock or cache policy is a table of its own.
    """
    if folders and stats:
        raise click.UsageError("--stats writes what is simulated here; with --results nothing is")
    from simfa.measure.cases import load_set

    for name in SUMMARY_FILES if output is not None else ():
        check_not_input(Path(str(output)) / name, tables)
    sets = [load_set(name) for name in names] + load_tables(tables, mapping, gpu, allow_mixed=allow_mixed)
    whole = sets or [load_set("ncu-1500")]
    sets = [narrow(entry, gpu, only, max_seqlen) for entry in whole]
    if not folders:
        check_some_left(whole, sets, max_seqlen)
    unknown = set(only) - {case.id for entry in sets for case in entry.cases}
    if unknown:
        raise MeasureError(f"case {', '.join(sorted(unknown))}: not among the usable cases of the chosen sets")
    summary = (
        join(sets, folders, clock_model)
        if folders
        else simulate(sets, simulator(threads, distinct(sets), quiet=quiet), stats, clock_model)
    )
    if output is not None:
        write(summary, Path(output), [*tables, *([mapping] if mapping else [])])
    report(summary, as_json)


def load_tables(tables: Sequence[str], mapping: str | None, gpu: str | None, *, allow_mixed: bool) -> list[CaseSet]:
    """Return the sets of latency tables, one each, then those of all launch tables together."""
    from simfa.measure.cases import load_table
    from simfa.measure.launch_cases import launch_sets
    from simfa.measure.launch_rows import is_launch_table

    launches = [path for path in tables if is_launch_table(path)]
    if not launches and (mapping is not None or allow_mixed):
        raise click.UsageError(
            "--mapping and --allow-mixed are for launches: give --measured what simfa ingest -o wrote"
        )
    sets = [load_table(path) for path in tables if path not in launches]
    return sets + (launch_sets(launches, mapping, preset=gpu, allow_mixed=allow_mixed) if launches else [])


def analytical_traffic(case: MeasuredCase) -> ModelTraffic:
    """Return the closed forms' traffic of a case, by definition, or the reason why there is none."""
    from simfa.analytical.attention import Attention
    from simfa.analytical.machine import resolve
    from simfa.analytical.model import traffic
    from simfa.measure.traffic import ModelTraffic, without

    try:
        machine = resolve(case.preset)
        attention = Attention.of(case.shape)
        found = traffic(attention, machine, kernel=machine.default_kernel(attention, version=case.kernel_version))
    except AnalyticalError as error:
        return without("analytical", str(error))
    written = "the closed forms write all of O to DRAM; counters miss what stays in L2 at the kernel's end"
    return ModelTraffic(
        model="analytical",
        sm_side=found.l2_bytes,
        lts_from_sm="the closed forms know multicast, not the merging of requests that lts_from_sm has behind it",
        dram_read_bytes=found.dram_read_bytes,
        dram_write_bytes=written,
        dram_total_bytes=written,
    )


def latency_bound(run: SimulatedRun) -> tuple[float | None, str]:
    """Return the closed forms' latency bound of a run in us and what sets it; None on a preset that is not shipped."""
    from simfa.analytical.attention import Attention
    from simfa.analytical.machine import resolve
    from simfa.analytical.model import traffic
    from simfa.hardware import load_preset

    base, *overlays = run.preset.split("+")
    try:
        preset = load_preset(base, overlays)
        if preset.spec.sha256() != run.preset_sha256:
            return None, ""
        machine = resolve(preset)
        attention = Attention.of(run.shape)
        kernel = machine.default_kernel(attention, version=run.kernel_version)
        found = traffic(attention, machine, kernel=kernel)
    except (AnalyticalError, HardwareError):
        return None, ""
    return found.latency_bound_us, found.bound_by


def narrow(entry: CaseSet, gpu: str | None, only: Sequence[str], max_seqlen: int | None) -> CaseSet:
    """Return a set with another preset, fewer cases, or no case longer than `max_seqlen` tokens."""
    import msgspec

    from simfa.measure.cases import CaseSet
    from simfa.summary import Excluded

    cases = [case for case in entry.cases if not only or case.id in only]
    if gpu is not None:
        cases = [msgspec.structs.replace(case, preset=gpu) for case in cases]
    excluded = [] if only else list(entry.excluded)
    if max_seqlen is not None:
        long = [case for case in cases if length_of(case) > max_seqlen]
        cases = [case for case in cases if case not in long]
        excluded += [Excluded(case.id, f"longer than --max-seqlen {max_seqlen}") for case in long]
    return CaseSet(entry.name, tuple(cases), tuple(excluded))


def check_some_left(whole: Sequence[CaseSet], sets: Sequence[CaseSet], max_seqlen: int | None) -> None:
    """Raise `MeasureError`, with the lengths there are, where `max_seqlen` has left no case of the sets."""
    lengths = sorted({length_of(case) for entry in whole for case in entry.cases})
    if max_seqlen is not None and lengths and lengths[0] > max_seqlen and not any(entry.cases for entry in sets):
        names = ", ".join(entry.name for entry in whole)
        raise MeasureError(
            f"--max-seqlen {max_seqlen} leaves no case of {names}; lengths there: {', '.join(map(str, lengths))}"
        )


def length_of(case: MeasuredCase) -> int:
    """Return the longer of a case's two lengths in tokens."""
    return max(case.shape.seqlen_q, case.shape.seqlen_kv)


def distinct(sets: Sequence[CaseSet]) -> list[MeasuredCase]:
    """Return the cases to simulate: the same launch in two sets is simulated once."""
    found: dict[Any, MeasuredCase] = {}
    for entry in sets:
        for case in entry.cases:
            found.setdefault(_launch(case), case)
    return list(found.values())


def _launch(case: MeasuredCase) -> Any:
    """Return what a simulation of a case depends on."""
    from simfa.measure.results import clock_of

    return case.shape, case.preset, case.kernel_version, clock_of(case)


def simulator(threads: int, cases: Sequence[MeasuredCase], *, quiet: bool) -> Simulator:
    """Return the function that simulates a case at its clock and with its kernel: `stats.json` of that run.

    `cases` are all that will be simulated: the progress line counts their FLOP.
    """
    from simfa.hardware import load_preset
    from simfa.kernel import kernel_for
    from simfa.measure.results import clock_of
    from simfa.pipeline import kernel_trace
    from simfa.simulate.engine import run
    from simfa.simulate.run_files import RunMeter, run_stats

    meter = RunMeter("validate", sum(case.shape.flops for case in cases), quiet=quiet)

    def simulate_case(case: MeasuredCase) -> dict[str, Any]:
        preset = load_preset(case.preset, overrides=[f"gpu.sm_clock_hz={clock_of(case)!r}"])
        trace = kernel_trace(case.shape, kernel_for(case.shape, case.kernel_version), preset.spec.gpu.sm_count)
        with meter.part(case.id, case.shape.flops):
            result = run(trace, preset.spec, threads=threads, progress=meter.update)
        return run_stats(result, preset, trace, command="validate", inputs={})

    return simulate_case


def simulate(
    sets: Sequence[CaseSet], simulate_case: Simulator, stats_folder: str | None, clock_model: ClockModel = "nominal"
) -> Summary:
    """Simulate every launch once and return the summary."""
    from simfa.measure.results import run_from
    from simfa.measure.summary import set_result
    from simfa.summary import Summary

    done: dict[Any, SimulatedRun] = {}
    results = []
    for entry in sets:
        pairs = []
        for case in entry.cases:
            key = _launch(case)
            if key not in done:
                stats = simulate_case(case)
                done[key] = run_from(stats, case.id)
                if stats_folder is not None:
                    make_folder(Path(stats_folder) / case.id)
                    write_json(Path(stats_folder) / case.id / "stats.json", stats)
            pairs.append((case, done[key]))
        results.append(set_result(entry, pairs, analytical_traffic, clock_model))
    return Summary(tool_version=__version__, sets=results)


def join(sets: Sequence[CaseSet], folders: Sequence[str], clock_model: ClockModel = "nominal") -> Summary:
    """Return the summary from finished runs; raises `MeasureError` when a case was not simulated.

    Runs that no case asks for become predictions; runs of a log are set beside its own duration, apart.
    """
    from simfa.measure.results import find_stats, pair, read_run
    from simfa.measure.summary import log_comparison, prediction, set_result
    from simfa.summary import Summary

    runs = [read_run(path) for path in find_stats(folders)]
    results, used = [], set()
    for entry in sets:
        pairs, missing = pair(entry.cases, runs)
        if missing:
            raise MeasureError(
                f"set {entry.name}: no run under {', '.join(folders)} for {', '.join(case.id for case in missing)}; "
                "expected a stats.json with the case's shape, preset, kernel version and SM clock"
            )
        used |= {run.key for _, run in pairs}
        results.append(set_result(entry, pairs, analytical_traffic, clock_model))
    logs = [found for run in runs if (found := log_comparison(run)) is not None]
    others = [prediction(run, *latency_bound(run)) for run in runs if run.key not in used and run.log_us is None]
    return Summary(tool_version=__version__, sets=results, logs=logs, predictions=others)


def write(summary: Summary, folder: Path, tables: Sequence[str]) -> None:
    """Write `summary.csv` and `summary.json` with their manifest, and `traffic.csv` where traffic was measured."""
    from simfa.measure.summary import to_csv, traffic_csv

    make_folder(folder)
    if any(entry.traffic for entry in summary.sets):
        with atomic_write(folder / "traffic.csv") as handle:
            handle.write(traffic_csv(summary))
    with atomic_write(folder / "summary.csv") as handle:
        handle.write(to_csv(summary))
    write_json(folder / "summary.json", summary)
    write_manifest(folder / "summary.json", "validate", {Path(path).name: path for path in tables})


def report(summary: Summary, as_json: bool) -> None:
    """Print the summary for a person, or as JSON."""
    from simfa.measure.summary import extras_text, to_text

    if as_json:
        sys.stdout.write(json_bytes(summary).decode())
    else:
        parts = [to_text(entry) for entry in summary.sets]
        click.echo("\n\n".join([*parts, *extras_text(summary)]))
