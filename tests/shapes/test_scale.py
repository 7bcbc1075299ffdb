"""The largest and the smallest: 128K tokens by 128 heads start, stream and stop; chips of a few units work."""

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from simfa.errors import SimfaError, SimulationError
from simfa.hardware import load_preset
from simfa.pipeline import predict
from simfa.workload import AttentionShape

SMALL = AttentionShape(batch=1, seqlen_q=384, seqlen_kv=384, heads_q=2, heads_kv=1, head_dim=64, causal=False)


@pytest.mark.slow
@pytest.mark.parametrize("mask", ["--full", "--causal"])
def test_128k_tokens_by_128_heads_start_and_stop(mask: str, tmp_path: Path) -> None:
    # 131,072 tiles; with a causal mask of 1,024 kinds.
    shape = ["--seqlen", "131072", "--heads-q", "128", "--head-dim", "128", mask]
    command = [sys.executable, "-P", "-m", "simfa", "predict", *shape, "--max-cycles", "50000", "-o", str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    with process.stderr as stream:
        errors = stream.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, errors
    assert usage.ru_maxrss < 1_000_000, "kilobytes"
    assert usage.ru_utime < 60, "seconds"
    stats = msgspec.json.decode((tmp_path / "stats.json").read_bytes())
    assert stats["partial"] is True
    assert stats["cycles"] == 50_000
    assert stats["lines"] > 0
    for role, reasons in stats["stall_cycles"].items():
        assert sum(reasons.values()) == 50_000 * 132, role


def _chip(sms: int, slices: int, *overrides: str):
    capacity = slices * 20 * 128 * 16
    return load_preset(
        "h100-sxm",
        overrides=[f"gpu.sm_count={sms}", f"l2.slices={slices}", f"l2.capacity_bytes={capacity}", *overrides],
    )


@pytest.mark.parametrize(("sms", "slices"), [(2, 2), (2, 80), (2, 1024), (6, 10), (132, 2), (4096, 6)])
@pytest.mark.parametrize("memory", ["channel", "hbm3"])
def test_chips_of_other_sizes(sms: int, slices: int, memory: str) -> None:
    result = predict(SMALL, _chip(sms, slices, f"memory.model={memory}"))
    assert not result.partial
    # 2 heads x 2 tiles of 192 rows; each reads its Q, and 384 rows of K and V, 128 bytes a row.
    assert result.sm_read_bytes == 4 * (192 + 2 * 384) * 128
    ctas = min(sms, 4)
    for role, reasons in result.stall_cycles.items():
        assert sum(reasons.values()) == ctas * result.cycles, role


def test_fewer_sms_take_more_turns() -> None:
    # Four tiles in two turns on two SMs, in one on four: without the launch about twice the time.
    overrides = ["grid.launch_ns=0"]
    two, four = (predict(SMALL, _chip(sms, 80, *overrides)).cycles for sms in (2, 4))
    assert 1.5 < two / four < 2.5


def test_a_short_write_queue_holds_slices_back() -> None:
    # More output than L2 holds: its lines are written back while the kernel runs.
    shape = AttentionShape(batch=1, seqlen_q=2048, seqlen_kv=128, heads_q=64, heads_kv=64, head_dim=128)
    small_l2 = "l2.capacity_bytes=3276800"
    one, many = (
        predict(shape, load_preset("h100-sxm", overrides=[small_l2, f"memory.write_queue_entries={entries}"]))
        for entries in (1, 32)
    )
    assert many.dram_write_bytes > 2 * 3276800
    assert one.cycles > many.cycles


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("gpu.sm_count=3", "gpu.sm_count 3 is odd"),
        ("gpu.sm_count=4098", "gpu.sm_count is 4098; expected 2 to 4096"),
        ("l2.slices=81;l2.capacity_bytes=53084160", "l2.slices 81 is odd"),
        ("l2.slices=1280", "l2.slices is 1280; expected 2 to 1024"),
        ("l2.ways=3", "not a whole number of sets"),
        ("l2.line_bytes=100", "line_bytes"),
        ("tensor_core.wgmma_window_ss=65", "tensor_core.wgmma_window_ss is 65; expected 1 to 64"),
        ("lrc.max_merges=9", "lrc.max_merges is 9; expected 1 to 8"),
        ("lrc.entries=40000", "lrc.entries is 40000; expected 1 to 32767"),
        ("tma.max_lines_in_flight=20000", "tma.max_lines_in_flight is 20000; expected 1 to 16383"),
        ("tma.max_lines_in_flight=3000000000", "max_lines_in_flight is 3000000000; expected a number of 32 bits"),
        ("tma.descriptor_cache_entries=5000", "tma.descriptor_cache_entries is 5000; expected 1 to 4096"),
        ("tma.request_bytes=256", "tma.request_bytes 256 does not divide a 128-byte line"),
        ("sm.issue_width=5", "sm.issue_width is 5; expected 1 to 4"),
        ("l2.mshr_entries=1000000", "l2.mshr_entries is 1000000; expected 1 to 65536"),
        ("l2.mshr_merges=1000000", "l2.mshr_merges is 1000000; expected 1 to 65536"),
        ("l2.request_queue_entries=2000000000", "l2.request_queue_entries is 2000000000; expected 1 to 65536"),
        ("l2.ways=1280", "l2.ways is 1280; expected 1 to 1024"),
        ("l2.capacity_bytes=1048576000000", "lines in l2.capacity_bytes is 8192000000; expected 1 to 134217728"),
        ("crossbar.near_latency_cycles=1", "crossbar.near_latency_cycles: expected 2 or more"),
        ("tensor_core.wgmma_min_cycles=9223372036854775808", "(WGMMA) takes 9223372036854775808 cycles"),
        ("memory.peak_bytes_per_s=1e-300", "memory.peak_bytes_per_s 1e-300, "),
        ("memory.latency_ns=1e300", "memory.latency_ns 1e+300, "),
        ("grid.launch_ns=1e300", "grid.launch_ns 1e+300, "),
    ],
)
def test_limits_are_stated(override: str, words: str) -> None:
    with pytest.raises(SimfaError) as caught:
        predict(SMALL, load_preset("h100-sxm", overrides=override.split(";")))
    assert words in str(caught.value)


def test_more_ctas_than_sms_are_refused() -> None:
    from simfa.simulate.engine import run
    from tests.shapes.streams import multiplying_trace

    with pytest.raises(SimulationError, match=r"CTAs \(one a SM\) is 4; expected 1 to 2"):
        run(multiplying_trace(4, groups=1, wgmmas=1, n=8), _chip(2, 2).spec)
