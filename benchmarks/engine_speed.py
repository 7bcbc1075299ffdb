"""Speed of the engine on one FA3 call, as ratios inside one process.

Prints lines and cycles a second on one thread, the same with two threads, and a bare loop that only looks up as many
tags as the run sent requests to L2. One thread and the bare loop are measured in CPU time, which other programs on the
machine lengthen less than wall time; two threads against one in wall time. Usage: `python benchmarks/engine_speed.py
[--seqlen 2048] [--model llama3.1-405b] [--set memory.model=hbm3]`.
"""

import argparse
import resource
import time
from collections.abc import Callable

from simfa.hardware import load_preset
from simfa.kernel import kernel_for
from simfa.pipeline import kernel_trace
from simfa.simulate import _core
from simfa.simulate.engine import run
from simfa.workload import MODELS, model_shape


def cpu_seconds(action: Callable[[], object]) -> float:
    """Return the CPU time of all threads that `action` takes."""
    begin = time.process_time()
    action()
    return time.process_time() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=list(MODELS), default="llama3.1-405b")
    parser.add_argument("--seqlen", type=int, default=2048)
    parser.add_argument("--causal", action="store_true")
    parser.add_argument("--gpu", default="h100-sxm")
    parser.add_argument("--set", action="append", default=[], metavar="PATH=VALUE", help="change one preset value")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    hardware = load_preset(options.gpu, overrides=options.set).spec
    shape = model_shape(options.model, options.seqlen, causal=options.causal)
    trace = kernel_trace(shape, kernel_for(shape), hardware.gpu.sm_count)
    one = min((run(trace, hardware) for _ in range(options.repeats)), key=lambda result: result.host_seconds)
    two = min((run(trace, hardware, threads=2) for _ in range(options.repeats)), key=lambda r: r.host_seconds)
    seconds = min(cpu_seconds(lambda: run(trace, hardware)) for _ in range(options.repeats))
    l2 = hardware.l2
    requests = one.counters["l2_read_requests"] + one.counters["l2_write_requests"]
    sets = l2.capacity_bytes // (l2.slices * l2.ways * l2.line_bytes)
    bare = min(
        cpu_seconds(lambda: _core.tag_lookup_seconds(requests, l2.slices, sets, l2.ways))
        for _ in range(options.repeats)
    )
    print(f"{shape.describe()} on {options.gpu}: {one.cycles:,} cycles, {one.lines:,} lines, {requests:,} L2 requests")
    print(f"one thread    {seconds:7.2f} s CPU  {one.lines / seconds / 1e6:6.2f} M lines/s", end="")
    print(f"  {one.cycles / seconds / 1e6:5.2f} M cycles/s  {1e9 * seconds / requests:4.0f} ns a request")
    print(f"bare look-ups {bare:7.2f} s CPU  the run takes {seconds / bare:.2f} x as long")
    print(f"wall time     {one.host_seconds:7.2f} s, with two threads {two.host_seconds:.2f} s", end="")
    print(f"  {one.host_seconds / two.host_seconds:.2f} x as fast")
    print(f"peak memory   {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:7.0f} MB")


if __name__ == "__main__":
    main()
