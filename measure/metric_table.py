"""Which hardware counters fill which column, as data: spellings, factors, what each really counts, in order of choice.

A column takes the first row of its list whose terms are all present. `SECTOR` bytes make a sector. Counter names differ
by chip and tool version (Blackwell prints `dram__bytes_op_read.sum` where Hopper prints `dram__bytes_read.sum`), labels
such as "Duration" are what the details page shows instead of names.
"""

from typing import NamedTuple

from simfa.measure.unit_spellings import BYTES, CLOCK, CYCLES, PERCENT, RATE, SECTORS, TIME

SECTOR = 32

ANY = "any"
DEVICE = "device memory"
UNIFIED = "unified memory"


class Term(NamedTuple):
    """One counter of a sum: its spellings, the dimension its cell must have, and what to multiply it with."""

    names: tuple[str, ...]
    dimension: str
    factor: int = 1
    optional: bool = False


class Counter(NamedTuple):
    """One way to fill `column`: the sum of `terms` (or, with `rate`, a rate times the duration).

    `memory` limits the row to chips with device memory or with memory shared with the CPU. `definition` names which L2
    traffic is meant. `flags` go into every launch filled this way.
    """

    column: str
    terms: tuple[Term, ...]
    meaning: str
    memory: str = ANY
    definition: str | None = None
    flags: tuple[str, ...] = ()
    rate: bool = False


def _one(column: str, name: str, dimension: str, meaning: str, factor: int = 1) -> Counter:
    return Counter(column, (Term((name,), dimension, factor),), meaning)


_DSHARED = (
    Term(("l1tex__m_xbar2l1tex_read_bytes_mem_dshared.sum",), BYTES, -1, optional=True),
    Term(("l1tex__m_l1tex2xbar_write_bytes_mem_dshared.sum",), BYTES, -1, optional=True),
)
_DURATION = Term(("gpu__time_duration.sum", "Duration"), TIME)

COUNTERS: tuple[Counter, ...] = (
    Counter(
        "duration_ns",
        (_DURATION,),
        "GPU time from start to end of the kernel, under the clock and cache control of the capture",
    ),
    _one("elapsed_cycles", "gpc__cycles_elapsed.max", CYCLES, "SM-clock cycles of the longest-running GPC"),
    _one("elapsed_cycles", "sm__cycles_elapsed.max", CYCLES, "cycles of the longest-running SM"),
    _one("elapsed_cycles", "smsp__cycles_elapsed.max", CYCLES, "cycles of the longest-running SM sub-partition"),
    _one("elapsed_cycles", "Elapsed Cycles", CYCLES, "details-page label of the elapsed cycles"),
    _one("sm_clock_hz", "sm__cycles_elapsed.avg.per_second", CLOCK, "SM clock that was reached, not the boost limit"),
    _one("sm_clock_hz", "gpc__cycles_elapsed.avg.per_second", CLOCK, "GPC clock that was reached"),
    _one("sm_clock_hz", "smsp__cycles_elapsed.avg.per_second", CLOCK, "SM sub-partition clock that was reached"),
    _one("sm_clock_hz", "SM Frequency", CLOCK, "details-page label of the SM clock that was reached"),
    _one("dram_read_bytes", "dram__bytes_read.sum", BYTES, "bytes read from DRAM, up to Hopper"),
    _one("dram_read_bytes", "dram__bytes_op_read.sum", BYTES, "bytes read from DRAM, Blackwell under recent tools"),
    _one("dram_read_bytes", "dram__sectors_read.sum", SECTORS, "sectors read from DRAM", SECTOR),
    _one("dram_read_bytes", "dram__sectors_op_read.sum", SECTORS, "sectors read from DRAM, Blackwell", SECTOR),
    Counter(
        "dram_read_bytes",
        (Term(("lts__d_sectors_fill_sysmem.sum",), SECTORS, SECTOR),),
        "L2 fills from system memory, which is the DRAM of GB10, Thor and Orin (they have no dram__ counters)",
        memory=UNIFIED,
        flags=("dram_read_is_l2_fill_from_sysmem",),
    ),
    Counter(
        "dram_read_bytes",
        (Term(("lts__d_sectors_fill_device.sum",), SECTORS, SECTOR),),
        "L2 fills from device memory, for captures without dram__ counters",
        memory=DEVICE,
        flags=("dram_read_is_l2_fill",),
    ),
    _one("dram_write_bytes", "dram__bytes_write.sum", BYTES, "bytes written to DRAM, up to Hopper"),
    _one("dram_write_bytes", "dram__bytes_op_write.sum", BYTES, "bytes written to DRAM, Blackwell under recent tools"),
    _one("dram_write_bytes", "dram__sectors_write.sum", SECTORS, "sectors written to DRAM", SECTOR),
    _one("dram_write_bytes", "dram__sectors_op_write.sum", SECTORS, "sectors written to DRAM, Blackwell", SECTOR),
    Counter(
        "dram_write_bytes",
        (Term(("lts__t_sectors_aperture_sysmem_op_write.sum",), SECTORS, SECTOR),),
        "L2 writes to system memory on GB10, Thor and Orin; counts writes that later hit or merge in L2 too",
        memory=UNIFIED,
        flags=("dram_write_is_l2_write_to_sysmem",),
    ),
    _one("dram_total_bytes", "dram__bytes.sum", BYTES, "DRAM bytes of both directions, where the split is missing"),
    _one("dram_total_bytes", "dram__sectors.sum", SECTORS, "DRAM sectors of both directions", SECTOR),
    Counter(
        "dram_total_bytes",
        (Term(("dram__bytes.sum.per_second",), RATE), _DURATION),
        "estimate: DRAM rate times duration",
        flags=("dram_total_is_rate_times_duration",),
        rate=True,
    ),
    Counter(
        "dram_total_bytes",
        (Term(("Memory Throughput",), RATE), _DURATION),
        "estimate from the details page: memory throughput in bytes per second times duration",
        flags=("dram_total_is_rate_times_duration",),
        rate=True,
    ),
    Counter(
        "l2_bytes",
        (
            Term(("l1tex__m_xbar2l1tex_read_bytes.sum",), BYTES),
            Term(("l1tex__m_l1tex2xbar_write_bytes.sum",), BYTES),
            *_DSHARED,
        ),
        "bytes between SMs and L2, TMA included, before requests merge; distributed shared memory taken off",
        definition="sm_side",
    ),
    Counter(
        "l2_bytes",
        (Term(("lts__t_sectors_srcunit_tex.sum",), SECTORS, SECTOR),),
        "sectors that L2 slices received from SMs, after multicast and request coalescing",
        definition="lts_from_sm",
    ),
    Counter(
        "l2_bytes",
        (
            Term(("lts__t_sectors_srcunit_tex_op_read.sum",), SECTORS, SECTOR),
            Term(("lts__t_sectors_srcunit_tex_op_write.sum",), SECTORS, SECTOR),
        ),
        "reads and writes that L2 slices received from SMs; atomics and reductions are left out",
        definition="lts_from_sm",
        flags=("l2_without_atomics",),
    ),
    Counter(
        "l2_bytes",
        (Term(("lts__t_bytes.sum",), BYTES),),
        "every L2 tag lookup of every source: also fabric between L2 halves, copy engines, the flush",
        definition="lts_all",
    ),
    Counter(
        "l2_bytes",
        (Term(("lts__t_sectors.sum",), SECTORS, SECTOR),),
        "every L2 tag lookup of every source, in sectors",
        definition="lts_all",
    ),
    Counter(
        "l2_bytes",
        (
            Term(("lts__t_sectors_op_read.sum",), SECTORS, SECTOR),
            Term(("lts__t_sectors_op_write.sum",), SECTORS, SECTOR),
        ),
        "L2 reads and writes of every source",
        definition="lts_all",
    ),
    _one("l2_hit_pct", "lts__t_sector_hit_rate.pct", PERCENT, "L2 hits per lookup, over all sources"),
    _one("l2_hit_pct", "L2 Hit Rate", PERCENT, "details-page label of the L2 hit rate"),
    _one(
        "tensor_pipe_pct",
        "sm__inst_executed_pipe_tensor_op_gmma.avg.pct_of_peak_sustained_active",
        PERCENT,
        "WGMMA issue over its peak, Hopper",
    ),
    _one(
        "tensor_pipe_pct",
        "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
        PERCENT,
        "cycles in which the tensor pipe was active",
    ),
    _one(
        "tensor_pipe_pct",
        "sm__pipe_tensor_subpipe_hmma_cycles_active.avg.pct_of_peak_sustained_active",
        PERCENT,
        "cycles in which the half-precision tensor pipe was active, Blackwell",
    ),
    _one(
        "tensor_pipe_pct",
        "sm__inst_executed_pipe_tensor_op_hmma.avg.pct_of_peak_sustained_active",
        PERCENT,
        "legacy mma issue over its peak; says nothing about WGMMA",
    ),
)

# Bytes, and the rate that times the duration must give them: tells whether a tool's prefixes are decimal.
CHECKS = tuple((f"dram__bytes{way}.sum", f"dram__bytes{way}.sum.per_second") for way in ("", "_read", "_write"))

# Counters that describe the launch instead of measuring it.
GEOMETRY = {
    "grid": ("launch__grid_dim_x", "launch__grid_dim_y", "launch__grid_dim_z"),
    "block": ("launch__block_dim_x", "launch__block_dim_y", "launch__block_dim_z"),
    "cluster": ("launch__cluster_dim_x", "launch__cluster_dim_y", "launch__cluster_dim_z"),
}
GPU_NAME = "device__attribute_display_name"
STREAM = "launch__stream_id"
CAPABILITY = ("device__attribute_compute_capability_major", "device__attribute_compute_capability_minor")
DESCRIBING = frozenset(name for names in GEOMETRY.values() for name in names) | {GPU_NAME, STREAM, *CAPABILITY}

# Spelling of a counter: the dimensions a cell under that name may have. The same label in another dimension ("Memory
# Throughput" in %) is another metric.
DIMENSIONS: dict[str, frozenset[str]] = {}
for _counter in COUNTERS:
    for _term in _counter.terms:
        for _name in _term.names:
            DIMENSIONS[_name] = DIMENSIONS.get(_name, frozenset()) | {_term.dimension}
DIMENSIONS |= {_rate: frozenset({RATE}) for _, _rate in CHECKS}

# What to ask ncu for, by column; shown where a counter is missing.
REQUESTS = {
    "duration_ns": "gpu__time_duration.sum",
    "elapsed_cycles": "gpc__cycles_elapsed.max",
    "sm_clock_hz": "sm__cycles_elapsed.avg.per_second",
    "dram_read_bytes": "dram__bytes_read.sum (dram__bytes_op_read.sum on Blackwell, lts__d_sectors_fill_sysmem.sum "
    "on GB10)",
    "dram_write_bytes": "dram__bytes_write.sum (dram__bytes_op_write.sum on Blackwell, "
    "lts__t_sectors_aperture_sysmem_op_write.sum on GB10)",
    "dram_total_bytes": "dram__bytes_read.sum,dram__bytes_write.sum",
    "l2_bytes": "l1tex__m_xbar2l1tex_read_bytes.sum,l1tex__m_l1tex2xbar_write_bytes.sum",
    "l2_hit_pct": "lts__t_sector_hit_rate.pct",
    "tensor_pipe_pct": "sm__inst_executed_pipe_tensor_op_gmma.avg.pct_of_peak_sustained_active",
}

# Chips whose only DRAM is system memory, by name and by compute capability: the sysmem counters are DRAM traffic there.
UNIFIED_CHIPS = ("GB10", "Thor", "Orin")
UNIFIED_CAPABILITIES = ("8.7", "10.1", "11.0", "12.1")


def memory_of(gpu: str | None, capability: str | None) -> str | None:
    """Return `UNIFIED` or `DEVICE` for a GPU name or compute capability, `None` where neither is known."""
    if gpu:
        return UNIFIED if any(chip.lower() in gpu.lower() for chip in UNIFIED_CHIPS) else DEVICE
    if capability:
        return UNIFIED if capability in UNIFIED_CAPABILITIES else DEVICE
    return None
