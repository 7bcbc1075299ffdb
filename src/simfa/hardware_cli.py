"""`simfa hardware`: list presets and overlays, show a preset, explain one value."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import click

from simfa.errors import HardwareError, did_you_mean
from simfa.files import json_bytes
from simfa.hardware import Preset, describe, load_preset, overlay_names, preset_names, value_at
from simfa.tables import text_table
from simfa.units import unit_of

_WORDS = {
    "paper": "stated in arXiv:2605.00555",
    "datasheet": "stated by the vendor",
    "microbenchmark": "measured, or derived from public measurements",
    "calibrated": "fitted to measurements; the source says which",
    "assumed": "chosen by us: no source gives it",
}


def value_text(value: Any) -> str:
    """Return a preset value for a table: numbers without a needless `.0`, switches as on and off."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:g}" if isinstance(value, float) else str(value)


def facts(preset: Preset, path: str) -> dict[str, Any]:
    """Return one value of a preset with everything known about it, as plain data."""
    provenance = preset.provenance[path]
    return {
        "path": path,
        "value": value_at(preset.spec, path),
        "unit": unit_of(path),
        "status": provenance.status,
        "source": provenance.source,
        "range": list(provenance.range) if provenance.range else None,
    }


def overlay_changes(overlay: str, base: str = "h100-sxm") -> dict[str, Any]:
    """Return what an overlay sets: value by path."""
    before, after = load_preset(base), load_preset(base, [overlay])
    changed = [path for path in after.provenance if after.provenance[path] != before.provenance.get(path)]
    return {path: value_at(after.spec, path) for path in changed}


PRESET_COLUMNS = ("preset", "GPU", "SMs", "MHz", "TFLOPS", "L2 MiB", "GB/s", "calibrated", "assumed")


def preset_rows() -> list[tuple[str, ...]]:
    """Return one row of `PRESET_COLUMNS` for each shipped preset; the last two count values of that status."""
    rows: list[tuple[str, ...]] = []
    for preset in map(load_preset, preset_names()):
        spec, counts = preset.spec, Counter(entry.status for entry in preset.provenance.values())
        rows.append(
            (
                preset.name,
                spec.gpu.name,
                str(spec.gpu.sm_count),
                f"{spec.gpu.sm_clock_hz / 1e6:.0f}",
                f"{spec.tensor_flop_per_s / 1e12:.0f}",
                f"{spec.l2.capacity_bytes / 2**20:.0f}",
                f"{spec.memory.peak_bytes_per_s / 1e9:.0f}",
                str(counts["calibrated"]),
                str(counts["assumed"]),
            )
        )
    return rows


def changes_text(changes: Mapping[str, Any]) -> str:
    """Return what an overlay sets as `path = value, ...`."""
    return ", ".join(f"{path} = {value_text(value)}" for path, value in changes.items())


@click.group()
def hardware() -> None:
    """Presets: every value of the model with its unit, status and source."""


@hardware.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")
def list_presets(as_json: bool) -> None:
    """List presets and overlays."""
    overlays = {name: overlay_changes(name) for name in overlay_names()}
    if as_json:
        rows = {
            preset.name: {
                "gpu": preset.spec.gpu.name,
                "sha256": preset.spec.sha256(),
                "status_counts": dict(Counter(entry.status for entry in preset.provenance.values())),
            }
            for preset in map(load_preset, preset_names())
        }
        click.echo(json_bytes({"presets": rows, "overlays": overlays}).decode(), nl=False)
        return
    click.echo(text_table(PRESET_COLUMNS, preset_rows(), right=range(2, 9)))
    click.echo()
    changes = [(name, changes_text(changed)) for name, changed in overlays.items()]
    click.echo(text_table(("overlay", "sets"), changes))


@hardware.command("show")
@click.argument("name", default="h100-sxm")
@click.option("--overlay", "overlays", multiple=True, help="Named change over the preset, e.g. no-lrc.")
@click.option("--set", "overrides", multiple=True, metavar="PATH=VALUE", help="Change one preset value.")
@click.option("--status", type=click.Choice(list(_WORDS)), help="Only values of this status.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")
def show(name: str, overlays: tuple[str, ...], overrides: tuple[str, ...], status: str | None, as_json: bool) -> None:
    """Show all values of preset NAME [default: h100-sxm] with unit, status and source."""
    preset = load_preset(name, overlays, overrides)
    values = [facts(preset, path) for path in preset.provenance]
    values = [entry for entry in values if status is None or entry["status"] == status]
    if as_json:
        document = {"preset": preset.name, "sha256": preset.spec.sha256(), "values": values}
        click.echo(json_bytes(document).decode(), nl=False)
        return
    table = [
        (entry["path"], value_text(entry["value"]), entry["unit"], entry["status"], entry["source"]) for entry in values
    ]
    click.echo(text_table(("path", "value", "unit", "status", "source"), table, right=(1,)))


@hardware.command("explain")
@click.argument("path")
@click.option("--gpu", default="h100-sxm", show_default=True, help="Preset name or a .toml file.")
def explain(path: str, gpu: str) -> None:
    """Explain one value: PATH is its dotted name, e.g. l2.mshr_entries."""
    preset = load_preset(gpu)
    if path not in preset.provenance:
        hint = did_you_mean(path, preset.provenance, "`simfa hardware show` lists all paths")
        raise HardwareError(f"{path}: preset {gpu} has no such value; {hint}")
    entry = facts(preset, path)
    click.echo(f"{path} = {value_text(entry['value'])} {entry['unit']}".rstrip() + f"   ({preset.name})")
    click.echo(f"  group   {describe(path)}")
    click.echo(f"  status  {entry['status']}: {_WORDS[entry['status']]}")
    click.echo(f"  source  {entry['source']}")
    if entry["range"]:
        low, high = entry["range"]
        click.echo(f"  range   {value_text(low)} to {value_text(high)}")
    others = {name: value_text(value_at(load_preset(name).spec, path)) for name in preset_names()}
    click.echo("  presets " + ", ".join(f"{name} {value}" for name, value in others.items()))
