"""Which reads of a slot are safe: who must have waited, who must release, and what a barrier tells."""

import pytest

from simfa import isa
from simfa.errors import TraceError
from simfa.isa import Affine, Slot
from simfa.trace import Origin, Program, Ring, Schedule, TensorMap, TileBinding, TileKind, Trace
from simfa.verify import verify
from tests.unit.trace_walker import RaceError, walk

A = Slot("A", Affine(0))
LOAD = (isa.AcquireStage(slot=A), isa.TmaTensor(slot=A, map="M", x=0, y=Affine(0)))
WAIT = isa.MbWait(slot=A)
RELEASE = isa.ReleaseStage(slot=A)
READ = (
    isa.Wgmma(d="D", a="P", b=A, m=64, n=8, k=16, count=1, mode="RS", group=Affine(0)),
    isa.WgmmaCommit(group=Affine(0)),
    isa.WgmmaWait(group=Affine(0), outstanding=0),
)
TURN = isa.BarWait(barrier=2, arrivals=1)
SIGNAL = isa.BarArrive(barrier=2)


def trace_of(*bodies: tuple[isa.Instruction, ...], releases: int, tiles: int = 3) -> Trace:
    """One CTA whose roles run `bodies` for each tile, with a one-stage ring A as large as one box of map M."""
    return Trace(
        shape=None,
        kernel=None,
        origin=Origin(log_source="none"),
        maps=(TensorMap(name="M", base=0, dims=(64,), strides=(), box=(32,), element_bytes=2, origin="none"),),
        rings=(Ring(name="A", stages=1, bytes=64, releases=releases),),
        programs=tuple(Program(name=f"p{role}", role=role, body=body) for role, body in enumerate(bodies)),
        tile_kinds=(TileKind(name="t", programs=tuple(f"p{role}" for role in range(len(bodies)))),),
        prologue=(None,) * len(bodies),
        schedule=Schedule(mode="static", ctas=1, cluster=1, tiles=((TileBinding(0, 0, 0, 0),) * tiles,)),
    )


def races(trace: Trace) -> bool:
    """Whether some order of execution reads a slot that is not certain to hold its fill."""
    for seed in range(200):
        try:
            walk(trace, seed)
        except RaceError:
            return True
    return False


def refused(trace: Trace, message: str) -> None:
    with pytest.raises(TraceError, match=message):
        verify(trace)


def test_a_wait_of_the_reading_role_protects() -> None:
    trace = trace_of(LOAD, (WAIT, *READ, RELEASE), releases=1)
    verify(trace)
    assert not races(trace)


def test_a_barrier_passes_on_what_its_only_sender_knows() -> None:
    trace = trace_of(LOAD, (WAIT, SIGNAL, *READ, RELEASE), (TURN, *READ, RELEASE), releases=2)
    verify(trace)
    assert not races(trace)


def test_a_barrier_passes_on_what_its_sender_heard_from_another_role() -> None:
    relay = (TURN, isa.BarArrive(barrier=3))
    last = (isa.BarWait(barrier=3, arrivals=1), *READ, RELEASE)
    trace = trace_of(LOAD, (WAIT, SIGNAL, *READ, RELEASE), relay, last, releases=2)
    verify(trace)
    assert not races(trace)


def test_a_signal_before_the_wait_protects_nothing() -> None:
    trace = trace_of(LOAD, (SIGNAL, WAIT, *READ, RELEASE), (TURN, *READ, RELEASE), releases=2)
    assert races(trace)
    refused(trace, r"nothing says that A\[0\] has arrived")


def test_a_barrier_with_two_senders_protects_nothing() -> None:
    """The signal of the role that did not wait may be the one that is taken."""
    turns = (TURN, *READ, RELEASE, TURN)
    trace = trace_of(LOAD, (WAIT, SIGNAL, *READ, RELEASE), turns, (SIGNAL,), releases=2)
    assert races(trace)
    refused(trace, r"nothing says that A\[0\] has arrived")


def test_a_signal_left_by_the_prologue_protects_nothing() -> None:
    """The first wait takes the prologue's signal, not that of the role that waited for the fill."""
    trace = trace_of(LOAD, (WAIT, SIGNAL, *READ, RELEASE), (TURN, *READ, RELEASE), releases=2)
    start = Program(name="start", role=1, body=(SIGNAL,))
    trace = Trace(
        **{name: getattr(trace, name) for name in trace.__struct_fields__ if name not in ("programs", "prologue")},
        programs=(*trace.programs, start),
        prologue=(None, "start", None),
    )
    assert races(trace)
    refused(trace, r"nothing says that A\[0\] has arrived")


def test_a_slot_is_not_read_after_its_release() -> None:
    trace = trace_of(LOAD, (WAIT, RELEASE, *READ), releases=1)
    assert races(trace)
    refused(trace, r"A\[0\] is read after this role released it")


def test_a_slot_is_not_released_while_it_is_read() -> None:
    issue, commit, wait = READ
    trace = trace_of(LOAD, (WAIT, issue, commit, RELEASE, wait), releases=1)
    assert races(trace)
    refused(trace, r"A\[0\] may still be read by WGMMA group 0, which was not waited for")


def test_nobody_releases_for_another_role() -> None:
    trace = trace_of(LOAD, (WAIT, SIGNAL, *READ, RELEASE, RELEASE), (TURN, *READ), releases=2)
    assert races(trace)
    refused(trace, r"WGMMA\): reads A\[0\] and never releases it")


def test_a_fill_that_nobody_reads_must_be_whole_and_released() -> None:
    half = (isa.AcquireStage(slot=A), isa.TmaBulk(slot=A, address=Affine(0), bytes=32))
    refused(trace_of(half, (), releases=1, tiles=1), r"A\[0\] receives 32 bytes, its ring holds 64")
    refused(trace_of(LOAD, (), releases=1, tiles=1), r"A\[0\] is released 0 times, its ring needs 1")


def test_signals_must_not_pile_up() -> None:
    trace = trace_of(LOAD, (WAIT, SIGNAL, SIGNAL, RELEASE), (TURN,), releases=1)
    refused(trace, "barrier 2 receives 1 more signals in a tile than its BAR_WAITs take")


def test_a_ring_without_bytes_needs_no_wait() -> None:
    """Such a ring orders roles, as barrier_O does; nothing is read from it."""
    empty = Ring(name="A", stages=1, bytes=0, releases=1)
    trace = trace_of((isa.AcquireStage(slot=A),), (RELEASE,), releases=1)
    trace = Trace(**{name: getattr(trace, name) for name in trace.__struct_fields__ if name != "rings"}, rings=(empty,))
    verify(trace)
    walk(trace, 0)
