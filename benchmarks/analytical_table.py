"""Pricing a table of random calls: seconds, memory, and the ratio to copying the same file cell by cell.

Run from the repository root: `python benchmarks/analytical_table.py [ROWS] [POLICY]`.
"""

import csv
import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from simfa.analytical.machine import resolve
from simfa.analytical.table_files import price_table

CHOICES = {
    "batch": [1, 2, 4, 8],
    "seqlen_q": range(1, 200_000),
    "seqlen_kv": range(1, 200_000),
    "group_size": [1, 2, 4, 8, 16],
    "num_kv_heads": [1, 4, 8, 16],
    "head_dim": [64, 128, 256],
    "tile_m": [64, 128, 192],
    "element_bytes": [1, 2, 4],
    "num_sms": [48, 78, 114, 132],
    "max_ctas_per_sm": [1, 2],
    "effective_l2_bytes": [23_404_216, 25_000_000, 26_214_400, 52_428_800],
}


def make_table(path: Path, rows: int) -> None:
    """Write `rows` random calls, the same for every run."""
    random = np.random.default_rng(0)
    columns = [random.choice(np.asarray(values), rows).tolist() for values in CHOICES.values()]
    with path.open("w", encoding="utf-8", newline="") as handle:
        writer = csv.writer(handle, lineterminator="\n")
        writer.writerow(CHOICES)
        writer.writerows(zip(*columns, strict=True))


def copy_table(source: Path, target: Path) -> None:
    """Read and write every cell as an integer with the csv module."""
    with source.open(encoding="utf-8", newline="") as read, target.open("w", encoding="utf-8", newline="") as write:
        reader, writer = csv.reader(read), csv.writer(write, lineterminator="\n")
        writer.writerow(next(reader))
        writer.writerows(list(map(int, row)) for row in reader)


def cpu_seconds(work: object, *arguments: object) -> float:
    """Return the process time of one call."""
    begin = time.process_time()
    work(*arguments)  # type: ignore[operator]
    return time.process_time() - begin


def main() -> None:
    """Measure and print."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    policy = sys.argv[2] if len(sys.argv) > 2 else "capacity"
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "in.csv", Path(folder) / "out.csv"
        make_table(source, rows)
        copied = cpu_seconds(copy_table, source, target)
        priced = cpu_seconds(price_table, source, target, resolve("h100-sxm"), policy)
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{rows} rows, {policy}: {priced:.1f} s CPU, {priced / copied:.2f} x a copy, peak {megabytes:.0f} MB")


if __name__ == "__main__":
    main()
