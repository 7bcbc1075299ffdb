"""Nsight Compute reports (`.ncu-rep`), read with NVIDIA's `ncu-report` package where it is installed."""

import importlib
import math
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

from simfa.errors import MeasureError
from simfa.measure.launch import Launch, Stated
from simfa.measure.metric_table import DESCRIBING, DIMENSIONS
from simfa.measure.ncu_launch import Draft, Identity, finish, source_of
from simfa.measure.ncu_log import Log
from simfa.measure.opening import Notes, unpacked_file
from simfa.measure.quantity import Absent, Reading, exactly
from simfa.measure.unit_spellings import UNITS

MODULE = "ncu_report"


def read(path: Path, notes: Notes, stated: Stated) -> Iterator[Launch]:
    """Yield the kernel launches of a report; values are exact, in base units.

    Raises `MeasureError` where the package is missing, the report is damaged, newer than the package, or holds no
    kernel.
    """
    try:
        module = importlib.import_module(MODULE)
    except ImportError as error:
        raise MeasureError(
            f"{path}: reading .ncu-rep needs NVIDIA's reader: pip install 'simfa[ncu]'; or export it with "
            f"`ncu --import {path.name} --page raw --csv --print-units base --log-file raw.csv`"
        ) from error
    with unpacked_file(path, ".ncu-rep") as file:
        drafts = list(_drafts(path, file, module, notes))
    if not drafts:
        raise MeasureError(
            f"{path}: holds no kernel that ncu-report can read; it is damaged, empty, or written by a newer Nsight "
            "Compute than the installed package (pip install --upgrade ncu-report)"
        )
    source = source_of(notes.name, "ncu-rep")
    for position, draft in enumerate(drafts):
        yield finish(draft, source, Log(), notes, stated, position)


def _drafts(path: Path, file: Path, module: Any, notes: Notes) -> Iterator[Draft]:
    try:
        context = module.load_report(str(file))
        ranges = [context.range_by_idx(index) for index in range(context.num_ranges())]
        actions = [(index, one.action_by_idx(i)) for index, one in enumerate(ranges) for i in range(one.num_actions())]
    except (RuntimeError, OSError, ValueError, TypeError, AttributeError) as error:
        raise MeasureError(f"{path}: ncu-report cannot read it: {error}") from error
    for number, (index, action) in enumerate(actions):
        if action.workload_type() != module.IAction.WorkloadType_KERNEL:
            notes.warn("holds results of ranges or graphs, which are no kernel launches; they are left out")
            continue
        yield _draft(path, number, index, action, module)


def _draft(path: Path, number: int, index: int, action: Any, module: Any) -> Draft:
    name = action.name(module.IAction.NameBase_DEMANGLED) or action.name()
    draft = Draft(Identity(index, "", str(number), str(name), None, None), number)
    for metric_name in sorted(DIMENSIONS.keys() | DESCRIBING):
        metric = action.metric_by_name(metric_name)
        if metric is None:
            continue
        value = metric.value() if metric.has_value() else None
        if metric_name in DESCRIBING:
            draft.described[metric_name] = str(value if value is not None else "")
        else:
            draft.add(metric_name, _reading(path, value, str(metric.unit() or ""), metric_name))
    return draft


def _reading(path: Path, value: object, unit: str, name: str) -> Reading | Absent:
    """Return a report's value; reports hold full precision, so nothing was rounded away."""
    if value is None:
        return Absent("in the report without a value")
    if isinstance(value, bool) or not isinstance(value, int | float):
        return Absent(f"in the report as text: {str(value)[:40]!r}")
    if isinstance(value, float) and not math.isfinite(value):
        return Absent(f"in the report as {value}")
    known = UNITS.get(unit)
    if known is None:
        raise MeasureError(f"{path}: metric {name!r} has unit {unit!r}, which is not known, so it cannot be scaled")
    if known.dimension not in DIMENSIONS[name] or value < 0:
        return Absent(f"in the report as {value} {unit}")
    return exactly(Decimal(repr(value)).scaleb(known.exponent), known.dimension)
