"""Traffic, intensity and latency bounds of one attention call: `traffic`, and what the policies make of it together."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from simfa.analytical.attention import Attention
from simfa.analytical.bounds import Bounds, busiest_sm_scores, latency_bounds
from simfa.analytical.kernels import Kernel
from simfa.analytical.lru import simulate_lru
from simfa.analytical.machine import Machine, resolve
from simfa.analytical.masked import masked_refetched_bytes
from simfa.analytical.policies import POLICIES
from simfa.analytical.reuse import Reuse, fits, lockstep_passes, refetched_bytes
from simfa.errors import AnalyticalError
from simfa.frames import row_frame
from simfa.hardware import Preset
from simfa.kernel import ceil_div
from simfa.workload import AttentionShape

if TYPE_CHECKING:
    import pandas


class Traffic(msgspec.Struct, frozen=True, kw_only=True):
    """What the model says about one call: every intermediate, in bytes and operations; see `docs/analytical.md`.

    `l2_bytes` is what SMs ask for (Eq. 2); `l2_request_bytes` what reaches L2 after multicast. `dram_realistic_bytes`
    and `l2_to_dram_ratio` are Eq. 6 and 7, absent under a mask; `dram_bytes` and `l2_to_dram_ratio_regime` are the
    policy's. `kv_passes` is how often waves read a K/V head, on average (absent under a mask). `dirty_bytes`: O left in
    L2 at the end, known under `lru` only; what a profiler sees written is `profiled_write_bytes`.
    """

    gpu: str
    policy: str
    attention: Attention
    kernel: Kernel
    flops: int
    issued_flops: int
    l2_bytes: int
    l2_request_bytes: int
    kv_head_bytes: int
    effective_l2_bytes: int
    concurrent_ctas: int
    l2_fits: bool
    waves: int
    kv_passes: float | None
    dram_ideal_bytes: int
    dram_realistic_bytes: int | None
    dram_read_bytes: int
    dram_write_bytes: int
    dram_bytes: int
    dirty_bytes: int | None
    regime: str
    l2_to_dram_ratio: float | None
    l2_to_dram_ratio_regime: float
    l2_hit_rate: float
    arithmetic_intensity: float
    bounds: Bounds
    latency_bound_us: float
    bound_by: str

    def to_frame(self) -> "pandas.DataFrame":
        """Return a frame of one row, a column for each figure; those of call, kernel and bounds have dotted names."""
        return row_frame(self)


def traffic(
    call: AttentionShape | Attention,
    gpu: str | Preset | Machine = "h100-sxm",
    policy: str = "capacity",
    kernel: Kernel | None = None,
) -> Traffic:
    """Return the model's answer for one call on a GPU under a policy, with the preset's kernel unless one is given.

    Raises `AnalyticalError` for what a policy or kernel does not cover, `HardwareError` for an unknown preset.
    """
    attention, machine, kernel = _resolved(call, gpu, kernel)
    if policy not in POLICIES:
        raise AnalyticalError(f"policy {policy!r} is unknown; expected one of {', '.join(POLICIES)}")
    reuse = reuse_of(attention, kernel, machine.sm_count, machine.capacity(policy))
    refetched, dirty = _refetched(policy, attention, kernel, machine, reuse)
    cluster = kernel.cluster if machine.multicast else 1
    kv_demand = kernel.sequences(attention) * kernel.kv_rows(attention) * attention.kv_row_bytes
    partials = _partial_bytes(attention, kernel)
    l2 = attention.q_bytes + attention.output_bytes + kv_demand + partials
    l2_requests = attention.q_bytes + attention.output_bytes + kv_demand // cluster + partials
    # Partial results of a split live between two kernels; they reach DRAM only when L2 cannot hold them.
    spilled = partials if partials // 2 > reuse.l2_bytes else 0
    ideal = attention.q_bytes + attention.kv_bytes + attention.output_bytes
    read = attention.q_bytes + attention.kv_bytes + refetched + spilled // 2
    write = attention.output_bytes + spilled // 2
    wave_count = ceil_div(reuse.group_tiles, reuse.concurrent)
    masked = is_masked(attention)
    realistic = None if masked else ideal + attention.kv_bytes * (wave_count - 1)
    ok = refetched == 0 if masked else fits(policy, reuse)
    bounds = latency_bounds(
        machine,
        busiest_sm_scores(attention, kernel, machine.sm_count),
        2 * (attention.head_dim + attention.value_dim),
        l2_requests,
        read + write,
    )
    return Traffic(
        gpu=machine.name,
        policy=policy,
        attention=attention,
        kernel=kernel,
        flops=attention.flops,
        issued_flops=kernel.issued_flops(attention),
        l2_bytes=l2,
        l2_request_bytes=l2_requests,
        kv_head_bytes=attention.kv_group_bytes,
        effective_l2_bytes=reuse.l2_bytes,
        concurrent_ctas=reuse.concurrent,
        l2_fits=bool(ok),
        waves=wave_count,
        kv_passes=None if masked else lockstep_passes(reuse).total / reuse.groups,
        dram_ideal_bytes=ideal,
        dram_realistic_bytes=realistic,
        dram_read_bytes=read,
        dram_write_bytes=write,
        dram_bytes=read + write,
        dirty_bytes=dirty,
        regime=regime_name(policy, bool(ok), refetched),
        l2_to_dram_ratio=None if realistic is None else l2 / realistic,
        l2_to_dram_ratio_regime=l2 / (read + write),
        l2_hit_rate=1 - read / l2,
        arithmetic_intensity=attention.flops / l2,
        bounds=bounds,
        latency_bound_us=bounds.latency_us,
        bound_by=bounds.bound_by,
    )


def regime_name(policy: str, fitting: bool, refetched: int) -> str:
    """Return `ideal` (all read once), `partial` (only waves with two groups read again) or `realistic`.

    Under `paper` Eq. 4 alone decides, even where Eq. 6 equals Eq. 3.
    """
    if policy == "paper":
        return "ideal" if fitting else "realistic"
    if not refetched:
        return "ideal"
    return "partial" if fitting else "realistic"


def is_masked(attention: Attention) -> bool:
    """Whether a mask hides any score: a causal call with one query row sees everything."""
    return attention.causal and (attention.seqlen_q > 1 or attention.window is not None)


def reuse_of(attention: Attention, kernel: Kernel, sm_count: int, l2_bytes: int) -> Reuse:
    """Return the amounts that decide about reuse; CTAs that split K/V read a share of it each."""
    groups = attention.batch * attention.heads_kv * kernel.splits
    tiles = kernel.tiles_per_group(attention)
    concurrent = sm_count * kernel.ctas_per_sm
    tile_bytes = kernel.tile_m * (attention.q_row_bytes + attention.o_row_bytes)
    return Reuse(
        groups=groups,
        group_tiles=tiles,
        concurrent=concurrent,
        kv_bytes=attention.kv_group_bytes // kernel.splits,
        wave_bytes=min(concurrent, groups * tiles) * tile_bytes,
        l2_bytes=l2_bytes,
    )


def _resolved(
    call: AttentionShape | Attention, gpu: str | Preset | Machine, kernel: Kernel | None
) -> tuple[Attention, Machine, Kernel]:
    attention = Attention.of(call) if isinstance(call, AttentionShape) else call
    machine = resolve(gpu)
    return attention, machine, machine.default_kernel(attention) if kernel is None else kernel


def _refetched(
    policy: str, attention: Attention, kernel: Kernel, machine: Machine, reuse: Reuse
) -> tuple[int, int | None]:
    """Return K/V bytes read again from DRAM, and O bytes left dirty where the policy knows."""
    masked = is_masked(attention)
    if kernel.splits > 1 and (masked or policy == "lru"):
        raise AnalyticalError(f"split K/V is not modelled under {'a mask' if masked else 'policy lru'}; use --splits 1")
    if masked and kernel.schedule == "static":
        raise AnalyticalError(
            "a mask in static order is not modelled: tiles of unequal length drift apart without bound; "
            "use schedule lpt_l2_sections or single_tile"
        )
    if policy == "paper":
        _refuse_paper(attention, kernel)
    if policy == "lru":
        result = simulate_lru(attention, kernel, reuse.l2_bytes, machine.sm_count)
        return result.refetched_bytes, result.dirty_bytes
    if masked:
        return masked_refetched_bytes(policy, attention, kernel, reuse.concurrent, reuse.l2_bytes), None
    return int(refetched_bytes(policy, reuse, kernel.kv_order == "sawtooth")), None


def _refuse_paper(attention: Attention, kernel: Kernel) -> None:
    """Raise where Eq. 1-12 do not cover the call."""
    if not attention.is_plain:
        raise AnalyticalError(
            "policy 'paper' is Eq. 1-12 as printed: no mask, one head dimension, one element size, no latent K/V; "
            "use capacity, lru or random"
        )
    if kernel.pack_gqa or kernel.splits > 1:
        raise AnalyticalError("policy 'paper' has no GQA packing and no split K/V; use capacity, lru or random")


def _partial_bytes(attention: Attention, kernel: Kernel) -> int:
    """Bytes that split K/V adds: FP32 partial O and log-sum-exp of every split, written and read back."""
    if kernel.splits == 1:
        return 0
    rows = attention.batch * attention.heads_q * attention.seqlen_q
    return 2 * 4 * kernel.splits * rows * (attention.value_dim + 1)


def policy_span(
    call: AttentionShape | Attention, gpu: str | Preset | Machine = "h100-sxm", kernel: Kernel | None = None
) -> dict[str, Traffic]:
    """Return the answer under every policy that covers the call: their spread is the model's uncertainty."""
    answers = {}
    for policy in POLICIES:
        try:
            answers[policy] = traffic(call, gpu, policy, kernel)
        except AnalyticalError:
            continue
    return answers


def profiled_write_bytes(output_bytes: int, dirty_bytes: int) -> int:
    """Return DRAM writes that a profiler counts when the kernel starts cold and L2 is not flushed at its end."""
    return max(0, output_bytes - dirty_bytes)


class BatchTraffic(msgspec.Struct, frozen=True, kw_only=True):
    """Sums over the sequences of a ragged batch."""

    sequences: int
    flops: int
    l2_bytes: int
    dram_ideal_bytes: int
    dram_bytes: int


def batch_traffic(
    calls: Iterable[AttentionShape | Attention],
    gpu: str | Preset | Machine = "h100-sxm",
    policy: str = "capacity",
    **changes: Any,
) -> BatchTraffic:
    """Return the summed traffic of sequences of different lengths, each priced by itself; `changes` as in `traffic`."""
    answers = [traffic(call, gpu, policy, **changes) for call in calls]
    if not answers:
        raise AnalyticalError("the batch is empty; expected at least one sequence")
    return BatchTraffic(
        sequences=len(answers),
        flops=sum(answer.flops for answer in answers),
        l2_bytes=sum(answer.l2_bytes for answer in answers),
        dram_ideal_bytes=sum(answer.dram_ideal_bytes for answer in answers),
        dram_bytes=sum(answer.dram_bytes for answer in answers),
    )
