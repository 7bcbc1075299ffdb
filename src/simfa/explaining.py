"""Counters that explain why a change of the hardware makes a kernel slower or faster, in numbers and words."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from simfa.hardware import HardwareSpec

TENSOR_PIPE = "tensor_pipe"
LOADS = ("wait_k", "wait_v", "wait_q", "wait_other")
# A change of cycles or of a counter below this is none.
NEGLIGIBLE = 1e-3


class Observation(NamedTuple):
    """What one run counted (`stats.json`: `cycles`, `counters`, `stall_cycles`), and the parts that counted it."""

    cycles: int
    counters: Mapping[str, int]
    stall_cycles: Mapping[str, Mapping[str, int]]
    sms: int
    slices: int


Amount = Callable[[Observation], float]


class Counter(NamedTuple):
    """One figure: `amount` for each `per`, both summed over the runs it is taken of.

    `formula` says it in keys of `stats.json`; `means` is the figure in words.
    """

    means: str
    formula: str
    style: str
    amount: Amount
    per: Amount

    def value(self, runs: Iterable[Observation]) -> float | None:
        """Return the figure over some runs together, or None where there was nothing to count it for."""
        chosen = list(runs)
        per = sum(self.per(run) for run in chosen)
        return sum(self.amount(run) for run in chosen) / per if per else None

    def text(self, value: float | None) -> str:
        """Return a value of this figure for a sentence."""
        return "none" if value is None else self.style.format(value)


def observe(figures: Mapping[str, Any], hardware: HardwareSpec) -> Observation:
    """Return the observation of a run's figures (`RunResult.to_json()`) on `hardware`."""
    return Observation(
        figures["cycles"],
        figures["counters"],
        figures["stall_cycles"],
        hardware.gpu.sm_count,
        hardware.l2.slices,
    )


def _of(*names: str) -> Amount:
    return lambda run: sum(run.counters[name] for name in names)


_TILES = _of("tiles")
_L2_REQUESTS = _of("l2_read_requests", "l2_write_requests")


def _sm_cycles(run: Observation) -> float:
    return run.cycles * run.sms


def _pipe(*reasons: str) -> Amount:
    return lambda run: sum(run.stall_cycles[TENSOR_PIPE].get(reason, 0) for reason in reasons)


def _pipe_total(run: Observation) -> float:
    return sum(run.stall_cycles[TENSOR_PIPE].values())


def _consumers(run: Observation) -> list[Mapping[str, int]]:
    return [reasons for role, reasons in run.stall_cycles.items() if role not in ("producer", TENSOR_PIPE)]


COUNTERS: dict[str, Counter] = {
    "requests": Counter(
        "line requests of the TMA engines for a tile", "counters.requests / tiles", "{:,.0f}", _of("requests"), _TILES
    ),
    "l2_reads": Counter(
        "reads that reach L2 for a tile",
        "counters.l2_read_requests / tiles",
        "{:,.0f}",
        _of("l2_read_requests"),
        _TILES,
    ),
    "lrc_merges": Counter(
        "reads merged in the coalescer for a tile",
        "counters.lrc_merges / tiles",
        "{:,.0f}",
        _of("lrc_merges"),
        _TILES,
    ),
    "slice_imbalance": Counter(
        "requests of the busiest L2 slice over the mean slice",
        "counters.slice_requests_peak x slices / (l2_read_requests + l2_write_requests)",
        "{:.2f}",
        lambda run: run.counters["slice_requests_peak"] * run.slices,
        _L2_REQUESTS,
    ),
    "slice_wait": Counter(
        "cycles a request waits at its L2 slice",
        "counters.(staging_cycles + request_queue_cycles) / (l2_read_requests + l2_write_requests)",
        "{:,.0f}",
        _of("staging_cycles", "request_queue_cycles"),
        _L2_REQUESTS,
    ),
    "mshr_blocked": Counter(
        "share of time an L2 slice is held up because its MSHRs are taken",
        "counters.blocked_mshr_entries_cycles / (cycles x slices)",
        "{:.1%}",
        _of("blocked_mshr_entries_cycles"),
        lambda run: run.cycles * run.slices,
    ),
    "shadow_hits": Counter(
        "share of L2 reads answered by a near copy of a far line",
        "counters.l2_shadow_hits / l2_read_requests",
        "{:.1%}",
        _of("l2_shadow_hits"),
        _of("l2_read_requests"),
    ),
    "tma_limit": Counter(
        "share of time a TMA engine has a line to ask for and may not, its lines in flight being spent",
        "counters.tma_limit_cycles / (cycles x SMs)",
        "{:.1%}",
        _of("tma_limit_cycles"),
        _sm_cycles,
    ),
    "load_wait": Counter(
        "share of time the tensor pipe idles for a Q, K or V block",
        "stall_cycles.tensor_pipe.(wait_k + wait_v + wait_q + wait_other) / all",
        "{:.1%}",
        _pipe(*LOADS),
        _pipe_total,
    ),
    "cuda_contention": Counter(
        "share of consumers' time spent waiting for CUDA cores that another warpgroup uses",
        "stall_cycles.consumer*.cuda_contention / all",
        "{:.1%}",
        lambda run: sum(reasons.get("cuda_contention", 0) for reasons in _consumers(run)),
        lambda run: sum(sum(reasons.values()) for reasons in _consumers(run)),
    ),
    "cuda_busy": Counter(
        "cycles the shared CUDA cores work on a tile",
        "counters.cuda_busy_cycles / tiles",
        "{:,.0f}",
        _of("cuda_busy_cycles"),
        _TILES,
    ),
    "dram_bytes": Counter(
        "DRAM bytes for a tile",
        "counters.(memory_read_bytes + memory_write_bytes) / tiles",
        "{:,.0f}",
        _of("memory_read_bytes", "memory_write_bytes"),
        _TILES,
    ),
}


class Explanation(NamedTuple):
    """A sentence, the formula of the counter it cites, and that counter before and after."""

    sentence: str
    counter: str
    before: float | None
    after: float | None


def explain(
    before: Sequence[Observation], after: Sequence[Observation], counters: Sequence[str], means: Mapping[str, str]
) -> Explanation:
    """Return why the runs `after` took other cycles than the same cases in `before`.

    Of `counters` those that changed are cited, the one that changed most first (or one as unchanged); then the reason
    for which the tensor pipe spends most of the added, or saves most of the saved, cycles. `means` words the reasons of
    `stall_cycles`. Without counters the latter stands alone.
    """
    added = sum(run.cycles for run in after) / sum(run.cycles for run in before) - 1
    pipe = _pipe_change(before, after, means, slower=added > 0)
    clauses = []
    if abs(added) < NEGLIGIBLE:
        clauses.append("no effect")
    cited = _changed(before, after, counters)
    clauses += [_clause(*entry) for entry in cited]
    if abs(added) >= NEGLIGIBLE and pipe is not None:
        clauses.append(pipe.sentence)
    if cited:
        counter, old, new = cited[0]
        return Explanation("; ".join(clauses), counter.formula, old, new)
    if pipe is None:
        return Explanation("; ".join(clauses), "cycles", None, None)
    return pipe._replace(sentence="; ".join(clauses))


def _clause(counter: Counter, old: float | None, new: float | None) -> str:
    """Return one counter before and after, with its formula."""
    change = counter.text(new) if _change(old, new) < NEGLIGIBLE else f"{counter.text(old)} -> {counter.text(new)}"
    unchanged = " unchanged" if _change(old, new) < NEGLIGIBLE else ""
    return f"{counter.means}: {change}{unchanged} [{counter.formula}]"


_Cited = tuple[Counter, float | None, float | None]


def _changed(before: Sequence[Observation], after: Sequence[Observation], counters: Sequence[str]) -> list[_Cited]:
    """Return the counters that changed with both their values, largest relative change first, or the first of all."""
    found = [(COUNTERS[name], COUNTERS[name].value(before), COUNTERS[name].value(after)) for name in counters]
    changed = [entry for entry in found if _change(entry[1], entry[2]) >= NEGLIGIBLE]
    return sorted(changed, key=lambda entry: -_change(entry[1], entry[2])) or found[:1]


def _change(old: float | None, new: float | None) -> float:
    """Return how far two values of a counter lie apart, as a fraction of the larger one."""
    if old is None or new is None:
        return 0.0 if old is new else 1.0
    return abs(new - old) / max(abs(new), abs(old)) if new != old else 0.0


def _pipe_change(
    before: Sequence[Observation], after: Sequence[Observation], means: Mapping[str, str], *, slower: bool
) -> Explanation | None:
    """Return the reason whose tensor-pipe cycles grew (or shrank) most, as shares of all its cycles."""
    totals = [sum(_pipe_total(run) for run in runs) for runs in (before, after)]
    if not all(totals):
        return None
    reasons = sorted({reason for run in (*before, *after) for reason in run.stall_cycles[TENSOR_PIPE]} - {"busy"})
    cycles = {reason: [sum(_pipe(reason)(run) for run in runs) for runs in (before, after)] for reason in reasons}
    if not cycles:
        return None
    sign = 1 if slower else -1
    reason = max(reasons, key=lambda name: sign * (cycles[name][1] - cycles[name][0]))
    if sign * (cycles[reason][1] - cycles[reason][0]) <= 0:
        return None
    shares = [amount / total for amount, total in zip(cycles[reason], totals, strict=True)]
    place = f"stall_cycles.{TENSOR_PIPE}.{reason}"
    words = f"tensor pipe idle, its warpgroup {means.get(reason, reason)}"
    if reason == "drain":
        words = f"tensor pipe {means.get(reason, reason)}"
    return Explanation(f"{words}: {shares[0]:.1%} -> {shares[1]:.1%} [{place}]", place, *shares)
