"""`docs/analytical.md`: every table and figure is what the program says; `tests/docs` runs its commands."""

import itertools
import re
import statistics
from collections.abc import Callable

import msgspec
import pytest

from simfa.analytical import policy_span, traffic
from simfa.analytical.attention import Attention
from simfa.analytical.kernels import cutile_kernel, fa3_kernel
from simfa.analytical.machine import resolve
from simfa.analytical.model import profiled_write_bytes
from simfa.analytical.reuse import fits
from simfa.analytical.sweep import load_sweep
from simfa.analytical.sweep_backend import evaluate
from simfa.hardware import load_preset
from simfa.workload import model_shape
from tests.unit.analytical_cases import ROOT, counter, group, plain_kernel, readings, reuse, shape_of
from tests.unit.third_opinion import CASES, MERGING, opinions

PAGE = ROOT / "docs/analytical.md"
TEXT = PAGE.read_text(encoding="utf-8")

Rows = list[list[str]]


def rows_after(marker: str) -> Rows:
    """Cells of the table that follows a marker, without its two header lines."""
    lines = TEXT[TEXT.index(marker) + len(marker) :].lstrip("\n").splitlines()
    table = list(itertools.takewhile(lambda line: line.startswith("|"), lines))
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table[2:]]


def gigabytes(count: float) -> str:
    return f"{count / 1e9:.2f}"


def megabytes(count: float) -> str:
    return f"{count / 1e6:.2f}"


def full_mask() -> Rows:
    rows = []
    for length in (16384, 32768, 49152, 65536):
        for gpu in ("h800-sxm", "gb10"):
            answers = policy_span(model_shape("llama3.1-405b", length), gpu)
            paper = answers["paper"]
            assert paper.dram_realistic_bytes is not None
            volumes = [paper.l2_bytes, paper.dram_ideal_bytes, paper.dram_realistic_bytes]
            volumes += [answers[policy].dram_bytes for policy in ("paper", "capacity", "lru", "random")]
            rows.append([f"{length // 1024}K", gpu, str(paper.waves), *map(gigabytes, volumes)])
    return rows


def causal() -> Rows:
    rows = []
    for model in ("llama3-8b", "llama3.1-405b"):
        for length in (4096, 16384, 65536, 131072):
            answers = policy_span(model_shape(model, length, causal=True), "h800-sxm")
            volumes = [answers[policy].dram_bytes for policy in ("capacity", "lru", "random")]
            rows.append([model, f"{length // 1024}K", *map(gigabytes, [answers["lru"].dram_ideal_bytes, *volumes])])
    return rows


def bounds() -> Rows:
    boost = resolve(load_preset("h100-sxm", overrides=["gpu.sm_clock_hz=1.98e9"]))
    shares = []
    for row in readings("fa3_latency_h100_serving.csv"):
        sizes = {name: int(row[name]) for name in ("batch", "heads_q", "heads_kv", "head_dim")}
        lengths = {"seqlen_q": int(row["seqlen"]), "seqlen_kv": int(row["seqlen"]), "value_dim": sizes["head_dim"]}
        call = Attention(**sizes, **lengths, causal=row["causal"] == "1")
        shares.append(traffic(call, boost).latency_bound_us / 1e3 / float(row["latency_ms"]))
    figures = {"largest": max(shares), "median": statistics.median(shares), "smallest": min(shares)}
    return [[name, f"{value:.2f}"] for name, value in figures.items()]


def counters() -> Rows:
    rows: Rows = []

    def add(label: str, row: dict[str, str], model: float, unit: str, digits: int, points: bool = False) -> None:
        measured = float(row["value"])
        difference = f"{model - measured:+.1f} points" if points else f"{model / measured - 1:+.1%}"
        assumed = ", ".join(f"*{name}*" for name in row["assumed"].split())
        rows.append([label, assumed, f"{measured:.{digits}f} {unit}", f"{model:.{digits}f} {unit}", difference])

    cyclic = counter("(cyclic order)", "L2 misses")
    for policy in ("paper", "capacity"):
        missed = traffic(shape_of(cyclic), "gb10", policy).dram_bytes / 32e6
        add(f"GB10 cuTile, 128K, D 64, `{policy}`: L2 misses", cyclic, missed, "M sectors", 0)
    kernel = plain_kernel(schedule="single_tile")
    llm = counter("12 forward launches", "L2 read")
    answer = traffic(shape_of(llm, lse=True), kernel=kernel)
    add("cuDNN causal, GPT-2: L2 reads", llm, 12 * (answer.l2_bytes - answer.dram_write_bytes) / 2**30, "GiB", 2)
    for metric, moved in (("DRAM read", answer.dram_read_bytes), ("DRAM write", answer.dram_write_bytes)):
        add(f"same: {metric}", counter("cuDNN sdpa inside llm.c", metric), 12 * moved / 2**30, "GiB", 2)
    total = counter("TileOPs GqaFwdWsPersistentKernel", "DRAM total")
    persistent = traffic(shape_of(total), "h200-sxm", "lru")
    assert persistent.dirty_bytes is not None
    written = profiled_write_bytes(persistent.attention.output_bytes, persistent.dirty_bytes)
    add("H200 persistent GQA, 4K causal: DRAM", total, persistent.dram_bytes / 1e6, "MB", 1)
    write = counter("TileOPs GqaFwdWsPersistentKernel", "DRAM write")
    add("same: DRAM writes, less O still in L2", write, written / 1e6, "MB", 1)
    requests = counter("head-slow grid", "L2 hits + misses") | {"value": "8800"}
    add(
        "MI355X, 64K: L2 requests",
        requests,
        traffic(shape_of(requests), kernel=plain_kernel()).l2_bytes / 128e6,
        "M",
        0,
    )
    hits = counter("flash_fwd_kernel (FA2", "L2 hit rate")
    add(
        "L4 FA2: L2 hit rate",
        hits,
        100 * traffic(shape_of(hits), kernel=plain_kernel()).l2_hit_rate,
        "%",
        1,
        points=True,
    )
    return rows


def sweep() -> Rows:
    plan = load_sweep(ROOT / "config/sweeps/tensor_or_cache.toml")
    rows = []
    for point in sorted(plan.points(range(plan.size)), key=lambda point: int(point.fields["workload.seqlen"])):
        found = evaluate(point)
        times = [f"{float(found[name]) / 1e3:.1f}" for name in ("ideal_latency_us", "latency_bound_us")]
        label = [f"{int(point.fields['workload.seqlen']) // 1024}K", str(point.fields["name"])]
        rows.append([*label, *times, str(found["bound_by"]), gigabytes(float(found["dram_bytes"]))])
    return rows


def third_opinion() -> Rows:
    rows = []
    for case in CASES:
        found = opinions(case)
        shape = f"D {case.head_dim}, {case.heads[0]}/{case.heads[1]} heads, {case.seqlen} tokens"
        capacity, simulated = found.capacity.effective_l2_bytes, found.run.dram_read_bytes
        difference = f"{simulated / found.capacity.dram_read_bytes - 1:+.1%}"
        reads = [found.run.l2_read_bytes, found.model_l2_read_bytes, simulated, found.capacity.dram_read_bytes]
        writes = [found.run.dram_write_bytes, found.model_write_bytes]
        edge = ", at the edge" if case.edge else ""
        cells = [case.part, shape, str(capacity // 1024), found.capacity.regime + edge]
        rows.append([*cells, *map(megabytes, reads), difference, *map(megabytes, writes)])
    return rows


TABLES: dict[str, Callable[[], Rows]] = {
    "full mask": full_mask,
    "causal": causal,
    "bounds": bounds,
    "counters": counters,
    "sweep": sweep,
    "simulator": third_opinion,
}


@pytest.mark.parametrize("name", list(TABLES))
def test_tables_are_what_the_model_says(name: str) -> None:
    assert rows_after(f"<!-- table: {name} -->") == TABLES[name]()


def test_every_marked_table_is_checked() -> None:
    assert set(re.findall(r"<!-- table: (.*?) -->", TEXT)) == set(TABLES)


def test_capacities_and_edges() -> None:
    assert rows_after("a share of `l2.capacity_bytes`:\n") == [
        [gpu, str(resolve(gpu).paper_l2_bytes), str(resolve(gpu).effective_l2_bytes)]
        for gpu in ("h800-sxm-paper", "h800-sxm", "gb10")
    ]
    edges = []
    for label, kernel, sms, capacity in (
        ("h800-sxm-paper, T_M 128", fa3_kernel(group(4096, 16)), 132, 25_000_000),
        ("gb10 at 24 MiB, T_M 64", cutile_kernel(group(4096, 16)), 48, 24 * 2**20),
    ):
        cells = []
        for policy in ("paper", "capacity"):
            low, high = 1, 1 << 20
            while high - low > 1:
                middle = (low + high) // 2
                sizes = reuse(group(middle, 16), kernel, sms, capacity)
                low, high = (middle, high) if fits(policy, sizes) else (low, middle)
            cells.append(low)
        edges.append([label, *map(str, cells)])
    assert rows_after("that moves the longest K/V that fits:\n") == edges


def test_prose_figures() -> None:
    attention = shape_of(counter("(sawtooth order)", "L2 misses"))
    cutile = cutile_kernel(attention)
    doubled = traffic(attention, "gb10", "paper", msgspec.structs.replace(cutile, ctas_per_sm=2))
    assert f"two would give {doubled.dram_bytes / 32e6:.0f} M" in TEXT
    sawtooth = msgspec.structs.replace(cutile, kv_order="sawtooth")
    over = traffic(attention, "gb10", "capacity", sawtooth).dram_read_bytes / 32 / 120e6 - 1
    assert f"reads {over:.0%} more than measured".replace("%", " %") in TEXT
    at_64k = traffic(model_shape("llama3.1-405b", 65536), "gb10", "paper")
    assert f"{at_64k.dram_ideal_bytes / 1e9:.2f} GB where {at_64k.dram_bytes / 1e9:.2f} GB move" in TEXT
    merging = opinions(MERGING)
    fewer = 1 - merging.run.l2_read_bytes / merging.model_l2_read_bytes
    assert f"merges {fewer:.0%} of the requests".replace("%", " %") in TEXT
