"""What other analytical models say about the same call: an ideal cache of our own, and GenZ where it is installed.

Both assume that every tensor moves once between DRAM and chip, whatever its size.
"""

import contextlib
import importlib.metadata
import io
import warnings
from typing import Any, NamedTuple

from simfa.analytical.attention import Attention
from simfa.analytical.machine import Machine, resolve
from simfa.errors import AnalyticalError
from simfa.hardware import Preset
from simfa.workload import AttentionShape

GENZ_VERSION = "0.0.16"


class Baseline(NamedTuple):
    """A baseline's answer: operations, DRAM bytes and latency in microseconds."""

    name: str
    flops: int
    dram_bytes: int
    latency_us: float


def ideal_cache(call: AttentionShape | Attention, gpu: str | Preset | Machine = "h100-sxm") -> Baseline:
    """Return a two-ceiling roofline over an ideal cache: Eq. 1 and Eq. 3 (with our masks), no tiles, no launch."""
    attention = Attention.of(call) if isinstance(call, AttentionShape) else call
    machine = resolve(gpu)
    moved = attention.q_bytes + attention.kv_bytes + attention.output_bytes
    compute = attention.flops / (machine.sm_count * machine.sm_flop_per_s)
    return Baseline("ideal cache", attention.flops, moved, max(compute, moved / machine.dram_bytes_per_s) * 1e6)


def genz(call: AttentionShape | Attention, gpu: str | Preset | Machine = "h100-sxm") -> Baseline:
    """Return GenZ's answer for the two attention operators of a prefill (package genz-llm, extra `baselines`).

    GenZ's prefill is square and unmasked with one head dimension and 16-bit elements; anything else raises
    `AnalyticalError`, and so does a missing package or another version than `GENZ_VERSION`. Bytes are those of Q, K,
    V and O; its total also counts the L x S scores, which it keeps on chip. Its bandwidths are binary, its rates
    decimal.
    """
    attention = Attention.of(call) if isinstance(call, AttentionShape) else call
    if not attention.is_plain or attention.seqlen_q != attention.seqlen_kv or attention.qk_bytes != 2:
        raise AnalyticalError(
            "GenZ prices square, unmasked prefill with one head dimension and 16-bit elements only; "
            f"got {attention.describe()}, {attention.qk_bytes} bytes an element"
        )
    library = _genz_library()
    machine = resolve(gpu)
    system = library.System(
        flops=machine.sm_count * machine.sm_flop_per_s / 1e12,
        offchip_mem_bw=machine.dram_bytes_per_s / 2**30,
        bits="bf16",
    )
    config = library.ModelConfig(
        num_attention_heads=attention.heads_q,
        num_key_value_heads=attention.heads_kv,
        head_dim=attention.head_dim,
        hidden_size=attention.heads_q * attention.head_dim,
    )
    layers = library.prefill(config, library.ParallelismConfig(), attention.seqlen_q)
    rows = [[row[0], attention.batch, *row[1:]] for row in layers if row[0] in ("Logit", "Attend")]
    with contextlib.redirect_stdout(io.StringIO()):
        table = library.analysis_model(rows, system, intermediate_on_chip=True)
    logit, attend = table.iloc[0], table.iloc[1]
    mebibytes = logit["Input_a (MB)"] + logit["Input_w (MB)"] + attend["Input_w (MB)"] + attend["Output (MB)"]
    return Baseline(
        name=f"GenZ {GENZ_VERSION}",
        flops=round(float(table["Num ops (MFLOP)"].sum()) * 1e6),
        dram_bytes=round(float(mebibytes) * 2**20),
        latency_us=float(table["Latency (msec)"].sum()) * 1e3,
    )


def genz_installed() -> bool:
    """Whether the release of GenZ that `genz` drives is installed; imports nothing of it."""
    try:
        return importlib.metadata.version("genz-llm") == GENZ_VERSION
    except importlib.metadata.PackageNotFoundError:
        return False


class _Genz(NamedTuple):
    """The parts of GenZ that are used."""

    System: Any
    ModelConfig: Any
    ParallelismConfig: Any
    prefill: Any
    analysis_model: Any


def _genz_library() -> _Genz:
    """Import GenZ (seconds: it pulls plotting packages), checking the version in the package metadata."""
    try:
        version = importlib.metadata.version("genz-llm")
    except importlib.metadata.PackageNotFoundError as error:
        raise AnalyticalError("GenZ is not installed; pip install 'simfa[baselines]'") from error
    if version != GENZ_VERSION:
        raise AnalyticalError(
            f"genz-llm {version} is installed; the adapter is for {GENZ_VERSION} (fields were renamed)"
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import GenZ
        from GenZ.analyse_model import analysis_model
        from GenZ.Models.attention import mha_flash_attention_prefill

    return _Genz(GenZ.System, GenZ.ModelConfig, GenZ.ParallelismConfig, mha_flash_attention_prefill, analysis_model)
