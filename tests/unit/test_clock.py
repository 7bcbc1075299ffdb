"""The sustained clock, against its closed form worked out by hand."""

import json

import pytest
from click.testing import CliRunner

from simfa import validate_cli
from simfa.cli import simfa
from simfa.clock import law_text, sustained_clock_hz
from simfa.hardware import load_preset
from simfa.measure.cases import load_set
from simfa.measure.results import run_from, with_clock_model
from simfa.measure.summary import set_result, to_text
from tests.unit.fake_simulator import ten_percent_slow

LAW = ("clock.sustained_base_ns=0.5", "clock.sustained_tensor_ns=0.25")


def test_a_cycle_takes_base_and_a_share_of_the_tensor_term() -> None:
    spec = load_preset("h100-sxm", overrides=LAW).spec
    # 0.5 + 0.25 x 0.5 = 0.625 ns: 1.6 GHz; with idle tensor pipes 0.5 ns are 2 GHz, but the clock is 1.83 GHz.
    assert sustained_clock_hz(spec, 0.5, 1.83e9) == pytest.approx(1.6e9)
    assert sustained_clock_hz(spec, 1.0, 1.83e9) == pytest.approx(1e9 / 0.75)
    assert sustained_clock_hz(spec, 0.0, 1.83e9) == pytest.approx(1.83e9)
    assert law_text(spec).startswith("1/f = 0.500 + 0.250 x tensor share ns, empirical")


def test_a_part_without_limit_keeps_its_clock() -> None:
    spec = load_preset("h20").spec
    assert sustained_clock_hz(spec, 1.0, 1.83e9) == pytest.approx(1.83e9)
    assert law_text(spec) == "no limit: the nominal clock"


def test_only_looped_cases_change() -> None:
    single, looped = load_set("ncu-1500").cases[0], load_set("s01").cases[0]
    for case, changes in ((single, False), (looped, True)):
        run = run_from(ten_percent_slow(case), case.id)
        assert with_clock_model(case, run, "nominal") == run
        changed = with_clock_model(case, run, "sustained")
        assert (changed != run) == changes
    clock = load_preset("h100-sxm").spec.clock
    period_us = (clock.sustained_base_ns + clock.sustained_tensor_ns * 0.5) / 1e3
    assert changed.latency_us == pytest.approx(run.cycles * period_us)
    assert changed.effective_clock_hz == pytest.approx(1e6 / period_us)


def test_the_table_says_which_clock() -> None:
    entry = load_set("s01")
    pairs = [(case, run_from(ten_percent_slow(case), case.id)) for case in entry.cases]
    assert "clock model: nominal" in to_text(set_result(entry, pairs))
    text = to_text(set_result(entry, pairs, clock_model="sustained"))
    assert "clock model: sustained, h100-sxm: 1/f = " in text
    single = load_set("ncu-1500")
    pairs = [(case, run_from(ten_percent_slow(case), case.id)) for case in single.cases]
    assert "changes looped cases alone; there are none" in to_text(set_result(single, pairs, clock_model="sustained"))


def test_validate_passes_the_model_on(monkeypatch) -> None:
    monkeypatch.setattr(validate_cli, "simulator", lambda threads, quiet: ten_percent_slow)
    done = CliRunner().invoke(simfa, ["validate", "--set", "s01", "--clock-model", "sustained", "--json"])
    (entry,) = json.loads(done.stdout)["sets"]
    assert entry["clock_model"] == "sustained"
    for case in entry["cases"]:
        assert case["simulated_us"] == pytest.approx(case["cycles"] / case["effective_clock_mhz"])
    refused = CliRunner().invoke(simfa, ["validate", "--clock-model", "turbo"])
    assert refused.exit_code == 2


def test_predict_adds_the_sustained_latency() -> None:
    flags = ["--heads-q", "2", "--seqlen", "128", "--quiet", "--json"]
    nominal = json.loads(CliRunner().invoke(simfa, ["predict", *flags]).stdout)
    assert nominal["clock_model"] == "nominal" and "sustained_latency_us" not in nominal
    law = [f"--set={value}" for value in ("clock.sustained_base_ns=1.0", "clock.sustained_tensor_ns=0.0")]
    found = json.loads(CliRunner().invoke(simfa, ["predict", *flags, *law, "--clock-model", "sustained"]).stdout)
    assert found["latency_us"] == nominal["latency_us"]
    assert found["sustained_clock_hz"] == pytest.approx(1e9)
    assert found["sustained_latency_us"] == pytest.approx(found["cycles"] / 1e3)
