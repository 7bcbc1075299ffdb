"""Sensitivity: each number of a preset moved by a fraction, one at a time, and what that does to latency.

Simulations come from outside (`run_all`); here is which values can move, how far, and the table that follows.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from simfa import __version__
from simfa.errors import HardwareError, SimfaError, StudyError
from simfa.hardware import HardwareSpec, Preset, value_at
from simfa.studies import Move, Sensitivity, SensitivityRow, Unmoved
from simfa.units import unit_of

# Values that no simulation reads, on the presets for which that holds.
UNREAD: tuple[tuple[str, Callable[[HardwareSpec], bool], str], ...] = (
    ("analytical.", lambda _: True, "read by the closed forms alone"),
    ("sm.shared_memory_bytes", lambda _: True, "a fact of the part: one CTA an SM, whatever it is"),
    ("sm.registers", lambda _: True, "a fact of the part: one CTA an SM, whatever it is"),
    ("tma.level_0_latency_cycles", lambda hardware: hardware.tma.level == 1, "read with tma.level = 0 alone"),
    ("tma.request_bytes", lambda hardware: hardware.tma.deduplicate, "read without tma.deduplicate alone"),
    ("l2.remote_copy.", lambda hardware: not hardware.l2.remote_copy.enabled, "read with l2.remote_copy.enabled alone"),
    ("memory.dram.", lambda hardware: hardware.memory.model != "hbm3", "read with memory.model = hbm3 alone"),
    *(
        (
            f"memory.{name}",
            lambda hardware: hardware.memory.model != "channel",
            "read with memory.model = channel alone",
        )
        for name in ("efficiency", "latency_ns", "write_cost", "write_queue_entries")
    ),
    ("clock.", lambda _: True, "read by the sustained clock model alone"),
)
# A whole number lands on the nearest valid one at most so far from its target, as a share of the step.
TOLERANCE = 0.5
MOST_PERTURBATION = 0.9

Latency = tuple[int, float]  # cycles, latency_us
RunAll = Callable[[Sequence[HardwareSpec]], Sequence[Latency]]
Check = Callable[[HardwareSpec], object]  # raises `SimfaError` for values that cannot run


class Step(NamedTuple):
    """One value moved to `value`, a valid preset; or the reason why it cannot move that way."""

    path: str
    value: float
    hardware: HardwareSpec | None
    reason: str


def check_perturbation(perturbation: float) -> None:
    """Raise `StudyError` unless a perturbation is above 0 and at most `MOST_PERTURBATION`."""
    if not 0 < perturbation <= MOST_PERTURBATION:
        raise StudyError(
            f"perturbation {perturbation:g} moves nothing or turns values negative; expected above 0 and at most "
            f"{MOST_PERTURBATION:g}, e.g. 0.2 for 20 %"
        )


def value_paths(hardware: msgspec.Struct, prefix: str = "") -> Iterator[str]:
    """Yield the dotted paths of all values, in the order of their definition."""
    for name in hardware.__struct_fields__:
        value = getattr(hardware, name)
        if isinstance(value, msgspec.Struct):
            yield from value_paths(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"


def with_value(hardware: HardwareSpec, path: str, value: Any) -> HardwareSpec:
    """Return the values of a preset with one changed; raises `HardwareError` for what the preset's rules refuse."""
    tree = msgspec.to_builtins(hardware)
    *groups, leaf = path.split(".")
    node = tree
    for group in groups:
        node = node[group]
    node[leaf] = value
    try:
        return msgspec.convert(tree, HardwareSpec)
    except msgspec.ValidationError as error:
        raise HardwareError(str(error).replace("$.", "")) from error


def grain(hardware: HardwareSpec, path: str) -> int:
    """Return what a whole number can only change by: SMs and slices come in pairs, L2 in whole sets."""
    sets = hardware.l2.slices * hardware.l2.ways * hardware.l2.line_bytes
    return {"gpu.sm_count": 2, "l2.slices": 2, "l2.capacity_bytes": sets}.get(path, 1)


def move(hardware: HardwareSpec, path: str, change: float, check: Check) -> Step:
    """Return `path` moved by a fraction, a whole number to the nearest valid one within `TOLERANCE` of the step.

    `check` raises for values that pass the preset's own rules and still cannot run.
    """
    value = value_at(hardware, path)
    target = value * (1 + change)
    if isinstance(value, int):
        candidates = _whole_numbers(value, target, grain(hardware, path))
        if not candidates:
            return Step(path, target, None, f"{change:+.0%} of {value} is no whole step")
    else:
        candidates = [target]
    refusal = ""
    for candidate in candidates:
        try:
            changed = with_value(hardware, path, candidate)
            check(changed)
        except SimfaError as error:
            refusal = refusal or f"{candidate:g} is refused: {error}"
        else:
            return Step(path, candidate, changed, "")
    return Step(path, target, None, refusal)


def _whole_numbers(value: int, target: float, step: int) -> list[int]:
    """Return whole numbers near `target`, nearest first: whole steps away from `value`, on the target's side."""
    distance = target - value
    sign = 1 if distance > 0 else -1
    reach = abs(distance) * TOLERANCE
    first = math.ceil((abs(distance) - reach) / step - 1e-9)
    last = math.floor((abs(distance) + reach) / step + 1e-9)
    found = [value + sign * count * step for count in range(max(1, first), last + 1)]
    return sorted(found, key=lambda number: (abs(number - target), sign * number))


def reason_not_to_move(hardware: HardwareSpec, path: str) -> str:
    """Return why a value has no ±20 %, or an empty text for a number that has."""
    value = value_at(hardware, path)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "a switch" if isinstance(value, bool) else "a name"
    if value == 0:
        return "it is 0"
    return next((reason for prefix, unread, reason in UNREAD if path.startswith(prefix) and unread(hardware)), "")


def sensitivity(
    preset: Preset,
    shape: str,
    kernel_version: str,
    perturbation: float,
    run_all: RunAll,
    check: Check,
) -> Sensitivity:
    """Move every number of a preset down and up by `perturbation` (a fraction) and simulate each.

    Raises `StudyError` for a perturbation that moves nothing.
    """
    check_perturbation(perturbation)
    hardware = preset.spec
    unmoved: list[Unmoved] = []
    steps: list[tuple[Step, Step]] = []
    for path in value_paths(hardware):
        reason = reason_not_to_move(hardware, path)
        if not reason:
            down, up = (move(hardware, path, sign * perturbation, check) for sign in (-1, 1))
            if down.hardware is not None or up.hardware is not None:
                steps.append((down, up))
                continue
            reason = down.reason if down.reason == up.reason else f"{down.reason}; {up.reason}"
        unmoved.append(Unmoved(path, str(value_at(hardware, path)), reason))
    variants = [step.hardware for pair in steps for step in pair if step.hardware is not None]
    (cycles, latency_us), *rest = run_all([hardware, *variants])
    found = iter(rest)
    rows = []
    for pair in steps:
        down_move, up_move = (
            None if step.hardware is None else _moved(step, hardware, next(found)[1], latency_us) for step in pair
        )
        path = pair[0].path
        rows.append(
            SensitivityRow(
                path=path,
                value=value_at(hardware, path),
                unit=unit_of(path),
                status=preset.provenance[path].status,
                down=down_move,
                up=up_move,
                note="; ".join(step.reason for step in pair if step.reason),
            )
        )
    return Sensitivity(
        tool_version=__version__,
        preset=preset.name,
        preset_sha256=hardware.sha256(),
        shape=shape,
        kernel_version=kernel_version,
        perturbation=perturbation,
        cycles=cycles,
        latency_us=latency_us,
        rows=sorted(rows, key=lambda row: (-row.swing, row.path)),
        unmoved=unmoved,
    )


def _moved(step: Step, hardware: HardwareSpec, latency_us: float, reference_us: float) -> Move:
    change = step.value / value_at(hardware, step.path) - 1
    return Move(step.value, change, latency_us, latency_us / reference_us - 1)
