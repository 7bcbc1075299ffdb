"""`simfa analytical`, `simfa figures` and `simfa sweep`."""

import importlib
from pathlib import Path
from typing import Any

import click

from simfa.analytical.policies import POLICIES
from simfa.errors import AnalyticalError
from simfa.kernel import KERNEL_VERSIONS
from simfa.options import gpu_options, load_gpu, optional_shape_options
from simfa.outputs import OutputFile, OutputFolder, check_not_input
from simfa.workload import AttentionShape

# Backends of `simfa sweep`: name, and module:function of a `simfa.analytical.sweep.Backend`, imported when used.
BACKENDS = {
    "analytical": "simfa.analytical.sweep_backend:evaluate",
    "simulator": "simfa.simulator_backend:evaluate",
}

_CALL_FIELDS = ("value_dim", "window", "latent", "lse", "scale_bytes", "o_bytes")
_KERNEL_FIELDS = ("tile_m", "tile_n", "ctas_per_sm", "cluster", "schedule", "kv_order", "pack_gqa", "splits", "version")


@click.command()
@optional_shape_options
@gpu_options
@click.option("--policy", type=click.Choice(POLICIES), default="capacity", show_default=True, help="Cache policy.")
@click.option("--value-dim", type=int, help="Head dimension of V and O [default: as Q and K].")
@click.option("--window", type=int, help="Keys left of the diagonal that a row sees (causal only).")
@click.option("--latent", is_flag=True, default=None, help="K and V are one tensor of head-dim elements (MLA).")
@click.option("--lse", is_flag=True, default=None, help="Count the log-sum-exp that the kernel writes.")
@click.option("--scale-bytes", type=int, help="Bytes of block scales a row of Q, K and V.")
@click.option("--o-bytes", type=int, help="Element size of O [default: 2].")
@click.option("--kernel-version", "version", type=click.Choice(KERNEL_VERSIONS), help="FA3 tiles [default: latest].")
@click.option("--tile-m", type=int, help="Query rows per CTA [default: the preset's kernel].")
@click.option("--tile-n", type=int, help="K/V rows per step [default: the preset's kernel].")
@click.option("--ctas-per-sm", type=int, help="CTAs resident on an SM.")
@click.option("--cluster", type=int, help="CTAs that share K/V loads by multicast.")
@click.option("--schedule", type=click.Choice(["static", "lpt_l2_sections", "single_tile"]), help="Tile order.")
@click.option("--kv-order", type=click.Choice(["cyclic", "sawtooth"]), help="Direction in which tiles walk K/V.")
@click.option("--pack-gqa/--no-pack-gqa", default=None, help="Query heads of a K/V head share tiles.")
@click.option("--splits", type=int, help="CTAs that share the K/V of a tile.")
@click.option("--baseline", "baselines", multiple=True, type=click.Choice(["ideal", "genz"]), help="Compare with.")
@click.option("--table", "table", type=click.Path(dir_okay=False, path_type=Path), help="Price all rows of a file.")
@click.option("-o", "--output", type=OutputFile(path_type=Path), help="Output of --table.")
@click.option("--keep-going", is_flag=True, help="Collect bad rows of --table in OUTPUT.rejects.csv and go on.")
@click.option("--quiet", is_flag=True, help="No progress line.")
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
def analytical(
    shape: AttentionShape | None,
    gpu: str,
    overlays: tuple[str, ...],
    overrides: tuple[str, ...],
    sm_clock_mhz: float | None,
    policy: str,
    baselines: tuple[str, ...],
    table: Path | None,
    output: Path | None,
    keep_going: bool,
    quiet: bool,
    as_json: bool,
    **flags: Any,
) -> None:
    """Traffic, intensity and latency bounds of an attention call, or of every row of a table, in closed form.

    A table has columns batch, seqlen_q, seqlen_kv, group_size and num_kv_heads (or heads_q and heads_kv), head_dim,
    and optionally tile_m, element_bytes, num_sms, max_ctas_per_sm, effective_l2_bytes.
    """
    given = {name: value for name, value in flags.items() if value is not None}
    preset = load_gpu(gpu, overlays, overrides, sm_clock_mhz)
    if table is not None:
        if shape is not None or given or baselines or as_json:
            raise click.UsageError(
                "--table takes its shapes from the file; give no SHAPE, kernel or --json flags with it"
            )
        if output is None:
            raise click.UsageError("--table needs -o OUTPUT (.csv, .tsv or .parquet)")
        _price_file(table, output, preset, policy, keep_going, quiet)
        return
    if output is not None or keep_going:
        raise click.UsageError("-o and --keep-going belong to --table")
    if shape is None:
        raise click.UsageError("give a SHAPE, e.g. --model llama3-8b --seqlen 4096, or --table FILE")
    _show_point(shape, preset, policy, given, baselines, as_json)


def _price_file(table: Path, output: Path, preset: Any, policy: str, keep_going: bool, quiet: bool) -> None:
    from simfa.analytical.machine import resolve
    from simfa.analytical.table_files import count_rows, price_table
    from simfa.files import write_manifest
    from simfa.progress import Meter

    check_not_input(output, [table])
    rejects = output.with_name(f"{output.name}.rejects.csv") if keep_going else None
    with Meter("pricing", count_rows(table), unit="rows", quiet=quiet) as meter:
        outcome = price_table(table, output, resolve(preset), policy, rejects, progress=meter.update)
    facts = {"gpu": preset.name, "gpu_sha256": preset.spec.sha256(), "policy": policy, **outcome._asdict()}
    write_manifest(output, "analytical", {"table": table}, **facts)
    click.echo(f"{outcome.rows} rows -> {output}")
    if outcome.rejected:
        click.echo(f"{outcome.rejected} rows could not be priced -> {rejects}", err=True)


def _show_point(
    shape: AttentionShape, preset: Any, policy: str, flags: dict[str, Any], baselines: tuple[str, ...], as_json: bool
) -> None:
    from simfa.analytical.attention import Attention
    from simfa.analytical.baselines import genz, ideal_cache
    from simfa.analytical.machine import kernel_with, resolve
    from simfa.analytical.model import policy_span, traffic
    from simfa.analytical.show import json_text, report_text

    machine = resolve(preset)
    attention = Attention.of(shape, **{name: flags[name] for name in _CALL_FIELDS if name in flags})
    kernel = kernel_with(machine, attention, {name: flags[name] for name in _KERNEL_FIELDS if name in flags})
    answer = traffic(attention, machine, policy, kernel)
    others = [{"ideal": ideal_cache, "genz": genz}[name](attention, machine) for name in dict.fromkeys(baselines)]
    span = policy_span(attention, machine, kernel)
    click.echo(json_text(answer, span, others) if as_json else report_text(answer, span, others, preset))


@click.command()
@click.option(
    "-o", "--output", type=OutputFolder("figures.json", path_type=Path), required=True, help="Folder to fill."
)
@click.option("--quiet", is_flag=True, help="No progress line.")
def figures(output: Path, quiet: bool) -> None:
    """Draw the model's figures as SVG: L2 and DRAM traffic against length (Figures 8 and 9), and a roofline.

    `simfa report --figures OUTPUT` shows them.
    """
    from simfa.analytical.figure_set import write_figures

    for path in write_figures(output, quiet=quiet):
        click.echo(path)


@click.command()
@click.argument("source", metavar="FILE.toml", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "-o", "--output", type=OutputFolder("points.csv", "pareto.csv", path_type=Path), help="Folder for the results."
)
@click.option("--parts", type=click.IntRange(1), help="Cut the sweep in so many parts [default: by points_per_part].")
@click.option("--part", type=click.IntRange(0), help="Evaluate this part only, counted from 0, and stop.")
@click.option("--count", "count_only", is_flag=True, help="Print how many points and parts there are.")
@click.option("--keep-going", is_flag=True, help="Keep points that cannot be priced, with their message.")
@click.option("--quiet", is_flag=True, help="No progress line.")
@click.option("--json", "as_json", is_flag=True, help="Print the Pareto front as JSON.")
def sweep(
    source: Path,
    output: Path | None,
    parts: int | None,
    part: int | None,
    count_only: bool,
    keep_going: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Evaluate a grid of hardware, kernel and workload fields, and find the Pareto front.

    Finished parts are kept in OUTPUT/parts and not computed again while FILE.toml stays as it is; OUTPUT/points.csv
    and OUTPUT/pareto.csv hold the result.
    """
    from simfa.analytical.sweep import load_sweep
    from simfa.analytical.sweep_run import finish, part_file, run_part
    from simfa.progress import Meter

    plan = load_sweep(source)
    pieces = plan.part_count(parts)
    if count_only:
        click.echo(f"{plan.size} points, {pieces} parts")
        return
    if output is None:
        raise click.UsageError("give -o FOLDER for the results")
    backend = _backend(source, plan.backend)
    if part is not None:
        points = len(plan.part_range(part, pieces))
        with Meter(plan.name, points, unit="points", quiet=quiet or as_json) as meter:
            ran = run_part(source, plan, output, part, pieces, backend, keep_going, meter.update)
        click.echo(f"part {part} of {pieces} {'->' if ran else 'is up to date:'} {part_file(output, part, pieces)}")
        return
    with Meter(plan.name, plan.size, unit="points", quiet=quiet or as_json) as meter:
        result = finish(source, plan, output, pieces, backend, keep_going, meter.update)
    _show_sweep(plan, result, as_json)


def _backend(source: Path, name: str) -> Any:
    if name not in BACKENDS:
        raise AnalyticalError(f"{source}: backend {name!r} is unknown; expected one of {', '.join(BACKENDS)}")
    module, _, function = BACKENDS[name].partition(":")
    return getattr(importlib.import_module(module), function)


def _show_sweep(plan: Any, result: Any, as_json: bool) -> None:
    from simfa.files import json_bytes
    from simfa.tables import text_table

    if as_json:
        click.echo(
            json_bytes({"points": result.points, "failed": result.failed, "pareto": result.front}).decode(), nl=False
        )
        return
    varied = [*dict.fromkeys(name for design in plan.designs for name in design), *plan.axes]
    columns = list(dict.fromkeys([*varied, *(objective.column for objective in plan.objectives)]))
    click.echo(f"{result.points} points -> {result.points_file}")
    if result.failed:
        click.echo(f"{result.failed} points could not be priced; see column error", err=True)
    click.echo(f"{len(result.front)} on the Pareto front -> {result.pareto_file}")
    shown = result.front[:20]
    click.echo(text_table(columns, [[row.get(name, "") for name in columns] for row in shown]))
    if len(result.front) > len(shown):
        click.echo(f"... and {len(result.front) - len(shown)} more")
