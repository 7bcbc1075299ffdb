"""Hypothesis strategies for traces: any value the text form holds, and small pipelines that are valid."""

from typing import Any

from hypothesis import strategies as st

from simfa import isa
from simfa.isa import Affine, Slot
from simfa.kernel import KernelSpec
from simfa.trace import Origin, Program, Ring, Schedule, TensorMap, TileBinding, TileKind, Trace
from simfa.translate.compress import compress
from simfa.workload import AttentionShape

NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_.-]{0,8}", fullmatch=True)
NUMBERS = st.one_of(st.integers(0, 9), st.integers(0, (1 << 63) - 1))
COUNTS = st.one_of(st.integers(1, 9), st.integers(1, 1 << 40))
STEPS = st.one_of(st.just(0), st.integers(-5, 5), st.integers(-(1 << 40), 1 << 40))


def affines(repeated: bool) -> st.SearchStrategy[Affine]:
    return st.builds(Affine, NUMBERS, STEPS if repeated else st.just(0))


def instructions(repeated: bool) -> st.SearchStrategy[isa.Instruction]:
    """Any instruction; operands advance only when it stands in a REPEAT."""
    affine = affines(repeated)
    slot = st.builds(Slot, NAMES, affine)
    box: dict[str, st.SearchStrategy[Any]] = {"map": NAMES, "x": NUMBERS, "y": affine}
    return st.one_of(
        st.builds(isa.TmaTensor, slot=slot, multicast=st.booleans(), **box),
        st.builds(isa.TmaBulk, slot=slot, address=affine, bytes=COUNTS),
        st.builds(isa.MbWait, slot=slot),
        st.builds(isa.AcquireStage, slot=slot),
        st.builds(isa.ReleaseStage, slot=slot, remote=st.booleans()),
        st.builds(isa.TmaStore, group=affine, **box),
        st.builds(isa.TmaCommit, group=affine),
        st.builds(isa.TmaWait, group=affine, outstanding=NUMBERS, read=st.booleans()),
        st.builds(
            isa.Wgmma,
            d=NAMES,
            a=st.one_of(NAMES, slot),
            b=slot,
            m=COUNTS,
            n=COUNTS,
            k=COUNTS,
            count=COUNTS,
            mode=st.sampled_from(["SS", "RS"]),
            group=affine,
            dtype=st.sampled_from(["fp16", "bf16"]),
            sparse=st.booleans(),
        ),
        st.builds(isa.WgmmaCommit, group=affine),
        st.builds(isa.WgmmaWait, group=affine, outstanding=NUMBERS),
        st.builds(isa.BarArrive, barrier=NUMBERS),
        st.builds(isa.BarWait, barrier=NUMBERS, arrivals=COUNTS),
        st.builds(
            isa.Bubbles,
            kind=st.sampled_from(["cycles", "softmax", "epilogue"]),
            cycles=NUMBERS,
            elements=NUMBERS,
            masked=NUMBERS,
            rescale=NUMBERS,
        ),
    )


REPEATS = st.builds(isa.Repeat, count=COUNTS, body=st.lists(instructions(True), min_size=1, max_size=3).map(tuple))
BODIES = st.lists(st.one_of(instructions(False), REPEATS), max_size=5).map(tuple)
SHAPES = st.builds(
    lambda group, **sizes: AttentionShape(heads_q=group * sizes["heads_kv"], **sizes),
    group=st.integers(1, 8),
    batch=COUNTS,
    seqlen_q=COUNTS,
    seqlen_kv=COUNTS,
    heads_kv=st.integers(1, 64),
    head_dim=st.sampled_from([64, 128, 256]),
    causal=st.booleans(),
    dtype=st.sampled_from(["fp16", "bf16"]),
)
ORIGINS = st.builds(
    Origin,
    log_source=st.sampled_from(["captured", "synthetic", "none"]),
    log_sha256=st.sampled_from(["", "0123abcd"]),
    seed=st.none() | NUMBERS,
    event_level=st.integers(0, 2),
    rules=st.sampled_from(["source", "paper", "none"]),
    reconstructed=st.booleans(),
)
KERNELS = st.builds(
    KernelSpec,
    version=st.sampled_from(["2024-07", "latest"]),
    schedule=st.sampled_from(["static", "dynamic", "dynamic-in-order"]),
    **dict.fromkeys(("tile_m", "tile_n", "stages", "consumers", "cluster"), COUNTS),
    **{name: st.booleans() for name in ("ping_pong", "overlap", "p_in_registers", "rescale_before_pv")},
)
MAPS = st.builds(
    TensorMap,
    name=NAMES,
    base=NUMBERS,
    dims=st.lists(COUNTS, min_size=1, max_size=6).map(tuple),
    strides=st.lists(COUNTS, max_size=5).map(tuple),
    box=st.lists(COUNTS, min_size=1, max_size=6).map(tuple),
    element_bytes=st.sampled_from([1, 2, 4, 8]),
    origin=st.sampled_from(["query", "kv", "none"]),
)
RINGS = st.builds(
    Ring, name=NAMES, stages=COUNTS, bytes=NUMBERS, releases=COUNTS, empty=st.sampled_from(["mbarrier", "named"])
)


def _named(strategy: st.SearchStrategy[Any], least: int, most: int) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(strategy, min_size=least, max_size=most, unique_by=lambda item: item.name).map(tuple)


@st.composite
def any_traces(draw: st.DrawFn) -> Trace:
    """Any trace the text form can hold; most would not pass the verifier."""
    kinds = draw(
        _named(st.builds(TileKind, name=NAMES, programs=st.lists(NAMES, min_size=1, max_size=3).map(tuple)), 1, 3)
    )
    mode = draw(st.sampled_from(["static", "dynamic"]))
    lists = draw(st.integers(1, 4)) if mode == "static" else 1
    tiles = st.lists(st.builds(TileBinding, st.integers(0, len(kinds) - 1), NUMBERS, NUMBERS, NUMBERS), max_size=20)
    return Trace(
        shape=draw(st.none() | SHAPES),
        kernel=draw(st.none() | KERNELS),
        origin=draw(ORIGINS),
        maps=draw(_named(MAPS, 0, 2)),
        rings=draw(_named(RINGS, 0, 2)),
        programs=draw(_named(st.builds(Program, name=NAMES, role=st.integers(0, 5), body=BODIES), 0, 3)),
        tile_kinds=kinds,
        prologue=tuple(draw(st.lists(st.none() | NAMES, min_size=1, max_size=3))),
        schedule=Schedule(
            mode=mode,
            ctas=lists if mode == "static" else draw(st.integers(1, 200)),
            cluster=draw(st.sampled_from([1, 2])),
            tiles=tuple(tuple(draw(tiles)) for _ in range(lists)),
        ),
    )


BOX_BYTES = 64


@st.composite
def valid_traces(draw: st.DrawFn) -> Trace:
    """Small pipelines that are valid: a producer fills rings, consumers read them, some under ping-pong."""
    cluster = draw(st.sampled_from([1, 2]))
    consumers = draw(st.integers(1, 3))
    multicast = cluster == 2 and draw(st.booleans())
    rings = tuple(
        Ring(
            name=name,
            stages=draw(st.integers(1, 3)),
            bytes=BOX_BYTES * (2 if multicast else 1),
            releases=consumers * (cluster if multicast else 1),
            empty=draw(st.sampled_from(["mbarrier", "named"])),
        )
        for name in ("A", "B")[: draw(st.integers(1, 2))]
    )
    turns = consumers > 1 and draw(st.booleans())
    programs: list[Program] = []
    kinds: list[TileKind] = []
    for number, fills in enumerate(draw(st.lists(st.integers(1, 5), min_size=1, max_size=2, unique=True))):
        bodies = [_producer(rings, fills, multicast)]
        bodies += [_consumer(rings, fills, multicast, role, consumers, turns) for role in range(1, consumers + 1)]
        names = tuple(f"role{role}.{number}" for role in range(consumers + 1))
        programs += [
            Program(name=name, role=role, body=compress(body) if draw(st.booleans()) else tuple(body))
            for role, (name, body) in enumerate(zip(names, bodies, strict=True))
        ]
        kinds.append(TileKind(name=f"kind{number}", programs=names))
    prologue: list[str | None] = [None] * (consumers + 1)
    if turns:
        programs.append(Program(name="start", role=1, body=(isa.BarArrive(barrier=1),)))
        prologue[1] = "start"
    kind = st.builds(TileBinding, st.integers(0, len(kinds) - 1), st.just(0), st.just(0), st.just(0))
    static = cluster == 2 or draw(st.booleans())
    tiles: list[tuple[TileBinding, ...]] = []
    for _ in range(draw(st.integers(1, 2)) if static else 1):
        run = tuple(draw(st.lists(kind, max_size=3)))
        tiles += [run] * cluster
    return Trace(
        shape=None,
        kernel=None,
        origin=Origin(log_source="none"),
        maps=(
            TensorMap(
                name="M", base=0, dims=(1024,), strides=(), box=(BOX_BYTES // 2,), element_bytes=2, origin="none"
            ),
        ),
        rings=rings,
        programs=tuple(programs),
        tile_kinds=tuple(kinds),
        prologue=tuple(prologue),
        schedule=Schedule(
            mode="static" if static else "dynamic",
            ctas=len(tiles) if static else draw(st.integers(1, 3)),
            cluster=cluster,
            tiles=tuple(tiles),
        ),
    )


def _producer(rings: tuple[Ring, ...], fills: int, multicast: bool) -> list[isa.Instruction]:
    body: list[isa.Instruction] = []
    for fill in range(fills):
        for ring in rings:
            slot = Slot(ring.name, Affine(fill))
            body.append(isa.AcquireStage(slot=slot))
            body.append(isa.TmaTensor(slot=slot, map="M", x=0, y=Affine(0), multicast=multicast))
    return body


def _consumer(
    rings: tuple[Ring, ...], fills: int, remote: bool, role: int, consumers: int, turns: bool
) -> list[isa.Instruction]:
    body: list[isa.Instruction] = []
    for fill in range(fills):
        slots = [Slot(ring.name, Affine(fill)) for ring in rings]
        if role == 1 or not turns:
            body += [isa.MbWait(slot=slot) for slot in slots]
        if turns:
            body.append(isa.BarWait(barrier=role, arrivals=1))
        group = Affine(fill)
        body += [
            isa.Wgmma(d="D", a=slots[0], b=slots[-1], m=64, n=8, k=16, count=1, mode="SS", group=group),
            isa.WgmmaCommit(group=group),
        ]
        if turns:
            body.append(isa.BarArrive(barrier=role % consumers + 1))
        body.append(isa.WgmmaWait(group=group, outstanding=0))
        body += [isa.ReleaseStage(slot=slot, remote=remote) for slot in slots]
        body.append(isa.Bubbles(kind="cycles", cycles=10))
    return body
