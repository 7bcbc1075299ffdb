"""`simfa explain` in words: shares of every reason by role, the largest causes, and the difference of two runs."""

from simfa.report.attribution import causes, findings, pipe_idle
from simfa.report.inputs import Run
from simfa.tables import text_table

# Below this the reasons of an idle tensor pipe are told together.
SMALLEST_SHARE = 0.005


def headline(run: Run) -> str:
    """Return a run in one line."""
    stats = run.stats
    shape = stats.shape.describe() if stats.shape is not None else "no attention shape"
    return (
        f"{run.name}: {shape} on {stats.manifest.gpu_preset}, {stats.cycles:,} cycles, {stats.latency_us:,.2f} us at "
        f"{stats.sm_clock_hz / 1e6:,.0f} MHz, tensor pipe busy {stats.tensor_utilization:.1%}"
    )


def explain_text(run: Run) -> str:
    """Return the stall attribution of a run: one column a role, largest causes as sentences."""
    by_role = causes(run.stats)
    shares = {role: {cause.reason: cause.share for cause in found} for role, found in by_role.items()}
    reasons = sorted({reason for found in shares.values() for reason in found}, key=lambda r: -_largest(shares, r))
    rows = [(reason, *(_cell(shares[role].get(reason)) for role in shares)) for reason in reasons]
    lines = [headline(run), "", text_table(("reason", *shares), rows, right=range(1, len(shares) + 1)), ""]
    return "\n".join([*lines, *(_idle_lines(run) or _finding_lines(run))])


def _idle_lines(run: Run) -> list[str]:
    """Return why the chip's tensor pipes idle, all of it; none where the run does not account for them."""
    idle = pipe_idle(run.stats)
    if not idle:
        return []
    total = sum(entry.share for entry in idle)
    lines = [f"The tensor pipes of the chip compute {1 - total:.1%} of the time. They idle {total:.1%}:"]
    lines += [f"{entry.share:6.1%}  {entry.why}" for entry in idle if entry.share >= SMALLEST_SHARE]
    rest = [entry.share for entry in idle if entry.share < SMALLEST_SHARE]
    return [*lines, *([f"{sum(rest):6.1%}  {len(rest)} smaller reasons"] if rest else [])]


def _finding_lines(run: Run) -> list[str]:
    """Return the largest causes as sentences, each with the counter behind it."""
    return [f"{n}. {finding.sentence()} [{finding.counter()}]" for n, finding in enumerate(findings(run.stats), 1)]


def compare_text(run: Run, other: Run) -> str:
    """Return how the shares of `other` differ from those of `run`, in percentage points, largest change first."""
    before = {(cause.role, cause.reason): cause.share for found in causes(run.stats).values() for cause in found}
    after = {(cause.role, cause.reason): cause.share for found in causes(other.stats).values() for cause in found}
    keys = sorted(before.keys() | after.keys(), key=lambda key: (-abs(after.get(key, 0.0) - before.get(key, 0.0)), key))
    rows = [
        (
            *key,
            _cell(before.get(key)),
            _cell(after.get(key)),
            f"{100 * (after.get(key, 0.0) - before.get(key, 0.0)):+.1f}",
        )
        for key in keys
    ]
    ratio = other.stats.latency_us / run.stats.latency_us
    lines = [headline(run), headline(other), f"latency ratio {ratio:.4f}", ""]
    lines.append(text_table(("role", "reason", run.name, other.name, "points"), rows, right=(2, 3, 4)))
    return "\n".join(lines)


def _largest(shares: dict[str, dict[str, float]], reason: str) -> float:
    """Return the largest share of a reason over the roles."""
    return max(found.get(reason, 0.0) for found in shares.values())


def _cell(share: float | None) -> str:
    """Return a share for a table; a reason that never occurred is a dash."""
    return "-" if share is None else f"{share:.1%}"
