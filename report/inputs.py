"""What the report reads: `stats.json` of a run and `summary.json` of a comparison."""

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from simfa.errors import ReportError
from simfa.summary import Summary
from simfa.workload import AttentionShape

Document = TypeVar("Document", bound=msgspec.Struct)


class RunManifest(msgspec.Struct, frozen=True, kw_only=True):
    """Where a run comes from. `log_source` is `captured`, `synthetic`, or `none` for a run without a log."""

    tool_version: str
    command: str
    inputs: dict[str, dict[str, str]]
    gpu_preset: str
    gpu_preset_sha256: str
    log_source: str
    rules: str


class RunStats(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of one run that the report shows; `stall_cycles` maps role and reason to cycles over all CTAs."""

    cycles: int
    latency_us: float
    tflops: float | None
    tensor_utilization: float
    l2_read_bytes: int
    sm_read_bytes: int
    l2_hit_rate: float | None
    dram_read_bytes: int
    dram_write_bytes: int
    lrc_merge_rate: float | None
    stall_cycles: dict[str, dict[str, int]]
    sm_clock_hz: float
    gpu: str
    shape: AttentionShape | None
    manifest: RunManifest
    partial: bool = False


class Run(msgspec.Struct, frozen=True):
    """A run with the name of its folder."""

    name: str
    stats: RunStats


def read_run(path: str | Path) -> Run:
    """Return the run of a folder or a `stats.json`; raises `ReportError` naming the file and what is wrong with it."""
    file = Path(path)
    if file.is_dir():
        file = file / "stats.json"
    return Run(file.resolve().parent.name, _decode(file, RunStats, "a stats.json"))


def read_summary(path: str | Path) -> Summary:
    """Return the comparison of a `summary.json`; raises `ReportError` naming the file and what is wrong with it."""
    return _decode(Path(path), Summary, "a summary.json")


def read_summaries(paths: Sequence[str | Path]) -> Summary:
    """Return several comparisons as one; raises `ReportError` where two of them have a set of the same name."""
    found = [read_summary(path) for path in paths]
    names = [entry.name for summary in found for entry in summary.sets]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ReportError(f"{', '.join(map(str, paths))}: set {twice[0]!r} stands in two of them; give each once")
    return Summary(
        tool_version=found[0].tool_version,
        sets=[entry for summary in found for entry in summary.sets],
        logs=[entry for summary in found for entry in summary.logs],
        predictions=[entry for summary in found for entry in summary.predictions],
    )


def _decode(file: Path, kind: type[Document], what: str) -> Document:
    """Return a JSON file as a frozen value."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=kind)
    except OSError as error:
        raise ReportError(f"{file}: cannot be read: {error.strerror}; expected {what}") from error
    except msgspec.DecodeError as error:
        raise ReportError(f"{file}: not {what} of this version: {error}") from error
