"""`simfa calibrate`: fit a few preset values on one half of a measured set and report the other half."""

import hashlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from simfa.errors import MeasureError
from simfa.files import json_bytes, write_json, write_manifest
from simfa.outputs import OutputFile, OutputFolder, make_folder

if TYPE_CHECKING:
    from simfa.measure.calibration import Calibration, Parameter, Simulate
    from simfa.measure.cases import MeasuredCase

# The value that sources leave most open among those that the clean set reacts to (docs/accuracy.md).
DEFAULT_PATHS = ("memory.write_cost",)


@click.command()
@click.option("--set", "name", help="Measured set with a calib half  [default: ncu-1500; s01 for --clock-law].")
@click.option(
    "--parameter", "paths", multiple=True, metavar="PATH", help="Preset value to fit, at most 3 (repeatable)."
)
@click.option("--check", "checks", multiple=True, metavar="SET", help="Also report this set at the fitted values.")
@click.option("--max-seqlen", type=click.IntRange(1), help="Leave longer cases out of everything.")
@click.option("--clock-law", is_flag=True, help="Fit the values of the sustained clock instead, on looped cases.")
@click.option(
    "--results",
    "folders",
    multiple=True,
    type=click.Path(exists=True),
    help="With --clock-law: finished runs (validate --stats) instead of simulating.",
)
@click.option("--cache", type=OutputFolder(), help="Folder that keeps latencies of finished simulations.")
@click.option("-o", "--output", type=OutputFile(), help="Write the result as JSON.")
@click.option("--threads", type=click.IntRange(1), default=1, help="Host threads; never changes a result.")
@click.option("--quiet", is_flag=True, help="No progress line.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def calibrate(
    name: str | None,
    paths: tuple[str, ...],
    checks: tuple[str, ...],
    max_seqlen: int | None,
    clock_law: bool,
    folders: tuple[str, ...],
    cache: str | None,
    output: str | None,
    threads: int,
    quiet: bool,
    as_json: bool,
) -> None:
    """Bounded least squares of preset values on the cases that a set marks `calib`; nothing is written to a preset.

    Ranges are those of the preset (`simfa hardware explain PATH`). Cases of the other half, and of every --check set,
    are simulated at the fitted values and never fitted. No random numbers: the same input gives the same bytes.
    """
    if folders and not clock_law:
        raise click.UsageError("--results holds runs at one value each; it goes with --clock-law")
    if clock_law:
        if paths or checks or cache or output or as_json:
            raise click.UsageError("--clock-law goes with --set, --max-seqlen, --results, --threads and --quiet")
        click.echo(fit_clock(name or "s01", folders, max_seqlen, threads, quiet=quiet))
        return
    from simfa.extras import need
    from simfa.measure import calibration
    from simfa.measure.calibration_text import to_json, to_text

    name = name or "ncu-1500"
    cases = cases_of(name, max_seqlen)
    for entry in checks:
        cases_of(entry, max_seqlen)
    need("scipy", "calibrate", "calibrate")
    presets = sorted({case.preset for case in cases})
    if len(presets) != 1:
        raise MeasureError(f"set {name}: its cases ran on {len(presets)} presets; expected one to fit")
    parameters = [parameter(presets[0], path) for path in dict.fromkeys(paths or DEFAULT_PATHS)]
    targets = [calibration.Target(case.id, case.latency_us, case.half == "calib") for case in cases]
    found = calibration.calibrate(parameters, targets, simulator(cases, parameters, cache, threads, quiet=quiet))
    checked = {entry: check(entry, found, max_seqlen, cache, threads, quiet=quiet) for entry in checks}
    result = to_json(found, checked)
    if output is not None:
        write_json(output, result)
        write_manifest(output, "calibrate", {})
    if as_json:
        sys.stdout.write(json_bytes(result).decode())
    else:
        click.echo(to_text(found, checked))


def cases_of(name: str, max_seqlen: int | None) -> "tuple[MeasuredCase, ...]":
    """Return the usable cases of a set up to a length; raises `MeasureError` for a set unknown or left empty."""
    from simfa.measure.cases import load_set
    from simfa.validate_cli import check_some_left, narrow

    whole = load_set(name)
    narrowed = narrow(whole, None, (), max_seqlen)
    check_some_left([whole], [narrowed], max_seqlen)
    return narrowed.cases


def parameter(preset: str, path: str) -> "Parameter":
    """Return a preset value with its range; raises `MeasureError` for one that is no number or has no range."""
    from simfa.hardware import load_preset, value_at
    from simfa.measure.calibration import Parameter

    loaded = load_preset(preset)
    if path not in loaded.provenance:
        ranged = sorted(known for known, entry in loaded.provenance.items() if entry.range is not None)
        raise MeasureError(f"{preset} has no value {path}; values with a range: {', '.join(ranged)}")
    value, bounds = value_at(loaded.spec, path), loaded.provenance[path].range
    if isinstance(value, bool) or not isinstance(value, int | float) or bounds is None:
        raise MeasureError(f"{preset}: {path} has no range to fit in; a preset gives one as range = [LOW, HIGH]")
    return Parameter(path, float(value), float(bounds[0]), float(bounds[1]), isinstance(value, int))


def simulator(
    cases: "tuple[MeasuredCase, ...]",
    parameters: "list[Parameter]",
    cache: str | None,
    threads: int,
    *,
    quiet: bool,
) -> "Simulate":
    """Return the function that simulates a case with values of the parameters, or looks its latency up in `cache`."""
    from simfa.hardware import load_preset
    from simfa.kernel import kernel_for
    from simfa.measure.results import clock_of
    from simfa.pipeline import kernel_trace
    from simfa.simulate import _core
    from simfa.simulate.engine import run
    from simfa.simulate.run_files import RunMeter
    from simfa.trace_text import format_trace

    engine = hashlib.sha256(Path(_core.__file__).read_bytes()).hexdigest()
    folder = None if cache is None else Path(cache)
    if folder is not None:
        make_folder(folder)

    meter = RunMeter("calibrate", 0.0, quiet=quiet)  # how often the fit will ask is not known

    def simulate(index: int, values: tuple[float, ...]) -> float:
        case = cases[index]
        settings = [
            f"{entry.path}={round(value) if entry.whole else value!r}"
            for entry, value in zip(parameters, values, strict=True)
        ]
        preset = load_preset(case.preset, overrides=[*settings, f"gpu.sm_clock_hz={clock_of(case)!r}"])
        trace = kernel_trace(case.shape, kernel_for(case.shape, case.kernel_version), preset.spec.gpu.sm_count)
        # The sustained-clock law is applied to cycles and has no part in a simulation.
        plain = {name: group for name, group in msgspec.to_builtins(preset.spec).items() if name != "clock"}
        digest = hashlib.sha256(msgspec.json.encode(plain, order="sorted")).hexdigest()
        key = hashlib.sha256(f"{engine} {digest}\n{format_trace(trace)}".encode()).hexdigest()
        known = None if folder is None else folder / f"{key}.json"
        if known is not None and known.is_file():
            try:
                return msgspec.json.decode(known.read_bytes(), type=float)
            except (OSError, msgspec.MsgspecError) as error:
                raise MeasureError(f"{known}: no latency in us: {error}; delete it") from error
        with meter.part(f"{case.id} {' '.join(settings)}", 0.0):
            latency_us = run(trace, preset.spec, threads=threads, progress=meter.update).latency_us
        if known is not None:
            write_json(known, latency_us)
        return latency_us

    return simulate


def check(
    name: str, found: "Calibration", max_seqlen: int | None, cache: str | None, threads: int, *, quiet: bool
) -> list[tuple[str, float, float]]:
    """Return id and error of each case of a set, at the present values and at the fitted ones; nothing is fitted."""
    cases = cases_of(name, max_seqlen)
    parameters = [entry.parameter for entry in found.parameters]
    simulate = simulator(cases, parameters, cache, threads, quiet=quiet)
    now = tuple(entry.value for entry in parameters)
    fitted = tuple(entry.fitted for entry in found.parameters)
    return [
        (case.id, simulate(index, now) / case.latency_us - 1, simulate(index, fitted) / case.latency_us - 1)
        for index, case in enumerate(cases)
    ]


def fit_clock(name: str, folders: tuple[str, ...], max_seqlen: int | None, threads: int, *, quiet: bool) -> str:
    """Return the table of the sustained-clock law, as the preset has it and fitted on the calib half of a set."""
    from simfa import validate_cli
    from simfa.clock import Activity
    from simfa.hardware import load_preset
    from simfa.measure.clock_law import ClockLaw, clock_points, fit_law, law_table, looped
    from simfa.measure.results import find_stats, pair, read_run, run_from

    cases = looped(cases_of(name, max_seqlen))
    if folders:
        pairs, missing = pair(cases, [read_run(path) for path in find_stats(folders)])
        if missing:
            raise MeasureError(f"set {name}: no run of {', '.join(case.id for case in missing)}")
    else:
        simulate = validate_cli.simulator(threads, cases, quiet=quiet)
        pairs = [(case, run_from(simulate(case), case.id)) for case in cases]
    points = clock_points(pairs)
    fitted = fit_law(points)
    clock = load_preset(cases[0].preset).spec.clock
    times = Activity(
        tensor=clock.sustained_tensor_ns,
        cuda=clock.sustained_cuda_ns,
        l2=clock.sustained_l2_ns,
        dram=clock.sustained_dram_ns,
    )
    return law_table(points, {"preset": ClockLaw(clock.sustained_base_ns, times), "fitted": fitted})
