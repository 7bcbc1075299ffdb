"""Compile FA3 kernels, plain or probed, into a small C library: one nvcc job, cached by everything that goes in."""

import hashlib
import resource
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from simfa import __version__
from simfa.errors import InstrumentError
from simfa.files import json_bytes, sha256_of
from simfa.instrument.cache import cache_dir, make_dir
from simfa.instrument.instantiation import Instantiation, kernel_list
from simfa.instrument.patch import PATCHED_FILES, Patch, patch_sources
from simfa.instrument.ptxas_report import PtxasReport, parse_ptxas
from simfa.instrument.sources import Fa3Sources, tree_hash
from simfa.instrument.toolchain import Nvcc
from simfa.watched_process import watched_run

CUDA_DIR = Path(__file__).parent / "cuda"
LIBRARY_NAME = "libsimfa_fa3.so"
# One nvcc job instantiates CuTe templates in a single compiler process.
MEMORY_NEEDED_BYTES = int(4.3e9)

# As FA3's own setup.py, with the device flags PyTorch's extension builder adds.
FLAGS = (
    "-O3",
    "-std=c++17",
    "--use_fast_math",
    "--expt-relaxed-constexpr",
    "-DCUTE_SM90_EXTENDED_MMA_SHAPES_ENABLED",
    "-DCUTLASS_ENABLE_GDC_FOR_SM90",
    "-DCUTLASS_DEBUG_TRACE_LEVEL=0",
    "-DNDEBUG",
    "-gencode=arch=compute_90a,code=sm_90a",
    "-Xptxas=-v",
    "-Xcompiler=-fPIC,-fvisibility=hidden",
    "-shared",
    "-cudart=static",
)


class Build(NamedTuple):
    """A built library, its manifest, and whether it came from the cache."""

    library: Path
    manifest: dict[str, Any]
    cached: bool

    @property
    def level(self) -> int:
        """Return the event level: 0 for the plain kernel."""
        return int(self.manifest["level"])


def build_library(
    sources: Fa3Sources, level: int, kernels: Sequence[Instantiation], nvcc: Nvcc, *, quiet: bool = False
) -> Build:
    """Return the library of `kernels` at an event level, compiled unless the cache holds it.

    Raises `InstrumentError` when the sources cannot be patched, nvcc fails, or ptxas reports that it serialised WGMMAs
    or guarded them; the message ends with nvcc's own last lines.
    """
    if not kernels:
        raise InstrumentError("no kernel asked for; name at least one head dimension and element type")
    kernels = sorted(set(kernels))
    before = sources.headers()
    patch = patch_sources({name: before[name] for name in PATCHED_FILES if name in before}, level)
    inputs = {
        "level": level,
        "kernels": [kernel.name for kernel in kernels],
        "source": sources.origin,
        "source_sha256": _texts_hash(before),
        "patched_sha256": _texts_hash(before | patch.texts),
        "cutlass_sha256": tree_hash(sources.cutlass),
        "launcher_sha256": tree_hash(CUDA_DIR) + sha256_of(CUDA_DIR / "simfa_launcher.cu"),
        "nvcc": nvcc.build,
        "flags": list(FLAGS),
    }
    folder = cache_dir() / "builds" / hashlib.sha256(json_bytes(inputs)).hexdigest()[:16]
    cached = _cached(folder)
    if cached is not None:
        return cached
    with tempfile.TemporaryDirectory(dir=make_dir(folder.parent), prefix=".build-") as scratch:
        tree = Path(scratch, "sources")
        write_tree(tree, before, patch)
        (tree / "simfa_kernels.inc").write_text(kernel_list(tuple(kernels)), encoding="utf-8")
        built = Path(scratch, "built")
        built.mkdir()
        expected = _usual_seconds(folder.parent, len(kernels))
        report, cost = _compile(nvcc, level, tree, sources.cutlass, built, expected, quiet)
        manifest = {
            "tool": "simfa",
            "tool_version": __version__,
            **inputs,
            "files": {
                name: {"before": _sha256(before[name]), "after": _sha256(patch.texts[name])} for name in patch.texts
            },
            "rules": [hit._asdict() for hit in patch.hits],
            "kernels_ptxas": msgspec.to_builtins(report.entries),
            "warnings": list(report.warnings),
            "library_sha256": sha256_of(built / LIBRARY_NAME),
            "cost": cost,
        }
        _manifest_path(built / LIBRARY_NAME).write_bytes(json_bytes(manifest))
        if _cached(folder) is None:
            built.rename(folder)
    return Build(folder / LIBRARY_NAME, read_manifest(folder / LIBRARY_NAME), False)


def _cached(folder: Path) -> Build | None:
    """Return the build that a folder of the cache holds; a damaged one is removed, so that it is built again."""
    library = folder / LIBRARY_NAME
    try:
        return Build(library, read_manifest(library), True)
    except InstrumentError:
        shutil.rmtree(folder, ignore_errors=True)
        return None


def _usual_seconds(builds: Path, kernels: int) -> float:
    """Return how long nvcc takes for so many kernels, going by the builds in the cache; 0 without any."""
    found = []
    for library in builds.glob(f"*/{LIBRARY_NAME}"):
        try:
            manifest = msgspec.json.decode(_manifest_path(library).read_bytes())
            found.append(manifest["cost"]["wall_seconds"] / len(manifest["kernels"]))
        except (OSError, msgspec.MsgspecError, KeyError, TypeError, ZeroDivisionError):
            continue  # a damaged build says nothing; it is built again when it is asked for
    return kernels * sum(found) / len(found) if found else 0.0


def copy_build(build: Build, target: Path) -> Build:
    """Copy a library with its manifest and compiler output to `target`, a file name."""
    make_dir(target.parent)
    try:
        shutil.copyfile(build.library, target)
        shutil.copyfile(_manifest_path(build.library), _manifest_path(target))
    except OSError as error:
        raise InstrumentError(f"{target}: cannot be written: {error.strerror or error}") from error
    return build._replace(library=target)


def read_manifest(library: Path) -> dict[str, Any]:
    """Return the manifest beside a built library; raises `InstrumentError` when it is missing or of another file."""
    path = _manifest_path(library)
    try:
        manifest = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
        known = sha256_of(library)
    except (OSError, msgspec.MsgspecError) as error:
        raise InstrumentError(
            f"{path}: cannot be read ({error}); expected the manifest that `simfa instrument build` writes"
        ) from error
    if manifest.get("library_sha256") != known:
        raise InstrumentError(f"{library}: its sha256 is not the manifest's; build it again")
    return manifest


def write_tree(folder: Path, before: Mapping[str, str], patch: Patch) -> None:
    """Write all FA3 headers with the patched texts in place into `folder`/hopper; the originals stay untouched."""
    hopper = make_dir(folder / "hopper")
    for name, text in (dict(before) | patch.texts).items():
        (hopper / name).write_text(text, encoding="utf-8")


def available_memory_bytes() -> int | None:
    """Return the memory a new process can have, or None where the system does not tell."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), None)


def _compile(
    nvcc: Nvcc, level: int, tree: Path, cutlass: Path, built: Path, expected_seconds: float, quiet: bool
) -> tuple[PtxasReport, dict[str, float]]:
    """Run nvcc and return what ptxas said and what it cost; raises `InstrumentError` for anything but a clean build."""
    command = [str(nvcc.path), *FLAGS, f"-DSIMFA_LEVEL={level}", f"-L{nvcc.library_dir}"]
    command += [f"-I{folder}" for folder in (tree, CUDA_DIR, tree / "hopper", cutlass)]
    command += [str(CUDA_DIR / "simfa_launcher.cu"), "-o", str(built / LIBRARY_NAME)]
    started = time.monotonic()
    used_before = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        ended = watched_run(command, "nvcc", expected_seconds=expected_seconds, quiet=quiet)
    except OSError as error:
        raise InstrumentError(f"{nvcc.path}: cannot be run: {error.strerror or error}") from error
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    output = ended.stdout + ended.stderr
    (built / "nvcc.log").write_text(output, encoding="utf-8")
    if ended.returncode:
        raise InstrumentError(f"nvcc failed with code {ended.returncode}:\n{_last_errors(output)}")
    report = parse_ptxas(output)
    if report.wgmma_messages:
        raise InstrumentError("ptxas could not keep WGMMAs asynchronous:\n" + "\n".join(report.wgmma_messages))
    if not report.entries:
        raise InstrumentError("nvcc ended well but ptxas reported no kernel; cannot tell what was built")
    return report, {
        "wall_seconds": round(time.monotonic() - started, 1),
        "cpu_seconds": round(used.ru_utime + used.ru_stime - used_before.ru_utime - used_before.ru_stime, 1),
        "peak_memory_bytes": used.ru_maxrss * 1024,
    }


def _last_errors(output: str) -> str:
    """Return the lines that say what went wrong, without the template instantiation traces."""
    lines = [line for line in output.splitlines() if "error" in line.lower() or "killed" in line.lower()]
    return "\n".join(lines[:8]) if lines else output[-2000:]


def _manifest_path(library: Path) -> Path:
    return library.with_name(library.name + ".manifest.json")


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _texts_hash(texts: Mapping[str, str]) -> str:
    return _sha256("".join(f"{name}\0{_sha256(text)}\n" for name, text in sorted(texts.items())))
