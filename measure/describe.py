"""What was read, for people: formats, tools, GPU, kernels and what became of them, units, clock and cache policy."""

from collections import Counter
from collections.abc import Iterator

from simfa.measure.launch import MEASURED, Launch
from simfa.measure.reader import Measurements
from simfa.measure.selection import listing
from simfa.tables import text_table

_SHOWN_LAUNCHES = 20
_SHOWN_REASONS = 12


def describe(found: Measurements) -> str:
    """Return the text that `simfa ingest` prints without `--json`."""
    return "\n".join(_lines(found))


def _lines(found: Measurements) -> Iterator[str]:
    for source in found.sources:
        version = f" {source.tool_version}" if source.tool_version else ""
        yield (
            f"{source.file}: {source.format}, {source.tool}{version}, GPU {source.gpu or 'not named'}, "
            f"{source.launches} rows, {source.skipped_lines} lines outside its tables"
        )
    choice = found.selection
    yield (
        f"kernels (--kernel {choice.kernel or 'not given'}, helpers {'kept' if choice.helpers else 'left out'}, "
        f"first {choice.skip} launches skipped, median {'taken' if choice.median else 'not taken'}):"
    )
    yield listing(list(found.kernels))
    yield f"clock control: {_counts(found, 'clock_control')}; cache control: {_counts(found, 'cache_control')}"
    rounded = sorted({column for launch in found.launches for column in launch.quantisation})
    yield f"rounded by the export (intervals are kept): {', '.join(rounded) or 'nothing'}"
    yield ""
    yield from _table(found.launches)
    yield from _missing(found.launches)


def _missing(launches: tuple[Launch, ...]) -> Iterator[str]:
    """Yield why measured columns are empty: columns with one reason in as many launches stand in one line."""
    # Launches alike share one dictionary of reasons.
    shared = {id(launch.missing): launch.missing for launch in launches}
    counts = Counter(id(launch.missing) for launch in launches)
    reasons: Counter[tuple[str, str]] = Counter()
    for key, missing in shared.items():
        reasons.update({item: counts[key] for item in missing.items() if item[0] in MEASURED})
    groups: dict[tuple[str, int], list[str]] = {}
    for (column, why), count in sorted(reasons.items()):
        groups.setdefault((why, count), []).append(column)
    if groups:
        yield "missing:"
    for (why, count), columns in list(groups.items())[:_SHOWN_REASONS]:
        yield f"  in {count} of {len(launches)}: {', '.join(columns)}: {why}"


def _counts(found: Measurements, column: str) -> str:
    counts = Counter(getattr(launch, column) or "unknown" for launch in found.launches)
    return ", ".join(f"{value} ({count})" for value, count in sorted(counts.items()))


def _table(launches: tuple[Launch, ...]) -> Iterator[str]:
    titles = ("launch", "kernel", "grid", "duration us", "cycles", "SM MHz", "DRAM MB", "L2 MB", "L2 is", "flags")
    yield text_table(titles, [_row(launch) for launch in launches[:_SHOWN_LAUNCHES]], right=range(3, 8))
    if len(launches) > _SHOWN_LAUNCHES:
        yield f"and {len(launches) - _SHOWN_LAUNCHES} more; --json or -o has them all"


def _row(launch: Launch) -> tuple[str, ...]:
    return (
        launch.launch_id,
        (launch.kernel or "-")[:40],
        "x".join(str(size) for size in launch.grid) if launch.grid else "-",
        _scaled(launch.duration_ns, 1e3),
        "-" if launch.elapsed_cycles is None else f"{launch.elapsed_cycles:.0f}",
        _scaled(launch.sm_clock_hz, 1e6),
        _scaled(launch.dram_total_bytes, 1e6),
        _scaled(launch.l2_bytes, 1e6),
        launch.l2_definition or "-",
        ",".join(launch.flags),
    )


def _scaled(value: int | float | None, scale: float) -> str:
    return "-" if value is None else f"{value / scale:.3f}"
