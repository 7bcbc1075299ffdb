"""Where a role's cycles went: shares of each reason, and the largest ones in words."""

from typing import NamedTuple

import msgspec

from simfa.errors import ReportError
from simfa.report.inputs import RunStats


class Reason(NamedTuple):
    """A reason of the engine: which group it is drawn in, and what it means in a sentence about a warpgroup."""

    group: str
    means: str


# Groups in drawing order.
GROUPS = ("issue", "CUDA cores", "tensor core", "loads", "stages", "barrier", "stores", "grid")

# Every cycle of a role has exactly one reason (`Reason` in simulate/core/stats.hpp).
REASONS: dict[str, Reason] = {
    "issue": Reason("issue", "issuing instructions or waiting for an issue slot"),
    "wgmma_issue": Reason("issue", "issuing WGMMAs back to back"),
    "busy": Reason("tensor core", "computing"),
    "drain": Reason("tensor core", "draining after a WGMMA group"),
    "tensor_busy": Reason("tensor core", "held back because the tensor core's admission window is full"),
    "wgmma_wait": Reason("tensor core", "waiting for its WGMMA group to complete"),
    "wait_k": Reason("loads", "waiting for a K block to arrive in shared memory"),
    "wait_v": Reason("loads", "waiting for a V block to arrive in shared memory"),
    "wait_q": Reason("loads", "waiting for the Q block of its tile"),
    "wait_other": Reason("loads", "waiting for a load to arrive in shared memory"),
    "acquire_stage": Reason("stages", "waiting for a K or V stage that consumers have not released"),
    "acquire_q": Reason("stages", "waiting until the Q of the previous tile is no longer read"),
    "acquire_o": Reason("stages", "waiting until the O of the previous tile is stored"),
    "acquire_other": Reason("stages", "waiting for a stage to be released"),
    "barrier": Reason("barrier", "waiting at a named barrier: its ping-pong turn, or the meeting of the consumers"),
    "softmax": Reason("CUDA cores", "computing softmax"),
    "epilogue": Reason("CUDA cores", "scaling and storing O in the epilogue"),
    "bubble": Reason("CUDA cores", "doing other CUDA-core work"),
    "cuda_contention": Reason("CUDA cores", "waiting for CUDA cores that another warpgroup uses"),
    "store": Reason("stores", "waiting for a TMA store to read shared memory"),
    "tile_fetch": Reason("grid", "waiting for the next tile from the scheduler"),
    "tile_edge": Reason("grid", "at the edge between two tiles"),
    "launch": Reason("grid", "not yet launched"),
    "tail": Reason("grid", "finished while other CTAs still run"),
}


# The tensor pipe stands beside the roles in `stall_cycles`.
TENSOR_PIPE = "tensor_pipe"


class Cause(msgspec.Struct, frozen=True):
    """One reason of one role: `share` is the fraction of that role's cycles."""

    role: str
    reason: str
    share: float

    @property
    def group(self) -> str:
        """The group the reason is drawn in."""
        return REASONS[self.reason].group


class Finding(msgspec.Struct, frozen=True):
    """One reason over the roles that meet it, largest share first; of the tensor pipe alone, why it idles."""

    reason: str
    causes: tuple[Cause, ...]

    def sentence(self) -> str:
        """Return the finding as a sentence with the share of each role."""
        means = REASONS[self.reason].means
        if self.causes[0].role == TENSOR_PIPE:
            if self.reason == "drain":
                return f"The tensor pipe spends {self.causes[0].share:.1%} of its cycles {means}."
            share = f"{self.causes[0].share:.1%}"
            return f"The tensor pipe idles {share} of its cycles while the warpgroup that uses it next is {means}."
        if len(self.causes) == 1:
            return f"{self.causes[0].role} spends {self.causes[0].share:.1%} of its cycles {means}."
        *first, last = [f"{cause.role} {cause.share:.1%}" for cause in self.causes]
        return f"{', '.join(first)} and {last} of their cycles are spent {means}."

    def counter(self) -> str:
        """Return the path in `stats.json` of the number behind the finding."""
        return f"stall_cycles.{self.causes[0].role}.{self.reason}"


def causes(stats: RunStats) -> dict[str, list[Cause]]:
    """Return for each role, the producer first, its reasons: largest share first, ties by name.

    Raises `ReportError` for a reason that this version does not know.
    """
    result = {}
    for role in sorted(stats.stall_cycles, key=lambda name: (name == TENSOR_PIPE, name != "producer", name)):
        reasons = stats.stall_cycles[role]
        unknown = sorted(reasons.keys() - REASONS.keys())
        if unknown:
            raise ReportError(
                f"stall reason {', '.join(unknown)} of {role} is unknown; was the run made by this version?"
            )
        total = sum(reasons.values())
        found = [Cause(role, reason, cycles / total) for reason, cycles in reasons.items() if cycles]
        result[role] = sorted(found, key=lambda cause: (-cause.share, cause.reason))
    return result


class IdleReason(NamedTuple):
    """Why tensor pipes do not compute: `share` is the fraction of the cycles of all SMs of the chip."""

    reason: str
    share: float
    why: str


def pipe_idle(stats: RunStats) -> list[IdleReason]:
    """Return why the chip's tensor pipes do not compute, largest share first; the shares sum to what they idle.

    SMs that no CTA ran on are a reason too. Empty for a run without an account of its tensor pipes.
    """
    pipe = {cause.reason: cause.share for cause in causes(stats).get(TENSOR_PIPE, [])}
    busy = pipe.pop("busy", 0.0)
    if not busy:
        return []
    used = stats.tensor_utilization / busy  # of the chip's SMs, those that have a CTA
    found = [IdleReason(reason, share * used, _why_idle(reason)) for reason, share in pipe.items()]
    if used < 1 - 1e-9:
        found.append(IdleReason("no_cta", 1 - used, "the SM gets no CTA: the grid is smaller than the chip"))
    return sorted(found, key=lambda entry: (-entry.share, entry.reason))


def _why_idle(reason: str) -> str:
    """Return a reason of the tensor pipe in words."""
    edges = {
        "drain": "a WGMMA group drains: no new group may start",
        "launch": "the SM has no CTA yet: launch of the kernel",
        "tail": "the SM has no CTA any more, while others still work: tail of the kernel",
    }
    return edges.get(reason) or f"the warpgroup that uses it next is {REASONS[reason].means}"


def chip_wide(found: dict[str, list[Cause]], stats: RunStats) -> list[Cause]:
    """Return the shares of all warpgroups of the chip together: each role counts by its cycles."""
    cycles = {role: sum(reasons.values()) for role, reasons in stats.stall_cycles.items() if role != TENSOR_PIPE}
    total = sum(cycles.values()) or 1
    shares: dict[str, float] = {}
    for role in cycles:
        for cause in found[role]:
            shares[cause.reason] = shares.get(cause.reason, 0.0) + cause.share * cycles[role] / total
    result = [Cause("all warpgroups", reason, share) for reason, share in shares.items()]
    return sorted(result, key=lambda cause: (-cause.share, cause.reason))


def findings(stats: RunStats, count: int = 3) -> list[Finding]:
    """Return the `count` largest causes: of the tensor pipe not computing, or, without one, of the roles' waits.

    Among roles, the reasons with the largest share in any of them; roles below a tenth of that share are not named.
    Being launched or finished is the grid's doing and issuing is work, so those are left out.
    """
    found = causes(stats)
    pipe = found.pop(TENSOR_PIPE, [])
    if any(cause.reason == "busy" for cause in pipe):
        idle = [cause for cause in pipe if cause.reason not in ("busy", "launch", "tail")]
        return [Finding(cause.reason, (cause,)) for cause in idle[:count]]
    by_reason: dict[str, list[Cause]] = {}
    for reasons in found.values():
        for cause in reasons:
            if cause.group not in ("issue", "grid"):
                by_reason.setdefault(cause.reason, []).append(cause)
    result = []
    for reason, met in by_reason.items():
        largest = max(cause.share for cause in met)
        named = [cause for cause in met if cause.share >= largest / 10]
        result.append(Finding(reason, tuple(sorted(named, key=lambda cause: (-cause.share, cause.role)))))
    return sorted(result, key=lambda finding: (-finding.causes[0].share, finding.reason))[:count]
