"""What `simfa analytical` prints for one call."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from simfa.analytical.baselines import Baseline
from simfa.analytical.bounds import RESOURCES
from simfa.analytical.equations import long_sequence
from simfa.analytical.model import Traffic
from simfa.files import json_bytes
from simfa.hardware import Preset
from simfa.tables import text_table

# Preset values that the closed forms read; what is assumed or calibrated among them is printed.
_USED_PATHS = (
    "gpu.sm_count",
    "gpu.sm_clock_hz",
    "tensor_core.flop_per_cycle",
    "cuda_core.exp_per_cycle",
    "l2.capacity_bytes",
    "l2.slices",
    "l2.bytes_per_cycle_per_slice",
    "memory.peak_bytes_per_s",
    "grid.launch_ns",
    "analytical.kernel",
    "analytical.paper_l2_fraction",
    "analytical.effective_l2_fraction",
)


def json_text(answer: Traffic, span: Mapping[str, Traffic], baselines: Sequence[Baseline]) -> str:
    """Return the answer, DRAM bytes by policy and their span, and baselines, as JSON with sorted keys."""
    facts: dict[str, Any] = msgspec.to_builtins(answer)
    facts["bounds"] = answer.bounds._asdict()
    facts["dram_bytes_by_policy"] = {policy: other.dram_bytes for policy, other in span.items()}
    facts["dram_bytes_low"], facts["dram_bytes_high"] = _extremes(answer, span)
    facts["baselines"] = [baseline._asdict() for baseline in baselines]
    return json_bytes(facts).decode().rstrip("\n")


def report_text(
    answer: Traffic, span: Mapping[str, Traffic], baselines: Sequence[Baseline], preset: Preset | None = None
) -> str:
    """Return the human table."""
    kernel, attention = answer.kernel, answer.attention
    lines = [
        attention.describe(),
        f"{answer.gpu}, {kernel.name} tile {kernel.tile_m} x {kernel.tile_n}, {kernel.ctas_per_sm} CTA/SM, "
        f"{kernel.schedule}, {kernel.kv_order}"
        + (", packed heads" if kernel.pack_gqa else "")
        + (f", {kernel.splits} splits" if kernel.splits > 1 else "")
        + f"; policy {answer.policy}",
        "",
        text_table(["quantity", "value", "note"], _rows(answer)),
        "",
        _policies(answer, span),
    ]
    if baselines:
        rows = [[other.name, _bytes(other.dram_bytes), f"{other.latency_us:.2f} us"] for other in baselines]
        lines += ["", text_table(["baseline", "DRAM", "latency"], rows)]
    doubtful = [] if preset is None else _doubtful(preset)
    if doubtful:
        lines += ["", "Assumed or calibrated values used: " + ", ".join(doubtful)]
    return "\n".join(lines)


def _rows(answer: Traffic) -> list[list[str]]:
    attention = answer.attention
    passes = "" if answer.kv_passes is None else f"; {answer.kv_passes:.2f} passes with waves that run on"
    rows = [
        ["FLOPs", f"{answer.flops / 1e12:.3f} TFLOP", f"{answer.issued_flops / 1e12:.3f} issued by whole tiles"],
        ["L2 demand", _bytes(answer.l2_bytes), f"{_bytes(answer.l2_request_bytes)} after multicast"],
        ["K+V of a head", _bytes(answer.kv_head_bytes), f"effective L2 {_bytes(answer.effective_l2_bytes)}"],
        ["waves a K/V head", str(answer.waves), f"Eq. 5{passes}"],
        ["DRAM, ideal", _bytes(answer.dram_ideal_bytes), "every tensor once"],
    ]
    if answer.dram_realistic_bytes is not None:
        rows.append(["DRAM, Eq. 6", _bytes(answer.dram_realistic_bytes), "K/V in every wave"])
    reads = f"read {_bytes(answer.dram_read_bytes)}, write {_bytes(answer.dram_write_bytes)}"
    if answer.dirty_bytes is not None:
        reads += f" ({_bytes(answer.dirty_bytes)} still in L2 at the end)"
    rows.append([f"DRAM, {answer.policy}", _bytes(answer.dram_bytes), f"{answer.regime}; {reads}"])
    rows.append(["L2 / DRAM", f"{answer.l2_to_dram_ratio_regime:.2f}", _ratio_note(answer)])
    rows.append(["L2 hit rate", f"{answer.l2_hit_rate:.2%}", "1 - DRAM reads / L2 demand"])
    rows.append(["intensity", f"{answer.arithmetic_intensity:.2f} FLOP/B", "FLOPs / L2 demand"])
    shares = ", ".join(f"{name} {value:.2f}" for name, value in zip(RESOURCES, answer.bounds, strict=True))
    rows.append(["latency bound", f"{answer.latency_bound_us:.2f} us", f"{answer.bound_by}; us: {shares}"])
    if attention.causal and attention.seqlen_q > 1:
        rows.append(["mask", "causal", "exact triangle; Eq. 5-7 are for the full mask"])
    return rows


def _ratio_note(answer: Traffic) -> str:
    if answer.l2_to_dram_ratio is None:
        return "against the policy's DRAM bytes"
    attention = answer.attention
    holds = long_sequence(
        wave_count=answer.waves,
        seqlen_q=attention.seqlen_q,
        seqlen_kv=attention.seqlen_kv,
        group_size=attention.group_size,
    )
    limit = f"{answer.concurrent_ctas} {'is near' if holds else 'is not near'}"
    return f"Eq. 7 (against Eq. 6) {answer.l2_to_dram_ratio:.2f}; its limit, Eq. 10: {limit}"


def _policies(answer: Traffic, span: Mapping[str, Traffic]) -> str:
    low, high = _extremes(answer, span)
    each = ", ".join(f"{policy} {_bytes(other.dram_bytes)}" for policy, other in span.items())
    width = "no spread" if low == high else f"uncertainty {_bytes(low)} to {_bytes(high)} ({high / low:.2f}x)"
    return f"DRAM by policy: {each}; {width}"


def _extremes(answer: Traffic, span: Mapping[str, Traffic]) -> tuple[int, int]:
    values = [answer.dram_bytes, *(other.dram_bytes for other in span.values())]
    return min(values), max(values)


def _doubtful(preset: Preset) -> list[str]:
    return [
        f"{path} ({preset.provenance[path].status})"
        for path in _USED_PATHS
        if preset.provenance[path].status in ("assumed", "calibrated")
    ]


def _bytes(count: float) -> str:
    """Return bytes in decimal units, exact below a thousand."""
    for unit, scale in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= scale:
            return f"{count / scale:.3f} {unit}"
    return f"{count:.0f} B"
