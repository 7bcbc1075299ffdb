"""Skipped iterations change nothing: the verifier says the same, word for word, when it executes them all."""

import random
import re
from typing import Any

import msgspec
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from simfa import isa
from simfa.errors import TraceError
from simfa.instrument.event_order import tile_events
from simfa.isa import Repeat
from simfa.kernel import kernel_for
from simfa.trace import Trace
from simfa.trace_text import parse_trace
from simfa.translate.trace_builder import trace_from_kernel
from simfa.verify import verify
from simfa.verify_loops import LoopSkipper
from simfa.verify_state import Role
from simfa.workload import AttentionShape
from tests.unit.trace_strategies import valid_traces
from tests.unit.trace_texts import GOOD


def verdict(trace: Trace, *, skipping: bool) -> str | None:
    """What the verifier says, None when it accepts."""
    with pytest.MonkeyPatch.context() as patch:
        if not skipping:
            patch.setattr(LoopSkipper, "skip", lambda self: None)
        try:
            verify(trace)
        except TraceError as error:
            return str(error)
    return None


def stretched(trace: Trace, chance: random.Random) -> Trace:
    """A trace with longer REPEATs of any kind: the roles may or may not still fit together."""
    count = chance.randrange(1, 40)
    programs = []
    for program in trace.programs:
        body: list[isa.Instruction | Repeat] = []
        for item in program.body:
            if isinstance(item, Repeat):
                times = count if chance.random() < 0.95 else chance.randrange(1, 40)
                instructions = list(item.body)
                if chance.random() < 0.05:
                    instructions.insert(chance.randrange(len(instructions)), chance.choice(instructions))
                item = Repeat(count=times, body=tuple(instructions))
            body.append(item)
        programs.append(msgspec.structs.replace(program, body=tuple(body)))
    return msgspec.structs.replace(trace, programs=tuple(programs))


@settings(max_examples=80, deadline=None)
@given(trace=valid_traces(), chance=st.randoms(use_true_random=False))
def test_stretched_pipelines(trace: Trace, chance: random.Random) -> None:
    longer = stretched(trace, chance)
    said = verdict(longer, skipping=True)
    event("refused" if said else "accepted")
    assert said == verdict(longer, skipping=False)


SPOILS = [
    ("", ""),
    ("    BAR_ARRIVE 2\n", ""),
    ("    MB_WAIT K[i]\n", ""),
    ("WGMMA_WAIT group=i outstanding=0", "WGMMA_WAIT group=i outstanding=1"),
    ("WGMMA_WAIT group=i outstanding=0", "WGMMA_WAIT group=2*i outstanding=0"),
    ("RELEASE_STAGE K[i] remote\n  END\n  TMA", "RELEASE_STAGE K[0] remote\n  END\n  TMA"),
    ("    BAR_ARRIVE 1\n", "    BAR_ARRIVE 1\n    BAR_ARRIVE 3\n"),
    ("ACQUIRE_STAGE K[i]", "ACQUIRE_STAGE K[2*i]"),
    ("REPEAT 97\n    MB_WAIT", "REPEAT 96\n    MB_WAIT"),
    ("REPEAT 97\n    BAR_WAIT 2", "REPEAT 98\n    BAR_WAIT 2"),
    ("REPEAT 97\n    ACQUIRE", "REPEAT 90\n    ACQUIRE"),
    ("REPEAT 97\n    ACQUIRE", "REPEAT 110\n    ACQUIRE"),
    ("stages=2", "stages=7"),
    ("stages=2", "stages=1"),
    ("bytes=8192", "bytes=8256"),
    ("releases=4", "releases=5"),
]


@pytest.mark.parametrize(("old", "new"), SPOILS)
def test_faults_in_long_loops_are_reported_alike(old: str, new: str) -> None:
    long = GOOD.replace("REPEAT 4", "REPEAT 97").replace("y=192-64*i", "y=64*i")
    assert old in long
    trace = parse_trace(long.replace(old, new, 1)).trace
    said = verdict(trace, skipping=True)
    assert (said is None) == (new == "" == old or new in ("stages=7", "stages=1"))
    assert said == verdict(trace, skipping=False)


def test_a_fault_behind_a_long_loop_names_its_iteration() -> None:
    text = GOOD.replace("REPEAT 4", "REPEAT 100000").replace("y=192-64*i", "y=64*i")
    trace = parse_trace(text.replace("REPEAT 100000\n    MB_WAIT", "REPEAT 99990\n    MB_WAIT")).trace
    said = verdict(trace, skipping=True) or ""
    assert re.search(r"\(BAR_WAIT\), i = 99990 waits for ever: barrier 2 has 0 of 1 signals", said)


def steps_of(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many instructions the verifier executes."""
    count = 0
    advance = Role.advance

    def counted(self: Any) -> None:
        nonlocal count
        count += 1
        advance(self)

    monkeypatch.setattr(Role, "advance", counted)
    verify(trace)
    monkeypatch.undo()
    return count


@pytest.mark.parametrize("rules", ["source", "paper"])
@pytest.mark.parametrize(("head_dim", "causal"), [(64, False), (128, False), (128, True), (256, False)])
def test_long_tiles_cost_no_more_than_short_ones(
    head_dim: int, causal: bool, rules: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One query tile against ever more keys: the steps executed stay the same."""
    steps = []
    for length in (4096, 40960):
        shape = AttentionShape(
            batch=1, seqlen_q=256, seqlen_kv=length, heads_q=1, heads_kv=1, head_dim=head_dim, causal=causal
        )
        kernel = kernel_for(shape)
        trace = trace_from_kernel(
            shape, kernel, 2, lambda role, blocks, kernel=kernel: tile_events(kernel, role, blocks, 2), rules=rules
        )
        steps.append(steps_of(trace, monkeypatch))
    assert steps[1] < steps[0] * 1.5


HEAD = """\
SATRACE 1
ORIGIN log_source=none
DEF_TMAP M base=0x0 dims=64 box=32 element_bytes=2 origin=none
DEF_RING K stages=1 bytes=64 releases=1 empty=mbarrier
"""
LOAD = """\
PROGRAM load role=0
  REPEAT 60
    ACQUIRE_STAGE K[i]
    TMA_TENSOR K[i] map=M x=0 y=0
  END
END
"""
MATH = "m=64 n=8 k=16 count=1 mode=RS d=D a=P"
ONE_CTA = "TILE_KIND t load use\nPROLOGUE - -\nSCHEDULE static ctas=1 cluster=1\n  CTA 0\n    TILES t 0,0,0\nEND\n"


def both_say(text: str) -> str | None:
    """What the verifier says of a text, which must not depend on skipping."""
    trace = parse_trace(text).trace
    said = verdict(trace, skipping=True)
    assert said == verdict(trace, skipping=False)
    return said


def test_groups_that_grow_faster_than_they_are_committed() -> None:
    """The second wait has no effect on the state, and is wrong from the fifth iteration on."""
    products = "".join(
        f"    WGMMA {MATH} b=K[i] group={group}+4*i\n    WGMMA_COMMIT group={group}+4*i\n" for group in range(4)
    )
    waits = "    WGMMA_WAIT group=3+4*i outstanding=0\n    WGMMA_WAIT group=5*i outstanding=0\n"
    use = f"PROGRAM use role=1\n  REPEAT 60\n    MB_WAIT K[i]\n{products}{waits}    RELEASE_STAGE K[i]\n  END\nEND\n"
    said = both_say(HEAD + LOAD + use + ONE_CTA)
    assert said is not None
    assert "(WGMMA_WAIT), i = 4: waits for WGMMA group 20, but only 20 are committed" in said


def test_a_release_one_iteration_after_its_wait() -> None:
    use = f"""\
PROGRAM use role=1
  MB_WAIT K[0]
  WGMMA {MATH} b=K[0] group=0
  WGMMA_COMMIT group=0
  WGMMA_WAIT group=0 outstanding=0
  REPEAT 59
    MB_WAIT K[1+i]
    WGMMA {MATH} b=K[1+i] group=1+i
    WGMMA_COMMIT group=1+i
    RELEASE_STAGE K[i]
    WGMMA_WAIT group=1+i outstanding=0
  END
  RELEASE_STAGE K[59]
END
"""
    assert both_say(HEAD.replace("stages=1", "stages=2") + LOAD + use + ONE_CTA) is None
    said = both_say(HEAD + LOAD + use + ONE_CTA)
    assert said is not None
    assert "K[0] was released 0 of 1 times" in said


def test_ctas_of_a_cluster_that_go_different_ways() -> None:
    """One CTA loops over the ring, the other over a barrier and uses the ring afterwards."""
    use = f"""\
PROGRAM use role=1
  REPEAT 60
    MB_WAIT K[i]
    WGMMA {MATH} b=K[i] group=i
    WGMMA_COMMIT group=i
    WGMMA_WAIT group=i outstanding=0
    RELEASE_STAGE K[i]
  END
END
PROGRAM ask role=0
  REPEAT 60
    BAR_ARRIVE 1
    BAR_WAIT 2 arrivals=1
  END
  ACQUIRE_STAGE K[0]
  TMA_TENSOR K[0] map=M x=0 y=0
END
PROGRAM answer role=1
  REPEAT 60
    BAR_WAIT 1 arrivals=1
    BAR_ARRIVE 2
  END
  MB_WAIT K[0]
  RELEASE_STAGE K[0]
END
"""
    cluster = """\
TILE_KIND t load use
TILE_KIND u ask answer
PROLOGUE - -
SCHEDULE static ctas=2 cluster=2
  CTA 0
    TILES t 0,0,0
  CTA 1
    TILES u 0,0,0
END
"""
    assert both_say(HEAD + LOAD + use + cluster) is None
