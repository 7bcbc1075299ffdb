"""Microbenchmark programs in the simulator's instruction set: a chain of dependent copies, and streams of boxes."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from simfa.isa import (
    AcquireStage,
    Affine,
    BarArrive,
    BarWait,
    Bubbles,
    Instruction,
    MbWait,
    ReleaseStage,
    Slot,
    TmaBulk,
    TmaTensor,
)
from simfa.trace import Origin, Program, Ring, Schedule, TensorMap, TileBinding, TileKind, Trace


class Copy(NamedTuple):
    """One copy into shared memory: `length` bytes at `address`, or a box of the map `map_name` at (x, y)."""

    address: int = 0
    length: int = 0
    map_name: str = ""
    x: int = 0
    y: int = 0


def copy_trace(
    work: Sequence[Sequence[Sequence[Copy]]],
    *,
    box_bytes: int,
    depth: int = 1,
    maps: Sequence[TensorMap] = (),
    starts: Sequence[Sequence[int]] | None = None,
    meet: bool = False,
    loop_cycles: int = 0,
) -> Trace:
    """Return a launch in which role r of CTA c makes the copies `work[c][r]` in order.

    A role keeps up to `depth` copies under way, 4 at most, and waits for the oldest before it issues the next: with 1
    that is issue, wait, repeat. Its ring has twice as many stages, so that no copy waits for the release of a stage.
    All CTAs have the same number of roles, 4 at most. `starts[c][r]` are cycles that it waits before its first copy.
    With `meet` it passes a named barrier after each copy, as the threads of a CTA do before one overwrites the buffer.
    `loop_cycles` is other work of the loop, once for each copy.
    """
    roles = len(work[0])
    rings = [Ring(name=f"R{role}", stages=2 * depth, bytes=box_bytes, releases=1) for role in range(roles)]
    programs, kinds, tiles = [], [], []
    for cta, parts in enumerate(work):
        names = tuple(f"cta{cta}.{role}" for role in range(roles))
        for role, (name, copies) in enumerate(zip(names, parts, strict=True)):
            wait = (Bubbles(kind="cycles", cycles=starts[cta][role]),) if starts else ()
            programs.append(
                Program(name=name, role=role, body=(*wait, *_pipeline(role, copies, depth, meet, loop_cycles)))
            )
        kinds.append(TileKind(name=f"cta{cta}", programs=names))
        tiles.append((TileBinding(cta, 0, 0, 0),))
    return Trace(
        shape=None,
        kernel=None,
        origin=Origin(log_source="none"),
        maps=tuple(maps),
        rings=tuple(rings),
        programs=tuple(programs),
        tile_kinds=tuple(kinds),
        prologue=(None,) * roles,
        schedule=Schedule(mode="static", ctas=len(work), cluster=1, tiles=tuple(tiles)),
    )


def _pipeline(role: int, copies: Sequence[Copy], depth: int, meet: bool, loop_cycles: int) -> Iterator[Instruction]:
    """Issue each copy as soon as its stage is free; wait for it when `depth` are under way, or at the end."""
    ring = f"R{role}"
    for number, copy in enumerate(copies):
        if number >= depth:
            yield from _consume(ring, number - depth)
            if meet:
                yield BarArrive(barrier=role)
                yield BarWait(barrier=role, arrivals=1)
        slot = Slot(ring, Affine(number))
        yield AcquireStage(slot=slot)
        if copy.map_name:
            yield TmaTensor(slot=slot, map=copy.map_name, x=copy.x, y=Affine(copy.y))
        else:
            yield TmaBulk(slot=slot, address=Affine(copy.address), bytes=copy.length)
        if loop_cycles:
            yield Bubbles(kind="cycles", cycles=loop_cycles)
    for number in range(max(0, len(copies) - depth), len(copies)):
        yield from _consume(ring, number)


def _consume(ring: str, number: int) -> Iterator[Instruction]:
    slot = Slot(ring, Affine(number))
    yield MbWait(slot=slot)
    yield ReleaseStage(slot=slot)
