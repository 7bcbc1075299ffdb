"""The analytical model as a sweep backend: fields of a point become hardware, kernel and call."""

from simfa.analytical.attention import Attention
from simfa.analytical.baselines import ideal_cache
from simfa.analytical.kernels import Kernel
from simfa.analytical.machine import kernel_with, resolve
from simfa.analytical.model import traffic
from simfa.analytical.sweep import Scalar, SweepPoint
from simfa.analytical.sweep_fields import ShapeFields, check_names, grouped, preset_of, workload_of


class _Workload(ShapeFields, forbid_unknown_fields=True):
    """Fields `workload.*`: the SHAPE flags, then what `Attention` adds to a plain shape."""

    value_dim: int | None = None
    window: int | None = None
    latent: bool | None = None
    lse: bool | None = None
    scale_bytes: int | None = None
    qk_bytes: int | None = None
    v_bytes: int | None = None
    o_bytes: int | None = None


_OWN_FIELDS = ("gpu", "policy", "name")


def evaluate(point: SweepPoint) -> dict[str, Scalar]:
    """Return the model's columns for a point, and what an ideal cache would say (`ideal_*`).

    Fields: `gpu`, `policy`, `name` (a label), `workload.*` (SHAPE flags and fields of `Attention`), `kernel.*` (fields
    of `Kernel` over the preset's kernel, and FA3's `version`), `hardware.*` (paths of the preset). Raises `SimfaError`
    for anything else.
    """
    fields = grouped(point, _OWN_FIELDS)
    machine = resolve(preset_of(point, fields))
    shape, further = workload_of(fields.workload, _Workload)
    attention = Attention.of(shape, **further)
    check_names("kernel", fields.kernel, (*Kernel.__struct_fields__, "version"))
    kernel = kernel_with(machine, attention, fields.kernel)
    answer = traffic(attention, machine, str(point.fields.get("policy", "capacity")), kernel)
    ideal = ideal_cache(attention, machine)
    return {
        "flops": answer.flops,
        "l2_bytes": answer.l2_bytes,
        "kv_head_bytes": answer.kv_head_bytes,
        "effective_l2_bytes": answer.effective_l2_bytes,
        "dram_ideal_bytes": answer.dram_ideal_bytes,
        "dram_bytes": answer.dram_bytes,
        "regime": answer.regime,
        "arithmetic_intensity": answer.arithmetic_intensity,
        "latency_bound_us": answer.latency_bound_us,
        "bound_by": answer.bound_by,
        "ideal_latency_us": ideal.latency_us,
    }
