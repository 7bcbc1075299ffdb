"""The analytical model as a sweep backend: fields of a point become hardware, kernel and call."""

import difflib
import functools
import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import click
import msgspec

from simfa.analytical.attention import Attention
from simfa.analytical.baselines import ideal_cache
from simfa.analytical.kernels import Kernel
from simfa.analytical.machine import Machine, kernel_with, machine_of
from simfa.analytical.model import traffic
from simfa.analytical.sweep import Scalar, SweepPoint
from simfa.errors import AnalyticalError
from simfa.hardware import load_preset
from simfa.options import shape_from_flags


class _Workload(msgspec.Struct, forbid_unknown_fields=True):
    """Fields `workload.*`: the SHAPE flags, then what `Attention` adds to a plain shape."""

    model: str | None = None
    seqlen: int | None = None
    batch: int | None = None
    seqlen_q: int | None = None
    seqlen_kv: int | None = None
    heads_q: int | None = None
    heads_kv: int | None = None
    head_dim: int | None = None
    causal: bool = False
    dtype: str = "fp16"
    value_dim: int | None = None
    window: int | None = None
    latent: bool | None = None
    lse: bool | None = None
    scale_bytes: int | None = None
    qk_bytes: int | None = None
    v_bytes: int | None = None
    o_bytes: int | None = None


_SHAPE_FIELDS = tuple(inspect.signature(shape_from_flags).parameters)
_OWN_FIELDS = ("gpu", "policy", "name")


def evaluate(point: SweepPoint) -> dict[str, Scalar]:
    """Return the model's columns for a point, and what an ideal cache would say (`ideal_*`).

    Fields: `gpu`, `policy`, `name` (a label), `workload.*` (SHAPE flags and fields of `Attention`), `kernel.*` (fields
    of `Kernel` over the preset's kernel, and FA3's `version`), `hardware.*` (paths of the preset). Raises `SimfaError`
    for anything else.
    """
    gpu, policy = str(point.fields.get("gpu", "h100-sxm")), str(point.fields.get("policy", "capacity"))
    groups: dict[str, dict[str, Any]] = {"workload": {}, "kernel": {}, "hardware": {}}
    for name, value in point.fields.items():
        group, _, field = name.partition(".")
        if group in groups and field:
            groups[group][field] = value
        elif name not in _OWN_FIELDS:
            raise AnalyticalError(f"sweep field {name!r} is unknown; {_hint(name, [*_OWN_FIELDS, *groups])}")
    machine = _machine(gpu, tuple(sorted(groups["hardware"].items())))
    attention = _attention(groups["workload"])
    kernel = _kernel(machine, attention, groups["kernel"])
    answer = traffic(attention, machine, policy, kernel)
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


@functools.lru_cache(maxsize=4096)
def _machine(gpu: str, overrides: tuple[tuple[str, Scalar], ...]) -> Machine:
    lines = [f"{path}={msgspec.json.encode(value).decode()}" for path, value in overrides]
    return machine_of(load_preset(gpu, overrides=lines).spec, gpu)


def _attention(fields: Mapping[str, Any]) -> Attention:
    _check_names("workload", fields, _Workload.__struct_fields__)
    try:
        given = msgspec.structs.asdict(msgspec.convert(fields, _Workload))
        shape = shape_from_flags(**{name: given.pop(name) for name in _SHAPE_FIELDS})
    except (msgspec.ValidationError, click.UsageError) as error:
        raise AnalyticalError(f"sweep field workload: {str(error).replace('$.', '')}") from error
    return Attention.of(shape, **{name: value for name, value in given.items() if value is not None})


def _kernel(machine: Machine, attention: Attention, fields: Mapping[str, Any]) -> Kernel:
    _check_names("kernel", fields, (*Kernel.__struct_fields__, "version"))
    return kernel_with(machine, attention, fields)


def _check_names(group: str, fields: Mapping[str, Any], known: Sequence[str]) -> None:
    for name in fields:
        if name not in known:
            raise AnalyticalError(f"sweep field '{group}.{name}' is unknown; {_hint(name, known)}")


def _hint(name: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, known, 1)
    return f"did you mean {close[0]}?" if close else f"expected one of {', '.join(known)}"
