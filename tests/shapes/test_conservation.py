"""What goes in comes out: requests, bytes and cycles of whole runs balance, and no queue holds more than it can."""

from pathlib import Path

import pytest

from simfa.hardware import load_preset
from simfa.salog import open_log
from simfa.simulate.engine import run
from simfa.translate.log_translation import translate_log
from tests.oracle.cases import seeded_case
from tests.oracle.chooser import SeededChooser
from tests.oracle.full_memory import draw_memory
from tests.oracle.harness import run_reference

LOGS = sorted((Path(__file__).parents[2] / "data" / "logs").glob("*.salog"))


def _check_balances(result, trace, hardware):
    """Check what holds for every run that was not stopped."""
    counts = result.counters
    line = hardware.l2.line_bytes
    assert not result.partial
    assert all(value >= 0 for value in counts.values()), counts
    # Every request is answered once: by a slice, or with the request it was merged with.
    assert counts["requests"] == counts["l2_responses"] + counts["lrc_merges"]
    assert counts["requests"] == counts["l2_read_requests"] + counts["l2_write_requests"] + counts["lrc_merges"]
    assert counts["write_lines"] == counts["l2_write_requests"]
    # Every read is a hit, a miss, waits for a miss, or finds a copy; every miss is read from memory once.
    found = counts["l2_read_hits"] + counts["l2_read_misses"] + counts["l2_read_merges"] + counts["l2_shadow_hits"]
    assert counts["l2_read_requests"] == found
    # A miss reads between one fetch and a line; what is asked for is at most the lines it is of.
    reads, fetch = counts["memory_reads"], hardware.l2.fetch_bytes
    assert reads == counts["l2_read_misses"]
    assert reads * fetch <= result.dram_read_bytes <= reads * line
    assert result.dram_write_bytes <= counts["memory_writes"] * line
    assert result.l2_read_bytes <= counts["l2_read_requests"] * line
    assert result.l2_read_bytes <= result.sm_read_bytes <= counts["read_lines"] * line
    assert counts["memory_writes"] <= counts["l2_write_requests"]
    assert counts["l2_shadow_inserts"] <= counts["l2_hops"]
    # Every cycle of every role, and of every tensor pipe, has one reason.
    for role, reasons in result.stall_cycles.items():
        assert all(cycles > 0 for cycles in reasons.values())
        assert sum(reasons.values()) == result.cycles * trace.schedule.ctas, role
    assert counts["cuda_busy_cycles"] <= result.cycles * trace.schedule.ctas
    for queue, entries in _queues(hardware):
        assert counts[f"{queue}_peak"] <= entries, queue


def _queues(hardware):
    """Return the queues of a slice and how many entries each has."""
    l2 = hardware.l2
    return [
        ("request_queue", l2.request_queue_entries),
        ("response_queue", l2.response_queue_entries),
        ("mshr", l2.mshr_entries),
    ]


def _tile_bytes(trace, binding):
    """Return what a tile of attention reads and writes of tensors: rows inside them, times the row's bytes."""
    shape, kernel = trace.shape, trace.kernel
    row = shape.head_dim * shape.element_bytes
    queries = min(kernel.tile_m, shape.seqlen_q - binding.m_block * kernel.tile_m)
    keys = min(shape.seqlen_kv, kernel.key_blocks(shape, binding.m_block) * kernel.tile_n)
    return (queries + 2 * keys) * row, queries * row


@pytest.mark.parametrize("log", LOGS, ids=lambda path: path.stem)
@pytest.mark.parametrize("preset", ["h100-sxm", "h800-sxm-paper"])
def test_attention(log, preset):
    trace = translate_log(open_log(log)).trace
    hardware = load_preset(preset).spec
    result = run(trace, hardware)
    _check_balances(result, trace, hardware)
    # Rows are whole lines, so bytes into shared memory are the bytes of Q, K and V that the tiles are made of,
    # multicast or not; O is written once.
    tiles = [_tile_bytes(trace, binding) for run_ in trace.schedule.tiles for binding in run_]
    assert result.sm_read_bytes == sum(reads for reads, _ in tiles)
    assert result.counters["write_lines"] * hardware.l2.line_bytes == sum(writes for _, writes in tiles)
    assert result.sm_write_bytes == sum(writes for _, writes in tiles)
    assert result.dram_read_bytes == result.counters["memory_reads"] * hardware.l2.line_bytes
    assert result.counters["tiles"] == len(tiles)
    assert result.counters["mshr_cycles"] > 0
    for queue, _ in _queues(hardware):
        # Whatever waits does so in one of the slices' places, at some time of the run.
        most = result.counters[f"{queue}_peak"] * hardware.l2.slices * result.cycles
        assert result.counters[f"{queue}_cycles"] <= most, queue
    # The products: 4 rows x keys x head_dim FLOP a tile, whole blocks and all 64 rows of each warpgroup, in WGMMAs of
    # 16 along the summed dimension: head_dim for QK, keys for PV.
    shape, kernel, tensor_core = trace.shape, trace.kernel, hardware.tensor_core
    blocks = sum(kernel.key_blocks(shape, binding.m_block) for run_ in trace.schedule.tiles for binding in run_)
    flop = 4 * kernel.tile_m * blocks * kernel.tile_n * shape.head_dim
    wgmmas = kernel.tile_m // 64 * blocks * (shape.head_dim + kernel.tile_n) // 16
    busy = flop / tensor_core.flop_per_cycle + wgmmas * tensor_core.wgmma_overhead_cycles
    assert result.counters["tensor_busy_cycles"] == busy


@pytest.mark.parametrize("multicast", [True, False])
@pytest.mark.parametrize("merging", [True, False])
def test_every_way_of_sharing_delivers_the_same_bytes(multicast, merging):
    log = next(path for path in LOGS if path.stem == "synthetic-d256-full")
    trace = translate_log(open_log(log)).trace
    assert trace.schedule.cluster == 2
    overrides = [f"lrc.multicast={str(multicast).lower()}", f"lrc.enabled={str(merging).lower()}"]
    hardware = load_preset("h100-sxm", overrides=overrides).spec
    result = run(trace, hardware)
    _check_balances(result, trace, hardware)
    tiles = [_tile_bytes(trace, binding)[0] for run_ in trace.schedule.tiles for binding in run_]
    assert result.sm_read_bytes == sum(tiles)
    if not multicast and not merging:
        assert result.l2_read_bytes == result.sm_read_bytes
        assert result.counters["lrc_merges"] == 0


def test_random_traces_on_small_chips():
    merges = stored = 0
    for index in range(150):
        case = seeded_case(5, index)
        hardware = draw_memory(SeededChooser(f"conservation {index}"), case.hardware)
        result = run(case.trace, hardware)
        _check_balances(result, case.trace, hardware)
        if hardware.lrc.multicast:
            # The same lines as with ideal memory, which the reference engine counts on its own.
            assert result.counters["requests"] == run_reference(case).lines
        merges += result.counters["lrc_merges"]
        stored += result.counters["write_lines"]
    assert merges > 0
    assert stored > 0
