"""Capture: run the plain and the probed kernel on a Hopper GPU, check both, and write what the probes logged."""

import subprocess
from collections.abc import Collection
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from simfa.errors import InstrumentError
from simfa.instrument.build import read_manifest
from simfa.instrument.capture_check import check_records, has_work
from simfa.instrument.clock import fit_row_clocks
from simfa.instrument.gpu import Gpu, profiler_range
from simfa.instrument.instantiation import instantiation_for
from simfa.instrument.launcher import Launcher
from simfa.instrument.row_plan import RowPlan, plan_rows
from simfa.instrument.session import (
    Call,
    Latencies,
    Rows,
    check_outputs,
    measure,
    require_kernel,
    tracing,
)
from simfa.instrument.synthetic import check_ctas
from simfa.kernel import kernel_for
from simfa.salog import Log, LogMetadata, LogSource, Records, RowHeaders, row_bytes_for, tiles_known
from simfa.watched_log import WatchedLog
from simfa.workload import AttentionShape

MINIMUM_REPEATS = 20
_QUERIED = "name,driver_version,clocks.sm,clocks.max.sm,clocks.mem,power.draw,power.limit,temperature.gpu,pstate"


class CaptureReport(msgspec.Struct, frozen=True):
    """What a capture found out besides the log: goes into the log's manifest."""

    kernel: str
    level: int
    repeats: int
    latency_us: dict[str, float]
    overhead_percent: dict[str, float]
    largest_error: dict[str, float]
    events: dict[str, int]
    rows: int
    idle_ctas: int
    clock: dict[str, float]
    device_before: dict[str, str]
    device_after: dict[str, str]


class CapturedLog:
    """The rows that came back, as a `LogSource` with rows no longer than needed and without CTAs that got no tile."""

    def __init__(self, log: Log) -> None:
        """Take a log in memory; raises `LogError` for records that no kernel could have written."""
        self._log = log
        self._rows = [row for row in range(len(log.rows)) if has_work(log.records(row))]
        self.metadata: LogMetadata = log.metadata
        self.ctas: int = log.ctas
        self.rows: RowHeaders = log.rows[self._rows]
        self.row_bytes: int = row_bytes_for(int(self.rows["records"].max(initial=0)))

    def records(self, row: int) -> Records:
        """Return the records of one row."""
        return self._log.records(self._rows[row])


def capture(
    gpu: Gpu,
    plain: Launcher,
    probed: Launcher,
    shape: AttentionShape,
    *,
    ctas: Collection[int] | None = None,
    one_warp: bool = False,
    row_records: int | None = None,
    warm_up: int = 5,
    repeats: int = MINIMUM_REPEATS,
    seed: int = 0,
    quiet: bool = False,
) -> tuple[LogSource, CaptureReport]:
    """Return the log of one traced launch and the report of all checks and timings.

    Both kernels must be right on a small shape; then the plain, the idle and the tracing kernel are timed, and one more
    launch fills the rows. Raises `InstrumentError` for a wrong result, wrong or missing records and a device without
    the kernel, `LogError` for dropped records.
    """
    if repeats < MINIMUM_REPEATS:
        raise InstrumentError(f"{repeats} repeats are too few for a median; expected at least {MINIMUM_REPEATS}")
    require_kernel(plain, shape)
    require_kernel(probed, shape)
    kernel = kernel_for(shape)
    sms = plain.sm_count()
    grid = kernel.largest_grid(sms)
    if ctas is not None:
        check_ctas(ctas, grid, kernel.cluster)
    before = device_state()
    errors = check_outputs(gpu, [plain, probed], shape, sms)
    plan = plan_rows(shape, kernel, probed.level, grid, ctas=ctas, one_warp=one_warp, row_records=row_records)
    call = Call(gpu, shape, seed)
    latencies = measure(gpu, plain, probed, call, Rows(gpu, plan), sms, warm_up=warm_up, repeats=repeats)
    rows = Rows(gpu, plan)
    with tracing(probed, rows), profiler_range("traced"):
        probed.run(shape, call.tensors, sms)
        gpu.synchronize()
    manifest = read_manifest(probed.path)
    metadata = LogMetadata(
        source="captured",
        seed=None,
        level=2 if probed.level >= 2 else 1,
        shape=shape,
        kernel=kernel,
        kernel_name="FlashAttnFwdSm90",
        source_sha256=str(manifest["source_sha256"]),
        gpu=gpu.device_name(),
        sm_clock_hz=None,
        clock_source="clock64",
        warps="one" if one_warp else "all",
        ctas_logged=None if ctas is None else plan.ctas,
        tiles=tiles_known(probed.level, kernel),
        facts={
            "source": str(manifest["source"]),
            "nvcc": str(manifest["nvcc"]),
            "driver": before.get("driver_version", "unknown"),
        },
    )
    log, report = read_rows(rows.to_host(), plan, metadata, quiet=quiet)
    return log, CaptureReport(
        kernel=instantiation_for(shape).name,
        level=probed.level,
        repeats=repeats,
        latency_us=latencies._asdict(),
        overhead_percent=overheads(latencies),
        largest_error=errors,
        **report,
        device_before=before,
        device_after=device_state(),
    )


def read_rows(
    buffer: npt.NDArray[np.uint8], plan: RowPlan, metadata: LogMetadata, *, quiet: bool = False
) -> tuple[CapturedLog, dict[str, Any]]:
    """Return the checked log in the rows that came back, with counts of events, idle CTAs and the clock fit.

    Raises `LogError` for a row that was never written or dropped records, `InstrumentError` for records that are not
    what the schedule says or clocks that run backwards.
    """
    raw = Log(metadata, buffer, ctas=plan.grid, row_bytes=plan.row_bytes, name="captured rows")
    log = CapturedLog(raw)
    if not len(log.rows):
        raise InstrumentError("no logged CTA got any tile; log CTAs that do with --ctas, or use a larger shape")
    with WatchedLog(log, "checking rows", quiet=quiet) as watched:
        events = check_records(watched)
    fit = fit_row_clocks(log.rows)
    busy = len(np.unique(log.rows["block"]))
    return log, {
        "events": events,
        "rows": len(log.rows),
        "idle_ctas": len(plan.ctas) - busy,
        "clock": {
            "frequency_hz": fit.frequency_hz,
            "largest_residual_ns": float(fit.residual_ns.max()),
            "spread_ppm": fit.spread_ppm,
            "globaltimer_tick_ns": fit.tick_ns,
        },
    }


def overheads(latencies: Latencies) -> dict[str, float]:
    """Return how much longer the probed kernel takes, idle and active, in percent of the plain one."""
    return {
        name: (value / latencies.plain_us - 1) * 100
        for name, value in (("probe_idle", latencies.probe_idle_us), ("probe_active", latencies.probe_active_us))
    }


def device_state() -> dict[str, str]:
    """Return clocks, power and temperature as nvidia-smi tells them; empty where it is not installed."""
    command = ["nvidia-smi", f"--query-gpu={_QUERIED}", "--format=csv,noheader", "--id=0"]
    try:
        text = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout
    except (OSError, subprocess.SubprocessError):
        return {}
    values = [value.strip() for value in text.splitlines()[0].split(",")] if text.strip() else []
    return dict(zip(_QUERIED.split(","), values, strict=False))
