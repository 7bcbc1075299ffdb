"""The accuracy document: sets of cases with their errors, as table, CSV and JSON."""

import csv
import io
from collections.abc import Sequence

from simfa.measure.accuracy import Comparison, summarize
from simfa.measure.cases import CaseSet, MeasuredCase
from simfa.measure.results import SimulatedRun
from simfa.summary import Accuracy, CaseResult, Excluded, LogComparison, Prediction, SetResult, Summary
from simfa.tables import text_table


def set_result(case_set: CaseSet, pairs: Sequence[tuple[MeasuredCase, SimulatedRun]]) -> SetResult:
    """Return the errors of a set from its simulated cases."""
    comparisons = [
        Comparison(id=case.id, measured_us=case.latency_us, simulated_us=run.latency_us, seqlen=case.shape.seqlen_kv)
        for case, run in pairs
    ]
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
            dtype=case.shape.dtype,
            batch=case.shape.batch,
            seqlen_q=case.shape.seqlen_q,
            seqlen_kv=case.shape.seqlen_kv,
            heads_q=case.shape.heads_q,
            heads_kv=case.shape.heads_kv,
            head_dim=case.shape.head_dim,
            causal=case.shape.causal,
            measured_us=case.latency_us,
            simulated_us=run.latency_us,
            error=comparison.error,
            cycles=run.cycles,
            tensor_utilization=run.tensor_utilization,
            source_url=case.source_url,
        )
        for (case, run), comparison in zip(pairs, comparisons, strict=True)
    ]
    return SetResult(
        name=case_set.name,
        accuracy=summarize(comparisons, len(case_set.excluded)),
        cases=cases,
        excluded=list(case_set.excluded),
    )


def prediction(run: SimulatedRun) -> Prediction:
    """Return a run that has no measured counterpart."""
    return Prediction(
        name=run.name,
        preset=run.preset,
        shape=run.shape.describe(),
        log_source=run.log_source,
        simulated_us=run.latency_us,
        tensor_utilization=run.tensor_utilization,
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


def to_text(result: SetResult) -> str:
    """Return a set as the table a person reads: cases, then the summary, then what was left out and why."""
    rows = [
        (
            case.id,
            f"B{case.batch} L{case.seqlen_q} S{case.seqlen_kv} H{case.heads_q}/{case.heads_kv} D{case.head_dim}",
            "causal" if case.causal else "full",
            case.preset,
            f"{case.sm_clock_mhz:.0f}{'' if case.clock_stated else '*'}",
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
    lines += ["", accuracy_line(result.accuracy)]
    lines += excluded_lines(result.excluded)
    return "\n".join(lines)


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
        rows = [
            (entry.name, entry.shape, entry.preset, f"{entry.simulated_us:.2f}", f"{entry.tensor_utilization:.1%}")
            for entry in summary.predictions
        ]
        headers = ("run", "shape", "preset", "simulated us", "tensor pipe")
        parts.append(f"predictions without a measurement\n{text_table(headers, rows, right=(3, 4))}")
    return parts


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


def percent(fraction: float) -> str:
    """Return a signed fraction as a percentage."""
    return f"{fraction:+.2%}"


def _plain(value: object) -> object:
    """Return a field for CSV: switches as 0 and 1."""
    return int(value) if isinstance(value, bool) else value
