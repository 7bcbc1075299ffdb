"""Ablations around a stand-in simulator: which runs are made, what rows and errors follow, what is refused."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from simfa import ablation
from simfa.ablate_cli import clean_groups, errors_of
from simfa.ablation import CaseGroup, StudyCase, Task, choose_cases, choose_overlays, overlay_info, paper_group
from simfa.ablation_text import ablation_csv, ablation_text
from simfa.errors import HardwareError, StudyError
from simfa.hardware import load_preset, overlay_names
from simfa.workload import PAPER_SEQLENS, model_shape
from tests.unit.study_figures import figures, study_of

MEANS = {"wait_v": "waiting for V"}
SHORT, LONG = model_shape("llama3-8b", 512), model_shape("llama3-8b", 1024)


def groups() -> list[CaseGroup]:
    """Two unmeasured cases, and one measured 10 % faster than it is simulated."""
    measured_us = figures(SHORT, load_preset("h100-sxm").spec)["latency_us"] / 1.1
    measured = StudyCase(name="m", shape=SHORT, measured_us=measured_us)
    unmeasured = (StudyCase(name="a", shape=SHORT), StudyCase(name="b", shape=LONG))
    return [CaseGroup("paper", "h800-sxm", unmeasured), CaseGroup("clean", "h100-sxm", (measured,))]


def study(asked: list[Task], *overlays: str, of: Sequence[CaseGroup] | None = None) -> ablation.Ablation:
    def run_all(tasks):
        asked.extend(tasks)
        return [figures(task.case.shape, task.hardware) for task in tasks]

    return ablation.ablate(groups() if of is None else of, choose_overlays(overlays), run_all, errors_of, MEANS)


def test_slowdown_is_the_geometric_mean_with_its_extremes() -> None:
    found = study_of(study([], "no-tma-dedup", "modulo-hash"), "paper", "h800-sxm")
    assert list(found) == ["no-tma-dedup", "modulo-hash"]  # slowest first
    row = found["no-tma-dedup"]
    assert (row.slowdown, row.least.slowdown, row.most.slowdown) == (pytest.approx(4), 4, 4)
    assert row.mape is None
    assert row.because.startswith(
        "line requests of the TMA engines for a tile: 160 -> 640 [counters.requests / tiles]; "
    )
    assert found["modulo-hash"].because.startswith("requests of the busiest L2 slice over the mean slice: 1.00 -> 4.00")


def test_errors_are_those_of_the_measured_cases() -> None:
    document = study([], "modulo-hash")
    clean = document.groups[1]
    assert clean.mape == pytest.approx(0.1)
    assert clean.rows[0].mape == pytest.approx(1.5 * 1.1 - 1)
    errors = {(run.overlay, run.case): run.error for run in document.runs}
    assert errors["", "m"] == pytest.approx(0.1)
    assert errors["modulo-hash", "a"] is None


def test_equal_simulations_run_once_and_say_so() -> None:
    asked: list[Task] = []
    document = study(asked, "no-register-pressure")
    assert len(asked) == 3
    row = study_of(document, "paper", "h800-sxm")["no-register-pressure"]
    assert (row.slowdown, row.because) == (1, "the preset has these values already; the runs are the same")


def test_cases_of_two_groups_on_equal_values_are_shared() -> None:
    asked: list[Task] = []
    study(asked, "modulo-hash", of=[paper_group("h800-sxm"), paper_group("h800-sxm")])
    assert len(asked) == 2 * 15


def test_shipped_overlays_are_the_default_and_each_says_what_it_means() -> None:
    infos = choose_overlays([])
    assert [info.name for info in infos] == overlay_names()
    assert {"fixed-bubbles", "no-register-pressure", "64-lines", "ideal-memory"} <= {info.name for info in infos}
    for info in infos:
        assert info.about, info.name
    assert len(choose_overlays(["no-lrc", "no-lrc"])) == 1


def test_an_overlay_of_the_users_own_joins(tmp_path: Path) -> None:
    own = tmp_path / "slow-tma.toml"
    own.write_text(
        'about = "own"\ncounters = ["tma_limit"]\n'
        '[tma]\nmax_lines_in_flight = { value = 8, status = "assumed", source = "test" }\n'
    )
    row = study_of(study([], str(own)), "paper", "h800-sxm")[str(own)]
    assert row.counter == "counters.tma_limit_cycles / (cycles x SMs)"
    own.write_text('counters = ["tma_limits"]\n')
    with pytest.raises(StudyError, match=r"counters is \['tma_limits'\]; expected names among requests, "):
        overlay_info(str(own))


def test_unknown_overlay_is_named_with_the_nearest() -> None:
    with pytest.raises(HardwareError, match="overlay 'no-lcr' is unknown; did you mean no-lrc"):
        choose_overlays(["no-lcr"])


def test_paper_cases_are_fifteen_and_clean_ones_twelve() -> None:
    group = paper_group("h800-sxm")
    assert len(group.cases) == 15
    assert {case.shape.seqlen_q for case in group.cases} == set(PAPER_SEQLENS)
    assert all(case.shape.batch == 1 and not case.shape.causal for case in group.cases)
    (clean,) = clean_groups()
    assert (clean.preset, len(clean.cases)) == ("h100-sxm", 12)
    assert all(case.sm_clock_hz == 1.5e9 and case.measured_us for case in clean.cases)


@pytest.mark.parametrize(
    ("patterns", "limit", "names"),
    [
        ([], None, ["a", "b", "m"]),
        (["paper"], None, ["a", "b"]),
        (["b", "clean"], None, ["b", "m"]),
        (["[ab]"], 512, ["a"]),
    ],
)
def test_cases_are_chosen_by_group_name_pattern_and_length(patterns, limit, names) -> None:
    assert [case.name for group in choose_cases(groups(), patterns, limit) for case in group.cases] == names


def test_unknown_cases_and_an_empty_choice_are_refused() -> None:
    with pytest.raises(StudyError, match="case 'c' is unknown; expected paper or clean, a pattern, or one of a, b, m"):
        choose_cases(groups(), ["a", "c"])
    with pytest.raises(StudyError, match="no chosen case has at most 256 tokens"):
        choose_cases(groups(), [], 256)


def test_table_has_a_reason_under_each_row_and_csv_a_line_for_each_run() -> None:
    document = study([], "no-lrc", "modulo-hash")
    text = ablation_text(document)
    assert "paper on h800-sxm: 2 cases\n" in text
    assert "clean on h100-sxm: 1 case, MAPE 10.00% and max 10.00% without an overlay\n" in text
    assert "+110.00" in text  # 2.0 x 1.1 - 1 = 120 % instead of 10 %
    assert text.count("    reads that reach L2 for a tile: 160 -> 320 [counters.l2_read_requests / tiles]") == 2
    header, *lines = ablation_csv(document).splitlines()
    assert header.startswith("preset,group,overlay,case,shape,cycles,latency_us,slowdown,measured_us,error,requests,")
    assert len(lines) == 3 * (1 + 2)
    assert all(line.count(",") == header.count(",") for line in lines)


def test_same_runs_same_document() -> None:
    first, second = (msgspec.json.encode(study([], "no-lrc", "no-tma-dedup")) for _ in range(2))
    assert first == second
