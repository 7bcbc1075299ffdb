"""Small traces by hand that keep one part of the chip busy, and presets with one value out of the way."""

from typing import Any

from simfa.hardware import HardwareSpec, load_preset
from simfa.isa import (
    AcquireStage,
    Affine,
    Instruction,
    MbWait,
    ReleaseStage,
    Repeat,
    Slot,
    TmaBulk,
    Wgmma,
    WgmmaCommit,
    WgmmaWait,
)
from simfa.simulate.engine import run
from simfa.simulate.results import RunResult
from simfa.trace import Origin, Program, Ring, Schedule, TileBinding, TileKind, Trace
from simfa.units import ns_to_cycles
from simfa.verify import verify

LINE_BYTES = 128
STAGES = 8

Body = tuple[Instruction | Repeat, ...]


def h100(*overrides: str) -> HardwareSpec:
    """Return the H100 preset with the channel model of memory and other changes."""
    return load_preset("h100-sxm", overrides=["memory.model=channel", *overrides]).spec


def cycles_after_launch(trace: Trace, hardware: HardwareSpec) -> int:
    """Return the cycles of a run without the launch."""
    return result_of(trace, hardware).cycles - ns_to_cycles(hardware.grid.launch_ns, hardware.gpu.sm_clock_hz)


def result_of(trace: Trace, hardware: HardwareSpec, **options: Any) -> RunResult:
    """Return the result of a whole run."""
    result = run(trace, hardware, **options)
    assert not result.partial
    return result


def reading_trace(ctas: int, *, passes: int, blocks: int, block_bytes: int, shift_bytes: int, offsets: int) -> Trace:
    """Return a trace in which CTA c reads `blocks` blocks one after the other, `passes` times.

    It begins at byte (c mod offsets) * `shift_bytes`. A ring of eight stages keeps loads under way; a consumer gives
    each stage back as soon as it is full.
    """
    ring = Ring(name="K", stages=STAGES, bytes=block_bytes, releases=1)
    slot = Slot("K", Affine(0, 1))
    consumer: Body = (Repeat(count=passes * blocks, body=(MbWait(slot=slot), ReleaseStage(slot=slot))),)
    producers = [_reader(passes, blocks, block_bytes, offset * shift_bytes) for offset in range(offsets)]
    return _trace(ring, producers, [consumer], ctas)


def _reader(passes: int, blocks: int, block_bytes: int, first_byte: int) -> Body:
    body: list[Instruction | Repeat] = []
    for number in range(passes):
        slot = Slot("K", Affine(number * blocks, 1))
        copy = TmaBulk(slot=slot, address=Affine(first_byte, block_bytes), bytes=block_bytes)
        body.append(Repeat(count=blocks, body=(AcquireStage(slot=slot), copy)))
    return tuple(body)


def multiplying_trace(ctas: int, *, groups: int, wgmmas: int, n: int) -> Trace:
    """Return a trace in which two consumers issue `groups` groups of m64n`n`k16 each, a group ahead of their waits."""
    ring = Ring(name="K", stages=1, bytes=1024, releases=2)
    slot = Slot("K", Affine(0))
    producer: Body = (AcquireStage(slot=slot), TmaBulk(slot=slot, address=Affine(0), bytes=1024))
    group = Affine(0, 1)
    product = Wgmma(d="S", a=slot, b=slot, m=64, n=n, k=16, count=wgmmas, mode="SS", group=group)
    turn = (product, WgmmaCommit(group=group), WgmmaWait(group=group, outstanding=1))
    consumer: Body = (
        MbWait(slot=slot),
        Repeat(count=groups, body=turn),
        WgmmaWait(group=Affine(groups - 1), outstanding=0),
        ReleaseStage(slot=slot),
    )
    return _trace(ring, [producer], [consumer, consumer], ctas)


def _trace(ring: Ring, producers: list[Body], consumers: list[Body], ctas: int) -> Trace:
    """Return a static trace of one tile a CTA, with a kind of tile for each producer."""
    programs = [Program(name=f"producer{i}", role=0, body=body) for i, body in enumerate(producers)]
    programs += [Program(name=f"consumer{i}", role=i, body=body) for i, body in enumerate(consumers, 1)]
    names = tuple(f"consumer{i}" for i in range(1, len(consumers) + 1))
    kinds = [TileKind(name=f"kind{i}", programs=(f"producer{i}", *names)) for i in range(len(producers))]
    trace = Trace(
        shape=None,
        kernel=None,
        origin=Origin(log_source="none"),
        maps=(),
        rings=(ring,),
        programs=tuple(programs),
        tile_kinds=tuple(kinds),
        prologue=(None,) * (1 + len(consumers)),
        schedule=Schedule(
            mode="static",
            ctas=ctas,
            cluster=1,
            tiles=tuple((TileBinding(cta % len(kinds), 0, 0, 0),) for cta in range(ctas)),
        ),
    )
    verify(trace)
    return trace
