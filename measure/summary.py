"""The accuracy document: sets of cases with their errors, as table, CSV and JSON."""

import csv
import io
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from simfa.clock import ClockModel, law_text
from simfa.hardware import load_preset
from simfa.measure.accuracy import Comparison, summarize
from simfa.measure.cases import CaseSet, MeasuredCase
from simfa.measure.interval import METHOD, error_intervals
from simfa.measure.results import SimulatedRun, simulated_traffic, with_clock_model
from simfa.measure.summary_text import interval_lines, percent, rounding_lines, traffic_lines
from simfa.measure.traffic import ModelTraffic, compare_traffic
from simfa.summary import (
    Accuracy,
    CaseResult,
    Excluded,
    Interval,
    LogComparison,
    Prediction,
    SetResult,
    Summary,
    TrafficComparison,
)
from simfa.tables import text_table


class _Times(NamedTuple):
    """The two times that are compared, the measured repeats in the same unit, and how they were made."""

    measured_us: float
    simulated_us: float
    repeats_us: tuple[float, ...]
    compared: str
    conversion: str
    rounding_us: tuple[float, float] | None


def _times(case: MeasuredCase, run: SimulatedRun) -> _Times:
    """Return latencies, or cycles as time at the measured clock where the simulated clock is another."""
    clock = case.sm_clock_hz
    if clock is None or case.cycles is None or round(clock) == round(run.sm_clock_hz):
        compared = "cycles" if case.note else "latency"
        return _Times(case.latency_us, run.latency_us, case.repeats_us, compared, case.note, case.rounding_us)
    measured = case.cycles / clock * 1e6
    conversion = (
        f"measured {case.cycles:.0f} cycles at {clock / 1e6:.0f} MHz, simulated {run.cycles} at "
        f"{run.sm_clock_hz / 1e6:.0f} MHz: cycles are compared, as time at {clock / 1e6:.0f} MHz; DRAM keeps its own "
        "clock, so this holds for kernels bound by compute or L2"
    )
    repeats = tuple(value * measured / case.latency_us for value in case.repeats_us)
    conversion = f"{case.note}; {conversion}" if case.note else conversion
    return _Times(measured, run.cycles / clock * 1e6, repeats, "cycles", conversion, None)


def set_result(
    case_set: CaseSet,
    pairs: Sequence[tuple[MeasuredCase, SimulatedRun]],
    model: Callable[[MeasuredCase], ModelTraffic] | None = None,
    clock_model: ClockModel = "nominal",
) -> SetResult:
    """Return the errors of a set from its simulated cases; `model` gives the traffic to set beside measured traffic.

    With the `sustained` clock model, looped cases are compared at the clock their part holds (`simfa.clock`).
    """
    pairs = [(case, with_clock_model(case, run, clock_model)) for case, run in pairs]
    times = [_times(case, run) for case, run in pairs]
    comparisons = [
        Comparison(
            id=case.id, measured_us=found.measured_us, simulated_us=found.simulated_us, seqlen=case.shape.seqlen_kv
        )
        for (case, _), found in zip(pairs, times, strict=True)
    ]
    intervals, mape_interval = error_intervals(
        [found.repeats_us for found in times], [found.simulated_us for found in times]
    )
    cases = [
        CaseResult(
            id=case.id,
            source_id=case.source_id,
            gpu=case.gpu,
            preset=run.preset,
            preset_sha256=run.preset_sha256,
            kernel_version=case.kernel_version,
            sm_clock_mhz=run.sm_clock_hz / 1e6,
            clock_stated=case.sm_clock_hz is not None,
            launches=case.launches,
            **msgspec.structs.asdict(case.shape),
            measured_us=found.measured_us,
            simulated_us=found.simulated_us,
            error=comparison.error,
            cycles=run.cycles,
            tensor_utilization=run.tensor_utilization,
            source_url=case.source_url,
            repeats=max(1, len(case.repeats_us)),
            error_interval=interval,
            compared=found.compared,
            conversion=found.conversion,
            measured_interval=None if found.rounding_us is None else Interval(*found.rounding_us),
            effective_clock_mhz=None if run.effective_clock_hz is None else run.effective_clock_hz / 1e6,
        )
        for (case, run), found, comparison, interval in zip(pairs, times, comparisons, intervals, strict=True)
    ]
    accuracy = summarize(comparisons, len(case_set.excluded))
    return SetResult(
        name=case_set.name,
        accuracy=msgspec.structs.replace(accuracy, mape_interval=mape_interval),
        cases=cases,
        excluded=list(case_set.excluded),
        traffic=[
            entry
            for case, run in pairs
            if case.traffic is not None
            for entry in compare_traffic(
                case.id,
                case.traffic,
                [simulated_traffic(run), *([model(case)] if model is not None else [])],
            )
        ],
        interval_method=METHOD if any(interval is not None for interval in intervals) else "",
        clock_model=clock_model,
    )


def prediction(run: SimulatedRun, bound_us: float | None = None, bound_by: str = "") -> Prediction:
    """Return a run that has no measured counterpart, beside its latency bound where one is known."""
    return Prediction(
        name=run.name,
        preset=run.preset,
        shape=run.shape.describe(),
        log_source=run.log_source,
        simulated_us=run.latency_us,
        tensor_utilization=run.tensor_utilization,
        bound_us=bound_us,
        bound_by=bound_by,
    )


def log_comparison(run: SimulatedRun) -> LogComparison | None:
    """Return a run beside the duration of its log, or None when that is not known or zero."""
    if not run.log_us:
        return None
    return LogComparison(
        name=run.name,
        preset=run.preset,
        source=run.log_source,
        log_us=run.log_us,
        simulated_us=run.latency_us,
        difference=run.latency_us / run.log_us - 1,
    )


def to_csv(summary: Summary) -> str:
    """Return all cases as CSV: one line a case, excluded ones with empty figures and their reason."""
    columns = ["set", *CaseResult.__struct_fields__, "excluded_because"]
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    for entry in summary.sets:
        for case in entry.cases:
            writer.writerow([entry.name, *(_plain(getattr(case, field)) for field in CaseResult.__struct_fields__), ""])
        for left_out in entry.excluded:
            empty = [""] * (len(columns) - 3)
            writer.writerow([entry.name, left_out.id, *empty, left_out.reason])
    return buffer.getvalue()


def traffic_csv(summary: Summary) -> str:
    """Return measured beside modelled traffic as CSV: one line a case, quantity and model."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(["set", *TrafficComparison.__struct_fields__])
    for entry in summary.sets:
        writer.writerows([entry.name, *map(_plain, msgspec.structs.astuple(found))] for found in entry.traffic)
    return buffer.getvalue()


def to_text(result: SetResult) -> str:
    """Return a set as the table a person reads: cases, then the summary, then what was left out and why."""
    rows = [
        (
            case.id,
            f"B{case.batch} L{case.seqlen_q} S{case.seqlen_kv} H{case.heads_q}/{case.heads_kv} D{case.head_dim}",
            "causal" if case.causal else "full",
            case.preset,
            f"{case.effective_clock_mhz or case.sm_clock_mhz:.0f}{'' if case.clock_stated else '*'}",
            f"{case.measured_us:.2f}",
            f"{case.simulated_us:.2f}",
            percent(case.error),
        )
        for case in result.cases
    ]
    headers = ("case", "shape", "mask", "preset", "MHz", "measured us", "simulated us", "error")
    lines = [f"{result.name}: FA3 forward, measured against simulated", text_table(headers, rows, right=range(4, 8))]
    if not all(case.clock_stated for case in result.cases):
        lines.append("* clock not stated by the source: simulated at the preset's nominal clock")
    lines += clock_lines(result)
    lines += [f"{case.id}: {case.conversion}" for case in result.cases if case.conversion]
    lines += ["", accuracy_line(result.accuracy)]
    lines += rounding_lines(result)
    lines += interval_lines(result)
    lines += excluded_lines(result.excluded)
    lines += traffic_lines(result.traffic)
    return "\n".join(lines)


def clock_lines(result: SetResult) -> list[str]:
    """Return the clock model of a set: its name, and for a sustained clock each part's law."""
    if result.clock_model == "nominal":
        return ["clock model: nominal"]
    presets = dict.fromkeys(case.preset for case in result.cases if case.effective_clock_mhz is not None)
    if not presets:
        return ["clock model: sustained, which changes looped cases alone; there are none"]
    return [f"clock model: sustained, {preset}: {law_text(load_preset(preset).spec)}" for preset in presets]


def extras_text(summary: Summary) -> list[str]:
    """Return what is no comparison with a measurement: logs beside their simulation, and predictions."""
    parts = []
    if summary.logs:
        rows = [
            (entry.name, entry.source, f"{entry.log_us:.2f}", f"{entry.simulated_us:.2f}", percent(entry.difference))
            for entry in summary.logs
        ]
        headers = ("run", "log", "log us", "simulated us", "difference")
        title = "logs (longest CTA, without launch) and their simulation: no measurement and no part of any MAPE"
        parts.append(f"{title}\n{text_table(headers, rows, right=(2, 3, 4))}")
    if summary.predictions:
        parts.append(_predictions_text(summary.predictions))
    return parts


def _predictions_text(predictions: Sequence[Prediction]) -> str:
    """Return runs without a measurement, each beside its latency bound where one is known."""
    rows = [
        (
            entry.name,
            entry.shape,
            entry.preset,
            f"{entry.simulated_us:.2f}",
            "-" if entry.bound_us is None else f"{entry.bound_us:.2f}",
            entry.bound_by or "-",
            f"{entry.tensor_utilization:.1%}",
        )
        for entry in predictions
    ]
    headers = ("run", "shape", "preset", "simulated us", "bound us", "bound by", "tensor pipe")
    return f"predictions without a measurement\n{text_table(headers, rows, right=(3, 4, 6))}"


def excluded_lines(excluded: Sequence[Excluded]) -> list[str]:
    """Return one line for each reason: how many rows it leaves out, the first and the last of them."""
    by_reason: dict[str, list[str]] = {}
    for entry in excluded:
        by_reason.setdefault(entry.reason, []).append(entry.id)
    return [
        f"excluded {len(ids)}: {reason} ({ids[0]}{f' to {ids[-1]}' if len(ids) > 1 else ''})"
        for reason, ids in by_reason.items()
    ]


def accuracy_line(accuracy: Accuracy) -> str:
    """Return the summary of a set in one line."""
    if accuracy.mape is None or accuracy.max_ape is None or accuracy.bias is None or accuracy.mape_scaled is None:
        return f"no case compared; {accuracy.excluded} excluded"
    trend = "" if accuracy.length_trend is None else f", length trend {accuracy.length_trend:+.4f}"
    return (
        f"MAPE {accuracy.mape:.2%}, max {accuracy.max_ape:.2%}, bias {percent(accuracy.bias)}{trend}, "
        f"{accuracy.used} cases, {accuracy.excluded} excluded "
        f"(one free factor {accuracy.scale:.3f} leaves MAPE {accuracy.mape_scaled:.2%})"
    )


def _plain(value: object) -> object:
    """Return a field for CSV: switches as 0 and 1, an interval as `low;high`."""
    if isinstance(value, Interval):
        return f"{value.low};{value.high}"
    return int(value) if isinstance(value, bool) else value
