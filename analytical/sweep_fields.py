"""Fields of a sweep point as backends read them: grouped, checked by name, and turned into a preset and a shape."""

import functools
import inspect
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import click
import msgspec

from simfa.analytical.sweep import Scalar, SweepPoint
from simfa.errors import AnalyticalError, did_you_mean
from simfa.hardware import Preset, load_preset
from simfa.options import shape_from_flags
from simfa.workload import AttentionShape

GROUPS = ("workload", "kernel", "hardware")


class ShapeFields(msgspec.Struct, forbid_unknown_fields=True):
    """Fields `workload.*` that are SHAPE flags."""

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


SHAPE_FIELDS = tuple(inspect.signature(shape_from_flags).parameters)
_Fields = TypeVar("_Fields", bound=ShapeFields)


class PointFields(msgspec.Struct, frozen=True):
    """A point's fields by group, without the group's name."""

    workload: dict[str, Scalar]
    kernel: dict[str, Scalar]
    hardware: dict[str, Scalar]


def grouped(point: SweepPoint, own: Sequence[str]) -> PointFields:
    """Return the fields `workload.*`, `kernel.*` and `hardware.*`; raises for others that are not in `own`."""
    groups: dict[str, dict[str, Scalar]] = {name: {} for name in GROUPS}
    for name, value in point.fields.items():
        group, _, field = name.partition(".")
        if group in groups and field:
            groups[group][field] = value
        elif name not in own:
            raise AnalyticalError(f"sweep field {name!r} is unknown; {_hint(name, [*own, *GROUPS])}")
    return PointFields(**groups)


def preset_of(point: SweepPoint, fields: PointFields) -> Preset:
    """Return the preset `gpu` (h100-sxm by default) with the fields `hardware.*` over it."""
    return _preset(str(point.fields.get("gpu", "h100-sxm")), tuple(sorted(fields.hardware.items())))


@functools.lru_cache(maxsize=4096)
def _preset(gpu: str, overrides: tuple[tuple[str, Scalar], ...]) -> Preset:
    return load_preset(gpu, overrides=[f"{path}={msgspec.json.encode(value).decode()}" for path, value in overrides])


def workload_of(fields: Mapping[str, Any], kind: type[_Fields]) -> tuple[AttentionShape, dict[str, Any]]:
    """Return the shape of the fields `workload.*`, and those given that `kind` has besides SHAPE flags."""
    check_names("workload", fields, kind.__struct_fields__)
    try:
        given = msgspec.structs.asdict(msgspec.convert(fields, kind))
        shape = shape_from_flags(**{name: given.pop(name) for name in SHAPE_FIELDS})
    except (msgspec.ValidationError, click.UsageError) as error:
        raise AnalyticalError(f"sweep field workload: {str(error).replace('$.', '')}") from error
    return shape, {name: value for name, value in given.items() if value is not None}


def check_names(group: str, fields: Mapping[str, Any], known: Sequence[str]) -> None:
    """Raise `AnalyticalError` with the nearest name for a field that is not in `known`."""
    for name in fields:
        if name not in known:
            raise AnalyticalError(f"sweep field '{group}.{name}' is unknown; {_hint(name, known)}")


def _hint(name: str, known: Sequence[str]) -> str:
    return did_you_mean(name, known, f"expected one of {', '.join(known)}")
