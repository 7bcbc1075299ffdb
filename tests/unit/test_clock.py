"""The sustained clock, against its closed form worked out by hand."""

import json

import msgspec
import pytest
from click.testing import CliRunner

from simfa import validate_cli
from simfa.cli import simfa
from simfa.clock import Activity, activity, cuda_busy_cycles, law_text, repeated, sustained_period_ns
from simfa.errors import HardwareError
from simfa.hardware import load_preset
from simfa.measure.cases import load_set
from simfa.measure.results import activity_of, run_from, with_clock_model
from simfa.measure.summary import set_result, to_text
from tests.unit.fake_simulator import ten_percent_slow

VALUES = {"base": 0.1, "tensor": 0.4, "cuda": 0.3, "l2": 0.2, "dram": 0.5}
LAW = tuple(f"clock.sustained_{name}_ns={value}" for name, value in VALUES.items())


def clock_hz(spec, *shares: float) -> float:
    """Return the clock of a repeated launch of a million cycles at 1.83 GHz that needs no counter."""
    return repeated(spec, Activity(*shares), cycles=10**6, clock_hz=1.83e9, clears_counter=False).clock_hz


def test_a_cycle_takes_the_sum_of_what_is_busy() -> None:
    spec = load_preset("h100-sxm", overrides=LAW).spec
    # 0.1 + 0.4 x 0.5 + 0.3 x 0.5 + 0.2 x 0.25 + 0.5 x 0.25 = 0.625 ns: 1.6 GHz.
    assert clock_hz(spec, 0.5, 0.5, 0.25, 0.25) == pytest.approx(1.6e9)
    # 0.1 + 0.4 x 1 + 0.3 x 0.5 = 0.65 ns; and 0.1 ns alone would be 10 GHz, but the clock is 1.83 GHz.
    assert clock_hz(spec, 1.0, 0.5, 0.0, 0.0) == pytest.approx(1e9 / 0.65)
    assert clock_hz(spec, 0.0, 0.0, 0.0, 0.0) == pytest.approx(1.83e9)
    assert law_text(spec).startswith("1/f = 0.400 x tensor share + 0.300 x CUDA-core share + 0.200 x L2 share + 0.500")


def test_a_period_that_gives_no_latency_is_refused() -> None:
    spec = load_preset("h100-sxm", overrides=["clock.sustained_base_ns=1e308"]).spec
    with pytest.raises(HardwareError, match=r"clock\.sustained_base_ns 1e\+308 and its like give no finite latency"):
        clock_hz(spec, 0.5, 0.0, 0.0, 0.0)


def test_a_counter_is_cleared_between_launches() -> None:
    spec = load_preset("h100-sxm", overrides=[*LAW, "clock.counter_clear_ns=2000"]).spec
    # Not held back by power: 100,000 cycles at 1 GHz and 2 us, at the full clock.
    idle = repeated(spec, Activity(0, 0, 0, 0), cycles=100_000, clock_hz=1e9, clears_counter=True)
    assert idle == pytest.approx((102.0, 1e9))
    # 1.01 ns a cycle of power are 101 us, which the launch and the clearing take anyway; 1.1 ns are 110 us, 2 of them
    # for the clearing: cycles run at 100,000 in 108 us.
    for tensor, latency_us, clock in ((2.275, 102.0, 1e9), (2.5, 110.0, 1e11 / 108)):
        found = repeated(spec, Activity(tensor, 0, 0, 0), cycles=100_000, clock_hz=1e9, clears_counter=True)
        assert found == pytest.approx((latency_us, clock))
    static = repeated(spec, Activity(2.5, 0, 0, 0), cycles=100_000, clock_hz=1e9, clears_counter=False)
    assert static == pytest.approx((110.0, 1e9 / 1.1))


def test_activity_of_a_run_by_hand() -> None:
    spec = load_preset("h100-sxm").spec
    shares = activity(
        spec,
        cycles=1000,
        clock_hz=1e9,
        tensor_share=0.75,
        cuda_cycles=66_000,
        l2_read_bytes=512_000,
        dram_bytes=838_000,
    )
    # 66,000 of 132 x 1000 cycles; 512 of 80 x 64 B a cycle; 838,000 B in 1 us are 0.838 of 3.352 TB/s.
    assert shares == pytest.approx((0.75, 0.5, 0.1, 0.25))
    stalls = {
        "producer": {"issue": 9},
        "consumer1": {"softmax": 3, "epilogue": 2, "cuda_contention": 7},
        "consumer2": {"softmax": 5, "bubble": 1},
        "tensor_pipe": {"softmax": 100},
    }
    assert cuda_busy_cycles(stalls) == 11


def test_a_part_without_limit_keeps_its_clock() -> None:
    spec = load_preset("h20").spec
    assert clock_hz(spec, 1.0, 1.0, 1.0, 1.0) == pytest.approx(1.83e9)
    assert law_text(spec) == "no limit: the nominal clock"


def test_only_looped_cases_change() -> None:
    single, looped = load_set("ncu-1500").cases[0], load_set("s01").cases[0]
    for case, changes in ((single, False), (looped, True)):
        idle = run_from(ten_percent_slow(case), case.id)
        run = msgspec.structs.replace(idle, tensor_utilization=0.9, cuda_cycles=idle.cycles * 132)
        assert with_clock_model(case, run, "nominal") == run
        changed = with_clock_model(case, run, "sustained")
        assert (changed != run) == changes
    spec = load_preset("h100-sxm").spec
    period_ns = sustained_period_ns(spec, activity_of(looped, run))
    assert period_ns > 1e9 / run.sm_clock_hz
    assert changed.latency_us == pytest.approx(run.cycles * period_ns / 1e3)
    assert changed.effective_clock_hz == pytest.approx(1e9 / period_ns)


def test_only_causal_cases_clear_a_counter() -> None:
    for case in load_set("h20").cases:
        run = run_from(ten_percent_slow(case), case.id)
        clear_us = 2.5 if case.shape.causal else 0.0
        assert with_clock_model(case, run, "sustained").latency_us == pytest.approx(run.latency_us + clear_us)


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
    monkeypatch.setattr(validate_cli, "simulator", lambda threads, cases, quiet: ten_percent_slow)
    done = CliRunner().invoke(simfa, ["validate", "--set", "s01", "--clock-model", "sustained", "--json"])
    (entry,) = json.loads(done.stdout)["sets"]
    assert entry["clock_model"] == "sustained"
    for case in entry["cases"]:
        clear_us = 2.5 if case["causal"] else 0.0
        assert case["simulated_us"] == pytest.approx(case["cycles"] / case["effective_clock_mhz"] + clear_us)
    refused = CliRunner().invoke(simfa, ["validate", "--clock-model", "turbo"])
    assert refused.exit_code == 2


def test_predict_adds_the_sustained_latency() -> None:
    flags = ["--heads-q", "2", "--seqlen", "128", "--quiet", "--json"]
    nominal = json.loads(CliRunner().invoke(simfa, ["predict", *flags]).stdout)
    assert nominal["clock_model"] == "nominal" and "sustained_latency_us" not in nominal
    law = [f"--set=clock.sustained_{name}_ns={1.0 if name == 'base' else 0.0}" for name in VALUES]
    found = json.loads(CliRunner().invoke(simfa, ["predict", *flags, *law, "--clock-model", "sustained"]).stdout)
    assert found["latency_us"] == nominal["latency_us"]
    assert found["sustained_clock_hz"] == pytest.approx(1e9)
    assert found["sustained_latency_us"] == pytest.approx(found["cycles"] / 1e3)
