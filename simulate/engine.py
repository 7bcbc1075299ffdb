"""Runs a trace on the compiled engine: in chunks, with progress, a stop on Ctrl-C, and hangs named by instruction."""

import re
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simfa.errors import SimulationError
from simfa.hardware import HardwareSpec
from simfa.isa import MNEMONICS, Repeat
from simfa.recording import Recording
from simfa.simulate import _core
from simfa.simulate.encode import encode_kernel, ring_numbers
from simfa.simulate.engine_config import engine_config
from simfa.simulate.results import RunResult, run_result
from simfa.simulate.timeline_rows import ROLE_NAMES, Names, engine_choice, timeline_of
from simfa.trace import Trace

# Ctrl-C and progress are looked at between chunks of so much host time.
CHUNK_SECONDS = 0.02


class Progress(NamedTuple):
    """How far a run has come."""

    cycles: int
    tiles_begun: int
    tiles: int
    seconds: float


def run(
    trace: Trace,
    hardware: HardwareSpec,
    *,
    threads: int = 1,
    window_cycles: int = 0,
    max_cycles: int | None = None,
    seed: int = 0,
    timeline: Recording | None = None,
    progress: Callable[[Progress], None] | None = None,
    warm: Sequence[tuple[int, NDArray[np.uint32]]] = (),
) -> RunResult:
    """Simulate `trace` on `hardware` with its full memory hierarchy.

    `warm` fills L2 beforehand: pairs of an SM and the lines it read, in order, as reads that take no time would.

    `threads` and `window_cycles` (0: as long as possible) change the host time only, never a result. With `max_cycles`
    a longer run is stopped there and its result is marked `partial`. `timeline` says what to record. Raises
    `SimulationError` for what cannot run or be recorded, for too many slices, and for a hang, naming role, CTA,
    instruction and what it waits for.
    """
    options: dict[str, Any] = {
        "threads": threads,
        "window_cycles": window_cycles,
        "seed": seed,
    }
    if max_cycles is not None:
        options["max_cycles"] = max_cycles
    choice = None
    if timeline is not None:
        choice = options["timeline"] = engine_choice(timeline, trace, hardware.gpu.sm_count)
    core, ring_names, labels = _engine(trace, hardware, **options)
    try:
        for sm, lines in warm:
            core.warm(lines, sm)
    except ValueError as error:
        raise SimulationError(str(error)) from error
    begin = time.perf_counter()
    _advance(core, trace, progress, timeline)
    seconds = time.perf_counter() - begin
    recorded = None
    if choice is not None:
        names = Names(trace.roles, ring_names, labels)
        recorded = timeline_of(core, names, choice, hardware.gpu.sm_clock_hz)
    return run_result(core.stats(), trace, hardware, seconds, partial=core.partial, timeline=recorded)


def check(trace: Trace, hardware: HardwareSpec) -> None:
    """Raise `SimulationError` if `trace` cannot start on `hardware`."""
    _engine(trace, hardware)


def count_between(
    trace: Trace, hardware: HardwareSpec, *, begin_cycle: int, end_cycle: int
) -> tuple[dict[str, int], int]:
    """Return what the engine's counters rose by between two cycles of a run, and the cycles between them.

    The run is looked at after whole windows, at the given cycles or a little later, or at the kernel's end.
    """
    core, _, _ = _engine(trace, hardware, max_cycles=end_cycle)
    try:
        core.advance(begin_cycle)
        begin, before = core.now, core.stats()
        core.advance(end_cycle)
    except RuntimeError as error:
        raise SimulationError(_name_places(str(error), trace)) from error
    after = core.stats()
    counts = {name: value - before[name] for name, value in after.items() if isinstance(value, int)}
    return counts, after["cycles"] - begin


class IdealResult(NamedTuple):
    """A run with ideal memory: what the reference engine is compared with."""

    cycles: int
    issues: dict[tuple[int, int], list[tuple[int, str, int]]]
    ends: dict[tuple[int, int], int]
    lines: int
    bytes: int


def run_ideal(trace: Trace, hardware: HardwareSpec, *, memory_latency_cycles: int, threads: int = 1) -> IdealResult:
    """Simulate `trace` with a fixed line latency and no other memory limits, recording every issued instruction."""
    if memory_latency_cycles < 1:
        raise SimulationError(f"memory_latency_cycles is {memory_latency_cycles}; expected at least 1")
    core, _, _ = _engine(
        trace, hardware, ideal_latency_cycles=memory_latency_cycles, record_issues=True, threads=threads
    )
    _advance(core, trace, None, None)
    issues: dict[tuple[int, int], list[tuple[int, str, int]]] = {
        (cta, role): [] for cta in range(trace.schedule.ctas) for role in range(trace.roles)
    }
    for cycle, cta, role, program, flat in core.issues().tolist():
        issues[cta, role].append((cycle, trace.programs[program].name, flat))
    ends = {key: core.role_end(*key) for key in issues}
    stats = core.stats()
    return IdealResult(stats["cycles"], issues, ends, stats["requests"], stats["read_bytes"] + stats["write_bytes"])


def _engine(trace: Trace, hardware: HardwareSpec, **options: Any) -> tuple[_core.Engine, list[str], list[str]]:
    """Return an engine ready to run, and the names of its rings and accumulators."""
    try:
        kernel, ring_names, labels = encode_kernel(trace, hardware)
        return _core.Engine(engine_config(hardware, **options), kernel), ring_names, labels
    except ValueError as error:
        raise SimulationError(_name_places(str(error), trace)) from error


def _advance(
    core: _core.Engine, trace: Trace, progress: Callable[[Progress], None] | None, timeline: Recording | None
) -> None:
    """Run to the kernel's end or to the engine's `max_cycles`."""
    tiles = sum(len(part) for part in trace.schedule.tiles)
    begin = time.perf_counter()
    over = False
    while not over:
        try:
            over = core.run_for(CHUNK_SECONDS)
        except RuntimeError as error:
            raise SimulationError(_name_places(str(error), trace)) from error
        if timeline is not None and core.timeline_size > timeline.limit_slices:
            raise SimulationError(
                f"the timeline has more than {timeline.limit_slices:,} slices; record fewer SMs (--timeline-sm), some "
                "tiles (--timeline-tile) or cycles (--timeline-window), or raise --timeline-limit"
            )
        if progress is not None:
            progress(Progress(core.now, core.tiles_begun, tiles, time.perf_counter() - begin))


def _name_places(message: str, trace: Trace) -> str:
    """Replace the engine's numbers of programs, instructions, roles, rings and tensor maps by names."""

    def place(match: re.Match[str]) -> str:
        program = trace.programs[int(match[1])]
        flat = [i for item in program.body for i in (item.body if isinstance(item, Repeat) else (item,))]
        number = int(match[2])
        mnemonic = MNEMONICS[type(flat[number])] if number < len(flat) else "end"
        return f"program {program.name}, instruction {number} ({mnemonic})"

    ring_names = {number: name for name, number in ring_numbers(trace).items()}
    message = re.sub(r"@(\d+):(\d+)", place, message)
    message = re.sub(r"ring #(\d+)", lambda match: f"ring {ring_names[int(match[1])]}", message)
    message = re.sub(r"tensor map #(\d+)", lambda match: f"tensor map {trace.maps[int(match[1])].name}", message)
    return re.sub(r"role (\d+)", lambda match: f"role {match[1]} ({ROLE_NAMES[int(match[1])]})", message)
