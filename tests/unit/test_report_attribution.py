"""Stall attribution: shares, order, words, and what `simfa explain` prints of them."""

import json

import msgspec
import pytest
from click.testing import CliRunner

from simfa.cli import simfa
from simfa.errors import ReportError
from simfa.files import write_json
from simfa.report.attribution import GROUPS, REASONS, causes, chip_wide, findings, pipe_idle
from simfa.report.figures import stall_stack
from simfa.report.inputs import RunStats
from simfa.report.palette import GROUP_COLOURS
from simfa.simulate import _core
from simfa.workload import model_shape
from tests.unit.fake_simulator import statistics

SHAPE = model_shape("llama3-8b", 512)


def stats(**stalls: dict[str, int]) -> RunStats:
    return msgspec.convert(statistics(SHAPE) | {"stall_cycles": stalls}, RunStats)


def test_every_reason_of_the_engine_has_words_and_a_group() -> None:
    assert {*_core.REASONS, "busy", "drain"} == set(REASONS)
    assert {reason.group for reason in REASONS.values()} == set(GROUPS) == set(GROUP_COLOURS)


def test_shares_by_role_largest_first() -> None:
    found = causes(stats(consumer1={"softmax": 30, "barrier": 60, "issue": 10}, producer={"wait_q": 5, "issue": 5}))
    assert list(found) == ["producer", "consumer1"]
    assert [(cause.reason, cause.share) for cause in found["consumer1"]] == [
        ("barrier", 0.6),
        ("softmax", 0.3),
        ("issue", 0.1),
    ]
    assert [cause.reason for cause in found["producer"]] == ["issue", "wait_q"]


def test_findings_leave_out_work_and_the_grid() -> None:
    found = findings(
        stats(producer={"acquire_stage": 80, "launch": 20}, consumer1={"issue": 50, "tail": 30, "wait_k": 20})
    )
    assert [(finding.reason, finding.causes[0].role) for finding in found] == [
        ("acquire_stage", "producer"),
        ("wait_k", "consumer1"),
    ]
    assert found[1].sentence() == (
        "consumer1 spends 20.0% of its cycles waiting for a K block to arrive in shared memory."
    )


def test_findings_name_every_role_that_meets_the_reason() -> None:
    (found, _) = findings(
        stats(
            consumer1={"softmax": 30, "barrier": 69, "wait_v": 1},
            consumer2={"softmax": 50, "barrier": 49, "issue": 1},
            consumer3={"softmax": 50, "barrier": 4, "issue": 46},
        ),
        2,
    )
    assert found.sentence() == (
        "consumer1 69.0% and consumer2 49.0% of their cycles are spent waiting at a named barrier: its ping-pong turn, "
        "or the meeting of the consumers."
    )


def test_stack_is_whole_and_starts_with_what_the_pipe_does() -> None:
    found = causes(stats(tensor_pipe={"softmax": 20, "drain": 10, "wait_k": 5, "busy": 60, "launch": 5}))["tensor_pipe"]
    segments = stall_stack(found)
    assert [part.reason for part in segments] == ["busy", "drain", "softmax", "wait_k", "launch"]
    assert sum(part.width for part in segments) == pytest.approx(100)
    assert segments[0].label == "busy 60%"
    assert segments[3].label == ""
    assert len({part.colour for part in segments}) == 5


def test_chip_wide_counts_each_role_by_its_cycles() -> None:
    run = stats(producer={"issue": 10}, consumer1={"softmax": 60, "issue": 30}, tensor_pipe={"busy": 100})
    shares = {cause.reason: cause.share for cause in chip_wide(causes(run), run)}
    assert shares == {"softmax": pytest.approx(0.6), "issue": pytest.approx(0.4)}


def of_pipe(used: float, **pipe: int) -> RunStats:
    """Return a run whose tensor pipes are accounted for, on that share of the chip's SMs."""
    busy = pipe["busy"] / sum(pipe.values())
    return msgspec.structs.replace(stats(tensor_pipe=pipe), tensor_utilization=busy * used)


def test_reasons_of_an_idle_pipe_sum_to_what_it_idles() -> None:
    idle = pipe_idle(of_pipe(1.0, busy=700, launch=100, tail=50, drain=90, softmax=60))
    assert [(entry.reason, pytest.approx(entry.share)) for entry in idle] == [
        ("launch", 0.1),
        ("drain", 0.09),
        ("softmax", 0.06),
        ("tail", 0.05),
    ]
    assert idle[2].why == "the warpgroup that uses it next is computing softmax"
    assert pipe_idle(stats(producer={"launch": 100})) == []


def test_sms_without_a_cta_are_a_reason() -> None:
    idle = pipe_idle(of_pipe(0.25, busy=600, wait_q=400))
    assert [(entry.reason, pytest.approx(entry.share)) for entry in idle] == [("no_cta", 0.75), ("wait_q", 0.1)]


def test_unknown_reason_is_an_error() -> None:
    with pytest.raises(ReportError, match="stall reason gremlins of producer is unknown"):
        causes(stats(producer={"gremlins": 1}))


@pytest.fixture
def two_runs(tmp_path):
    for name, latency in (("before", 100.0), ("after", 80.0)):
        (tmp_path / name).mkdir()
        write_json(tmp_path / name / "stats.json", statistics(SHAPE, latency_us=latency))
    return tmp_path


def explain(*arguments: str) -> str:
    done = CliRunner().invoke(simfa, ["explain", *arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_explain_names_run_shares_and_causes(two_runs) -> None:
    text = explain(str(two_runs / "before"))
    assert text.startswith("before: B1 L512 S512 H32/8 D128 full fp16 on h100-sxm, 150,000 cycles, 100.00 us")
    assert "1. producer spends 75.0% of its cycles waiting for a K or V stage" in text
    (row,) = [line for line in text.splitlines() if line.startswith("softmax")]
    assert row.split() == ["softmax", "-", "37.5%"]


def test_explain_says_all_of_why_the_tensor_pipe_idles(tmp_path) -> None:
    run = statistics(SHAPE) | {"tensor_utilization": 0.35}
    run["stall_cycles"]["tensor_pipe"] = {"busy": 700, "drain": 200, "softmax": 92, "wait_k": 5, "wait_v": 3}
    write_json(tmp_path / "stats.json", run)
    lines = explain(str(tmp_path)).splitlines()
    begin = lines.index("The tensor pipes of the chip compute 35.0% of the time. They idle 65.0%:")
    assert lines[begin + 1 :] == [
        " 50.0%  the SM gets no CTA: the grid is smaller than the chip",
        " 10.0%  a WGMMA group drains: no new group may start",
        "  4.6%  the warpgroup that uses it next is computing softmax",
        "  0.4%  2 smaller reasons",
    ]
    (entry,) = json.loads(explain(str(tmp_path), "--json"))
    assert sum(cause["share"] for cause in entry["tensor_pipe_idle"]) == pytest.approx(0.65)
    assert entry["tensor_pipe_idle"][1] == {
        "reason": "drain", "share": pytest.approx(0.1), "why": "a WGMMA group drains: no new group may start",
    }  # fmt: skip


def test_explain_compares_two_runs(two_runs) -> None:
    text = explain(str(two_runs / "before"), "--compare", str(two_runs / "after/stats.json"))
    assert "latency ratio 0.8000" in text
    assert "producer   acquire_stage   75.0%  75.0%    +0.0" in text


def test_explain_json(two_runs) -> None:
    (entry,) = json.loads(explain(str(two_runs / "before"), "--json"))
    assert entry["shares"]["producer"] == {"acquire_stage": 0.75, "issue": 0.25}
    assert len(entry["findings"]) == 3
    assert entry["tensor_pipe_idle"] == []


def test_explain_wrong_file(tmp_path) -> None:
    (tmp_path / "stats.json").write_text("{}")
    with pytest.raises(ReportError, match=r"stats\.json: not a stats\.json of this version"):
        explain(str(tmp_path))


def test_findings_say_why_the_tensor_pipe_idles():
    found = findings(
        stats(
            producer={"acquire_stage": 1000},
            consumer1={"softmax": 600, "tensor_busy": 400},
            tensor_pipe={"busy": 700, "launch": 100, "drain": 90, "softmax": 60, "wait_k": 30, "barrier": 20},
        )
    )
    assert [finding.sentence() for finding in found] == [
        "The tensor pipe spends 9.0% of its cycles draining after a WGMMA group.",
        "The tensor pipe idles 6.0% of its cycles while the warpgroup that uses it next is computing softmax.",
        "The tensor pipe idles 3.0% of its cycles while the warpgroup that uses it next is waiting for a K block to "
        "arrive in shared memory.",
    ]
    assert found[1].counter() == "stall_cycles.tensor_pipe.softmax"
