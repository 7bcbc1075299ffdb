"""Measured traffic beside modelled traffic: like with like by definition, and what is not compared with its reason."""

from collections.abc import Mapping, Sequence

import msgspec

from simfa.summary import Interval, TrafficComparison

TRAFFIC = ("l2_bytes", "dram_read_bytes", "dram_write_bytes", "dram_total_bytes")
LTS_ALL = (
    "lts_all counts the lookups of every source, also between the L2 halves and of the cache flush; no model has them"
)


class MeasuredTraffic(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes of one case, medians over its launches; what is `None` has its reason in `missing`.

    `rounding` holds, by column, the interval that the median lies in where the export rounded.
    """

    l2_bytes: float | None
    l2_definition: str
    dram_read_bytes: float | None
    dram_write_bytes: float | None
    dram_total_bytes: float | None
    cache_control: str
    missing: dict[str, str]
    rounding: dict[str, tuple[float, float]] = {}


class ModelTraffic(msgspec.Struct, frozen=True, kw_only=True):
    """What one model says, by definition: bytes, or the reason why it has no such quantity.

    `sm_side` is what SMs and L2 exchange before requests merge (the paper's M_L2), `lts_from_sm` what reaches the
    slices after multicast and coalescing; DRAM bytes are those of a launch that starts with cold caches and leaves
    written lines in L2.
    """

    model: str
    sm_side: int | str
    lts_from_sm: int | str
    dram_read_bytes: int | str
    dram_write_bytes: int | str
    dram_total_bytes: int | str


def without(model: str, reason: str) -> ModelTraffic:
    """Return a model that says nothing, for one reason."""
    return ModelTraffic(
        model=model,
        sm_side=reason,
        lts_from_sm=reason,
        dram_read_bytes=reason,
        dram_write_bytes=reason,
        dram_total_bytes=reason,
    )


def compare_traffic(case_id: str, measured: MeasuredTraffic, models: Sequence[ModelTraffic]) -> list[TrafficComparison]:
    """Return each measured quantity beside each model, compared or with the reason why not."""
    return [_compare(case_id, column, measured, model) for column in TRAFFIC for model in models]


def _compare(case_id: str, column: str, measured: MeasuredTraffic, model: ModelTraffic) -> TrafficComparison:
    value: float | None = getattr(measured, column)
    definition = (measured.l2_definition or "none") if column == "l2_bytes" else "dram"
    modelled = None
    reason = _refusal(column, value, measured)
    if not reason:
        found: int | str = getattr(model, definition if column == "l2_bytes" else column)
        if isinstance(found, str):
            reason = found
        else:
            modelled = found
    return TrafficComparison(
        id=case_id,
        model=model.model,
        quantity=column,
        definition=definition,
        measured_bytes=value,
        modelled_bytes=modelled,
        error=None if modelled is None or not value else modelled / value - 1,
        not_compared=reason,
        measured_interval=None
        if value is None or column not in measured.rounding
        else Interval(*measured.rounding[column]),
    )


def _refusal(column: str, value: float | None, measured: MeasuredTraffic) -> str:
    """Return why a measured quantity is like nothing that a model has, or nothing."""
    if value is None:
        return f"not measured: {measured.missing.get(column, 'no reason given')}"
    if value == 0:
        return "0 bytes measured: there is no relative error"
    if column == "l2_bytes":
        known: Mapping[str, str] = {"sm_side": "", "lts_from_sm": "", "lts_all": LTS_ALL}
        return known.get(measured.l2_definition, f"l2_definition {measured.l2_definition!r} is unknown")
    if measured.cache_control != "all":
        return f"the models start with cold caches; this launch had cache control {measured.cache_control}"
    return ""
