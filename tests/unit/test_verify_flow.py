"""The verifier accepts what works, and what it accepts works in every order: a naive random execution agrees."""

import random
from typing import Any

import msgspec
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from simfa import isa
from simfa.errors import TraceError
from simfa.instrument.event_order import tile_events
from simfa.isa import Affine, Slot
from simfa.kernel import KERNEL_VERSIONS, kernel_for
from simfa.trace import Origin, Program, Ring, Schedule, TensorMap, TileBinding, TileKind, Trace
from simfa.translate.compress import expand
from simfa.translate.trace_builder import trace_from_kernel
from simfa.verify import verify
from simfa.workload import AttentionShape
from tests.unit.trace_strategies import valid_traces
from tests.unit.trace_walker import RaceError, StuckError, walk


@settings(max_examples=40, deadline=None)
@given(trace=valid_traces(), seed=st.integers(0, 1000))
def test_valid_pipelines_are_accepted_and_run_in_any_order(trace: Trace, seed: int) -> None:
    verify(trace)
    walk(trace, seed)


@settings(max_examples=80, deadline=None)
@given(trace=valid_traces(), chance=st.randoms(use_true_random=False))
def test_what_is_accepted_after_a_change_still_runs_in_any_order(trace: Trace, chance: random.Random) -> None:
    changed = _with_one_change(trace, chance)
    try:
        verify(changed)
    except TraceError:
        event("refused")
        return
    event("accepted")
    for seed in range(4):
        walk(changed, seed)


@settings(max_examples=40, deadline=None)
@given(trace=valid_traces(), chance=st.randoms(use_true_random=False))
def test_a_wait_whose_signal_is_taken_away_is_refused(trace: Trace, chance: random.Random) -> None:
    removable = [
        (number, position)
        for number, program in enumerate(trace.programs)
        for position, instruction in enumerate(expand(program.body))
        if isinstance(instruction, isa.ReleaseStage | isa.BarArrive | isa.TmaTensor | isa.WgmmaCommit)
    ]
    number, position = chance.choice(removable)
    body = list(expand(trace.programs[number].body))
    del body[position]
    with pytest.raises(TraceError):
        verify(_with_body(trace, number, body))


def _with_body(trace: Trace, number: int, body: list[isa.Instruction]) -> Trace:
    programs = list(trace.programs)
    programs[number] = msgspec.structs.replace(programs[number], body=tuple(body))
    return msgspec.structs.replace(trace, programs=tuple(programs))


def _with_one_change(trace: Trace, chance: random.Random) -> Trace:
    """Drop, double, swap or alter one instruction of one program."""
    number = chance.randrange(len(trace.programs))
    body = list(expand(trace.programs[number].body))
    place = chance.randrange(len(body))
    match chance.randrange(5):
        case 0:
            del body[place]
        case 1:
            body.insert(place, body[place])
        case 2:
            other = chance.randrange(len(body))
            body[place], body[other] = body[other], body[place]
        case 3:
            body.insert(chance.randrange(len(body) + 1), body.pop(place))
        case _:
            body[place] = _altered(body[place], chance)
    return _with_body(trace, number, body)


def _altered(instruction: Any, chance: random.Random) -> isa.Instruction:
    """Move a slot or group by one, change a barrier, or toggle multicast and remote."""
    changes: dict[str, object] = {}
    shift = chance.choice([-1, 1])
    if hasattr(instruction, "slot"):
        changes["slot"] = Slot(instruction.slot.ring, Affine(max(0, instruction.slot.index.start + shift)))
    if hasattr(instruction, "group"):
        changes["group"] = Affine(max(0, instruction.group.start + shift))
    if hasattr(instruction, "barrier"):
        changes["barrier"] = max(0, instruction.barrier + shift)
    if hasattr(instruction, "arrivals"):
        changes["arrivals"] = instruction.arrivals + 1
    for name in ("multicast", "remote"):
        if hasattr(instruction, name) and chance.random() < 0.5:
            changes[name] = not getattr(instruction, name)
    if not changes:
        return isa.Bubbles(kind="cycles", cycles=1)
    altered: isa.Instruction = msgspec.structs.replace(instruction, **changes)
    return altered


@pytest.mark.parametrize("rules", ["source", "paper"])
@pytest.mark.parametrize("version", KERNEL_VERSIONS)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("head_dim", [64, 128, 256])
def test_real_kernels_run_in_any_order(head_dim: int, causal: bool, version: str, rules: Any) -> None:
    shape = AttentionShape(
        batch=1, seqlen_q=512, seqlen_kv=512, heads_q=2, heads_kv=1, head_dim=head_dim, causal=causal
    )
    kernel = kernel_for(shape, version)
    trace = trace_from_kernel(shape, kernel, 2, lambda role, blocks: tile_events(kernel, role, blocks, 2), rules=rules)
    assert max(len(tiles) for tiles in trace.schedule.tiles) > 2
    walk(trace, seed=head_dim)


def test_the_walker_sees_a_hang() -> None:
    trace = _lonely(isa.BarWait(barrier=3, arrivals=1))
    with pytest.raises(StuckError):
        walk(trace, 0)
    with pytest.raises(TraceError, match="barrier 3 has 0 of 1 signals; nobody arrives at it"):
        verify(trace)


def test_the_walker_sees_a_race() -> None:
    trace = _lonely(
        isa.AcquireStage(slot=Slot("A", Affine(0))),
        isa.TmaTensor(slot=Slot("A", Affine(0)), map="M", x=0, y=Affine(0)),
        isa.Wgmma(d="D", a="P", b=Slot("A", Affine(0)), m=64, n=8, k=16, count=1, mode="RS", group=Affine(0)),
    )
    with pytest.raises(RaceError):
        walk(trace, 0)
    with pytest.raises(TraceError, match=r"nothing says that A\[0\] has arrived"):
        verify(trace)


def _lonely(*body: isa.Instruction) -> Trace:
    """A trace of one role that runs `body` for one tile, with a ring A and a map M of its size."""
    return Trace(
        shape=None,
        kernel=None,
        origin=Origin(log_source="none"),
        maps=(TensorMap(name="M", base=0, dims=(64,), strides=(), box=(32,), element_bytes=2, origin="none"),),
        rings=(Ring(name="A", stages=1, bytes=64, releases=1),),
        programs=(Program(name="p", role=0, body=body),),
        tile_kinds=(TileKind(name="t", programs=("p",)),),
        prologue=(None,),
        schedule=Schedule(mode="static", ctas=1, cluster=1, tiles=((TileBinding(0, 0, 0, 0),),)),
    )
