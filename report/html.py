"""The report as one HTML file without any reference to the network: inline style, SVG, and images as data."""

import base64
from collections.abc import Sequence
from importlib import resources
from typing import Any

from simfa import __version__
from simfa.errors import HardwareError, ReportError
from simfa.hardware import Preset, load_preset, unit_of, value_at
from simfa.report.attribution import GROUPS, causes, findings
from simfa.report.embedded import Section
from simfa.report.figures import latency_chart, stacked_bar
from simfa.report.inputs import Run
from simfa.report.palette import GROUP_COLOURS
from simfa.summary import Summary

FLAGGED = ("calibrated", "assumed")


def render(
    summary: Summary,
    runs: Sequence[Run],
    gantt_png: bytes | None,
    gantt_caption: str = "",
    sections: Sequence[Section] = (),
) -> str:
    """Return the report; raises `ReportError` when Jinja2 is missing."""
    try:
        import jinja2
    except ImportError as error:
        raise ReportError(f"the report needs Jinja2: pip install 'simfa[report]' ({error})") from error
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_template),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["percent"] = lambda fraction: f"{fraction:+.2%}"
    return environment.get_template("report.html.j2").render(
        context(summary, runs, gantt_png, gantt_caption), sections=sections, style=_template("style.css")
    )


def context(summary: Summary, runs: Sequence[Run], gantt_png: bytes | None, gantt_caption: str) -> dict[str, Any]:
    """Return everything the template shows, as plain values."""
    return {
        "tool_version": __version__,
        "summary": summary,
        "charts": {entry.name: latency_chart(entry.cases) for entry in summary.sets if entry.cases},
        "runs": [
            {
                "name": run.name,
                "stats": run.stats,
                "shape": run.stats.shape.describe() if run.stats.shape else "no attention shape",
                "bars": {role: stacked_bar(found) for role, found in causes(run.stats).items()},
                "sentences": [finding.sentence() for finding in findings(run.stats)],
            }
            for run in runs
        ],
        "legend": [(group, GROUP_COLOURS[group]) for group in GROUPS],
        "presets": [_preset_table(name) for name in preset_names_in(summary, runs)],
        "gantt": base64.b64encode(gantt_png).decode("ascii") if gantt_png else None,
        "gantt_caption": gantt_caption,
        "log_sources": sorted({run.stats.manifest.log_source for run in runs} - {"none"}),
    }


def preset_names_in(summary: Summary, runs: Sequence[Run]) -> list[str]:
    """Return the presets that anything in the report was simulated on, first use first."""
    names = [case.preset for entry in summary.sets for case in entry.cases]
    names += [run.stats.manifest.gpu_preset for run in runs]
    names += [entry.preset for entry in summary.predictions]
    return list(dict.fromkeys(names))


def _preset_table(name: str) -> dict[str, Any]:
    """Return a preset's values with provenance, flagged ones apart; a preset file of the user's own is only named."""
    base, *overlays = name.split("+")
    try:
        preset = load_preset(base, overlays)
    except HardwareError:
        return {"name": name, "rows": [], "flagged": [], "sha256": None}
    rows = _preset_rows(preset)
    flagged = [row for row in rows if row["status"] in FLAGGED]
    return {"name": name, "rows": rows, "flagged": flagged, "sha256": preset.spec.sha256()}


def _preset_rows(preset: Preset) -> list[dict[str, Any]]:
    """Return path, value, unit, status, source of every value of a preset."""
    return [
        {
            "path": path,
            "value": _value_text(value_at(preset.spec, path)),
            "unit": unit_of(path),
            "status": provenance.status,
            "source": provenance.source,
        }
        for path, provenance in preset.provenance.items()
    ]


def _value_text(value: Any) -> str:
    """Return a preset value for a table."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _template(name: str) -> str:
    """Return a file of the templates folder."""
    return (resources.files("simfa.report") / "templates" / name).read_text(encoding="utf-8")
