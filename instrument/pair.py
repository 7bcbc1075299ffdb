"""The two libraries that belong together: the plain kernels and the probed ones, side by side in one folder."""

from collections.abc import Sequence
from pathlib import Path

from simfa.errors import InstrumentError
from simfa.instrument.build import (
    LIBRARY_NAME,
    MEMORY_NEEDED_BYTES,
    Build,
    available_memory_bytes,
    build_library,
    copy_build,
    read_manifest,
)
from simfa.instrument.instantiation import Instantiation
from simfa.instrument.sources import Fa3Sources
from simfa.instrument.toolchain import find_nvcc
from simfa.progress import tell

PLAIN = "plain"
PROBED = "probed"


def build_pair(
    sources: Fa3Sources,
    level: int,
    kernels: Sequence[Instantiation],
    folder: Path | None,
    *,
    quiet: bool = False,
) -> dict[str, Build]:
    """Return the plain and the probed build of `kernels`, one nvcc job after the other.

    With `folder` they are copied to `plain/` and `probed/` below it. Unless `quiet`, stderr says what takes minutes.
    """
    nvcc = find_nvcc()
    free = available_memory_bytes()
    if free is not None and free < MEMORY_NEEDED_BYTES:
        tell(f"warning: {free / 1e9:.1f} GB of memory are free and nvcc needs {MEMORY_NEEDED_BYTES / 1e9:.1f}")
    builds = {}
    for name, build_level in ((PLAIN, 0), (PROBED, level)):
        tell(f"{name}: {', '.join(kernel.name for kernel in kernels)}, nvcc {nvcc.build}", quiet=quiet)
        built = build_library(sources, build_level, kernels, nvcc, quiet=quiet)
        builds[name] = built if folder is None else copy_build(built, folder / name / LIBRARY_NAME)
    return builds


def pair_paths(folder: Path) -> tuple[Path, Path, int]:
    """Return the plain and the probed library below `folder`, and the probed one's event level.

    Raises `InstrumentError` when one is missing, damaged, or not what its folder's name says.
    """
    plain, probed = (folder / name / LIBRARY_NAME for name in (PLAIN, PROBED))
    levels = [int(read_manifest(path)["level"]) for path in (plain, probed)]
    if levels[0] != 0 or levels[1] == 0:
        raise InstrumentError(f"{folder}: expected a library without probes and one with; build both again")
    return plain, probed, levels[1]
