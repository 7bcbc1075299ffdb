"""`simfa microbench tma-latency`, `tma-bandwidth` and `l2`: simulated curves beside the measured ones."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from simfa.options import gpu_options, load_gpu
from simfa.outputs import OutputFile
from simfa.progress import Meter
from simfa.tables import text_table

if TYPE_CHECKING:
    from simfa.hardware import Preset
    from simfa.simulate.curves import Compared

# The L2 curve's H100 PCIe fell to this clock in the test (hence 4960 bytes a cycle, as its H200 has).
_L2_CLOCK_MHZ = {"h100-pcie": 1395.0, "h200-sxm": 1980.0}
_L2_PRESETS = {"h100-pcie": "h800-pcie", "h200-sxm": "h200-sxm"}
_L2_GPUS = {"h100-pcie": "H100 PCIe", "h200-sxm": "H200 SXM"}


def _curve_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the GPU flags and those that all curves share."""
    for option in reversed(
        [
            click.option("--every", type=click.IntRange(1), default=1, help="Simulate one measured point of so many."),
            click.option("-o", "--output", type=OutputFile(), help="Write all points as CSV."),
            click.option("--json", "as_json", is_flag=True, help="Print JSON for machines."),
            click.option("--quiet", is_flag=True, help="No progress line."),
        ]
    ):
        function = option(function)
    return gpu_options(function)


def _preset(default: str, clock_mhz: float | None = None, **flags: Any) -> Preset:
    """Return the preset of the GPU flags; without --gpu that of the measured part."""
    context = click.get_current_context()
    gpu = flags["gpu"] if context.get_parameter_source("gpu") != ParameterSource.DEFAULT else default
    clock = flags["sm_clock_mhz"] if flags["sm_clock_mhz"] is not None else clock_mhz
    return load_gpu(gpu, flags["overlays"], flags["overrides"], clock)


def _gpu_flags(function: Callable[..., Any]) -> Callable[..., Any]:
    """Pass the four GPU flags on as one dictionary `gpu_flags`."""

    @functools.wraps(function)
    def wrapper(**values: Any) -> Any:
        flags = {name: values.pop(name) for name in ("gpu", "overlays", "overrides", "sm_clock_mhz")}
        return function(gpu_flags=flags, **values)

    return wrapper


@click.command("tma-latency")
@_curve_options
@click.option("--method", type=click.Choice(["tma", "load", "both"]), default="both", show_default=True)
@click.option(
    "--steps", type=click.IntRange(1, 1_000_000), default=1500, show_default=True, help="Timed accesses of a chase."
)
@click.option("--warm-passes", type=click.IntRange(0, 1000), default=12, show_default=True, help="Passes before them.")
@_gpu_flags
def tma_latency(
    gpu_flags: dict[str, Any],
    every: int,
    output: str | None,
    as_json: bool,
    quiet: bool,
    method: str,
    steps: int,
    warm_passes: int,
) -> None:
    """Random pointer chase over 1 to 256 MiB: 16-byte bulk copies and plain loads, on H800 PCIe."""
    from simfa.simulate.curve_runs import latency_curve
    from simfa.simulate.curves import LatencyPoint, read_curve, thin

    preset = _preset("h800-pcie", **gpu_flags)
    points = read_curve("tma_latency_h800_pcie.csv", LatencyPoint)
    chosen = [
        point
        for kind in ("tma", "load")
        if method in (kind, "both")
        for point in thin([point for point in points if point.method == kind], every)
    ]
    with Meter("tma-latency", len(chosen), unit="points", quiet=quiet) as meter:
        compared = latency_curve(preset.spec, chosen, meter.update, steps=steps, warm_passes=warm_passes)
    _show("tma-latency", preset, compared, output, as_json)


@click.command("tma-bandwidth")
@_curve_options
@click.option("--curve", type=click.Choice(["h800-pcie", "h100-sxm"]), default="h800-pcie", show_default=True)
@click.option("--min-box-bytes", type=click.IntRange(0), default=0, help="Leave out smaller boxes.")
@_gpu_flags
def tma_bandwidth(
    gpu_flags: dict[str, Any],
    every: int,
    output: str | None,
    as_json: bool,
    quiet: bool,
    curve: str,
    min_box_bytes: int,
) -> None:
    """TMA copies streamed from device memory: bulk, 1D, 2D and 3D boxes, one to four CTAs an SM.

    The curve h100-sxm has producer warps with rings of four copies; its clocks were not pinned.
    """
    from simfa.simulate.curve_runs import producer_curve, tma_bandwidth_curve
    from simfa.simulate.curves import ProducerPoint, TmaBandwidthPoint, read_curve, thin

    preset = _preset(curve, **gpu_flags)
    name = f"tma_bandwidth_{curve.replace('-', '_')}.csv"
    if curve == "h800-pcie":
        points = [point for point in read_curve(name, TmaBandwidthPoint) if point.box_bytes >= min_box_bytes]
        boxes = thin(points, every)
        with Meter("tma-bandwidth", len(boxes), unit="points", quiet=quiet) as meter:
            compared = tma_bandwidth_curve(preset.spec, boxes, meter.update)
    else:
        rings = [point for point in read_curve(name, ProducerPoint) if point.box_kib * 1024 >= min_box_bytes]
        producers = thin(rings, every)
        with Meter("tma-bandwidth", len(producers), unit="points", quiet=quiet) as meter:
            compared = producer_curve(preset.spec, producers, meter.update)
    _show(f"tma-bandwidth, {curve}", preset, compared, output, as_json)


@click.command()
@_curve_options
@click.option("--curve", type=click.Choice(list(_L2_GPUS)), default="h100-pcie", show_default=True)
@_gpu_flags
def l2(gpu_flags: dict[str, Any], every: int, output: str | None, as_json: bool, quiet: bool, curve: str) -> None:
    """All SMs read a working set of 4 to 534 MiB again and again, as plain loads.

    The H100 PCIe of the curve is taken to run at 1395 MHz, to which it is known to fall in this test.
    """
    from simfa.simulate.curve_runs import l2_curve
    from simfa.simulate.curves import L2BandwidthPoint, read_curve, thin

    preset = _preset(_L2_PRESETS[curve], _L2_CLOCK_MHZ[curve], **gpu_flags)
    points = [point for point in read_curve("l2_bandwidth.csv", L2BandwidthPoint) if point.gpu == _L2_GPUS[curve]]
    chosen = thin(points, every)
    with Meter("l2", len(chosen), unit="points", quiet=quiet) as meter:
        compared = l2_curve(preset.spec, chosen, meter.update)
    _show(f"l2, {curve}", preset, compared, output, as_json)


def _show(title: str, preset: Preset, points: Sequence[Compared], output: str | None, as_json: bool) -> None:
    """Print points and errors, as a table or as JSON, and write the CSV."""
    if not points:
        raise click.UsageError("these options leave no measured point")
    import msgspec

    from simfa.files import json_bytes
    from simfa.simulate.curves import error_table

    errors = error_table(points)
    if output is not None:
        _write_csv(output, points)
    if as_json:
        rows = [{**msgspec.to_builtins(point), "error": point.error} for point in points]
        value = {"curve": title, "gpu": preset.name, "preset_sha256": preset.spec.sha256(), "points": rows}
        click.echo(json_bytes({**value, "errors": msgspec.to_builtins(errors)}).decode(), nl=False)
        return
    axis, counters = list(points[0].axis), list(points[0].counters)
    unit = points[0].unit
    rows_text = [
        [
            *(_cell(value) for value in point.axis.values()),
            f"{point.measured:.1f}",
            f"{point.simulated:.1f}",
            f"{point.error:+.1%}",
            point.split,
            *(_cell(value) for value in point.counters.values()),
        ]
        for point in points
    ]
    headers = [*axis, f"measured, {unit}", f"simulated, {unit}", "error", "half", *counters]
    click.echo(f"{title}, {preset.spec.gpu.name}")
    click.echo(text_table(headers, rows_text, right=range(len(headers))))
    summary = [
        [name, str(found.points), f"{found.mape:.1%}", f"{found.largest:+.1%}", f"{found.bias:+.1%}"]
        for name, found in errors.items()
    ]
    click.echo("\n" + text_table(["points", "count", "MAPE", "largest", "bias"], summary, right=(1, 2, 3, 4)))


def _cell(value: str | float | None) -> str:
    """Return a value for a table: text, a whole number, three digits, or a dash for none."""
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    return f"{value:.0f}" if value == int(value) or abs(value) >= 1000 else f"{value:.3g}"


def _write_csv(path: str, points: Sequence[Compared]) -> None:
    import csv

    from simfa.files import atomic_write

    with atomic_write(path) as handle:
        writer = csv.writer(handle, lineterminator="\n")
        unit = points[0].unit.replace("/", "_per_").lower()
        writer.writerow(
            [*points[0].axis, f"measured_{unit}", f"simulated_{unit}", "error", "split", "group", *points[0].counters]
        )
        for point in points:
            figures = [point.measured, point.simulated, f"{point.error:.5f}", point.split, point.group]
            counters = ("" if value is None else f"{value:.5g}" for value in point.counters.values())
            writer.writerow([*point.axis.values(), *figures, *counters])
