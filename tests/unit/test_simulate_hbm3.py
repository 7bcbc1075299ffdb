"""The bank-level channel from Python: the benchmark command, and full runs on it."""

import json

import pytest
from click.testing import CliRunner

from simfa.errors import SimfaError, SimulationError
from simfa.hardware import load_preset
from simfa.kernel import kernel_for
from simfa.pipeline import kernel_trace, predict
from simfa.simulate.engine import run
from simfa.simulate.hbm3_bench import PATTERNS, run_bench
from simfa.simulate.microbench_commands import microbench
from simfa.workload import AttentionShape

SHAPE = AttentionShape(batch=1, seqlen_q=512, seqlen_kv=512, heads_q=4, heads_kv=4, head_dim=128)


def bench(pattern: str, transfers: int = 40_000, **changes: object):
    overrides = [f"memory.dram.{name}={value}" for name, value in changes.items()]
    dram = load_preset("h100-sxm", overrides=overrides).spec.memory.dram
    return run_bench(dram, pattern=pattern, data_rate_bits_per_s=5.2e9, transfers=transfers)


def test_a_stream_fills_the_bus_and_refresh_takes_its_share() -> None:
    without = bench("stream-read", refresh="none")
    assert 0.99 < without.fraction_of_peak <= 1.0
    # 1 - nRFC / nREFI = 0.910, less the time to close and reopen rows.
    assert 0.88 < bench("stream-read", transfers=200_000, refresh="all-bank").fraction_of_peak < 0.91
    assert bench("stream-read", refresh="per-bank").fraction_of_peak > 0.96


def test_random_accesses_are_bound_by_activates() -> None:
    """Four activates per nFAW, 64 bytes each: at most 2 x 4 x nBL / nFAW = 0.8 of peak; every second burst hits."""
    result = bench("random-read-64", refresh="none", read_queue_entries=1024)
    assert 0.72 < result.fraction_of_peak <= 0.8
    assert result.row_hit_rate == pytest.approx(0.5, abs=0.01)


def test_patterns_do_what_their_names_say() -> None:
    capacity = 1 << 25
    reads, writes = PATTERNS["read-write-2to1"](12, capacity)
    half = capacity // 2
    assert writes.tolist() == [0, 0, 0, 0, 1, 1] * 2
    assert reads.tolist() == [0, 1, 2, 3, half, half + 1, 4, 5, 6, 7, half + 2, half + 3]
    assert PATTERNS["stride-2048-read"](3, capacity)[0].tolist() == [0, 64, 128]
    pairs = PATTERNS["random-read-64"](1000, capacity)[0].reshape(-1, 2)
    assert (pairs[:, 0] % 2 == 0).all()
    assert (pairs[:, 1] == pairs[:, 0] + 1).all()
    for pattern in PATTERNS.values():
        bursts, writes = pattern(1001, capacity)
        assert len(bursts) == len(writes) == 1001
        assert bursts.max() < capacity


def test_latencies_from_offer_hold_those_from_acceptance() -> None:
    result = bench("random-read-64", transfers=5000)
    assert result.mean_read_latency_ns is not None
    assert result.mean_read_latency_from_offer_ns is not None
    assert 35 < result.mean_read_latency_ns < result.mean_read_latency_from_offer_ns
    assert bench("stream-write", transfers=5000).mean_read_latency_ns is None


def test_command_prints_the_figures_as_json() -> None:
    flags = "--pattern stream-read --mapping g64x --read-queue 64 --write-queue 64 --refresh all-bank --transfers 3000"
    result = CliRunner().invoke(microbench, ["hbm3", *flags.split(), "--json"])
    assert result.exit_code == 0, result.output
    values = json.loads(result.output)
    for name in (
        *("fraction_of_peak", "mean_read_latency_ns", "mean_read_latency_from_offer_ns", "row_hit_rate"),
        "requests_per_host_second",
    ):
        assert values[name] > 0
    assert values["dram"]["read_queue_entries"] == 64
    assert values["dram"]["refresh"] == "all-bank"


def test_command_prints_a_table() -> None:
    result = CliRunner().invoke(microbench, ["hbm3", "--pattern", "stream-write", "--transfers", "1000"])
    assert result.exit_code == 0, result.output
    assert "no reads" in result.output


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--mapping", "linear"], "address mapping 'linear' is unknown"),
        (["--set", "memory.dram.standard=ddr5"], "DRAM standard 'ddr5' is unknown"),
        (["--set", "memory.dram.drain_below=0.9"], "expected 0 <= below <= above <= 1"),
    ],
)
def test_bad_values_are_refused(flags: list[str], words: str) -> None:
    result = CliRunner().invoke(microbench, ["hbm3", "--pattern", "stream-read", "--transfers", "100", *flags])
    assert isinstance(result.exception, SimfaError)
    assert words in str(result.exception)


def test_queues_must_hold_a_line() -> None:
    preset = load_preset("h100-sxm", overrides=["memory.model=hbm3", "memory.dram.read_queue_entries=3"])
    with pytest.raises(SimulationError, match="expected room for the bursts of a line"):
        predict(SHAPE, preset)


def test_full_runs_do_not_depend_on_threads_or_windows() -> None:
    hardware = load_preset("h100-sxm", overrides=["memory.model=hbm3"]).spec
    trace = kernel_trace(SHAPE, kernel_for(SHAPE), hardware.gpu.sm_count)
    runs = [run(trace, hardware, threads=threads, window_cycles=window) for threads, window in ((1, 0), (2, 0), (1, 7))]
    assert len({result.cycles for result in runs}) == 1
    # Cold reads of Q, K and V, each once; O stays in L2.
    assert runs[0].dram_read_bytes == 3 * 2 * 4 * 512 * 128


def test_the_simple_channel_differs() -> None:
    cycles = {
        predict(SHAPE, load_preset("h100-sxm", overrides=[f"memory.model={m}"])).cycles for m in ("hbm3", "channel")
    }
    assert len(cycles) == 2


def test_every_burst_is_counted() -> None:
    for pattern in PATTERNS:
        result = bench(pattern, transfers=3000)
        moved = result.fraction_of_peak * result.peak_bytes_per_s * result.simulated_ns * 1e-9 / 32
        assert round(moved) + result.forwarded_reads + result.absorbed_writes == 3000


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("gpu.sm_clock_hz=1e-3", "gpu.sm_clock_hz 0.001 is below one cycle a second"),
        ("memory.peak_bytes_per_s=1e300", "half clocks a second are beyond what the engine holds"),
    ],
)
def test_clocks_that_no_part_has(override: str, message: str) -> None:
    hardware = load_preset("h100-sxm", overrides=["memory.model=hbm3", override])
    with pytest.raises(SimfaError, match=message):
        predict(SHAPE, hardware)
