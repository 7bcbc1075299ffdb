"""The generator itself: what it draws is valid, terminates, repeats for a seed, and covers everything."""

import msgspec
from hypothesis import HealthCheck, given, settings

from simfa.hardware import HardwareSpec
from simfa.trace import Trace
from tests.oracle.cases import Case, cases, seeded_case
from tests.oracle.chooser import SeededChooser, interleave, subset
from tests.oracle.coverage import REQUIRED, missing, table
from tests.oracle.harness import run_reference


@settings(max_examples=15, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
@given(cases())
def test_drawn_cases_terminate(case: Case):
    assert run_reference(case).cycles >= 0


def test_a_seed_gives_the_same_case_again():
    assert seeded_case(3, 4) == seeded_case(3, 4)
    assert seeded_case(3, 4) != seeded_case(3, 5)
    assert seeded_case(3, 4) != seeded_case(4, 4)


def test_cases_pass_the_declared_constraints():
    # Structs do not check themselves when they are built, so go through their encoded form.
    for index in range(20):
        case = seeded_case(0, index)
        msgspec.convert(msgspec.to_builtins(case.hardware), HardwareSpec)
        for values in (case.trace.maps, case.trace.rings, case.trace.tile_kinds, (case.trace.schedule,)):
            for value in values:
                assert msgspec.convert(msgspec.to_builtins(value), type(value)) == value
        assert isinstance(case.trace, Trace)


def test_interleaving_keeps_the_order_of_each_chain():
    for seed in range(20):
        merged = interleave(SeededChooser(seed), ["abc", "XY", ""])
        assert [c for c in merged if c in "abc"] == list("abc")
        assert [c for c in merged if c in "XY"] == list("XY")
        assert len(merged) == 5


def test_subsets_have_the_least_size_and_keep_order():
    drawn = [subset(SeededChooser(seed), [1, 2, 3], at_least=2) for seed in range(20)]
    assert all(len(chosen) >= 2 and chosen == sorted(chosen) for chosen in drawn)
    assert [1, 2, 3] in drawn


def test_the_coverage_table_shows_what_was_not_met():
    coverage = dict.fromkeys(REQUIRED, 3)
    coverage["BAR_WAIT"] = 0
    assert missing(coverage) == ["BAR_WAIT"]
    lines = list(table(coverage))
    assert next(line.split()[-1] for line in lines if line.split()[0] == "BAR_WAIT") == "0"
    assert len(lines) == len(REQUIRED) + 3
