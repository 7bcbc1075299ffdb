"""Geometry of the report's inline SVG charts; the template only draws what stands here. Lengths are SVG units."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from simfa.report.attribution import GROUPS, REASONS, Cause
from simfa.report.palette import is_dark, reason_colour
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
    whisker: tuple[float, float] | None


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

    ends = [end for case in cases for end in _ends(case)]
    limit = max(0.01, *(abs(end) for end in ends)) * 1.45
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
                error_text_x=zero + scale * _text_place(case) + (5 if case.error >= 0 else -5),
                whisker=None
                if case.error_interval is None
                else (zero + scale * case.error_interval.low, zero + scale * case.error_interval.high),
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


def _text_place(case: CaseResult) -> float:
    """Return the error beside which its text stands: past the bar and the whisker."""
    return max(_ends(case)) if case.error >= 0 else min(_ends(case))


def _ends(case: CaseResult) -> list[float]:
    """Return a case's error and the ends of its interval."""
    return [case.error, *(case.error_interval or ())]


def case_label(case: CaseResult) -> str:
    """Return a case's shape as a short row label."""
    mask = "causal" if case.causal else "full"
    length = f"{case.seqlen_q}" if case.seqlen_q == case.seqlen_kv else f"{case.seqlen_q}/{case.seqlen_kv}"
    heads = f"{case.heads_q}" if case.heads_q == case.heads_kv else f"{case.heads_q}/{case.heads_kv}"
    return f"D{case.head_dim} {mask}, L {length}, B {case.batch}, H {heads}"


class Segment(NamedTuple):
    """One reason's part of a stall stack, in percent of the stack; `label` is empty where it would not fit."""

    reason: str
    group: str
    colour: str
    dark: bool
    width: float
    label: str
    title: str


def stall_stack(reasons: Sequence[Cause]) -> list[Segment]:
    """Return the segments of one stack: groups in drawing order, in a group the largest reason first.

    What the tensor pipe does comes first, so that its stack starts with how busy it is.
    """

    def place(cause: Cause) -> tuple[bool, bool, int, float, str]:
        return cause.reason != "busy", cause.reason != "drain", GROUPS.index(cause.group), -cause.share, cause.reason

    ordered = sorted(reasons, key=place)
    return [
        Segment(
            reason=cause.reason,
            group=cause.group,
            colour=reason_colour(cause.reason),
            dark=is_dark(reason_colour(cause.reason)),
            width=100 * cause.share,
            label=f"{cause.reason} {cause.share:.0%}" if cause.share > 0.013 * (len(cause.reason) + 2) else "",
            title=f"{cause.reason}, {cause.share:.1%}: {REASONS[cause.reason].means}",
        )
        for cause in ordered
    ]


class TrendPoint(NamedTuple):
    """One case on the chart of error against length."""

    x: float
    y: float
    causal: bool
    low_y: float
    high_y: float
    title: str


class TrendChart(NamedTuple):
    """Signed error against sequence length: a model that scales as hardware does lies on a level line."""

    width: int
    height: int
    points: list[TrendPoint]
    x_ticks: list[tuple[float, str]]
    y_ticks: list[tuple[float, str]]
    zero_y: float


def trend_chart(cases: Sequence[CaseResult]) -> TrendChart:
    """Return the chart of a set: length on a binary logarithmic axis, error on a linear one, intervals as whiskers."""
    width, height, left, bottom, top = 560, 250, 60, 36, 14
    lengths = [math.log2(case.seqlen_kv) for case in cases]
    low, high = math.floor(min(lengths)), max(math.ceil(max(lengths)), math.floor(min(lengths)) + 1)
    ends = [end for case in cases for end in _ends(case)]
    limit = max(0.01, *(abs(end) for end in ends)) * 1.15

    def x(length: float) -> float:
        return left + (width - left - 20) * (length - low) / (high - low)

    def y(error: float) -> float:
        return top + (height - top - bottom) * (1 - (error / limit + 1) / 2)

    points = []
    for case, length in zip(cases, lengths, strict=True):
        interval = case.error_interval or (case.error, case.error)
        points.append(
            TrendPoint(
                x(length), y(case.error), case.causal, y(interval[0]), y(interval[1]), f"{case.id}: {case.error:+.2%}"
            )
        )
    step = _nice(limit)
    return TrendChart(
        width=width,
        height=height,
        points=points,
        x_ticks=[(x(power), _length_text(2**power)) for power in range(low, high + 1)],
        y_ticks=[(y(error), f"{error:+.0%}" if error else "0") for error in (-step, 0.0, step)],
        zero_y=y(0.0),
    )


def _length_text(length: int) -> str:
    return f"{length // 1024}K" if length >= 1024 else str(length)


def _log_ticks(low: float, high: float) -> list[float]:
    """Return 1, 2 and 5 times powers of ten between two decimal logarithms."""
    values = [digit * 10.0**power for power in range(math.floor(low), math.ceil(high) + 1) for digit in (1, 2, 5)]
    return [value for value in values if low <= math.log10(value) <= high]


def _nice(limit: float) -> float:
    """Return the largest of 1, 2, 5 times a power of ten that is at most `limit`, at least one percent."""
    power = 10.0 ** math.floor(math.log10(limit))
    return max(0.01, next(digit * power for digit in (5, 2, 1) if digit * power <= limit * (1 + 1e-9)))
