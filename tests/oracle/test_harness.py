"""The comparison finds what differs, and the long run says so."""

from collections.abc import Callable

import msgspec
import pytest

from simfa.errors import SimulationError
from simfa.simulate.reference import ReferenceResult
from tests.oracle import long_run
from tests.oracle.cases import Case, seeded_case
from tests.oracle.harness import differences, run_reference

CASE = seeded_case(0, 0)
RESULT = run_reference(CASE)
Change = Callable[[ReferenceResult], ReferenceResult]


def _later_issue(result: ReferenceResult) -> ReferenceResult:
    issues = {key: list(value) for key, value in result.issues.items()}
    issues[0, 1][2] = issues[0, 1][2]._replace(cycle=issues[0, 1][2].cycle + 1)
    return msgspec.structs.replace(result, issues=issues)


def _missing_issue(result: ReferenceResult) -> ReferenceResult:
    issues = {key: list(value) for key, value in result.issues.items()}
    del issues[0, 1][-1]
    return msgspec.structs.replace(result, issues=issues)


def _later_end(result: ReferenceResult) -> ReferenceResult:
    return msgspec.structs.replace(result, ends=result.ends | {(0, 1): result.ends[0, 1] + 1})


def _missing_role(result: ReferenceResult) -> ReferenceResult:
    return msgspec.structs.replace(result, ends={k: v for k, v in result.ends.items() if k != (0, 1)})


def test_equal_results_have_no_difference():
    assert differences(RESULT, run_reference(CASE)) == []


@pytest.mark.parametrize(
    ("change", "start"),
    [
        (lambda result: msgspec.structs.replace(result, cycles=result.cycles + 1), "cycles: expected "),
        (lambda result: msgspec.structs.replace(result, lines=result.lines + 1), "lines: expected "),
        (lambda result: msgspec.structs.replace(result, bytes=result.bytes + 1), "bytes: expected "),
        (_later_issue, "CTA 0 role 1 issue 2: expected cycle "),
        (_missing_issue, "CTA 0 role 1 issue "),
        (_later_end, "CTA 0 role 1 ends: expected "),
        (_missing_role, "roles: expected "),
    ],
)
def test_each_kind_of_difference_is_found(change: Change, start: str):
    found = differences(RESULT, change(RESULT))
    assert len(found) == 1
    assert found[0].startswith(start)


def test_a_long_run_fails_on_a_difference(monkeypatch, capsys):
    def wrong(case: Case) -> ReferenceResult:
        result = run_reference(case)
        return msgspec.structs.replace(result, cycles=result.cycles + 1)

    monkeypatch.setattr(long_run, "run_core", wrong)
    assert long_run.main(["--programs", "3", "--seed", "9", "--show", "1"]) == 1
    output = capsys.readouterr().out
    assert "seed 9 case 0\n  cycles: expected " in output
    assert "seed 9 case 1\n" not in output
    assert "3 programs" in output
    assert "3 differ" in output


def test_a_hang_is_a_difference(monkeypatch, capsys):
    def hang(case: Case) -> ReferenceResult:
        raise SimulationError("stuck")

    monkeypatch.setattr(long_run, "run_core", hang)
    assert long_run.main(["--programs", "1", "--seed", "9"]) == 1
    assert "got an error: stuck" in capsys.readouterr().out


def test_a_long_run_fails_on_lacking_coverage(capsys):
    assert long_run.main(["--programs", "1", "--reference-only"]) == 1
    assert "never met: " in capsys.readouterr().out


def test_a_long_run_passes_when_all_is_equal_and_met(monkeypatch, capsys):
    monkeypatch.setattr(long_run, "run_core", run_reference)
    monkeypatch.setattr(long_run, "missing", lambda coverage: [])
    assert long_run.main(["--programs", "2"]) == 0
    assert "compared, 0 differ" in capsys.readouterr().out
