"""The compiled core with ideal memory against the reference, instruction by instruction."""

import pytest
from hypothesis import HealthCheck, given, settings

from simfa.errors import SimulationError
from simfa.trace import Trace
from tests.oracle.cases import Case, cases, seeded_case
from tests.oracle.coverage import missing
from tests.oracle.hand import acquire, arrive, await_barrier, await_fill, bare, bulk, nothing, release, ring, trace_of
from tests.oracle.harness import differences, run_core, run_reference
from tests.oracle.long_run import compare


def test_random_programs_take_the_same_cycles():
    comparison = compare(programs=240, seed=0, engine=run_core)
    assert comparison.different == []
    assert missing(comparison.coverage) == []


@settings(max_examples=60, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
@given(cases())
def test_drawn_programs_take_the_same_cycles(case: Case):
    assert differences(run_reference(case), run_core(case)) == []


@pytest.mark.slow
def test_many_random_programs_take_the_same_cycles():
    comparison = compare(programs=10_000, seed=1, engine=run_core)
    assert comparison.different[:10] == []
    assert missing(comparison.coverage) == []


@pytest.mark.parametrize("threads", [2, 3])
def test_threads_change_nothing(threads: int):
    compared = 0
    for index in range(200):
        case = seeded_case("threads", index)
        # Several pairs of SMs; and short, as threads meet every few cycles, which is slow on busy machines.
        if case.trace.schedule.ctas > 2 and (alone := run_core(case)).cycles < 1500:
            assert differences(alone, run_core(case, threads)) == []
            compared += 1
        if compared == 3:
            return
    pytest.fail("too few cases have several pairs of SMs and are short")


@pytest.mark.parametrize(
    ("trace", "place", "cause"),
    [
        (trace_of([acquire(0), bulk(0, 96)], [nothing(), await_fill(0)]), "instruction 1 (MB_WAIT)", "96 of 128 bytes"),
        (
            trace_of([nothing()], [acquire(3)], rings=(ring(stages=2, releases=2),)),
            "instruction 0 (ACQUIRE_STAGE)",
            "0 of 2 arrivals",
        ),
        (trace_of([arrive(4)], [await_barrier(4, 2)], [release(0)]), "instruction 0 (BAR_WAIT)", "1 of 2"),
    ],
)
def test_both_name_what_hangs(trace: Trace, place: str, cause: str):
    case = Case(trace, bare(), memory_latency_cycles=20)
    for engine in (run_reference, run_core):
        with pytest.raises(SimulationError) as caught:
            engine(case)
        stuck = [line for line in str(caught.value).splitlines() if place in line]
        assert len(stuck) == 1
        assert "CTA 0 role 1" in stuck[0]
        assert "program role1" in stuck[0]
        assert cause in stuck[0]
