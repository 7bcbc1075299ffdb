"""From the counters of one launch to its columns: the best counter for each, its interval, or why there is none."""

from collections.abc import Mapping
from decimal import Decimal
from typing import NamedTuple

from simfa.measure.metric_table import ANY, CHECKS, COUNTERS, REQUESTS, UNIFIED, Counter, Term
from simfa.measure.quantity import Absent, Number, Reading, plain, product, total

Cells = Mapping[str, Reading | Absent]

# byte/s x ns
_RATE_TIMES_NS = -9
_SLACK = Decimal("1.01")


class Columns(NamedTuple):
    """What the counters of one launch give: values, intervals, the counters used, flags, and reasons for the rest."""

    values: dict[str, Number | str]
    quantisation: dict[str, tuple[Number, Number]]
    counters: dict[str, str]
    flags: tuple[str, ...]
    reasons: dict[str, str]


def agree(readings: list[Reading | Absent]) -> Reading | Absent:
    """Return the one value that several cells of one metric stand for: the most precise of them.

    Cells that cannot stand for the same value (their intervals do not overlap) give `Absent`; nothing is averaged,
    summed or overwritten.
    """
    values = sorted({cell for cell in readings if isinstance(cell, Reading)}, key=lambda r: (r.high - r.low, r.value))
    if not values:
        return min(readings)
    best = values[0]
    for other in values[1:]:
        if other.dimension != best.dimension or other.low > best.high or other.high < best.low:
            shown = ", ".join(str(plain(reading.value)) for reading in values[:4])
            return Absent(f"exported with different values for one launch: {shown}")
    return best


def columns(cells: Cells, memory: str | None) -> Columns:
    """Return the columns that `cells` (counter spelling: reading in base units) fill on a chip with that `memory`.

    `memory` is `metric_table.UNIFIED` or `DEVICE`, or `None` where the chip is unknown: counters that mean DRAM
    traffic on one kind only are then left unused.
    """
    values: dict[str, Number | str] = {}
    readings: dict[str, Reading] = {}
    intervals: dict[str, tuple[Number, Number]] = {}
    used: dict[str, str] = {}
    flags: list[str] = []
    tried: dict[str, list[str]] = {}

    def put(column: str, reading: Reading, formula: str) -> None:
        readings[column] = reading
        values[column] = plain(reading.value)
        used[column] = formula
        if reading.low != reading.high:
            intervals[column] = (plain(reading.low), plain(reading.high))

    for counter in COUNTERS:
        if counter.column in readings:
            continue
        if counter.column == "dram_total_bytes" and {"dram_read_bytes", "dram_write_bytes"} <= readings.keys():
            parts = [(Decimal(1), readings[f"dram_{way}_bytes"]) for way in ("read", "write")]
            put("dram_total_bytes", total(parts, "bytes"), f"{used['dram_read_bytes']} + {used['dram_write_bytes']}")
            continue
        attempt = tried.setdefault(counter.column, [])
        if counter.memory not in (ANY, memory):
            if all(name in cells for term in counter.terms for name in term.names):
                attempt.append(_wrong_memory(counter, memory))
            continue
        terms = _terms(counter, cells, attempt)
        if terms is None:
            continue
        if counter.rate:
            (_, rate), (_, duration) = terms
            reading = product(rate, duration, _RATE_TIMES_NS, "bytes")
        else:
            reading = total(terms, terms[0][1].dimension)
        if reading.value < 0:
            attempt.append(f"{counter.terms[0].names[0]}: what is taken off it exceeds it")
            continue
        put(counter.column, reading, _formula(counter, cells))
        flags.extend(counter.flags)
        if counter.definition:
            values["l2_definition"] = counter.definition
            if len(terms) < len(counter.terms):
                flags.append("l2_distributed_shared_memory_not_taken_off")
    if not _consistent(cells, readings.get("duration_ns")):
        flags.append("bytes_disagree_with_rate")
    reasons = {column: _reason(column, tried.get(column, [])) for column in REQUESTS if column not in readings}
    return Columns(values, intervals, used, tuple(flags), reasons)


def _consistent(cells: Cells, duration: Reading | None) -> bool:
    """Return whether bytes equal rate times duration within 1 % and rounding, wherever all three are there."""
    for bytes_name, rate_name in CHECKS:
        amount, rate = cells.get(bytes_name), cells.get(rate_name)
        if duration is None or not isinstance(amount, Reading) or not isinstance(rate, Reading):
            continue
        expected = product(rate, duration, _RATE_TIMES_NS, "bytes")
        if amount.low > expected.high * _SLACK or amount.high * _SLACK < expected.low:
            return False
    return True


def _terms(counter: Counter, cells: Cells, attempt: list[str]) -> list[tuple[Decimal, Reading]] | None:
    """Return factor and reading of each term, or `None` (with the cause in `attempt`) where a needed one is missing."""
    found: list[tuple[Decimal, Reading]] = []
    complete = True
    for term in counter.terms:
        reading = _reading(term, cells, attempt)
        if reading is not None:
            found.append((Decimal(term.factor), reading))
        elif not term.optional:
            complete = False
    return found if complete else None


def _reading(term: Term, cells: Cells, attempt: list[str]) -> Reading | None:
    for name in term.names:
        cell = cells.get(name)
        if isinstance(cell, Reading) and cell.dimension == term.dimension:
            return cell
        if isinstance(cell, Absent) and not term.optional:
            attempt.append(f"{name}: {cell.reason}")
    return None


def _formula(counter: Counter, cells: Cells) -> str:
    """Return how the value was made, such as `32 x lts__t_sectors_srcunit_tex.sum`."""
    text = ""
    for term in counter.terms:
        name = next((name for name in term.names if isinstance(cells.get(name), Reading)), None)
        if name is None:
            continue
        part = name if abs(term.factor) == 1 else f"{abs(term.factor)} x {name}"
        joint = " x " if counter.rate else (" - " if term.factor < 0 else " + ")
        text = f"{text}{joint}{part}" if text else part
    return text


def _wrong_memory(counter: Counter, memory: str | None) -> str:
    name = counter.terms[0].names[0]
    if memory is None:
        chips = "GB10, Thor and Orin" if counter.memory == UNIFIED else "GPUs with device memory"
        return f"{name} is DRAM traffic on {chips} only and the GPU is unknown; say it with --gpu"
    return f"{name} is not DRAM traffic on this GPU"


def _reason(column: str, attempt: list[str]) -> str:
    if attempt:
        return "; ".join(dict.fromkeys(attempt))
    return f"not collected; ask ncu for --metrics {REQUESTS[column]}"
