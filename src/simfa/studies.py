"""What `simfa ablate` and `simfa sensitivity` found, as documents, which `simfa report` reads."""

import msgspec


class OverlayInfo(msgspec.Struct, frozen=True):
    """An overlay: what it means, and the counters (`simfa.explaining`) in which its effect shows."""

    name: str
    about: str
    counters: list[str]


class AblationRun(msgspec.Struct, frozen=True, kw_only=True):
    """One case on one preset; `overlay` is empty for the run that the others are compared with.

    `slowdown` is cycles / cycles of that run. `measured_us` and the signed `error` (simulated / measured - 1) are None
    for cases without a measurement. `counters` holds every figure of `simfa.explaining` that the run defines.
    """

    preset: str
    group: str
    overlay: str
    case: str
    shape: str
    cycles: int
    latency_us: float
    slowdown: float
    measured_us: float | None
    error: float | None
    counters: dict[str, float | None]


class CaseSlowdown(msgspec.Struct, frozen=True):
    """One case and its slowdown."""

    case: str
    slowdown: float


class AblationRow(msgspec.Struct, frozen=True, kw_only=True):
    """One overlay over one group of cases on one preset.

    `slowdown` is the geometric mean over the cases. `mape` and `max_ape` are fractions, None for a group without
    measurements. `because` cites the `counter` (a path in `stats.json`, or an expression of such paths) that explains
    the row, with its value before and after.
    """

    overlay: str
    slowdown: float
    least: CaseSlowdown
    most: CaseSlowdown
    mape: float | None
    max_ape: float | None
    because: str
    counter: str
    before: float | None
    after: float | None


class AblationGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Cases of one kind (`paper` or `clean`) on one preset: errors without any overlay, and a row for each overlay."""

    name: str
    preset: str
    cases: list[str]
    mape: float | None
    max_ape: float | None
    rows: list[AblationRow]


class Ablation(msgspec.Struct, frozen=True, kw_only=True):
    """What `simfa ablate --json` prints."""

    tool_version: str
    overlays: list[OverlayInfo]
    groups: list[AblationGroup]
    runs: list[AblationRun]


class Move(msgspec.Struct, frozen=True):
    """A preset value moved one way: the value set, its change as a fraction, and what that did to latency.

    `effect` is the fraction latency / latency of the unmoved preset - 1.
    """

    value: float
    change: float
    latency_us: float
    effect: float


class SensitivityRow(msgspec.Struct, frozen=True, kw_only=True):
    """One preset value moved down and up; a side that cannot move is None and its reason is in `note`."""

    path: str
    value: float
    unit: str
    status: str
    down: Move | None
    up: Move | None
    note: str

    @property
    def swing(self) -> float:
        """Largest effect of either side, without its sign."""
        return max((abs(side.effect) for side in (self.down, self.up) if side is not None), default=0.0)


class Unmoved(msgspec.Struct, frozen=True):
    """A preset value that cannot move at all, and why."""

    path: str
    value: str
    reason: str


class Sensitivity(msgspec.Struct, frozen=True, kw_only=True):
    """What `simfa sensitivity --json` prints; `rows` are sorted by effect, largest first."""

    tool_version: str
    preset: str
    preset_sha256: str
    shape: str
    kernel_version: str
    perturbation: float
    cycles: int
    latency_us: float
    rows: list[SensitivityRow]
    unmoved: list[Unmoved]
