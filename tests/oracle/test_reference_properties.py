"""What must hold for every program on every hardware: order, slots, bounds, conservation, and independence."""

from collections import Counter
from fractions import Fraction
from functools import cache
from itertools import pairwise
from math import ceil

import msgspec
import pytest

from simfa.isa import Bubbles, Instruction
from simfa.simulate.reference import ReferenceResult
from simfa.simulate.reference.engine import Engine
from simfa.trace import Trace
from simfa.units import ns_to_cycles
from tests.oracle.cases import Case, seeded_case
from tests.oracle.harness import run_reference
from tests.oracle.untimed import executed, requests

CASES = range(40)
SEED = "properties"


@cache
def _case(index: int) -> tuple[Case, ReferenceResult]:
    case = seeded_case(SEED, index)
    return case, run_reference(case)


def _static() -> list[int]:
    return [index for index in CASES if seeded_case(SEED, index).trace.schedule.mode == "static"]


def _launch(case: Case) -> int:
    return ns_to_cycles(case.hardware.grid.launch_ns, case.hardware.gpu.sm_clock_hz)


@pytest.mark.parametrize("index", _static())
def test_each_role_issues_its_programs_in_order(index):
    case, result = _case(index)
    for (cta, role), issues in result.issues.items():
        expected = [(step.program, step.flat_index) for step in executed(case.trace, cta, role)]
        assert [issue[1:] for issue in issues] == expected


@pytest.mark.parametrize("index", _static())
def test_lines_are_the_bytes_that_copies_touch(index):
    case, result = _case(index)
    schedule = case.trace.schedule
    expected = sum(
        requests(case.trace, case.hardware, cta % schedule.cluster, step)
        for cta in range(schedule.ctas)
        for role in range(case.trace.roles)
        for step in executed(case.trace, cta, role)
    )
    assert result.lines == expected


@pytest.mark.parametrize("index", CASES)
def test_slots_are_within_the_issue_width_and_roles_advance(index):
    case, result = _case(index)
    slots = Counter((cta, issue.cycle) for (cta, _), issues in result.issues.items() for issue in issues)
    assert max(slots.values(), default=0) <= case.hardware.sm.issue_width
    for key, issues in result.issues.items():
        cycles = [issue.cycle for issue in issues]
        assert all(a < b for a, b in pairwise(cycles))
        assert all(cycle >= _launch(case) for cycle in cycles)
        assert result.ends[key] > max(cycles, default=_launch(case) - 1)
    assert result.cycles >= max(result.ends.values())


@pytest.mark.parametrize("index", _static())
def test_no_resource_is_used_beyond_its_rate(index):
    case, result = _case(index)
    schedule, spec = case.trace.schedule, case.hardware
    elapsed = result.cycles - _launch(case)
    for cta in range(schedule.ctas):
        steps = [step for role in range(case.trace.roles) for step in executed(case.trace, cta, role)]
        assert elapsed * spec.sm.issue_width >= len(steps)
        if spec.cuda_core.sharing == "shared":
            assert elapsed >= sum(_work(step.instruction, case) for step in steps)
        # Every load is awaited and every store belongs to the kernel, so all lines were answered in this time.
        lines = sum(requests(case.trace, spec, cta % schedule.cluster, step) for step in steps)
        if lines:
            issue = Fraction(spec.l2.line_bytes, spec.tma.issue_bytes_per_cycle)
            assert elapsed >= (lines - 1) // max(1, 1 / issue) * max(1, issue) + case.memory_latency_cycles
            assert elapsed >= ceil(lines / spec.tma.max_lines_in_flight) * case.memory_latency_cycles


def _work(bubbles: Instruction, case: Case) -> int:
    if not isinstance(bubbles, Bubbles):
        return 0
    rates = case.hardware.cuda_core
    if bubbles.kind == "cycles":
        return bubbles.cycles
    counts = {"epilogue": bubbles.elements}
    if bubbles.kind == "softmax":
        counts = dict.fromkeys(("exp", "max", "scale", "sum", "convert"), bubbles.elements)
        counts |= {"mask": bubbles.masked, "rescale": bubbles.rescale}
    prices = [(count, getattr(rates, f"{name}_per_cycle")) for name, count in counts.items()]
    return ceil(sum((Fraction(count, rate) for count, rate in prices if rate), Fraction(0)))


class _EveryCycle(Engine):
    """The engine without its skipping of cycles in which nothing can happen."""

    def next_cycle(self, cycle: int) -> int | None:
        return None if super().next_cycle(cycle) is None else cycle + 1


def test_skipped_cycles_are_those_in_which_nothing_happens():
    short = [index for index in CASES if _case(index)[1].cycles < 3000]
    assert len(short) > len(CASES) // 2
    for index in short:
        case, result = _case(index)
        slow = _EveryCycle(case.trace, case.hardware, case.memory_latency_cycles).run(None)
        assert _plain(slow) == _plain(result)


@pytest.mark.parametrize("index", CASES[:20])
def test_a_later_launch_shifts_everything(index):
    case, result = _case(index)
    hardware = msgspec.structs.replace(
        case.hardware, grid=msgspec.structs.replace(case.hardware.grid, launch_ns=100_000.0)
    )
    shift = ns_to_cycles(100_000.0, hardware.gpu.sm_clock_hz) - _launch(case)
    later = run_reference(case._replace(hardware=hardware))
    assert later.cycles == result.cycles + shift
    assert later.ends == {key: end + shift for key, end in result.ends.items()}
    for key, issues in result.issues.items():
        assert later.issues[key] == [issue._replace(cycle=issue.cycle + shift) for issue in issues]
    assert later.lines == result.lines


@pytest.mark.parametrize("index", _static())
def test_clusters_do_not_influence_each_other(index):
    case, result = _case(index)
    schedule = case.trace.schedule
    for first in range(0, schedule.ctas, schedule.cluster):
        alone = run_reference(case._replace(trace=_only(case.trace, first)))
        for rank in range(schedule.cluster):
            for role in range(case.trace.roles):
                assert alone.issues[rank, role] == result.issues[first + rank, role]
                assert alone.ends[rank, role] == result.ends[first + rank, role]


def _only(trace: Trace, first: int) -> Trace:
    """Return the trace with one cluster."""
    schedule = trace.schedule
    tiles = schedule.tiles[first : first + schedule.cluster]
    return msgspec.structs.replace(
        trace, schedule=msgspec.structs.replace(schedule, ctas=schedule.cluster, tiles=tiles)
    )


@pytest.mark.parametrize("index", sorted(set(CASES) - set(_static())))
def test_a_dynamic_queue_is_worked_off_once(index):
    case, result = _case(index)
    schedule = msgspec.structs.replace(case.trace.schedule, mode="static", ctas=1)
    in_one_cta = msgspec.structs.replace(case.trace, schedule=schedule, prologue=(None,) * case.trace.roles)
    for role in range(case.trace.roles):
        expected = Counter(step.program for step in executed(in_one_cta, 0, role))
        issues = [result.issues[cta, role] for cta in range(case.trace.schedule.ctas)]
        actual = Counter(issue.program for of_cta in issues for issue in of_cta)
        del actual[case.trace.prologue[role]]
        assert actual == expected


def test_ideal_memory_knows_no_memory_system():
    case, result = _case(0)
    hardware = msgspec.structs.replace(
        case.hardware,
        lrc=msgspec.structs.replace(case.hardware.lrc, enabled=False, multicast=False, entries=1),
        crossbar=msgspec.structs.replace(case.hardware.crossbar, far_latency_cycles=5000),
    )
    assert run_reference(case._replace(hardware=hardware)) == result


def test_the_same_case_gives_the_same_result():
    case, result = _case(1)
    assert msgspec.json.encode(_plain(run_reference(case))) == msgspec.json.encode(_plain(result))


def _plain(result: ReferenceResult) -> object:
    return [result.cycles, sorted(result.issues.items()), sorted(result.ends.items()), result.lines]
