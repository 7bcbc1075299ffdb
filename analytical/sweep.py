"""Design-space sweeps: which points a TOML file describes, and the Pareto front of their results.

A point is a flat mapping of fields, such as `gpu`, `policy`, `workload.seqlen`, `kernel.tile_m` or
`hardware.l2.capacity_bytes`, to one value each. What a point costs is a backend's business.
"""

import hashlib
import math
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

import msgspec
from msgspec import Meta

from simfa import __version__
from simfa.errors import AnalyticalError
from simfa.hardware import load_preset

Scalar: TypeAlias = bool | int | float | str


class SweepPoint(NamedTuple):
    """One point: its number in the sweep, and its fields."""

    number: int
    fields: dict[str, Scalar]


# What evaluates a point: named results, the same names for every point. Raises `SimfaError` for an impossible one.
Backend: TypeAlias = Callable[[SweepPoint], Mapping[str, Scalar]]


class Objective(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A result column to make small or large."""

    column: str
    goal: Literal["min", "max"] = "min"


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The TOML file as written."""

    objectives: list[Objective]
    backend: str = "analytical"
    about: str = ""
    group_by: list[str] = []
    points_per_part: Annotated[int, Meta(ge=1)] = 4096
    fixed: dict[str, Any] = {}
    grid: dict[str, Any] = {}
    designs: list[dict[str, Any]] = []


class Sweep(msgspec.Struct, frozen=True, kw_only=True):
    """A sweep: `fixed` fields, times `designs` (fields that vary together), times the product of `axes`."""

    name: str
    about: str
    backend: str
    fixed: dict[str, Scalar]
    designs: list[dict[str, Scalar]]
    axes: dict[str, list[Scalar]]
    objectives: list[Objective]
    group_by: list[str]
    points_per_part: int
    digest: str

    @property
    def size(self) -> int:
        """Number of points."""
        return len(self.designs) * math.prod(len(values) for values in self.axes.values())

    @property
    def field_names(self) -> list[str]:
        """All fields, in the order of the columns."""
        names = dict.fromkeys(self.fixed)
        for design in self.designs:
            names |= dict.fromkeys(design)
        return list(names | dict.fromkeys(self.axes))

    def part_count(self, parts: int | None = None) -> int:
        """Number of parts: as asked, or by `points_per_part`."""
        return parts if parts is not None else max(1, -(-self.size // self.points_per_part))

    def part_range(self, part: int, parts: int) -> range:
        """Return the point numbers of part `part` of `parts`."""
        return range(self.size * part // parts, self.size * (part + 1) // parts)

    def points(self, numbers: range) -> Iterator[SweepPoint]:
        """Yield points by number; the last axis varies fastest, designs slowest."""
        for number in numbers:
            chosen: dict[str, Scalar] = {}
            rest = number
            for name in reversed(self.axes):
                rest, choice = divmod(rest, len(self.axes[name]))
                chosen[name] = self.axes[name][choice]
            yield SweepPoint(number, self.fixed | self.designs[rest] | dict(reversed(chosen.items())))


def load_sweep(path: Path) -> Sweep:
    """Read a sweep file; raises `AnalyticalError` naming the file and the key for anything that is wrong."""
    try:
        text = path.read_bytes()
        raw = tomllib.loads(text.decode("utf-8"))
    except OSError as error:
        raise AnalyticalError(f"{path}: cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise AnalyticalError(f"{path}: not valid TOML: {error}") from error
    try:
        file = msgspec.convert(raw, _File)
    except msgspec.ValidationError as error:
        raise AnalyticalError(f"{path}: {str(error).replace('$.', '')}") from error
    axes = _flat(path, file.grid)
    for name, values in axes.items():
        if not isinstance(values, list) or not values:
            raise AnalyticalError(f"{path}: grid.{name} is {values!r}; expected a list of values")
        if len(set(map(repr, values))) < len(values):
            raise AnalyticalError(f"{path}: grid.{name} holds a value twice")
    fixed = _scalars(path, "fixed", file.fixed)
    designs = [_scalars(path, "designs", design) for design in file.designs] or [{}]
    for name in fixed:
        if name in axes or any(name in design for design in designs):
            raise AnalyticalError(f"{path}: {name} is both fixed and varied")
    for name in axes:
        if any(name in design for design in designs):
            raise AnalyticalError(f"{path}: {name} is in grid and in designs")
    if not file.objectives:
        raise AnalyticalError(f"{path}: objectives is empty; expected at least one, e.g. column = 'latency_bound_us'")
    return Sweep(
        name=path.stem,
        about=file.about,
        backend=file.backend,
        fixed=fixed,
        designs=designs,
        axes=axes,
        objectives=file.objectives,
        group_by=file.group_by,
        points_per_part=file.points_per_part,
        digest=_digest(
            text, {str(table.get("gpu", "h100-sxm")) for table in (fixed, *designs)} | set(axes.get("gpu", []))
        ),
    )


def _digest(text: bytes, gpus: set[str]) -> str:
    """Return a digest of what results depend on: the file, the tool's version and the values of the presets named."""
    presets = "".join(load_preset(gpu).spec.sha256() for gpu in sorted(gpus))
    return hashlib.sha256(b"\0".join([__version__.encode(), presets.encode(), text])).hexdigest()


def _flat(path: Path, table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested TOML tables as dotted names."""
    flat: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, Mapping):
            flat |= _flat(path, value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def _scalars(path: Path, where: str, table: Mapping[str, Any]) -> dict[str, Scalar]:
    flat = _flat(path, table)
    for name, value in flat.items():
        if not isinstance(value, bool | int | float | str):
            raise AnalyticalError(f"{path}: {where}.{name} is {value!r}; expected one number, word or switch")
    return flat


def pareto_front(values: Sequence[Sequence[float]], goals: Sequence[str]) -> list[int]:
    """Return the indices of points that no other point beats: at least as good everywhere and better somewhere.

    `values` holds one sequence of objectives a point; of equal points all stay.
    """
    import numpy as np

    signs = np.asarray([1.0 if goal == "min" else -1.0 for goal in goals])
    costs = np.asarray(values, dtype=np.float64).reshape(len(values), len(goals)) * signs
    order = np.lexsort(costs.T[::-1])
    front = np.empty((0, len(goals)))
    kept: list[int] = []
    for index in order.tolist():
        cost = costs[index]
        # Sorted by the first objective: only points already kept can be better.
        if len(front) and bool(np.any(np.all(front <= cost, axis=1) & np.any(front < cost, axis=1))):
            continue
        front = np.vstack([front, cost])
        kept.append(index)
    return sorted(kept)
