"""`python -m simfa.instrument.gpu_check`: everything about the probes that only a Hopper GPU can tell, in minutes.

Needs the libraries of `simfa instrument build -o DIR` for the paper's kernels, so that no compiler runs here. Results
go to a JSON file; a check that cannot run says why and is never counted as passed.
"""

import importlib.util
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import click
import msgspec
import numpy as np

from simfa.errors import SimfaError
from simfa.files import write_json
from simfa.instrument.capture import CapturedLog, CaptureReport, capture, device_state, overheads
from simfa.instrument.clock import fit_row_clocks
from simfa.instrument.gpu import Gpu, open_gpu, packaged_latency_us
from simfa.instrument.launcher import Launcher
from simfa.instrument.profilers import EXPORT_SUFFIXES, ncu_commands, run_commands
from simfa.instrument.row_plan import plan_rows
from simfa.instrument.session import Call, Rows, check_outputs, measure, open_libraries
from simfa.kernel import kernel_for
from simfa.workload import MODELS, model_shape

PAPER_SEQLENS = (512, 1024, 2048, 4096, 6144)
TICK_NS = 32  # of the global timer on GH100 and later
TIME_LIMIT_SECONDS = 300


class CheckResult(msgspec.Struct, frozen=True):
    """One check: what it is about, how it ended, and what it found or why it did not run."""

    name: str
    result: Literal["passed", "failed", "not run"]
    facts: dict[str, Any] = {}
    reason: str = ""


class CannotRunError(Exception):
    """A check cannot run on this machine."""


class Session:
    """What the checks share: the GPU, both libraries, and one captured log of a small full-mask shape."""

    def __init__(self, gpu: Gpu, plain: Launcher, probed: Launcher, folder: Path) -> None:
        """Take what is open; nothing runs yet."""
        self.gpu, self.plain, self.probed, self.folder = gpu, plain, probed, folder
        self.sms = plain.sm_count()
        self.shape = model_shape("llama3-8b", 1024)
        self._captured: tuple[CapturedLog, CaptureReport] | None = None

    @property
    def captured(self) -> tuple[CapturedLog, CaptureReport]:
        """Return the log and report of one capture, made at first use."""
        if self._captured is None:
            log, report = capture(self.gpu, self.plain, self.probed, self.shape)
            assert isinstance(log, CapturedLog)
            self._captured = log, report
        return self._captured


def results_are_right(session: Session) -> dict[str, Any]:
    """(a) Both libraries against float64 on a small shape."""
    return {"largest_error": check_outputs(session.gpu, [session.plain, session.probed], session.shape, session.sms)}


def paper_latencies(session: Session) -> dict[str, Any]:
    """(b) Plain, idle and tracing latency of the paper's 15 points."""
    points = {}
    for model in MODELS:
        for seqlen in PAPER_SEQLENS:
            shape = model_shape(model, seqlen)
            kernel = kernel_for(shape)
            grid = kernel.largest_grid(session.sms)
            # Two CTAs log: what probing costs does not depend on how many others do.
            plan = plan_rows(shape, kernel, session.probed.level, grid, ctas=[0, 1])
            call = Call(session.gpu, shape, seed=0)
            found = measure(
                session.gpu,
                session.plain,
                session.probed,
                call,
                Rows(session.gpu, plan),
                session.sms,
                warm_up=3,
                repeats=20,
            )
            points[f"{model} {seqlen}"] = {**found._asdict(), "overhead_percent": overheads(found)}
    return points


def records_are_complete(session: Session) -> dict[str, Any]:
    """(c) Counts and order equal the schedule's, nothing dropped; (d) the elected lane of every warp logged."""
    log, report = session.captured
    expected = 1 + 4 * kernel_for(session.shape).consumers
    per_cta = np.unique(log.rows["block"], return_counts=True)[1]
    if (per_cta != expected).any():
        raise SimfaError(f"{per_cta.min()} to {per_cta.max()} warps logged in a CTA, expected {expected}")
    return {"events": report.events, "rows": report.rows, "warps_per_cta": expected}


def placement(session: Session) -> dict[str, Any]:
    """(e) One CTA an SM, and cluster mates on neighbouring SMs."""
    log, _ = session.captured
    sm_of = dict(zip(log.rows["block"].tolist(), log.rows["smid"].tolist(), strict=True))
    if len(set(sm_of.values())) != len(sm_of):
        raise SimfaError(f"{len(sm_of)} CTAs ran on {len(set(sm_of.values()))} SMs, expected one each")
    apart = [block for block in sm_of if block % 2 == 0 and sm_of[block] // 2 != sm_of.get(block + 1, -1) // 2]
    if kernel_for(session.shape).cluster == 2 and apart:
        raise SimfaError(f"CTAs {apart[:4]} and their cluster mates ran on SMs that are no pair")
    return {"ctas": len(sm_of)}


def clocks(session: Session) -> dict[str, Any]:
    """(f) Tick of the global timer and the clock fit; (g) the warps of an SM agree."""
    log, report = session.captured
    fit = fit_row_clocks(log.rows)
    facts = {**report.clock, "nvidia_smi_sm_clock": report.device_after.get("clocks.sm", "unknown")}
    if fit.tick_ns != TICK_NS:
        raise SimfaError(f"the global timer ticks every {fit.tick_ns} ns, expected {TICK_NS}; {facts}")
    if fit.residual_ns.max() > TICK_NS:
        raise SimfaError(f"warps of one SM disagree by {fit.residual_ns.max():.0f} ns, expected a tick at most")
    return facts


def profiler_bytes(session: Session) -> dict[str, Any]:
    """(h) DRAM and L2 bytes of the plain kernel by Nsight Compute."""
    if shutil.which("ncu") is None:
        raise CannotRunError("ncu is not on PATH")
    flags = ["--model", "llama3-8b", "--seqlen", str(session.shape.seqlen_q), "--library", str(session.folder)]
    target = [sys.executable, "-P", "-m", "simfa", "capture", *flags, "--plain-only"]
    with tempfile.TemporaryDirectory(prefix="simfa-ncu-") as scratch:
        report = Path(scratch, "plain.ncu-rep")
        run_commands(ncu_commands(target, report, warm_up=5))
        return {"raw_page": report.with_suffix(EXPORT_SUFFIXES["ncu"]).read_text(encoding="utf-8")}


def packaged_kernel(session: Session) -> dict[str, Any]:
    """(i) Latency of the prebuilt fa3-fwd wheel beside ours; it has bf16 only, with the same tiles and WGMMA rate."""
    if not importlib.util.find_spec("torch") or not importlib.util.find_spec("fa3_fwd_interface"):
        raise CannotRunError("torch and the fa3-fwd package are not both installed")
    _, report = session.captured
    return {
        "shape": session.shape.describe(),
        "fa3_fwd_bf16_us": packaged_latency_us(session.shape, warm_up=5, repeats=20),
        "ours_us": report.latency_us["plain_us"],
    }


CHECKS: tuple[tuple[str, Callable[[Session], dict[str, Any]]], ...] = (
    ("results are right", results_are_right),
    ("records are complete", records_are_complete),
    ("placement", placement),
    ("clocks", clocks),
    ("paper latencies", paper_latencies),
    ("profiler bytes", profiler_bytes),
    ("packaged kernel", packaged_kernel),
)


def run_checks(session: Session, tell: Callable[[str], None]) -> Iterator[CheckResult]:
    """Yield the result of every check in order; none starts after the time limit."""
    started = time.monotonic()
    for name, check in CHECKS:
        if time.monotonic() - started > TIME_LIMIT_SECONDS:
            yield CheckResult(name, "not run", reason=f"the {TIME_LIMIT_SECONDS} s were used up")
            continue
        tell(name)
        try:
            yield CheckResult(name, "passed", check(session))
        except CannotRunError as reason:
            yield CheckResult(name, "not run", reason=str(reason))
        except SimfaError as error:
            yield CheckResult(name, "failed", reason=str(error))


@click.command()
@click.option(
    "--library",
    required=True,
    type=click.Path(exists=True, file_okay=False),
    help="Folder of `simfa instrument build --level 2 -o`.",
)
@click.option("--backend", type=click.Choice(["cupy", "pycuda", "torch"]), help="GPU library [default: the first].")
@click.option("-o", "output", required=True, type=click.Path(dir_okay=False), help="Results as JSON.")
def main(*, library: str, backend: str | None, output: str) -> None:
    """Check on a Hopper GPU what cannot be checked without one; exit code 1 when a check fails."""
    try:
        folder = Path(library)
        session = Session(open_gpu(backend), *open_libraries(folder), folder)
        before = device_state()
        results = list(run_checks(session, lambda name: click.echo(f"{name} ...", err=True)))
        write_json(output, {"device_before": before, "device_after": device_state(), "checks": results})
    except SimfaError as error:
        click.echo(f"gpu_check: {error}", err=True)
        sys.exit(error.exit_code)
    for found in results:
        click.echo(f"{found.name:<22} {found.result}{': ' + found.reason if found.reason else ''}")
    if any(found.result == "failed" for found in results):
        sys.exit(1)


if __name__ == "__main__":
    main()
