"""What timelines cost: nothing to speak of when off, little when on, and how fast a Perfetto trace is encoded.

Off: the engine of `benchmarks/fixed_kernel.cpp` built as it is against one built without timelines, 20 runs each in
turn, medians of CPU time; more than 5 % fails. On: one FA3 call in this process with and without four SMs recorded, in
turn; less than 60 % of full speed fails. Encoding: millions of slices a second; less than 3 fails. Usage: `python
benchmarks/timeline_cost.py [--skip-build] [--pairs 20]`.
"""

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from simfa.hardware import load_preset
from simfa.kernel import kernel_for
from simfa.pipeline import kernel_trace
from simfa.recording import Recording
from simfa.simulate.engine import run
from simfa.simulate.perfetto import perfetto_trace
from simfa.timeline import Timeline
from simfa.workload import model_shape

ROOT = Path(__file__).parents[1]
MOST_OFF_PERCENT = 5
LEAST_ON_SHARE = 0.6
LEAST_SLICES_PER_SECOND = 3e6


def interleaved(actions: list[Callable[[], float]], pairs: int) -> list[float]:
    """Return the median of what each action returns, `pairs` times in turn."""
    found: list[list[float]] = [[] for _ in actions]
    for _ in range(pairs):
        for action, values in zip(actions, found, strict=True):
            values.append(action())
    return [statistics.median(values) for values in found]


def child_seconds(executable: Path, runs: int) -> float:
    """Return the CPU time of an executable."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([executable, str(runs)], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime


def build(folder: Path, *options: str) -> Path:
    """Return the executable of the fixed kernel, built with CMake options."""
    configure = ["cmake", "-S", str(ROOT), "-B", str(folder), "-DSIMFA_CORE_TESTS=ON", *options]
    subprocess.run(configure, check=True, stdout=subprocess.DEVNULL)
    target = ["cmake", "--build", str(folder), "--target", "simfa_fixed_kernel"]
    subprocess.run(target, check=True, stdout=subprocess.DEVNULL)
    return folder / "simfa_fixed_kernel"


def cost_when_off(pairs: int) -> bool:
    """Print how much longer the engine runs for being able to record; return whether that is little."""
    with tempfile.TemporaryDirectory() as folder:
        plain = build(Path(folder) / "without", "-DSIMFA_TIMELINE=OFF")
        able = build(Path(folder) / "with")
        without, with_timeline = interleaved([lambda: child_seconds(plain, 40), lambda: child_seconds(able, 40)], pairs)
    percent = 100 * (with_timeline / without - 1)
    print(f"off       {with_timeline:.3f} s against {without:.3f} s without timelines: {percent:+.1f} %")
    return percent <= MOST_OFF_PERCENT


def speed_when_on(pairs: int) -> bool:
    """Print the share of its speed that the engine has while it records four SMs; return whether that is enough."""
    hardware = load_preset("h100-sxm").spec
    shape = model_shape("llama3-8b", 2048)
    trace = kernel_trace(shape, kernel_for(shape), hardware.gpu.sm_count)

    def cpu(recording: Recording | None) -> float:
        begin = time.process_time()
        run(trace, hardware, timeline=recording)
        return time.process_time() - begin

    four = Recording(sms=(0, 1, 2, 3))
    off, on = interleaved([lambda: cpu(None), lambda: cpu(four)], pairs)
    recorded = run(trace, hardware, timeline=four).timeline
    assert recorded is not None
    print(
        f"on        {on:.3f} s against {off:.3f} s for {len(recorded):,} slices of 4 SMs: {off / on:.0%} of full speed"
    )
    return off / on >= LEAST_ON_SHARE


def encoding() -> bool:
    """Print how many slices a second become a Perfetto trace; return whether that is enough."""
    count = 2_000_000
    starts = np.arange(count // 4, dtype=np.int64) * 37
    timeline = Timeline(
        track_name=[f"sm{sm}/consumer1" for sm in range(4)],
        slice_name=["softmax", "wgmma_wait"],
        track=np.repeat(np.arange(4, dtype=np.int32), count // 4),
        name=np.tile(np.array([0, 1], np.int32), count // 2),
        start_cycle=np.tile(starts, 4),
        end_cycle=np.tile(starts + 36, 4),
        arg=np.zeros(count, np.int32),
        sm_clock_hz=1.83e9,
    )
    begin = time.process_time()
    size = sum(map(len, perfetto_trace(timeline)))
    rate = count / (time.process_time() - begin)
    print(f"encoding  {rate / 1e6:.1f} M slices/s, {size / count:.0f} bytes a slice")
    return rate >= LEAST_SLICES_PER_SECOND


def main() -> int:
    """Measure and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--skip-build", action="store_true", help="leave out the cost when off, which builds twice")
    parser.add_argument("--pairs", type=int, default=20, help="runs of each kind")
    options = parser.parse_args()
    checks = [speed_when_on(max(3, options.pairs // 4)), encoding()]
    if not options.skip_build:
        checks.append(cost_when_off(options.pairs))
    return 0 if all(checks) else 1


if __name__ == "__main__":
    sys.exit(main())
