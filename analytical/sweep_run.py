"""Running a sweep: parts that are written once, kept, and put together; nothing is computed twice."""

import csv
import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from simfa.analytical.sweep import Backend, Scalar, Sweep, SweepPoint, pareto_front
from simfa.errors import AnalyticalError, SimfaError
from simfa.files import atomic_write, sha256_of, write_manifest
from simfa.outputs import make_folder

Progress = Callable[[int], None]


class SweepResult(NamedTuple):
    """What a finished sweep left: files, number of points, and the rows on the Pareto front."""

    points_file: Path
    pareto_file: Path
    points: int
    failed: int
    front: list[dict[str, str]]


def part_file(folder: Path, part: int, parts: int) -> Path:
    """Return where part `part` (from 0) of `parts` is kept."""
    return folder / "parts" / f"{part:05d}-of-{parts:05d}.csv"


def run_part(
    source: Path,
    sweep: Sweep,
    folder: Path,
    part: int,
    parts: int,
    backend: Backend,
    keep_going: bool = False,
    progress: Progress | None = None,
) -> bool:
    """Evaluate one part unless its file is there already, for this sweep file and version; return whether it ran.

    A point that raises `SimfaError` stops the part, or leaves its message in column `error` with `keep_going`.
    `progress` is told how many points are done.
    """
    if not 0 <= part < parts:
        raise AnalyticalError(f"part {part} does not exist; expected 0 to {parts - 1}")
    target = part_file(folder, part, parts)
    if _is_current(target, sweep, keep_going):
        return False
    rows: list[dict[str, Scalar]] = []
    for point in sweep.points(sweep.part_range(part, parts)):
        rows.append({"point": point.number, **point.fields, **_evaluated(sweep, point, backend, keep_going)})
        if progress is not None:
            progress(len(rows))
    results = next((list(row) for row in rows if not row.get("error")), ["point", *sweep.field_names, "error"])
    columns = list(dict.fromkeys(["point", *sweep.field_names, *results]))
    if keep_going:
        columns = list(dict.fromkeys([*columns, "error"]))
    make_folder(target.parent)
    with atomic_write(target) as handle:
        writer = csv.DictWriter(handle, columns, lineterminator="\n", restval="")
        writer.writeheader()
        writer.writerows(rows)
    write_manifest(target, "sweep", {"sweep": source}, sweep_digest=sweep.digest, keep_going=keep_going)
    return True


def finish(
    source: Path,
    sweep: Sweep,
    folder: Path,
    parts: int,
    backend: Backend,
    keep_going: bool = False,
    progress: Progress | None = None,
) -> SweepResult:
    """Evaluate the parts that are missing, then write `points.csv` and `pareto.csv` in `folder`.

    `progress` is told how many points are done, those that were there before included.
    """
    for part in range(parts):
        before = sweep.part_range(part, parts).start
        told = None if progress is None else partial(_told_after, progress, before)
        run_part(source, sweep, folder, part, parts, backend, keep_going, told)
    files = [part_file(folder, part, parts) for part in range(parts)]
    columns = _columns(files)
    missing = [name for name in (*_objective_columns(sweep), *sweep.group_by) if name not in columns]
    if missing:
        raise AnalyticalError(f"{source}: {missing[0]!r} is no column of the results; expected {', '.join(columns)}")
    points_file, pareto_file = folder / "points.csv", folder / "pareto.csv"
    count = 0
    groups: dict[tuple[str, ...], tuple[list[int], list[list[float]]]] = {}
    failed = 0
    with atomic_write(points_file) as handle:
        writer = csv.DictWriter(handle, columns, lineterminator="\n", restval="")
        writer.writeheader()
        for row in _rows(files):
            writer.writerow(row)
            count += 1
            if row.get("error"):
                failed += 1
                continue
            numbers, values = groups.setdefault(tuple(row[name] for name in sweep.group_by), ([], []))
            numbers.append(int(row["point"]))
            values.append([_number(source, name, row[name]) for name in _objective_columns(sweep)])
    goals = [objective.goal for objective in sweep.objectives]
    best = {numbers[index] for numbers, values in groups.values() for index in pareto_front(values, goals)}
    front = [row for row in _rows(files) if int(row["point"]) in best]
    with atomic_write(pareto_file) as handle:
        writer = csv.DictWriter(handle, columns, lineterminator="\n", restval="")
        writer.writeheader()
        writer.writerows(front)
    for output in (points_file, pareto_file):
        write_manifest(output, "sweep", {"sweep": source}, sweep_digest=sweep.digest, points=count)
    return SweepResult(points_file, pareto_file, count, failed, front)


def _evaluated(sweep: Sweep, point: SweepPoint, backend: Backend, keep_going: bool) -> dict[str, Scalar]:
    try:
        return dict(backend(point))
    except SimfaError as error:
        if keep_going:
            return {"error": str(error)}
        fields = ", ".join(f"{name} {value}" for name, value in point.fields.items())
        raise AnalyticalError(f"{sweep.name} point {point.number} ({fields}): {error}") from error


def _is_current(target: Path, sweep: Sweep, keep_going: bool) -> bool:
    """Whether a finished part is there, whole, and made from the same sweep file by the same version."""
    try:
        manifest: Any = json.loads(target.with_name(target.name + ".manifest.json").read_text(encoding="utf-8"))
        return bool(
            manifest["sweep_digest"] == sweep.digest
            and manifest["keep_going"] == keep_going
            and manifest["output"]["sha256"] == sha256_of(target)
        )
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _told_after(progress: Progress, before: int, done: int) -> None:
    """Tell how many points of a sweep are done, `before` of them in earlier parts."""
    progress(before + done)


def _rows(files: list[Path]) -> Iterator[dict[str, str]]:
    for file in files:
        with file.open(encoding="utf-8", newline="") as handle:
            yield from csv.DictReader(handle)


def _columns(files: list[Path]) -> list[str]:
    """Return the columns of all parts: those of the parts whose points were priced, and `error` last."""
    names: dict[str, None] = {}
    for file in files:
        with file.open(encoding="utf-8", newline="") as handle:
            names |= dict.fromkeys(next(csv.reader(handle)))
    errors = ["error"] if "error" in names else []
    return [name for name in names if name != "error"] + errors


def _objective_columns(sweep: Sweep) -> list[str]:
    return [objective.column for objective in sweep.objectives]


def _number(source: Path, name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise AnalyticalError(f"{source}: objective {name} is {text!r}; expected a number") from None
