"""Large exports in little memory: peak resident size of the whole command."""

import csv
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from measure_exports import (
    CLUSTER_COLUMNS,
    CPU_EVENT,
    DETAILS_20,
    FA3,
    GEMM,
    NSYS_BASE,
    NSYS_TRACE,
    csv_text,
    details_rows,
    kernel_event,
    kineto,
    nsys_sqlite,
    trace_row,
)

from simfa.measure.reader import read
from simfa.measure.write import write

MIB = 1 << 20
pytestmark = pytest.mark.slow


def peak_mib(path: Path, *arguments: str) -> float:
    """Run `simfa ingest`, which must succeed, and return its peak resident memory."""
    command = [sys.executable, "-m", "simfa", "ingest", str(path), *arguments, "-o", str(path.with_suffix(".out.csv"))]
    code = (
        "import subprocess, resource, sys; done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL);"
        "print(done.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    answer = subprocess.run([sys.executable, "-c", code, *command], capture_output=True, text=True, check=True).stdout
    status, size = answer.split()
    assert status == "0"
    return int(size) / (MIB if sys.platform == "darwin" else 1024)


def test_eighty_thousand_launches_of_sqlite(tmp_path: Path) -> None:
    launches = [{"name": FA3 if number % 2 else GEMM} for number in range(80_000)]
    path = nsys_sqlite(tmp_path / "a.sqlite", launches, columns=(*NSYS_BASE, *CLUSTER_COLUMNS))
    assert peak_mib(path) < 300


def test_fifty_megabytes_of_csv(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    with path.open("w") as handle:
        handle.write(csv_text([DETAILS_20]))
        number = 0
        while handle.tell() < 50 * MIB:
            handle.write(csv_text(details_rows(ID=str(number))))
            number += 1
    assert peak_mib(path) < 300


def nsys_stats(path: Path, size: int) -> Path:
    """A launch trace of `nsys stats` in microseconds, of about `size` bytes."""
    titles = [title.replace("(ns)", "(us)") for title in NSYS_TRACE]
    tail = csv_text([trace_row()[3:]], csv.QUOTE_MINIMAL)
    with path.open("w") as handle:
        handle.write(csv_text([titles], csv.QUOTE_MINIMAL))
        for number in range(size // (len(tail) + 22)):
            handle.write(f"{number * 305}.{number % 1000:03d},304.{number % 977:03d},{number},{tail}")
    return path


def test_fifty_megabytes_of_nsys_stats(tmp_path: Path) -> None:
    path = nsys_stats(tmp_path / "a.csv", 50 * MIB)
    assert path.stat().st_size > 49 * MIB
    assert peak_mib(path) < 300


def test_nsys_stats_cost_few_plain_passes(tmp_path: Path) -> None:
    path = nsys_stats(tmp_path / "a.csv", 4 * MIB)

    def plain_pass() -> None:
        with path.open(newline="") as handle, (tmp_path / "plain.csv").open("w", newline="") as copy:
            csv.writer(copy).writerows(csv.reader(handle))

    def ingest() -> None:
        write(tmp_path / "table.csv", read(path))

    def seconds(work: Callable[[], None]) -> float:
        begin = time.process_time()
        work()
        return time.process_time() - begin

    ingest()  # imports and compiled patterns
    pairs = [(seconds(plain_pass), seconds(ingest)) for _ in range(5)]
    assert statistics.median(whole / plain for plain, whole in pairs) < 4, pairs


def test_kineto_memory_depends_on_what_is_kept(tmp_path: Path) -> None:
    filler = [CPU_EVENT | {"args": {"Call stack": "x" * 400}}, kernel_event(GEMM)] * 1000
    body = kineto(filler)
    head, tail = body[: body.index("[\n") + 2], body[body.rindex("\n]") :]
    middle = body[len(head) : len(body) - len(tail)]
    peaks = []
    for copies in (5, 25):
        path = tmp_path / f"{copies}.json"
        with path.open("w") as handle:
            handle.write(head)
            for _ in range(copies):
                handle.write(middle + ",\n")
            handle.write(kineto([kernel_event()], as_list=True).strip()[1:-1] + tail)
        peaks.append(peak_mib(path, "--kernel", "FlashAttnFwd"))
    assert peaks[1] < peaks[0] + 20
