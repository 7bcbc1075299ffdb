"""The exact Nsight command lines that measure the plain kernel; what they run is `simfa capture --plain-only`."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from simfa.errors import InstrumentError
from simfa.watched_process import watched_run

# What the ingester asks of a Hopper report: duration, cycles, clock, DRAM and L2 bytes, hit rate, tensor pipe, launch.
NCU_METRICS = (
    "gpu__time_duration.sum",
    "gpc__cycles_elapsed.max",
    "sm__cycles_elapsed.avg.per_second",
    "dram__bytes_read.sum",
    "dram__bytes_write.sum",
    "l1tex__m_xbar2l1tex_read_bytes.sum",
    "l1tex__m_l1tex2xbar_write_bytes.sum",
    "l1tex__m_xbar2l1tex_read_bytes_mem_dshared.sum",
    "l1tex__m_l1tex2xbar_write_bytes_mem_dshared.sum",
    "lts__t_sectors_srcunit_tex.sum",
    "lts__t_sector_hit_rate.pct",
    "sm__inst_executed_pipe_tensor_op_gmma.avg.pct_of_peak_sustained_active",
    "launch__grid_dim_x",
    "launch__block_dim_x",
    "launch__cluster_dim_x",
)
# CUTLASS wraps every kernel in a function template of this name.
KERNEL_NAME = "device_kernel"
SUFFIXES = {"nsys": ".nsys-rep", "ncu": ".ncu-rep"}
EXPORT_SUFFIXES = {"nsys": ".sqlite", "ncu": ".csv"}
CACHE_CONTROLS = ("none", "all")

Command = list[str]


def nsys_commands(target: Sequence[str], report: Path) -> list[Command]:
    """Return the commands that write `report` (.nsys-rep) and, beside it, its SQLite export."""
    export = report.with_suffix(EXPORT_SUFFIXES["nsys"])
    profile = ["nsys", "profile", "--trace=cuda,nvtx", "--cuda-graph-trace=node", "--sample=none", "--cpuctxsw=none"]
    return [
        [*profile, "--force-overwrite=true", f"--output={report.with_suffix('')}", *target],
        ["nsys", "export", "--type=sqlite", "--force-overwrite=true", f"--output={export}", str(report)],
    ]


def ncu_commands(target: Sequence[str], report: Path, *, warm_up: int, cache_control: str = "none") -> list[Command]:
    """Return the commands that write `report` (.ncu-rep) of one launch and, beside it, its raw page as CSV.

    The launch after `warm_up` others is profiled, at the clocks the user has set. `cache_control` is `none` (caches as
    the launches before left them) or `all` (flushed before each pass): say which beside the numbers.
    """
    if cache_control not in CACHE_CONTROLS:
        raise InstrumentError(f"cache control {cache_control!r} is unknown; expected {' or '.join(CACHE_CONTROLS)}")
    export = report.with_suffix(EXPORT_SUFFIXES["ncu"])
    profile = ["ncu", "--target-processes=all", "--import-source=no", "--clock-control=none"]
    profile += [f"--cache-control={cache_control}", f"--metrics={','.join(NCU_METRICS)}"]
    profile += ["--kernel-name-base=function", f"--kernel-name={KERNEL_NAME}"]
    profile += [f"--launch-skip={warm_up}", "--launch-count=1", "--force-overwrite", f"--export={report}"]
    read = ["ncu", f"--import={report}", "--page=raw", "--csv", "--print-units=base", f"--log-file={export}"]
    return [[*profile, *target], read]


def require_profiler(program: str) -> None:
    """Raise `InstrumentError` when a profiler is not installed."""
    if shutil.which(program) is None:
        raise InstrumentError(f"{program} is not on PATH; install Nsight ({program}) on this node to measure with it")


def run_commands(commands: Sequence[Command], *, quiet: bool = False) -> None:
    """Run a profiler's commands one after the other; raises `InstrumentError` with its last words when one fails."""
    program = commands[0][0]
    require_profiler(program)
    for command in commands:
        try:
            ended = watched_run(command, program, quiet=quiet)
        except OSError as error:
            raise InstrumentError(f"{program}: cannot be run: {error.strerror or error}") from error
        output = ended.stdout + ended.stderr
        if "ERR_NVGPUCTRPERM" in output:
            raise InstrumentError(
                "ncu may not read the GPU's counters (ERR_NVGPUCTRPERM); ask the administrator to allow it, or measure "
                "latency with --profile nsys"
            )
        if ended.returncode:
            last = "\n".join(output.strip().splitlines()[-5:])
            raise InstrumentError(f"{program} failed with code {ended.returncode}:\n{last}")
