"""Small captures with invented values, taken through `simfa ingest`, and mapping files for them."""

import csv
from pathlib import Path
from typing import Any

from measure_exports import FA3_NCU, HOPPER, csv_text, nsys_sqlite, raw_rows, save

from simfa.measure.reader import Choice, Stated, read
from simfa.measure.write import write

SHAPE = "{ batch = 1, seqlen_q = 512, seqlen_kv = 512, heads_q = 32, heads_kv = 8, head_dim = 128 }"
LONG = "{ batch = 1, seqlen_q = 1024, seqlen_kv = 1024, heads_q = 32, heads_kv = 8, head_dim = 128 }"
GRID = "{ grid = '132x1x1' }"


def launch(ident: int = 0, *, grid: str = "(132, 1, 1)", lacks: str = "", **counters: str) -> list[str]:
    """Return the row of one ncu launch; `counters` replace values of `HOPPER` by the last word of the unit's name."""
    metrics = metrics_of(lacks, **counters)
    return raw_rows(metrics, ID=str(ident), Grid_Size=grid)[2]


def metrics_of(lacks: str = "", **counters: str) -> list[tuple[str, str, str]]:
    names = {
        "time": "gpu__time_duration.sum",
        "cycles": "gpc__cycles_elapsed.max",
        "clock": "sm__cycles_elapsed.avg.per_second",
    }
    changed = {names[key]: value for key, value in counters.items()}
    return [(name, unit, changed.get(name, value)) for name, unit, value in HOPPER if not lacks or lacks not in name]


def ncu_table(
    folder: Path,
    rows: list[list[str]],
    *,
    clock: str | None = "none",
    cache: str | None = "all",
    lacks: str = "",
    name: str = "measured.csv",
) -> str:
    """Ingest a raw page of these launches and return the path of the table."""
    header = raw_rows(metrics_of(lacks))[:2]
    export = save(folder, csv_text([*header, *rows]), f"ncu-{name}")
    found = read(export, choice=Choice(several=True), stated=Stated("NVIDIA H100 80GB HBM3", clock, cache))
    write(folder / name, found)
    return str(folder / name)


def nsys_table(folder: Path, times_ns: list[int], name: str = "nsys.csv") -> str:
    """Ingest an Nsight Systems export of such durations and return the path of the table."""
    launches: list[dict[str, Any]] = [
        {"name": FA3_NCU, "start": 10**6 * index, "end": 10**6 * index + time} for index, time in enumerate(times_ns)
    ]
    export = nsys_sqlite(folder / f"{name}.sqlite", launches, gpu="NVIDIA H100 80GB HBM3")
    write(folder / name, read(export))
    return str(folder / name)


def entry(ident: str = "short", match: str = GRID, shape: str = SHAPE, extra: str = "") -> str:
    return f"[[case]]\nid = '{ident}'\nmatch = {match}\nshape = {shape}\n{extra}\n"


def mapping(folder: Path, *entries: str) -> str:
    return str(save(folder, "\n".join(entries or (entry(),)), "cases.toml"))


def with_columns(path: str, **columns: str) -> str:
    """Add the same columns to every row of a table."""
    rows = list(csv.DictReader(Path(path).read_text().splitlines()))
    with Path(path).open("w", newline="") as handle:
        writer = csv.DictWriter(handle, [*rows[0], *columns])
        writer.writeheader()
        writer.writerows(row | columns for row in rows)
    return path
