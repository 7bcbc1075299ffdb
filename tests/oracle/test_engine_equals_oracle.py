"""The compiled core with ideal memory against the reference, instruction by instruction."""

import pytest
from hypothesis import HealthCheck, given, settings

from tests.oracle.cases import Case, cases
from tests.oracle.coverage import missing
from tests.oracle.harness import differences, run_core, run_reference
from tests.oracle.long_run import compare


def test_random_programs_take_the_same_cycles():
    comparison = compare(programs=200, seed=0, engine=run_core)
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
