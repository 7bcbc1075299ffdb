"""Intervals and traffic of a set, as the lines a person reads."""

from collections.abc import Sequence

from simfa.measure.accuracy import ErrorFigures
from simfa.summary import SetResult, TrafficComparison, traffic_gaps
from simfa.tables import text_table

FIGURE_HEADERS = ("MAPE", "max", "bias", "used")


def percent(fraction: float) -> str:
    """Return a signed fraction as a percentage."""
    return f"{fraction:+.2%}"


def figure_cells(figures: ErrorFigures) -> tuple[str, ...]:
    """Return the cells below `FIGURE_HEADERS`; `-` where there are no errors."""
    signs = zip((figures.mape, figures.max_ape, figures.bias), ("", "", "+"), strict=True)
    return *("-" if value is None else f"{value:{sign}.2%}" for value, sign in signs), str(figures.used)


def interval_lines(result: SetResult) -> list[str]:
    """Return the intervals of a set and their method, or nothing where no case has repeats."""
    if not result.interval_method:
        return []
    lines = [result.interval_method]
    if (mape := result.accuracy.mape_interval) is not None:
        lines.append(f"  MAPE {mape.low:.2%} to {mape.high:.2%}")
    lines += [
        f"  {case.id}: error {percent(case.error_interval.low)} to {percent(case.error_interval.high)}, "
        f"{case.repeats} launches"
        for case in result.cases
        if case.error_interval is not None
    ]
    return lines


def rounding_lines(result: SetResult) -> list[str]:
    """Return one line for the cases whose measured time the export rounded: how far that moves their errors at most."""
    parts = {
        case.id: max(abs(case.simulated_us / end - 1 - case.error) for end in case.measured_interval if end)
        for case in result.cases
        if case.measured_interval is not None
    }
    if not parts:
        return []
    worst = max(parts, key=lambda name: parts[name])
    return [
        f"the export rounded {len(parts)} of {len(result.cases)} measured times, which leaves up to "
        f"{parts[worst]:.2%} of error open ({worst})"
    ]


def traffic_lines(traffic: Sequence[TrafficComparison]) -> list[str]:
    """Return traffic that is compared as a table, and what is not compared as one line for each reason."""
    rows = [
        (
            entry.id,
            f"{entry.quantity.removesuffix('_bytes')}{f' ({entry.definition})' if entry.definition != 'dram' else ''}",
            entry.model,
            _megabytes(entry.measured_bytes),
            _megabytes(entry.modelled_bytes),
            percent(entry.error),
        )
        for entry in traffic
        if entry.error is not None
    ]
    headers = ("case", "traffic", "model", "measured MB", "modelled MB", "error")
    lines = ["", text_table(headers, rows, right=(3, 4, 5))] if rows else []
    lines += [
        f"{', '.join(gap.quantities)} not compared with {' and '.join(gap.models)}: {gap.reason} "
        f"({len(gap.ids)} case{'s' if len(gap.ids) > 1 else ''})"
        for gap in traffic_gaps(traffic)
    ]
    return lines


def _megabytes(value: float | None) -> str:
    return "-" if value is None else f"{value / 1e6:.2f}"
