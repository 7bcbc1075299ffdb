"""Simulated runs read back from `stats.json`, and the pairing of runs with measured cases."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from simfa.clock import Activity, ClockModel, activity, cuda_busy_cycles, repeated
from simfa.errors import MeasureError
from simfa.hardware import load_preset
from simfa.kernel import kernel_for
from simfa.measure.cases import MeasuredCase
from simfa.measure.traffic import ModelTraffic
from simfa.workload import AttentionShape


class SimulatedRun(msgspec.Struct, frozen=True, kw_only=True):
    """What a comparison needs of one simulation.

    `effective_clock_hz` is the clock of the cycles in `latency_us`, where a clock model has changed it.
    `tensor_utilization` is a fraction; `cuda_cycles` of busy CUDA cores are summed over SMs; `log_source` is
    `captured`, `synthetic`, or `none` for a run that had no log. `log_us` is the duration of the log's longest
    row, where `log.json` (`simfa log info --json`) stands beside.
    """

    name: str
    preset: str
    preset_sha256: str
    kernel_version: str
    sm_clock_hz: float
    shape: AttentionShape
    cycles: int
    latency_us: float
    tensor_utilization: float
    cuda_cycles: int
    l2_read_bytes: int
    sm_read_bytes: int
    sm_write_bytes: int
    dram_read_bytes: int
    dram_write_bytes: int
    log_source: str
    log_us: float | None = None
    effective_clock_hz: float | None = None

    @property
    def key(self) -> tuple[AttentionShape, str, str, int]:
        """What makes two runs the same: shape, preset, kernel version and SM clock in whole Hz."""
        return self.shape, self.preset, self.kernel_version, round(self.sm_clock_hz)


def read_run(path: str | Path) -> SimulatedRun:
    """Return the run of a `stats.json`; raises `MeasureError` naming the file and the key that is missing or wrong."""
    file = Path(path)
    try:
        run = run_from(msgspec.json.decode(file.read_bytes()), file.parent.name)
        log = file.with_name("log.json")
        if not log.is_file():
            return run
        return msgspec.structs.replace(run, log_us=msgspec.json.decode(log.read_bytes())["longest_row_ns"] / 1000)
    except OSError as error:
        raise MeasureError(f"{file}: cannot be read: {error.strerror}") from error
    except msgspec.DecodeError as error:
        raise MeasureError(f"{file}: not the JSON of a run: {error}") from error
    except (KeyError, TypeError) as error:
        raise MeasureError(f"{file.with_name('log.json')}: longest_row_ns is missing or wrong: {error}") from error
    except MeasureError as error:
        raise MeasureError(f"{file}: {error}") from error


def run_from(stats: Mapping[str, Any], name: str) -> SimulatedRun:
    """Return the run that the keys of `stats.json` describe; raises `MeasureError` for a missing or wrong key."""
    try:
        if stats.get("partial"):
            raise MeasureError("the run was stopped before its end; its latency is no latency of the kernel")
        manifest = stats["manifest"]
        return msgspec.convert(
            {
                "name": name,
                "preset": manifest["gpu_preset"],
                "preset_sha256": manifest["gpu_preset_sha256"],
                "kernel_version": stats["kernel"]["version"],
                "sm_clock_hz": stats["sm_clock_hz"],
                "shape": stats["shape"],
                "cycles": stats["cycles"],
                "latency_us": stats["latency_us"],
                "tensor_utilization": stats["tensor_utilization"],
                "cuda_cycles": cuda_busy_cycles(stats["stall_cycles"]),
                "l2_read_bytes": stats["l2_read_bytes"],
                "sm_read_bytes": stats["sm_read_bytes"],
                "sm_write_bytes": stats["sm_write_bytes"],
                "dram_read_bytes": stats["dram_read_bytes"],
                "dram_write_bytes": stats["dram_write_bytes"],
                "log_source": manifest["log_source"],
            },
            SimulatedRun,
        )
    except KeyError as error:
        raise MeasureError(f"key {error} is missing; written by another version? simulate again") from error
    except (AttributeError, TypeError, msgspec.ValidationError) as error:
        raise MeasureError(f"not a simulation's statistics: {error}") from error


def find_stats(places: Sequence[str | Path]) -> list[Path]:
    """Return the files among `places` and every `stats.json` below the folders among them, in that order.

    Raises `MeasureError` for a folder that holds none.
    """
    found: list[Path] = []
    for place in map(Path, places):
        here = [place] if place.is_file() else sorted(place.rglob("stats.json"))
        if not here:
            raise MeasureError(f"{place}: holds no stats.json; expected the -o folder of simulate, predict or validate")
        found += here
    return found


def simulated_traffic(run: SimulatedRun) -> ModelTraffic:
    """Return the traffic of a run by definition: stores leave SMs as they reach L2, reads are merged."""
    return ModelTraffic(
        model="simulator",
        sm_side=run.sm_read_bytes + run.sm_write_bytes,
        lts_from_sm=run.l2_read_bytes + run.sm_write_bytes,
        dram_read_bytes=run.dram_read_bytes,
        dram_write_bytes=run.dram_write_bytes,
        dram_total_bytes=run.dram_read_bytes + run.dram_write_bytes,
    )


def clock_of(case: MeasuredCase) -> float:
    """Return the SM clock in Hz to simulate a case at: the measured one, else the preset's nominal clock."""
    return case.sm_clock_hz if case.sm_clock_hz is not None else load_preset(case.preset).spec.gpu.sm_clock_hz


def activity_of(case: MeasuredCase, run: SimulatedRun) -> Activity:
    """Return what kept the part busy in a run of a case."""
    return activity(
        load_preset(case.preset).spec,
        cycles=run.cycles,
        clock_hz=run.sm_clock_hz,
        tensor_share=run.tensor_utilization,
        cuda_cycles=run.cuda_cycles,
        l2_read_bytes=run.l2_read_bytes,
        dram_bytes=run.dram_read_bytes + run.dram_write_bytes,
    )


def with_clock_model(case: MeasuredCase, run: SimulatedRun, model: ClockModel) -> SimulatedRun:
    """Return a run as `model` times its case: a sustained clock changes looped cases alone."""
    if model == "nominal" or case.launches != "looped":
        return run
    latency_us, clock = repeated(
        load_preset(case.preset).spec,
        activity_of(case, run),
        cycles=run.cycles,
        clock_hz=run.sm_clock_hz,
        clears_counter=clears_counter(case),
    )
    return msgspec.structs.replace(run, latency_us=latency_us, effective_clock_hz=clock)


def clears_counter(case: MeasuredCase) -> bool:
    """Return whether each launch of a case needs its tile counter cleared."""
    return kernel_for(case.shape, case.kernel_version).draws_tiles


def pair(
    cases: Iterable[MeasuredCase], runs: Iterable[SimulatedRun]
) -> tuple[list[tuple[MeasuredCase, SimulatedRun]], list[MeasuredCase]]:
    """Return each case with the run of its shape, preset, kernel version and clock, and the cases without one.

    A case with measured cycles also takes the run of the nearest other clock: cycles are compared then.
    """
    by_key = {run.key: run for run in runs}
    pairs, missing = [], []
    for case in cases:
        what = (case.shape, load_preset(case.preset).name, case.kernel_version)
        clock = round(clock_of(case))
        run = by_key.get((*what, clock))
        if run is None and case.cycles is not None:
            others = [run for key, run in by_key.items() if key[:3] == what]
            run = min(others, key=lambda run: (abs(run.sm_clock_hz - clock), run.sm_clock_hz), default=None)
        if run is None:
            missing.append(case)
        else:
            pairs.append((case, run))
    return pairs, missing
