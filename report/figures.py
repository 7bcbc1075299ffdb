"""Geometry of the report's inline SVG charts; the template only draws what stands here. Lengths are SVG units."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from simfa.report.attribution import Cause, group_shares
from simfa.report.palette import GROUP_COLOURS
from simfa.summary import CaseResult

ROW = 22
LABEL_WIDTH = 250
LATENCY_WIDTH = 430
ERROR_WIDTH = 230
GAP = 30
TOP = 40


class CaseMark(NamedTuple):
    """One case: its row, the two points on the latency axis, and the bar of its error."""

    label: str
    title: str
    y: float
    measured_x: float
    simulated_x: float
    error_x: float
    error_width: float
    error_text: str
    error_text_x: float


class LatencyChart(NamedTuple):
    """Measured beside simulated latency of a set (Figure 6), with the error of each case to the right."""

    width: int
    height: int
    plot_bottom: float
    marks: list[CaseMark]
    ticks: list[tuple[float, str]]
    error_zero_x: float
    error_ticks: list[tuple[float, str]]


def latency_chart(cases: Sequence[CaseResult]) -> LatencyChart:
    """Return the chart of a set: latency on a logarithmic axis, signed error on a linear one."""
    latencies = [value for case in cases for value in (case.measured_us, case.simulated_us)]
    low, high = math.log10(min(latencies) / 1.15), math.log10(max(latencies) * 1.15)

    def x(latency_us: float) -> float:
        return LABEL_WIDTH + LATENCY_WIDTH * (math.log10(latency_us) - low) / (high - low)

    limit = max(0.01, *(abs(case.error) for case in cases)) * 1.45
    zero = LABEL_WIDTH + LATENCY_WIDTH + GAP + ERROR_WIDTH / 2
    scale = ERROR_WIDTH / 2 / limit
    marks = []
    for row, case in enumerate(cases):
        length = abs(case.error) * scale
        marks.append(
            CaseMark(
                label=case_label(case),
                title=f"{case.id}: measured {case.measured_us:.2f} us, simulated {case.simulated_us:.2f} us",
                y=TOP + ROW * (row + 0.5),
                measured_x=x(case.measured_us),
                simulated_x=x(case.simulated_us),
                error_x=zero if case.error >= 0 else zero - length,
                error_width=length,
                error_text=f"{case.error:+.1%}",
                error_text_x=zero + (length + 5 if case.error >= 0 else -length - 5),
            )
        )
    bottom = TOP + ROW * len(cases)
    ticks = [(x(value), f"{value:g}") for value in _log_ticks(low, high)]
    step = _nice(limit)
    error_ticks = [(zero + sign * step * scale, f"{sign * step:+.0%}") for sign in (-1, 1)]
    return LatencyChart(
        width=LABEL_WIDTH + LATENCY_WIDTH + GAP + ERROR_WIDTH + 10,
        height=bottom + 40,
        plot_bottom=bottom,
        marks=marks,
        ticks=ticks,
        error_zero_x=zero,
        error_ticks=[(zero, "0"), *error_ticks],
    )


def case_label(case: CaseResult) -> str:
    """Return a case's shape as a short row label."""
    mask = "causal" if case.causal else "full"
    length = f"{case.seqlen_q}" if case.seqlen_q == case.seqlen_kv else f"{case.seqlen_q}/{case.seqlen_kv}"
    heads = f"{case.heads_q}" if case.heads_q == case.heads_kv else f"{case.heads_q}/{case.heads_kv}"
    return f"D{case.head_dim} {mask}, L {length}, B {case.batch}, H {heads}"


class Segment(NamedTuple):
    """One group's part of a role's stacked bar, in percent of the bar."""

    group: str
    colour: str
    start: float
    width: float


def stacked_bar(reasons: list[Cause]) -> list[Segment]:
    """Return the segments of a role's bar in drawing order, without empty ones."""
    segments, start = [], 0.0
    for group, share in group_shares(reasons).items():
        if share:
            segments.append(Segment(group, GROUP_COLOURS[group], 100 * start, 100 * share))
        start += share
    return segments


def _log_ticks(low: float, high: float) -> list[float]:
    """Return 1, 2 and 5 times powers of ten between two decimal logarithms."""
    values = [digit * 10.0**power for power in range(math.floor(low), math.ceil(high) + 1) for digit in (1, 2, 5)]
    return [value for value in values if low <= math.log10(value) <= high]


def _nice(limit: float) -> float:
    """Return the largest of 1, 2, 5 times a power of ten that is at most `limit`, at least one percent."""
    power = 10.0 ** math.floor(math.log10(limit))
    return max(0.01, next(digit * power for digit in (5, 2, 1) if digit * power <= limit * (1 + 1e-9)))
