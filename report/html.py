"""The report as one HTML file without any reference to the network: inline style, script, SVG, and images as data."""

import base64
import json
from collections.abc import Sequence
from importlib import resources
from typing import Any

import msgspec

from simfa import __version__
from simfa.errors import HardwareError, ReportError
from simfa.hardware import Preset, load_preset, value_at
from simfa.report.attribution import (
    GROUPS,
    REASONS,
    TENSOR_PIPE,
    causes,
    chip_wide,
    findings,
    pipe_idle,
)
from simfa.report.embedded import FigureSection
from simfa.report.figures import latency_chart, stall_stack, trend_chart
from simfa.report.inputs import Run, RunStats
from simfa.report.palette import GROUP_COLOURS, reason_colour
from simfa.report.traffic_view import memory_path, traffic_rows
from simfa.summary import CaseResult, Summary, traffic_gaps
from simfa.units import unit_of
from simfa.workload import paper_shapes

FLAGGED = ("calibrated", "assumed")
# Of the reasons why the tensor pipe idles, those that are told one by one.
IDLE_ROWS = 6
_SCRIPTS = ("page.js", "gantt_data.js", "gantt.js", "gantt_draw.js", "gantt_start.js")


class Pipeline(msgspec.Struct, frozen=True):
    """The Gantt chart of one recording: the data of the page's chart, the picture for pages without scripts."""

    view: dict[str, Any]
    png: bytes
    caption: str


def render(
    summary: Summary,
    runs: Sequence[Run],
    pipeline: Pipeline | None = None,
    sections: Sequence[FigureSection] = (),
) -> str:
    """Return the report; the summary speaks of the longest run that was not stopped early.

    Raises `ReportError` when Jinja2 is missing.
    """
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
    script = "".join(_template(name) for name in _SCRIPTS[: None if pipeline else 1])
    page = environment.get_template("report.html.j2")
    return page.render(context(summary, runs, pipeline, sections), style=_template("style.css"), script=script).lstrip()


def context(
    summary: Summary, runs: Sequence[Run], pipeline: Pipeline | None, sections: Sequence[FigureSection]
) -> dict[str, Any]:
    """Return everything the template shows, as plain values."""
    runs = sorted(runs, key=lambda run: (run.stats.partial, -run.stats.cycles))
    traffic = {
        entry.name: {"rows": traffic_rows(entry.traffic), "gaps": traffic_gaps(entry.traffic)} for entry in summary.sets
    }
    has_traffic = bool(runs) or any(found["rows"] or found["gaps"] for found in traffic.values())
    parts = [
        ("summary", "Summary", True),
        ("pipeline", "Pipeline", pipeline is not None),
        ("cycles", "Cycles", bool(runs)),
        ("accuracy", "Accuracy", True),
        ("traffic", "Traffic", has_traffic),
        *((section.anchor, section.anchor.capitalize(), True) for section in sections),
        ("hardware", "Hardware", True),
        ("manifest", "Manifest", True),
    ]
    return {
        "tool_version": __version__,
        "sections": [(anchor, title) for anchor, title, shown in parts if shown],
        "summary": summary,
        "paper_cases": len({entry.shape for entry in summary.predictions} & _paper_shapes()),
        "charts": {entry.name: _charts(entry.cases) for entry in summary.sets if entry.cases},
        "traffic": traffic,
        "has_traffic": has_traffic,
        "runs": [_run_view(run) for run in runs],
        "legend": [(group, GROUP_COLOURS[group]) for group in GROUPS],
        "presets": [_preset_table(name) for name in preset_names_in(summary, runs)],
        "gantt_json": None if pipeline is None else _script_json(pipeline.view),
        "gantt_png": None if pipeline is None else base64.b64encode(pipeline.png).decode("ascii"),
        "gantt_caption": "" if pipeline is None else pipeline.caption,
        "figure_sections": sections,
        "log_sources": sorted({run.stats.manifest.log_source for run in runs} - {"none"}),
    }


def _paper_shapes() -> set[str]:
    """Return the paper's 15 cases as predictions name their shapes."""
    return {shape.describe() for shape in paper_shapes().values()}


def _charts(cases: Sequence[CaseResult]) -> dict[str, Any]:
    """Return the charts of a set; error against length says nothing of one length."""
    lengths = {case.seqlen_kv for case in cases}
    return {"latency": latency_chart(cases), "trend": trend_chart(cases) if len(lengths) > 1 else None}


def _run_view(run: Run) -> dict[str, Any]:
    """Return a run as the page shows it: stall stacks, the largest causes in words, all shares, bytes by level."""
    found = causes(run.stats)
    everyone = chip_wide(found, run.stats)
    pipe = [(TENSOR_PIPE.replace("_", " "), found.pop(TENSOR_PIPE), True)] if TENSOR_PIPE in found else []
    stacks = [*pipe, ("all warpgroups", everyone, False), *((role, own, False) for role, own in found.items())]
    shares = {role: {cause.reason: cause.share for cause in own} for role, own, _ in stacks}
    largest = {
        reason: max(own.get(reason, 0.0) for own in shares.values()) for own in shares.values() for reason in own
    }
    return {
        "name": run.name,
        "stats": run.stats,
        "shape": run.stats.shape.describe() if run.stats.shape else "no attention shape",
        "stacks": [(role, stall_stack(own), major) for role, own, major in stacks],
        "sentences": [finding.sentence() for finding in findings(run.stats)],
        "pipe": _pipe_view(run.stats),
        "memory": memory_path(run.stats),
        "table": {
            "roles": list(shares),
            "rows": [
                {
                    "reason": reason,
                    "colour": reason_colour(reason),
                    "means": REASONS[reason].means,
                    "shares": [own.get(reason) for own in shares.values()],
                }
                for reason in sorted(largest, key=lambda name: (-largest[name], name))
            ],
        },
    }


def _pipe_view(stats: RunStats) -> dict[str, Any] | None:
    """Return how long the tensor pipes compute and why they idle, as texts whose figures add up; None if unknown."""
    idle = pipe_idle(stats)
    if not idle:
        return None
    named, others = idle[:IDLE_ROWS], idle[IDLE_ROWS:]
    values = [*(entry.share for entry in named), sum(entry.share for entry in others)]
    # First busy and idle, each rounded well, then the idle part among its reasons.
    both = [1 - sum(values), sum(values)]
    busy, idle_shares = whole_parts(both, 1000)
    _, idle_parts = whole_parts(both, round(100 * stats.latency_us))
    shares, parts = whole_parts(values, idle_shares), whole_parts(values, idle_parts)
    rows = [(reason_colour(e.reason), e.why, e.reason if e.reason in REASONS else "") for e in named]
    if others:
        rows.append(
            ("", f"{len(others)} other reason{'s' if len(others) > 1 else ''}, {others[0].share:.1%} at most each", "")
        )
    return {
        "busy": f"{busy / 10:.1f}%",
        "idle": f"{idle_shares / 10:.1f}%",
        "idle_us": f"{idle_parts / 100:,.2f}",
        "bar": "tensor pipe" if all(entry.reason in REASONS for entry in idle) else "where a CTA ran",
        "peak": _of_peak(stats),
        "all_us": f"{stats.latency_us:,.2f}",
        "rows": [
            {"share": f"{share / 10:.1f}%", "us": f"{part / 100:,.2f}", "colour": colour, "why": why, "reason": reason}
            for share, part, (colour, why, reason) in zip(shares, parts, rows, strict=False)
        ],
    }


def _of_peak(stats: RunStats) -> str:
    """Return which part of the preset's peak rate the run reaches, as text; empty where its values are not known."""
    if stats.tflops is None or stats.partial:
        return ""
    base, *overlays = stats.manifest.gpu_preset.split("+")
    for changes in ([], [f"gpu.sm_clock_hz={stats.sm_clock_hz!r}"]):
        try:
            spec = load_preset(base, overlays, changes).spec
        except HardwareError:
            return ""
        if spec.sha256() == stats.manifest.gpu_preset_sha256:
            return f"{1e12 * stats.tflops / spec.tensor_flop_per_s:.1%}"
    return ""


def whole_parts(shares: Sequence[float], total: int) -> list[int]:
    """Return whole numbers in the ratio of shares that sum to `total`, by largest remainder: figures that add up."""
    whole = sum(shares)
    exact = [total * share / whole for share in shares]
    parts = [int(value) for value in exact]
    by_remainder = sorted(range(len(shares)), key=lambda n: (parts[n] - exact[n], n))
    for n in by_remainder[: total - sum(parts)]:
        parts[n] += 1
    return parts


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


def _script_json(value: Any) -> str:
    """Return a value as JSON that may stand inside a script element: nothing in it can end the element."""
    return json.dumps(value, separators=(",", ":"), sort_keys=True).replace("<", "\\u003c")


def _template(name: str) -> str:
    """Return a file of the templates folder."""
    return (resources.files("simfa.report") / "templates" / name).read_text(encoding="utf-8")
