"""The one entry point: files of any known format to one table of launches."""

import importlib
import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from simfa.errors import MeasureError
from simfa.measure.detect import FORMATS, Reader, detect
from simfa.measure.kernel_names import WRAPPERS
from simfa.measure.launch import COLUMNS, Launch, Stated, numbered
from simfa.measure.opening import Notes, check_file
from simfa.measure.selection import Candidate, Choice, choose

if TYPE_CHECKING:
    import pandas

_READERS = {name: f"simfa.measure.{name.replace('-', '_')}" for name in FORMATS}


Progress = Callable[[Path, float], None]


class SourceFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What one file was: name without folder, format, tool, GPU, launches seen, lines outside its tables."""

    file: str
    format: str
    tool: str
    tool_version: str | None
    gpu: str | None
    launches: int
    skipped_lines: int


class Measurements(msgspec.Struct, frozen=True, kw_only=True):
    """Everything read from the files. `format`, `tool`, `tool_version` and `gpu` are `None` where files differ."""

    format: str | None
    tool: str | None
    tool_version: str | None
    gpu: str | None
    sources: tuple[SourceFacts, ...]
    selection: Choice
    kernels: tuple[Candidate, ...]
    launches: tuple[Launch, ...]
    warnings: tuple[str, ...]

    def to_frame(self) -> "pandas.DataFrame":
        """Return the launches as a DataFrame with nullable columns: one row a launch, missing as `<NA>`, never 0."""
        from simfa.measure.frame import frame

        return frame(self.launches)


class _Input:
    """One file while its launches stream by."""

    def __init__(self, path: Path, form: str | None, progress: Progress | None) -> None:
        check_file(path)
        self.path = path
        self.notes = Notes(path.name, None if progress is None else partial(progress, path))
        self.name = form or detect(path)
        self.seen: set[tuple[str, str, str | None, str | None]] = set()
        self.count = 0

    def launches(self, stated: Stated) -> Iterator[Launch]:
        read: Reader = importlib.import_module(_READERS[self.name]).read
        try:
            for launch in read(self.path, self.notes, stated):
                self.count += 1
                self.seen.add((launch.format, launch.tool, launch.tool_version, launch.gpu))
                yield launch
        except MeasureError as error:
            if self.count or not self.notes.drops():
                raise
            raise MeasureError(f"{error} ({self.notes.drops()})") from error

    def facts(self) -> SourceFacts:
        form, tool, version, gpu = (_common({facts[column] for facts in self.seen}) for column in range(4))
        return SourceFacts(
            file=self.path.name,
            format=form or self.name,
            tool=tool or "",
            tool_version=version,
            gpu=gpu,
            launches=self.count,
            skipped_lines=self.notes.skipped_lines,
        )


def read(
    *paths: str | os.PathLike[str],
    format: str | None = None,
    choice: Choice | None = None,
    stated: Stated | None = None,
    progress: Progress | None = None,
) -> Measurements:
    """Return the launches of profiler exports: Nsight Compute, Nsight Systems, PyTorch, benchmark_attn.py, nvbench.

    `format` is one of `detect.FORMATS` and overrides detection by content; `choice` picks kernels (`selection.Choice`);
    `stated` fills in the GPU and the clock and cache control where an export is silent. Times are ns, traffic is bytes,
    missing is `None` with a reason. `progress` is called now and then with a file and the share of it that is read.
    Raises `MeasureError` with one message for anything that cannot be read as it stands.
    """
    if not paths:
        raise MeasureError("no file to read")
    if format is not None and format not in FORMATS:
        raise MeasureError(f"format {format!r} is not known; there are {', '.join(FORMATS)}")
    if len({os.path.realpath(path) for path in paths}) < len(paths):
        raise MeasureError("the same file was given twice; its launches would count double")
    choice = choice or Choice()
    inputs = [_Input(Path(path), format, progress) for path in paths]
    chosen, candidates = choose({str(one.path): one.launches(stated or Stated()) for one in inputs}, choice)
    sources = tuple(one.facts() for one in inputs)
    warnings = [warning for one in inputs for warning in one.notes.warnings()]
    warnings += _advice(chosen)
    return Measurements(
        format=_common({source.format for source in sources}),
        tool=_common({source.tool for source in sources}),
        tool_version=_common({source.tool_version for source in sources}),
        gpu=_common({source.gpu for source in sources}),
        sources=sources,
        selection=choice,
        kernels=tuple(candidates),
        launches=tuple(numbered(chosen)),
        warnings=tuple(warnings),
    )


def _common(values: set[str | None] | set[str]) -> str | None:
    """Return the one value there is, `None` for several."""
    return next(iter(values)) if len(values) == 1 else None


def _advice(launches: Sequence[Launch]) -> list[str]:
    """Return what a reader of the whole table must know before comparing its rows."""
    advice = []
    kinds = sorted(
        {(launch.tool, launch.clock_control or "unknown", launch.cache_control or "unknown") for launch in launches}
    )
    if len(kinds) > 1:
        listed = "; ".join(f"{tool} (clock control {clock}, cache control {cache})" for tool, clock, cache in kinds)
        advice.append(
            f"latencies were taken in {len(kinds)} different ways, which must not enter one error figure: {listed}"
        )
    generic = sorted({launch.kernel for launch in launches if launch.kernel and _is_bare_wrapper(launch)})
    if generic:
        advice.append(
            f"{', '.join(generic)} names every CUTLASS kernel alike; export demangled names "
            "(ncu --print-kernel-base demangled, nsys stats without :base) to tell attention from the rest"
        )
    return advice


def _is_bare_wrapper(launch: Launch) -> bool:
    return launch.kernel in WRAPPERS and "<" not in (launch.kernel_demangled or "<")


__all__ = ["COLUMNS", "Choice", "Launch", "Measurements", "SourceFacts", "Stated", "read"]
