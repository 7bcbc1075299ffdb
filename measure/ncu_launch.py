"""One launch being put together from Nsight Compute's rows, whatever page they came from."""

from typing import NamedTuple

from simfa.measure import kernel_names
from simfa.measure.extents import integer, sizes
from simfa.measure.launch import Extent, Launch, Source, Stated, make_launch
from simfa.measure.metric_table import CAPABILITY, DIMENSIONS, GEOMETRY, GPU_NAME, STREAM, memory_of
from simfa.measure.ncu_log import Log
from simfa.measure.opening import Notes
from simfa.measure.quantity import Absent, Reading, read_cell
from simfa.measure.resolve import agree, columns

_TOOL = "ncu"
_DEFAULT_REASON = "the export has no such column"


class Identity(NamedTuple):
    """What tells one launch from another inside a file; `segment` counts tables put one after the other."""

    segment: int
    process: str
    number: str
    name: str
    grid: Extent | None
    block: Extent | None

    @property
    def order(self) -> tuple[object, ...]:
        """Sort key: tables in file order, then processes, then launches in the order they ran."""
        number = int(self.number) if self.number.isdecimal() and len(self.number) < 20 else 0
        return self.segment, self.process, number, self.number, self.name, self.grid or (), self.block or ()


class Draft:
    """A launch while its cells are being read."""

    __slots__ = ("breakdown", "capability", "cells", "described", "device", "flags", "identity", "line", "stream")

    def __init__(self, identity: Identity, line: int) -> None:
        """Start a launch first seen at `line`."""
        self.identity = identity
        self.line = line
        self.device: int | None = None
        self.stream: int | None = None
        self.capability: str | None = None
        self.cells: dict[str, list[Reading | Absent]] = {}
        self.breakdown: dict[str, list[Reading | Absent]] = {}
        self.described: dict[str, str] = {}
        self.flags: list[str] = []

    def measure(self, name: str, text: str, unit: str, *, breakdown: bool = False) -> None:
        """Take one cell of a counter of `metric_table.COUNTERS`; raises `CellError` where it cannot be read.

        A cell in a dimension that this name does not have in the table is another metric under the same label and left
        out. Rows of a breakdown (`--print-details all`) count only where there is no row for the metric itself.
        """
        cell = read_cell(text, unit)
        if isinstance(cell, Reading) and cell.dimension not in DIMENSIONS[name]:
            return
        self.add(name, cell, breakdown=breakdown)

    def add(self, name: str, cell: Reading | Absent, *, breakdown: bool = False) -> None:
        """Take one reading."""
        known = (self.breakdown if breakdown else self.cells).setdefault(name, [])
        if cell not in known:
            known.append(cell)


def finish(draft: Draft, source: Source, log: Log, notes: Notes, stated: Stated, position: int) -> Launch:
    """Return the launch of a draft that has all its cells; `position` is its id where the export has none."""
    cells = {metric: agree(readings) for metric, readings in draft.cells.items()}
    for metric, readings in draft.breakdown.items():
        cells.setdefault(metric, agree(readings))
    described = draft.described
    gpu = described.get(GPU_NAME) or log.gpu
    capability = draft.capability or ".".join(described.get(name, "") for name in CAPABILITY)
    found = columns(cells, memory_of(gpu or stated.gpu, capability if len(capability) > 2 else None))
    name = kernel_names.parse(draft.identity.name)
    flags = [*draft.flags, *found.flags, *(["name_cut"] if name.cut else [])]
    if not found.values:
        flags.append("no_values")
        notes.warn(f"kernel {name.function} has no value in any counter that is read here; its row is kept, all null")
    if found.values.get("l2_definition") == "lts_all":
        notes.warn(
            "l2_bytes comes from all L2 lookups (lts_all), which on A100, H100 and H800 over-counts what the SMs "
            "asked for by half and more; collect l1tex__m_xbar2l1tex_read_bytes.sum,l1tex__m_l1tex2xbar_write_bytes.sum"
        )
    geometry = {key: sizes(*(described.get(part, "") for part in parts)) for key, parts in GEOMETRY.items()}
    if "bytes_disagree_with_rate" in flags:
        notes.warn(
            "DRAM bytes differ from rate times duration by over 1 %: this export's unit prefixes may not be decimal"
        )
    values: dict[str, object] = {
        "launch_id": draft.identity.number or str(position),
        "kernel": name.function or None,
        "kernel_demangled": None if name.mangled else name.full or None,
        "kernel_mangled": name.full if name.mangled else None,
        "grid": draft.identity.grid or geometry["grid"],
        "block": draft.identity.block or geometry["block"],
        "cluster": geometry["cluster"],
        "device": draft.device,
        "stream": draft.stream if draft.stream is not None else integer(described.get(STREAM, "")),
        "clock_control": log.options.get("clock_control"),
        "cache_control": log.options.get("cache_control"),
        "gpu": gpu,
        "source_row": draft.line,
        "flags": tuple(dict.fromkeys(flags)),
        "quantisation": found.quantisation,
        "counters": found.counters,
        **found.values,
    }
    reasons = found.reasons | {
        "start_ns": "Nsight Compute does not export when a kernel started",
        "cluster": "not in this export; the raw page has it as launch__cluster_dim_x, _y and _z",
        "kernel_demangled": "the export has mangled names only; export with --print-kernel-base demangled",
    }
    return make_launch(source, values, tuple(sorted(reasons.items())), _DEFAULT_REASON, stated=stated)


def source_of(name: str, form: str) -> Source:
    """Return the source facts of an Nsight Compute export of that format."""
    return Source(name, form, _TOOL)
