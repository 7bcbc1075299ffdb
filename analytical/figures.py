"""Figures of the model: data first, then Matplotlib drawings to PNG or SVG.

Figure 8 of arXiv:2605.00555: L2 traffic against length. Figure 9: DRAM traffic by model, with measured points where
any are published. And a roofline with an L2 and a DRAM roof.
"""

import csv
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from simfa.analytical.attention import Attention
from simfa.analytical.baselines import genz
from simfa.analytical.machine import resolve
from simfa.analytical.model import policy_span, traffic
from simfa.errors import AnalyticalError
from simfa.files import atomic_write
from simfa.workload import MODELS, model_shape

PAPER_LENGTHS = (16384, 24576, 32768, 49152, 65536)
SECTOR_BYTES = 32
COUNTERS_FILE = "traffic_measured.csv"


class TrafficPoint(NamedTuple):
    """One point of a traffic curve: panel, curve, K/V length, bytes, and whether it was measured."""

    panel: str
    curve: str
    seqlen: int
    traffic_bytes: float
    measured: bool = False


class RooflinePoint(NamedTuple):
    """One call under the roofs: FLOP per L2 and per DRAM byte, and the rate its latency bound allows."""

    label: str
    l2_intensity: float
    dram_intensity: float
    tflops: float


class Roofs(NamedTuple):
    """Ceilings of a GPU: tensor TFLOP/s, and TB/s of L2 and DRAM."""

    gpu: str
    tensor_tflops: float
    l2_tb_per_s: float
    dram_tb_per_s: float


def llc_traffic(gpu: str = "gb10", lengths: Sequence[int] = PAPER_LENGTHS) -> list[TrafficPoint]:
    """Return Figure 8: L2 bytes (Eq. 2) of the three Llama-3 models, batch 1, full mask, on one GPU."""
    return [
        TrafficPoint(gpu, model, length, traffic(model_shape(model, length), gpu, "paper").l2_bytes)
        for model in MODELS
        for length in lengths
    ]


def dram_traffic(
    gpus: Sequence[str] = ("gb10", "h800-sxm"),
    model: str = "llama3.1-405b",
    lengths: Sequence[int] = PAPER_LENGTHS,
    with_genz: bool = False,
) -> list[TrafficPoint]:
    """Return Figure 9: DRAM bytes under every policy, and of an ideal cache, by GPU.

    GenZ's bytes equal the ideal cache's; `with_genz` asks the package itself (extra `baselines`).
    """
    points = []
    for gpu in gpus:
        for length in lengths:
            shape = model_shape(model, length)
            answers = policy_span(shape, gpu)
            points += [TrafficPoint(gpu, policy, length, answer.dram_bytes) for policy, answer in answers.items()]
            points.append(TrafficPoint(gpu, "ideal cache", length, answers["paper"].dram_ideal_bytes))
            if with_genz:
                points.append(TrafficPoint(gpu, "GenZ", length, genz(shape, gpu).dram_bytes))
    return sorted(points, key=lambda point: (gpus.index(point.panel), point.curve, point.seqlen))


def cutile_traffic(lengths: Sequence[int] = (32768, 49152, 65536, 98304, 131072)) -> list[TrafficPoint]:
    """Return the panel with published points: the GB10 cuTile kernel of `traffic_measured.csv`, cyclic and sawtooth.

    Batch 8, head dimension 64; one head is inferred from the counts. The sawtooth reading has calibrated the effective
    capacity, so only the cyclic one is a test.
    """
    panel = "gb10, cuTile B8 H1 D64"
    points = []
    for length in lengths:
        call = _cutile_call(length)
        kernel = resolve("gb10").default_kernel(call)
        points.append(TrafficPoint(panel, "paper", length, traffic(call, "gb10", "paper").dram_bytes))
        for order in ("cyclic", "sawtooth"):
            answer = traffic(call, "gb10", "capacity", msgspec.structs.replace(kernel, kv_order=order))
            points.append(TrafficPoint(panel, f"capacity, {order}", length, answer.dram_bytes))
    for row in counter_rows():
        if row["metric"] == "L2 misses" and row["unit"] == "million sectors of 32 B":
            order = "sawtooth" if "sawtooth" in row["kernel"] else "cyclic"
            missed = float(row["value"]) * 1e6 * SECTOR_BYTES
            word = "calibration" if row["note"].startswith("calibration") else "measured"
            points.append(TrafficPoint(panel, f"{word}, {order}", int(row["seqlen_kv"]), missed, measured=True))
    return sorted(points, key=lambda point: (point.curve, point.seqlen))


def _cutile_call(length: int) -> Attention:
    return Attention(batch=8, seqlen_q=length, seqlen_kv=length, heads_q=1, heads_kv=1, head_dim=64, value_dim=64)


def counter_rows() -> list[dict[str, str]]:
    """Return the published counter readings that the package ships, as written."""
    text = (resources.files("simfa.measured") / COUNTERS_FILE).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def roofline(gpu: str = "h800-sxm", lengths: Sequence[int] = (4096, 16384, 65536)) -> tuple[Roofs, list[RooflinePoint]]:
    """Return a GPU's roofs, and the three models' prefill, and decode at the longest length, by policy `capacity`."""
    machine = resolve(gpu)
    roofs = Roofs(
        gpu=gpu,
        tensor_tflops=machine.sm_count * machine.sm_flop_per_s / 1e12,
        l2_tb_per_s=machine.l2_bytes_per_s / 1e12,
        dram_tb_per_s=machine.dram_bytes_per_s / 1e12,
    )
    points = []
    for model in MODELS:
        calls = [(f"{model} {length // 1024}K", model_shape(model, length)) for length in lengths]
        decode = model_shape(model, 1, seqlen_kv=max(lengths), batch=16)
        for label, shape in [*calls, (f"{model} decode, batch 16", decode)]:
            answer = traffic(shape, machine)
            points.append(
                RooflinePoint(
                    label=label,
                    l2_intensity=answer.flops / answer.l2_request_bytes,
                    dram_intensity=answer.flops / answer.dram_bytes,
                    tflops=answer.flops / answer.latency_bound_us / 1e6,
                )
            )
    return roofs, points


def draw_traffic(points: Sequence[TrafficPoint], path: Path, title: str, what: str) -> None:
    """Draw traffic curves, one panel each, to `path` (.png or .svg): lines for models, markers for measurements."""
    panels = list(dict.fromkeys(point.panel for point in points))
    figure = _figure(len(panels))
    for axes, panel in zip(figure.axes, panels, strict=True):
        mine = [point for point in points if point.panel == panel]
        for curve in dict.fromkeys(point.curve for point in mine):
            own = [point for point in mine if point.curve == curve]
            lengths = [point.seqlen / 1024 for point in own]
            volumes = [point.traffic_bytes / 1e9 for point in own]
            axes.plot(lengths, volumes, **_style(own[0]))
        axes.set(title=panel, xlabel="sequence length (1024 tokens)", ylabel=f"{what} (GB)", yscale="log")
        axes.grid(visible=True, alpha=0.3)
        axes.legend(fontsize="small")
    figure.suptitle(title)
    _save(figure, path)


def _style(point: TrafficPoint) -> dict[str, Any]:
    """Return how a curve is drawn: measurements as black markers, curves that often coincide with different dashes."""
    if point.measured:
        return {"label": point.curve, "color": "black", "linestyle": "", "marker": "+x"["sawtooth" in point.curve]}
    dashes = {"paper": "--", "lru": ":", "GenZ": ":"}
    return {"label": point.curve, "linestyle": dashes.get(point.curve, "-"), "marker": "o", "markersize": 3}


def draw_roofline(roofs: Roofs, points: Sequence[RooflinePoint], path: Path) -> None:
    """Draw both roofs of a GPU and its calls, by L2 and by DRAM intensity, to `path` (.png or .svg)."""
    figure = _figure(1)
    axes = figure.axes[0]
    for rate, name in ((roofs.l2_tb_per_s, "L2"), (roofs.dram_tb_per_s, "DRAM")):
        knee = roofs.tensor_tflops / rate
        axes.plot([1.0, knee, 2.0**17], [rate, roofs.tensor_tflops, roofs.tensor_tflops], label=f"{name} roof")
    axes.plot([point.l2_intensity for point in points], [point.tflops for point in points], "o", label="by L2 bytes")
    axes.plot(
        [point.dram_intensity for point in points], [point.tflops for point in points], "s", label="by DRAM bytes"
    )
    axes.set(
        title=f"{roofs.gpu}: latency bounds under the roofs",
        xlabel="FLOP per byte",
        ylabel="TFLOP/s",
        xscale="log",
        yscale="log",
    )
    axes.grid(visible=True, alpha=0.3)
    axes.legend(fontsize="small")
    _save(figure, path)


def _figure(panels: int) -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise AnalyticalError("figures need Matplotlib; pip install 'simfa[report]'") from error
    figure = Figure(figsize=(5.5 * panels, 4.0), layout="constrained")
    figure.subplots(1, panels)
    return figure


def _save(figure: Any, path: Path) -> None:
    """Write the figure; the same data give the same bytes."""
    import matplotlib

    kind = path.suffix.lower().lstrip(".")
    if kind not in ("png", "svg"):
        raise AnalyticalError(f"{path}: expected a name ending in .png or .svg")
    undated: dict[str, Any] = {"Date": None} if kind == "svg" else {"Software": None}
    with matplotlib.rc_context({"svg.hashsalt": "simfa"}), atomic_write(path, "wb") as handle:
        figure.savefig(handle, format=kind, dpi=120, metadata=undated)
