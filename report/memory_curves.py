"""Figures 3 to 5 of arXiv:2605.00555 from the tables that `simfa microbench ... -o` writes."""

import csv
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from simfa import __version__
from simfa.errors import ReportError
from simfa.figure_files import FigureFile, FigureIndex, index_path
from simfa.files import atomic_write, sha256_of, write_json
from simfa.outputs import make_folder
from simfa.progress import watched

NOTE = "Published measurements of an H800 PCIe, and the same programs on the simulated part (simfa microbench)."
_MEASURED, _SIMULATED, _OFF = "#222222", "#4477aa", "#ee6677"
_KIND_COLOURS = {"bulk": "#4477aa", "1d": "#228833", "2d": "#ccbb44", "3d": "#aa3377"}


class CurvePoint(NamedTuple):
    """One row of a table: its axis values as text, and the two values in the table's unit."""

    axis: dict[str, str]
    measured: float
    simulated: float

    @property
    def error(self) -> float:
        """Signed error as a fraction of the measurement."""
        return self.simulated / self.measured - 1


def read_table(path: str | Path, axis: Sequence[str]) -> list[CurvePoint]:
    """Return the points of a table with the columns `axis`; raises `ReportError` for anything else."""
    try:
        with Path(path).open(encoding="utf-8", newline="") as handle:
            reader = csv.DictReader(handle)
            columns = reader.fieldnames or []
            measured = next((name for name in columns if name.startswith("measured_")), "")
            wanted = [*axis, measured, measured.replace("measured_", "simulated_")]
            if not measured or not set(wanted) <= set(columns):
                raise ReportError(
                    f"{path}: columns {', '.join(columns)}; expected {', '.join(axis)}, measured_UNIT and "
                    "simulated_UNIT, as `simfa microbench ... -o` writes them"
                )
            points = []
            for row in reader:
                values = float(row[measured]), float(row[wanted[-1]])
                points.append(CurvePoint({name: row[name] for name in axis}, *values))
    except OSError as error:
        raise ReportError(f"{path}: cannot be read: {error.strerror}") from error
    except (TypeError, ValueError) as error:
        raise ReportError(f"{path}: line {reader.line_num}: not a number: {error}") from error
    if not points or min(point.measured for point in points) <= 0:
        raise ReportError(f"{path}: expected points with measurements above zero")
    return points


def write_memory_figures(
    folder: Path,
    latency: Path,
    latency_off: Path | None,
    bandwidth: Path,
    mshr: Mapping[int, Path],
    *,
    quiet: bool = True,
) -> Path:
    """Write the figures as SVG and `figures.json` last; return the index.

    `latency_off` is the chase without RemoteCopy, `mshr` has the bandwidth table for each number of MSHR entries.
    """
    axis = ("method", "working_set_mib")
    chase = read_table(latency, axis)
    off = [] if latency_off is None else read_table(latency_off, axis)
    boxes = read_table(bandwidth, ("kind", "box", "ctas"))
    sweep = {entries: read_table(path, ("kind", "box", "ctas")) for entries, path in sorted(mshr.items())}
    make_folder(folder)
    drawings = [partial(_draw_latency, folder, chase, off)]
    if sweep:
        drawings.append(partial(_draw_mshr, folder, sweep))
    drawings.append(partial(_draw_bandwidth, folder, boxes))
    entries = [draw() for draw in watched(drawings, "drawing", quiet=quiet)]
    index = index_path(folder)
    write_json(index, FigureIndex(tool_version=__version__, figures=entries, section="memory", text=NOTE))
    return index


def mape(points: Sequence[CurvePoint]) -> float:
    """Return the mean absolute error as a fraction."""
    return sum(abs(point.error) for point in points) / len(points)


def _draw_latency(folder: Path, points: Sequence[CurvePoint], off: Sequence[CurvePoint]) -> FigureFile:
    """Figure 3: measured, simulated, and simulated without RemoteCopy, one panel for each method."""
    methods = list(dict.fromkeys(point.axis["method"] for point in points))
    figure = _figure(len(methods))
    for axes, method in zip(figure.axes, methods, strict=True):
        chosen = _by_size(points, method)
        sizes = [float(point.axis["working_set_mib"]) for point in chosen]
        axes.plot(sizes, [point.measured for point in chosen], "o", color=_MEASURED, ms=4, label="measured")
        axes.plot(sizes, [point.simulated for point in chosen], "-", color=_SIMULATED, label="simulated")
        without = _by_size(off, method)
        if without:
            without_sizes = [float(point.axis["working_set_mib"]) for point in without]
            axes.plot(
                without_sizes, [point.simulated for point in without], "--", color=_OFF, label="without RemoteCopy"
            )
        axes.set_xscale("log", base=2)
        axes.set_xlabel("working set, MiB")
        axes.set_ylabel("latency, cycles")
        axes.set_title({"tma": "16-byte bulk copies", "load": "plain loads"}.get(method, method))
        axes.legend(frameon=False)
    caption = (
        f"Figure 3: random pointer chase; MAPE {mape(points):.1%} over {len(points)} points. Up to 25 MiB far lines "
        "are found near; up to 50 MiB near lines miss, and far ones are found far; above, all miss."
    )
    return _saved(figure, folder / "tma_latency.svg", "TMA latency against working set", caption)


def _draw_mshr(folder: Path, sweep: Mapping[int, Sequence[CurvePoint]]) -> FigureFile:
    """Figure 4: error of each case, and their MAPE, against the MSHR entries of a slice."""
    figure = _figure(1)
    axes = figure.axes[0]
    labels = [" ".join(point.axis.values()) for point in next(iter(sweep.values()))]
    for number, label in enumerate(labels):
        axes.plot(list(sweep), [100 * points[number].error for points in sweep.values()], "o-", ms=4, label=label)
    axes.plot(list(sweep), [100 * mape(points) for points in sweep.values()], "s--", color=_MEASURED, label="MAPE")
    axes.set_xlabel("MSHR entries of a slice")
    axes.set_ylabel("error, %")
    axes.legend(frameon=False)
    best = min(sweep, key=lambda entries: mape(sweep[entries]))
    spread = max(map(mape, sweep.values())) - min(map(mape, sweep.values()))
    finding = f"the least MAPE is at {best}" if spread > 0.002 else "the curve is flat"
    caption = f"Figure 4: large boxes against MSHR entries; {finding} ({spread:.1%} between best and worst)."
    return _saved(figure, folder / "mshr.svg", "TMA bandwidth against MSHR entries", caption)


def _draw_bandwidth(folder: Path, points: Sequence[CurvePoint]) -> FigureFile:
    """Figure 5: simulated against measured rate, by kind of copy."""
    figure = _figure(1)
    axes = figure.axes[0]
    for kind, colour in _KIND_COLOURS.items():
        chosen = [point for point in points if point.axis["kind"] == kind]
        if chosen:
            axes.plot(
                *([getattr(point, name) for point in chosen] for name in ("measured", "simulated")),
                "o",
                color=colour,
                ms=5,
                label=kind,
            )
    top = 1.05 * max(value for point in points for value in (point.measured, point.simulated))
    axes.plot([0, top], [0, top], "-", color=_MEASURED, lw=0.8)
    for factor in (0.9, 1.1):
        axes.plot([0, top], [0, factor * top], ":", color=_MEASURED, lw=0.8)
    axes.set_xlim(0, top)
    axes.set_ylim(0, top)
    axes.set_xlabel("measured, GB/s")
    axes.set_ylabel("simulated, GB/s")
    axes.legend(frameon=False)
    worst = max(points, key=lambda point: abs(point.error))
    caption = (
        f"Figure 5: TMA copies streamed from device memory; MAPE {mape(points):.1%} over {len(points)} points, largest "
        f"error {worst.error:+.1%} ({worst.axis['kind']} {worst.axis['box']}, {worst.axis['ctas']} CTAs). Dotted: 10 %."
    )
    return _saved(figure, folder / "tma_bandwidth.svg", "TMA bandwidth by kind of copy", caption)


def _by_size(points: Sequence[CurvePoint], method: str) -> list[CurvePoint]:
    chosen = [point for point in points if point.axis["method"] == method]
    return sorted(chosen, key=lambda point: float(point.axis["working_set_mib"]))


def _figure(panels: int) -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ReportError("figures need Matplotlib; pip install 'simfa[report]'") from error
    figure = Figure(figsize=(5.5 * panels, 4.0), layout="constrained")
    figure.subplots(1, panels)
    return figure


def _saved(figure: Any, path: Path, title: str, caption: str) -> FigureFile:
    """Write a figure; the same data give the same bytes."""
    import matplotlib

    with matplotlib.rc_context({"svg.hashsalt": "simfa"}), atomic_write(path, "wb") as handle:
        figure.savefig(handle, format="svg", metadata={"Date": None})
    return FigureFile(file=path.name, sha256=sha256_of(path), title=title, caption=caption)
