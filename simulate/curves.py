"""Measured curves of `data/measured` beside simulated ones: points, their split into halves, errors."""

import csv
from collections.abc import Callable, Iterable, Sequence
from importlib import resources
from typing import Literal, TypeVar

import msgspec

from simfa.errors import SimulationError

Half = Literal["calib", "valid"]
Source = TypeVar("Source", bound="MeasuredPoint")


class MeasuredPoint(msgspec.Struct, frozen=True, kw_only=True):
    """One row of a curve. Every other point of the sorted axis may be used to choose constants (`calib`)."""

    split: Half
    source: str


class LatencyPoint(MeasuredPoint, frozen=True, kw_only=True):
    """`tma_latency_h800_pcie.csv`: mean latency of a random pointer chase."""

    method: Literal["tma", "load"]
    working_set_kib: float
    latency_cycles: float
    sm_clock_mhz: float


class TmaBandwidthPoint(MeasuredPoint, frozen=True, kw_only=True):
    """`tma_bandwidth_h800_pcie.csv`: one copy at a time in each CTA, streamed from device memory."""

    kind: Literal["bulk", "1d", "2d", "3d"]
    ctas: int
    box: str
    element_bytes: int
    box_bytes: int
    bandwidth_gb_s: float


class ProducerPoint(MeasuredPoint, frozen=True, kw_only=True):
    """`tma_bandwidth_h100_sxm.csv`: producer warps with rings of four copies, streamed from device memory."""

    sweep: str
    ctas: int
    producers: int
    box_kib: int
    bandwidth_gb_s: float


class L2BandwidthPoint(MeasuredPoint, frozen=True, kw_only=True):
    """`l2_bandwidth.csv`: all SMs read the working set again and again."""

    gpu: Literal["H100 PCIe", "H200 SXM"]
    working_set_kb: float
    bandwidth_gb_s: float


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """One measured point and its simulation, in the same unit. `group` is a part of the curve with its own errors.

    A counter that the simulation did not give is None.
    """

    axis: dict[str, str | float]
    group: str
    unit: str
    split: Half
    measured: float
    simulated: float
    counters: dict[str, float | None]

    @property
    def error(self) -> float:
        """Signed error as a fraction of the measurement."""
        return self.simulated / self.measured - 1


class Errors(msgspec.Struct, frozen=True, kw_only=True):
    """Errors of some points, as fractions."""

    points: int
    mape: float
    largest: float
    bias: float


def read_curve(name: str, kind: type[Source]) -> list[Source]:
    """Return the usable rows of a bundled curve as points; raises `SimulationError` for a damaged table."""
    text = (resources.files("simfa.measured") / name).read_text(encoding="utf-8")
    rows = [row for row in csv.DictReader(text.splitlines()) if row.get("usable", "yes") == "yes"]
    try:
        return [msgspec.convert({key: row[key] for key in kind.__struct_fields__}, kind, strict=False) for row in rows]
    except (KeyError, msgspec.ValidationError) as error:
        raise SimulationError(f"{name}: not a curve of this version: {error}") from error


def thin(points: Sequence[Source], every: int) -> list[Source]:
    """Return one point of `every`, of either half alike, in order."""
    halves = {half: [point for point in points if point.split == half] for half in ("calib", "valid")}
    kept = {id(point) for half in halves.values() for point in half[::every]}
    return [point for point in points if id(point) in kept]


def errors(points: Iterable[Compared]) -> Errors | None:
    """Return the errors of points; None without any."""
    found = [point.error for point in points]
    if not found:
        return None
    return Errors(
        points=len(found),
        mape=sum(map(abs, found)) / len(found),
        largest=max(found, key=abs),
        bias=sum(found) / len(found),
    )


def error_table(points: Sequence[Compared]) -> dict[str, Errors]:
    """Return errors of all points, of both halves, and of each group, by name."""
    parts: dict[str, Callable[[Compared], bool]] = {
        "all": lambda point: True,
        "calib": lambda point: point.split == "calib",
        "valid": lambda point: point.split == "valid",
    }
    for group in dict.fromkeys(point.group for point in points):
        parts[group] = lambda point, group=group: point.group == group  # type: ignore[misc]
    table = {name: errors(filter(wanted, points)) for name, wanted in parts.items()}
    return {name: found for name, found in table.items() if found is not None}
