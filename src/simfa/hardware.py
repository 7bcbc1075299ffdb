"""Hardware presets: every number of the model with its unit, status and source, read from `presets/*.toml`.

A preset may extend another; overlays (`presets/overlays/*.toml`) and `key=value` overrides are merged over it.
Values in ns belong to another clock than the SM's and are converted once, at load of the engine.
"""

import hashlib
import tomllib
import typing
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from simfa.dram import Dram
from simfa.errors import HardwareError, did_you_mean
from simfa.line_rules import check_lines
from simfa.spec_types import Count, Cycles, Fraction, Group, Nanoseconds, Rate, Status


class Gpu(Group, frozen=True):
    """The chip as a whole."""

    name: str
    sm_count: Count
    sm_clock_hz: Rate
    compute_capability: str


class Sm(Group, frozen=True):
    """SM frontend (Algorithm 1)."""

    issue_width: Count
    scheduler: Literal["gto", "lrr", "oldest"]
    shared_memory_bytes: Count
    registers: Count


class TensorCore(Group, frozen=True):
    """The tensor pipe of one SM; m64nNk16 occupies it for 2 * 64 * N * 16 / flop_per_cycle cycles and an overhead."""

    flop_per_cycle: Count
    wgmma_min_cycles: Cycles
    wgmma_overhead_cycles: Cycles
    wgmma_issue_cycles: Count
    wgmma_tail_ss_cycles: Cycles
    wgmma_tail_rs_cycles: Cycles
    wgmma_window_ss: Count
    wgmma_window_rs: Count
    group_drain_cycles: Cycles


class CudaCore(Group, frozen=True):
    """CUDA-core work of a warpgroup, priced from operation counts; a rate of 0 means the operation is hidden."""

    sharing: Literal["shared", "private"]
    order: Literal["fifo", "round_robin"]
    quantum_cycles: Count
    exp_per_cycle: Cycles
    max_per_cycle: Cycles
    scale_per_cycle: Cycles
    sum_per_cycle: Cycles
    convert_per_cycle: Cycles
    rescale_per_cycle: Cycles
    mask_per_cycle: Cycles
    epilogue_per_cycle: Cycles
    register_pressure: Fraction


class Tma(Group, frozen=True):
    """TMA engine of one SM (Figure 2)."""

    level: Annotated[int, Meta(ge=0, le=1)]
    level_0_latency_cycles: Cycles
    launch_cycles: Cycles
    tensor_map_cycles: Cycles
    descriptor_cache_entries: Count
    descriptor_miss_cycles: Cycles
    issue_gap_cycles: Cycles
    issue_bytes_per_cycle: Count
    max_lines_in_flight: Count
    deduplicate: bool
    request_bytes: Count
    store_read_cycles: Cycles


class Mbarrier(Group, frozen=True):
    """Shared-memory barriers of the TMA pipelines."""

    arrive_cycles: Cycles
    remote_arrive_cycles: Cycles
    wait_cycles: Count
    wake_cycles: Cycles


class NamedBarrier(Group, frozen=True):
    """Hardware named barriers (bar.sync, bar.arrive)."""

    arrive_cycles: Cycles
    wait_cycles: Count
    wake_cycles: Cycles


class Lrc(Group, frozen=True):
    """L2 request coalescer of an SM pair."""

    enabled: bool
    multicast: bool
    entries: Count
    max_merges: Count
    hold_cycles: Cycles


class Crossbar(Group, frozen=True):
    """Path between SM pairs and L2 slices; latencies are whole L2 hit round trips of a plain load."""

    near_latency_cycles: Count
    far_latency_cycles: Count
    sm_port_bytes_per_cycle: Count


class RemoteCopy(Group, frozen=True):
    """Shadow copies of far lines in the near partition."""

    enabled: bool
    max_insertion_probability: Fraction
    occupancy_threshold: Fraction


class L2(Group, frozen=True):
    """All L2 slices together, and the queues of one."""

    capacity_bytes: Count
    line_bytes: Count
    sector_bytes: Count
    fetch_bytes: Count
    slices: Count
    ways: Count
    hash: Literal["xor", "modulo", "strong", "side"]
    bytes_per_cycle_per_slice: Count
    request_queue_entries: Count
    response_queue_entries: Count
    mshr_entries: Count
    mshr_merges: Count
    remote_copy: RemoteCopy


class Memory(Group, frozen=True):
    """Device memory behind the slices, one channel a slice; `ideal` stands for L2 too: every line hits, none queues."""

    model: Literal["channel", "hbm3", "ideal"]
    peak_bytes_per_s: Rate
    efficiency: Annotated[float, Meta(gt=0, le=1)]
    latency_ns: Nanoseconds
    write_cost: Rate
    write_queue_entries: Count
    dram: Dram


class Grid(Group, frozen=True):
    """Kernel launch and tile dispatch."""

    launch_ns: Nanoseconds
    tile_fetch_cycles: Count
    tile_edge_cycles: Cycles


class Clock(Group, frozen=True):
    """Repeated kernels: ns that a cycle takes, a base and for each activity (0: no limit); clearing a tile counter."""

    counter_clear_ns: Nanoseconds
    sustained_base_ns: Nanoseconds
    sustained_tensor_ns: Nanoseconds
    sustained_cuda_ns: Nanoseconds
    sustained_l2_ns: Nanoseconds
    sustained_dram_ns: Nanoseconds


class Analytical(Group, frozen=True):
    """Closed-form model: the kernel it assumes, and the share of L2 that holds reusable K/V under each policy."""

    kernel: Literal["fa3", "cutile"]
    paper_l2_fraction: Annotated[float, Meta(gt=0, le=1)]
    effective_l2_fraction: Annotated[float, Meta(gt=0, le=1)]


class HardwareSpec(Group, frozen=True):
    """One GPU: every value the simulator and the analytical model need, in the units of the field names."""

    gpu: Gpu
    sm: Sm
    tensor_core: TensorCore
    cuda_core: CudaCore
    tma: Tma
    mbarrier: Mbarrier
    named_barrier: NamedBarrier
    lrc: Lrc
    crossbar: Crossbar
    l2: L2
    memory: Memory
    grid: Grid
    clock: Clock
    analytical: Analytical

    def __post_init__(self) -> None:
        """Refuse combinations that cannot be built."""
        check_lines(self)
        if self.gpu.sm_count % 2:
            raise ValueError(f"gpu.sm_count {self.gpu.sm_count} is odd; SMs come in pairs")
        if self.l2.slices % 2:
            raise ValueError(f"l2.slices {self.l2.slices} is odd; the two partitions need the same number")
        if self.crossbar.far_latency_cycles < self.crossbar.near_latency_cycles:
            raise ValueError("crossbar.far_latency_cycles is below near_latency_cycles")

    @property
    def tensor_flop_per_s(self) -> float:
        """Dense FP16 peak of the chip at its nominal clock."""
        return self.gpu.sm_count * self.tensor_core.flop_per_cycle * self.gpu.sm_clock_hz

    def sha256(self) -> str:
        """Return the hex digest of all values: the same numbers give the same digest, whatever file they came from."""
        return hashlib.sha256(msgspec.json.encode(self, order="sorted")).hexdigest()


class Provenance(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where one value comes from; `range` is what a calibration may try."""

    status: Status
    source: str
    range: tuple[float, float] | None = None


class Preset(msgspec.Struct, frozen=True):
    """A loaded preset: its values, and by dotted path where each comes from."""

    name: str
    spec: HardwareSpec
    provenance: dict[str, Provenance]


def preset_names() -> list[str]:
    """Return the names of the shipped presets, sorted."""
    folder = resources.files("simfa") / "presets"
    return sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml"))


def overlay_names() -> list[str]:
    """Return the names of the shipped overlays, sorted."""
    folder = resources.files("simfa") / "presets" / "overlays"
    return sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml"))


def load_preset(name: str, overlays: Sequence[str] = (), overrides: Sequence[str] = ()) -> Preset:
    """Return preset `name` (shipped, or a path ending in `.toml`) with overlays and `path=value` overrides applied.

    Raises `HardwareError` naming the file and the value's path for an unknown preset, overlay, key or wrong type.
    """
    tables = [_read(name, "presets", preset_names())]
    seen = [name]
    while (parent := tables[0].get("extends")) is not None:
        if not isinstance(parent, str):
            raise HardwareError(f"preset {seen[-1]}: extends is {parent!r}; expected the name of a preset")
        if parent.endswith(".toml") and seen[-1].endswith(".toml"):
            parent = str(Path(seen[-1]).parent / parent)
        if parent in seen:
            raise HardwareError(f"preset {name}: extends itself through {' -> '.join([*seen, str(parent)])}")
        seen.append(parent)
        tables.insert(0, _read(parent, "presets", preset_names()))
    tables += [overlay_table(overlay) for overlay in overlays]
    values: dict[str, Any] = {}
    provenance: dict[str, Provenance] = {}
    for table in tables:
        _merge(table, "", values, provenance, name)
    for override in overrides:
        _override(override, values, provenance)
    try:
        spec = msgspec.convert(_nest(values, name), HardwareSpec)
    except msgspec.ValidationError as error:
        raise HardwareError(f"preset {name}: {str(error).replace('$.', '')}") from error
    return Preset(
        name="+".join([Path(name).stem if name.endswith(".toml") else name, *overlays]),
        spec=spec,
        provenance=provenance,
    )


def overlay_table(name: str) -> dict[str, Any]:
    """Return an overlay (shipped, or a path ending in `.toml`) as its TOML table; raises `HardwareError`."""
    table = _read(name, "presets/overlays", overlay_names())
    if "extends" in table:
        raise HardwareError(
            f"overlay {name}: extends has no meaning in an overlay; give a whole preset as --gpu {name}"
        )
    return table


def _read(name: str, folder: str, known: list[str]) -> dict[str, Any]:
    """Return the TOML table of a shipped or user file."""
    if name.endswith(".toml"):
        try:
            text = Path(name).read_text(encoding="utf-8")
        except OSError as error:
            raise HardwareError(f"{name}: cannot be read: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise HardwareError(f"{name}: offset {error.start}: expected UTF-8 text; this is no TOML file") from error
    elif name in known:
        text = (resources.files("simfa") / folder / f"{name}.toml").read_text(encoding="utf-8")
    else:
        kind = "overlay" if folder.endswith("overlays") else "preset"
        hint = did_you_mean(name, known, f"expected one of {', '.join(known)} or a .toml file")
        raise HardwareError(f"{kind} {name!r} is unknown; {hint}")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise HardwareError(f"{name}: not valid TOML: {error}") from error


def _merge(
    table: Mapping[str, Any], prefix: str, values: dict[str, Any], provenance: dict[str, Provenance], name: str
) -> None:
    """Flatten a preset table into dotted paths; a leaf is a table with `value`, `status` and `source`."""
    for key, entry in table.items():
        path = f"{prefix}{key}"
        if path in ("extends", "about", "counters"):
            continue
        if not isinstance(entry, Mapping):
            raise HardwareError(
                f"preset {name}: {path} has no provenance; write {{ value = ..., status = ..., source = ... }}"
            )
        if "value" not in entry:
            _merge(entry, f"{path}.", values, provenance, name)
            continue
        values[path] = entry["value"]
        try:
            provenance[path] = msgspec.convert({k: v for k, v in entry.items() if k != "value"}, Provenance)
        except msgspec.ValidationError as error:
            raise HardwareError(f"preset {name}: {path}: {error}") from error


def _override(text: str, values: dict[str, Any], provenance: dict[str, Provenance]) -> None:
    """Apply one `path=value`; the value is read as TOML, or as a bare word."""
    path, separator, raw = text.partition("=")
    path = path.strip()
    if not separator:
        raise HardwareError(f"override {text!r}: expected path=value, e.g. l2.mshr_entries=256")
    if path not in values:
        hint = did_you_mean(path, values, "`simfa hardware show` lists all paths")
        raise HardwareError(f"override {text!r}: no such value; {hint}")
    try:
        read = tomllib.loads(f"v = {raw}")
    except tomllib.TOMLDecodeError:
        read = {"v": raw.strip()}
    if len(read) > 1:
        raise HardwareError(f"override {text!r}: expected one value; give --set once for each")
    values[path] = read["v"]
    provenance[path] = Provenance("assumed", "command line")


def _nest(values: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return nested tables from dotted paths; raises `HardwareError` where a path goes on below a value."""
    root: dict[str, Any] = {}
    for path, value in values.items():
        *groups, leaf = path.split(".")
        node = root
        for group in groups:
            node = node.setdefault(group, {})
            if not isinstance(node, dict):
                raise HardwareError(f"preset {name}: {path}: {group} is a value, not a group of values")
        node[leaf] = value
    return root


def value_at(spec: HardwareSpec, path: str) -> Any:
    """Return the value at a dotted path."""
    node: Any = spec
    for part in path.split("."):
        node = getattr(node, part)
    return node


def describe(path: str) -> str:
    """Return the docstring of the group a value belongs to, for `simfa hardware explain`."""
    group: Any = HardwareSpec
    for part in path.split(".")[:-1]:
        group = typing.get_type_hints(group)[part]
    return str(group.__doc__)
