"""Shorthand for hand-computed tests: bare hardware in which everything is free, and traces of a few instructions."""

from typing import Any

import msgspec

from simfa.hardware import HardwareSpec, load_preset
from simfa.isa import (
    AcquireStage,
    Affine,
    BarArrive,
    BarWait,
    Bubbles,
    Instruction,
    MbWait,
    ReleaseStage,
    Repeat,
    Slot,
    TmaBulk,
    TmaCommit,
    TmaStore,
    TmaTensor,
    TmaWait,
    Wgmma,
    WgmmaCommit,
    WgmmaWait,
)
from simfa.simulate.reference import ReferenceResult, simulate
from simfa.trace import Origin, Program, Ring, Schedule, TensorMap, TileBinding, TileKind, Trace

Body = list[Instruction | Repeat]

# Every cost at its smallest, every limit out of the way: a test sets what it is about. One line of 128 bytes a cycle,
# and m64n8k16 takes 2 * 64 * 8 * 16 / 4096 = 4 cycles of the tensor pipe.
_BARE: dict[str, Any] = {
    "gpu.sm_clock_hz": 1e9,
    "sm.issue_width": 1,
    "sm.scheduler": "oldest",
    "tensor_core.flop_per_cycle": 4096,
    "tensor_core.wgmma_min_cycles": 0,
    "tensor_core.wgmma_overhead_cycles": 0,
    "tensor_core.wgmma_issue_cycles": 1,
    "tensor_core.wgmma_tail_ss_cycles": 0,
    "tensor_core.wgmma_tail_rs_cycles": 0,
    "tensor_core.wgmma_window_ss": 16,
    "tensor_core.wgmma_window_rs": 16,
    "tensor_core.group_drain_cycles": 0,
    "cuda_core.sharing": "private",
    "cuda_core.order": "fifo",
    "cuda_core.quantum_cycles": 10,
    "cuda_core.register_pressure": 0.0,
    "tma.level": 1,
    "tma.level_0_latency_cycles": 50,
    "tma.launch_cycles": 0,
    "tma.tensor_map_cycles": 0,
    "tma.descriptor_cache_entries": 8,
    "tma.descriptor_miss_cycles": 0,
    "tma.issue_gap_cycles": 0,
    "tma.issue_bytes_per_cycle": 128,
    "tma.max_lines_in_flight": 384,
    "tma.deduplicate": True,
    "tma.request_bytes": 32,
    "tma.store_read_cycles": 0,
    "mbarrier.arrive_cycles": 0,
    "mbarrier.remote_arrive_cycles": 0,
    "mbarrier.wait_cycles": 1,
    "mbarrier.wake_cycles": 0,
    "named_barrier.arrive_cycles": 0,
    "named_barrier.wait_cycles": 1,
    "named_barrier.wake_cycles": 0,
    "l2.line_bytes": 128,
    "lrc.multicast": True,
    "grid.launch_ns": 0.0,
    "grid.tile_fetch_cycles": 1,
    "grid.tile_edge_cycles": 0,
}
for _rate in ("exp", "max", "scale", "sum", "convert", "rescale", "mask", "epilogue"):
    _BARE[f"cuda_core.{_rate}_per_cycle"] = 0
_PRESET = load_preset("h100-sxm").spec


def bare(**changes: Any) -> HardwareSpec:
    """Return bare hardware with changes, written as `group__name=value`."""
    values = _BARE | {path.replace("__", "."): value for path, value in changes.items()}
    unknown = set(values) - set(_BARE)
    assert not unknown, f"not a value of the instruction set: {unknown}"
    tree = msgspec.to_builtins(_PRESET)
    for path, value in values.items():
        group, name = path.split(".")
        tree[group][name] = value
    return msgspec.convert(tree, HardwareSpec)


def trace_of(
    *bodies: Body,
    rank_1: tuple[Body, ...] = (),
    rings: tuple[Ring, ...] | None = None,
    maps: tuple[TensorMap, ...] | None = None,
    ctas: int = 1,
    cluster: int = 1,
    tiles: int = 1,
    queue: int | None = None,
    prologue: tuple[Body | None, ...] = (),
) -> Trace:
    """Return a trace whose CTAs run `tiles` static tiles each, or with `queue` that many dynamic ones together.

    `bodies` are the roles' programs, `rank_1` those of every second CTA if they differ. Unless others are given there
    are one ring K and one map M, as `ring()` and `tensor_map()` make them.
    """
    kinds = [bodies, rank_1] if rank_1 else [bodies]
    named = {f"role{role}" + "'" * kind: body for kind, roles in enumerate(kinds) for role, body in enumerate(roles)}
    prologues = {f"prologue{role}": body for role, body in enumerate(prologue) if body is not None}
    names = [f"prologue{role}" if f"prologue{role}" in prologues else None for role in range(len(bodies))]
    tile_lists = [(TileBinding(cta % len(kinds), 0, 0, 0),) * tiles for cta in range(ctas)]
    if queue is not None:
        tile_lists = [(TileBinding(0, 0, 0, 0),) * queue]
    return Trace(
        shape=None,
        kernel=None,
        origin=Origin(log_source="none"),
        maps=(tensor_map(),) if maps is None else maps,
        rings=(ring(),) if rings is None else rings,
        programs=tuple(
            Program(name=name, role=int(name.strip("'")[-1]), body=tuple(body))
            for name, body in (named | prologues).items()
        ),
        tile_kinds=tuple(
            TileKind(name=f"kind{kind}", programs=tuple(f"role{role}" + "'" * kind for role in range(len(bodies))))
            for kind in range(len(kinds))
        ),
        prologue=tuple(names),
        schedule=Schedule(
            mode="static" if queue is None else "dynamic", ctas=ctas, cluster=cluster, tiles=tuple(tile_lists)
        ),
    )


def run(trace: Trace, hardware: HardwareSpec | None = None, latency: int = 20) -> ReferenceResult:
    """Return the reference's result on bare hardware unless another is given."""
    return simulate(trace, hardware or bare(), memory_latency_cycles=latency)


def issued(result: ReferenceResult, role: int = 0, cta: int = 0) -> list[int]:
    """Return the cycles at which a role issued."""
    return [issue.cycle for issue in result.issues[cta, role]]


def ring(name: str = "K", stages: int = 1, size: int = 128, releases: int = 1, empty: str = "mbarrier") -> Ring:
    return msgspec.convert({"name": name, "stages": stages, "bytes": size, "releases": releases, "empty": empty}, Ring)


def slot(index: int, name: str = "K", step: int = 0) -> Slot:
    return Slot(name, Affine(index, step))


def acquire(index: int, name: str = "K") -> AcquireStage:
    return AcquireStage(slot=slot(index, name))


def await_fill(index: int, name: str = "K") -> MbWait:
    return MbWait(slot=slot(index, name))


def release(index: int, name: str = "K", remote: bool = False) -> ReleaseStage:
    return ReleaseStage(slot=slot(index, name), remote=remote)


def bulk(index: int, size: int = 128, address: int = 0, name: str = "K") -> TmaBulk:
    return TmaBulk(slot=slot(index, name), address=Affine(address), bytes=size)


def load(index: int, tensor: str = "M", x: int = 0, y: int = 0, name: str = "K", multicast: bool = False) -> TmaTensor:
    return TmaTensor(slot=slot(index, name), map=tensor, x=x, y=Affine(y), multicast=multicast)


def store(group: int = 0, tensor: str = "M", x: int = 0, y: int = 0) -> TmaStore:
    return TmaStore(map=tensor, x=x, y=Affine(y), group=Affine(group))


def store_commit(group: int = 0) -> TmaCommit:
    return TmaCommit(group=Affine(group))


def store_wait(group: int = 0, outstanding: int = 0, read: bool = False) -> TmaWait:
    return TmaWait(group=Affine(group), outstanding=outstanding, read=read)


def wgmma(group: int = 0, count: int = 1, mode: str = "SS", n: int = 8) -> Wgmma:
    """Return m64n`n`k16, n/2 cycles of the bare pipe, reading fill 0 of ring K."""
    a = "A" if mode == "RS" else slot(0)
    fields: dict[str, Any] = {"d": "D", "m": 64, "n": n, "k": 16, "count": count, "mode": mode}
    return Wgmma(**fields, a=a, b=slot(0), group=Affine(group))


def wgmma_commit(group: int = 0) -> WgmmaCommit:
    return WgmmaCommit(group=Affine(group))


def wgmma_wait(group: int = 0, outstanding: int = 0) -> WgmmaWait:
    return WgmmaWait(group=Affine(group), outstanding=outstanding)


def arrive(barrier: int = 0) -> BarArrive:
    return BarArrive(barrier=barrier)


def await_barrier(barrier: int = 0, arrivals: int = 1) -> BarWait:
    return BarWait(barrier=barrier, arrivals=arrivals)


def work(cycles: int) -> Bubbles:
    return Bubbles(kind="cycles", cycles=cycles)


def tensor_map(
    dims: tuple[int, ...] = (64, 8),
    strides: tuple[int, ...] = (128,),
    box: tuple[int, ...] = (64, 1),
    base: int = 0,
    name: str = "M",
    element_bytes: int = 2,
    origin: str = "none",
) -> TensorMap:
    """Return a map; as it stands, 8 rows of one 128-byte line each and a box of one row."""
    fields = {"dims": dims, "strides": strides, "box": box, "base": base, "name": name}
    return msgspec.convert(fields | {"element_bytes": element_bytes, "origin": origin}, TensorMap)


def nothing() -> Bubbles:
    """Return an instruction that only takes its slot: CUDA-core work of no cycles."""
    return work(0)
