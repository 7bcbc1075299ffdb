"""The accuracy document `summary.json`: written by `simfa validate`, read by `simfa report`.

Errors are fractions; signs are simulated minus measured.
"""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec


class Interval(NamedTuple):
    """The ends of an interval: of confidence (`interval_method` of the set says how made), or of rounding."""

    low: float
    high: float


class Excluded(msgspec.Struct, frozen=True):
    """A measured row that no error is computed for, and why."""

    id: str
    reason: str


class Accuracy(msgspec.Struct, frozen=True, kw_only=True):
    """Errors of a set of cases; a figure is None where too few cases define it.

    `mape` and `max_ape` are the mean and the largest APE, `bias` the mean signed error. `length_trend` is the slope of
    ln(simulated / measured) against ln(sequence length): 0 when the model grows with length as hardware does.
    `scale` is the geometric mean of measured / simulated and `mape_scaled` the MAPE left after multiplying by it: what
    one free factor, such as an unknown clock, would explain. `mape_interval` holds where every case has repeats.
    """

    used: int
    excluded: int
    mape: float | None
    max_ape: float | None
    bias: float | None
    length_trend: float | None
    scale: float | None
    mape_scaled: float | None
    mape_interval: Interval | None = None


class CaseResult(msgspec.Struct, frozen=True, kw_only=True):
    """One measured case beside its simulation; `error` is the signed fraction simulated / measured - 1.

    `effective_clock_mhz` is the sustained clock of the cycles in `simulated_us`, None at the clock that was simulated.
    `measured_us` is the median of `repeats` launches, and lies in `measured_interval` where an export rounded.
    `compared` is `latency`, or `cycles` where clocks differ: both times are then SM cycles at the measured clock, and
    `conversion` says how they were made.
    """

    id: str
    source_id: str
    gpu: str
    preset: str
    preset_sha256: str
    kernel_version: str
    sm_clock_mhz: float
    clock_stated: bool
    launches: str
    dtype: str
    batch: int
    seqlen_q: int
    seqlen_kv: int
    heads_q: int
    heads_kv: int
    head_dim: int
    causal: bool
    measured_us: float
    simulated_us: float
    error: float
    cycles: int
    tensor_utilization: float
    source_url: str
    repeats: int = 1
    error_interval: Interval | None = None
    compared: str = "latency"
    conversion: str = ""
    measured_interval: Interval | None = None
    effective_clock_mhz: float | None = None


class TrafficComparison(msgspec.Struct, frozen=True, kw_only=True):
    """One measured quantity of traffic beside one model (`simulator` or `analytical`).

    `definition` says what `l2_bytes` counts (`sm_side`, `lts_from_sm`, `lts_all`), or is `dram`. `error` is the signed
    fraction modelled / measured - 1. What is not compared has neither, and its reason in `not_compared`.
    `measured_interval` is what the export's rounding left open, in bytes.
    """

    id: str
    model: str
    quantity: str
    definition: str
    measured_bytes: float | None
    modelled_bytes: int | None
    error: float | None
    not_compared: str
    measured_interval: Interval | None = None


class TrafficGap(NamedTuple):
    """Quantities that are not compared with some models, for one reason, in the cases `ids`."""

    quantities: tuple[str, ...]
    models: tuple[str, ...]
    reason: str
    ids: tuple[str, ...]


def traffic_gaps(traffic: Sequence[TrafficComparison]) -> list[TrafficGap]:
    """Return what is not compared: first models with one reason joined, then quantities."""
    ids: dict[tuple[str, str, str], list[str]] = {}
    for entry in traffic:
        if entry.error is None:
            ids.setdefault((entry.quantity, entry.model, entry.not_compared), []).append(entry.id)
    models: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    for (quantity, model, reason), found in ids.items():
        models.setdefault((quantity, reason, tuple(found)), []).append(model)
    quantities: dict[tuple[tuple[str, ...], str, tuple[str, ...]], list[str]] = {}
    for (quantity, reason, cases), who in models.items():
        quantities.setdefault((tuple(who), reason, cases), []).append(quantity)
    return [TrafficGap(tuple(what), who, reason, cases) for (who, reason, cases), what in quantities.items()]


class SetResult(msgspec.Struct, frozen=True, kw_only=True):
    """One set: its accuracy, its cases, and the rows left out."""

    name: str
    accuracy: Accuracy
    cases: list[CaseResult]
    excluded: list[Excluded]
    traffic: list[TrafficComparison] = []
    interval_method: str = ""
    clock_model: str = "nominal"


class LogComparison(msgspec.Struct, frozen=True, kw_only=True):
    """A log's own duration beside the simulation of that log; never part of a MAPE.

    `source` is `synthetic`, whose duration is a timing model's, so that agreement shows self-consistency only, or
    `captured`, whose duration includes what the probes cost. `difference` is the fraction simulated / log - 1.
    """

    name: str
    preset: str
    source: str
    log_us: float
    simulated_us: float
    difference: float


class Prediction(msgspec.Struct, frozen=True, kw_only=True):
    """A run without any measurement to compare with.

    `bound_us` is the closed forms' latency bound, the preset's launch included, and `bound_by` the resource that sets
    it; None where the run's preset is not a shipped one.
    """

    name: str
    preset: str
    shape: str
    log_source: str
    simulated_us: float
    tensor_utilization: float
    bound_us: float | None = None
    bound_by: str = ""


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """What `summary.json` holds."""

    tool_version: str
    sets: list[SetResult]
    logs: list[LogComparison] = []
    predictions: list[Prediction] = []
