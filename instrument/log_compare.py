"""A log's durations beside the simulator's stall cycles of the same kernel: cycles a tile, by role."""

from pathlib import Path
from typing import NamedTuple

import msgspec

from simfa.errors import LogError
from simfa.events import PRODUCER
from simfa.instrument.log_stats import span_statistics
from simfa.kernel import KernelSpec
from simfa.salog import LogSource
from simfa.workload import AttentionShape

# What a warp stamps of a wait or of work, and the reasons that the simulator books for the same cycles. QK and PV have
# no partner: their spans overlap each other and the softmax.
PRODUCER_PAIRS = (
    (("K stage wait", "V stage wait"), ("acquire_stage",)),
    (("query empty wait",), ("acquire_q",)),
    (("O store wait",), ("acquire_o",)),
)
CONSUMER_PAIRS = (
    (("Q wait",), ("wait_q",)),
    (("K wait",), ("wait_k",)),
    (("V wait",), ("wait_v",)),
    (("ping-pong wait",), ("barrier",)),
    (("WGMMA wait<1>", "WGMMA wait<0>"), ("wgmma_wait",)),
    (("softmax",), ("softmax", "cuda_contention")),
    (("O store",), ("store",)),
)


class _Counters(msgspec.Struct):
    tiles: int


class _Run(msgspec.Struct):
    """What is read of a run's `stats.json`."""

    shape: AttentionShape
    kernel: KernelSpec
    stall_cycles: dict[str, dict[str, int]]
    counters: _Counters
    partial: bool


class Compared(NamedTuple):
    """One line: role, spans of the log, reasons of the simulator, and the mean cycles a tile of both."""

    role: int
    spans: str
    log_cycles: float
    reasons: str
    simulated_cycles: float


def compare_with_run(log: LogSource, stats: Path, name: str = "log") -> list[Compared]:
    """Return the pairs that log and run both have, by role.

    `stats` is the `stats.json` of `simfa simulate`. Raises `LogError` for a level-1 log, which stamps no ends, for a
    file that is no such result, and for a run of another shape or kernel or one that was stopped.
    """
    if log.metadata.level < 2:
        raise LogError(f"{name}: a level-1 log stamps no ends of waits; compare one of level 2")
    run = _read(stats)
    if run.shape != log.metadata.shape or run.kernel != log.metadata.kernel:
        raise LogError(
            f"{stats}: the run is of {run.shape.describe()} with FA3 {run.kernel.version}, the log of "
            f"{log.metadata.shape.describe()} with FA3 {log.metadata.kernel.version}; compare the same kernel"
        )
    if run.partial or not run.counters.tiles:
        raise LogError(f"{stats}: the run was stopped before its end; simulate without --max-cycles")
    spans = span_statistics(log, name)
    total = {(entry.role, entry.span): entry.count * entry.mean_cycles for entry in spans}
    tiles = {entry.role: entry.count for entry in spans if entry.span == "tile"}
    found = []
    for role in sorted(tiles):
        simulated = run.stall_cycles["producer" if role == PRODUCER else f"consumer{role}"]
        for names, reasons in PRODUCER_PAIRS if role == PRODUCER else CONSUMER_PAIRS:
            logged = [total[role, span] for span in names if (role, span) in total]
            booked = [simulated[reason] for reason in reasons if reason in simulated]
            if logged or booked:
                found.append(
                    Compared(
                        role,
                        " + ".join(names),
                        sum(logged) / tiles[role],
                        " + ".join(reasons),
                        sum(booked) / run.counters.tiles,
                    )
                )
    return found


def _read(stats: Path) -> _Run:
    try:
        return msgspec.json.decode(stats.read_bytes(), type=_Run)
    except (OSError, msgspec.MsgspecError) as error:
        raise LogError(
            f"{stats}: cannot be read ({error}); expected the stats.json of `simfa simulate -o DIR`"
        ) from error
