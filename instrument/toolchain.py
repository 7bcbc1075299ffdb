"""The compiler and the disassembler: from PATH, from a CUDA folder, or from their PyPI packages."""

import importlib.metadata
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from simfa.errors import InstrumentError

MINIMUM_NVCC = (12, 3)  # FA3's own minimum
TOOLKIT_BIN = Path("/usr/local/cuda/bin")  # where the toolkit installs itself

# PyPI packages that hold each tool (CUDA 13; CUDA 12 has no nvcc on PyPI).
NVCC_PACKAGES = "nvidia-cuda-nvcc nvidia-nvvm nvidia-cuda-crt nvidia-cuda-runtime nvidia-cuda-cccl"
DISASSEMBLER_PACKAGES = "nvidia-cuda-nvdisasm nvidia-cuda-cuobjdump"


class Nvcc(NamedTuple):
    """A CUDA compiler: its path, its version and build, and the folder of its static run-time library."""

    path: Path
    version: tuple[int, int]
    build: str
    library_dir: Path


class Disassembler(NamedTuple):
    """The two programs that take the SASS out of a library."""

    cuobjdump: Path
    nvdisasm: Path
    build: str


def find_nvcc() -> Nvcc:
    """Return the nvcc to build with.

    Looked for in `$CUDA_HOME`, on PATH, in /usr/local/cuda and in the installed `nvidia-cuda-nvcc`. Raises
    `InstrumentError` when there is none, when it is older than 12.3, or when its run-time library is missing.
    """
    path = _find("nvcc", "nvidia-cuda-nvcc")
    if path is None:
        raise InstrumentError(
            f"no nvcc found; install a CUDA toolkit of {'.'.join(map(str, MINIMUM_NVCC))} or later, "
            f"or `pip install {NVCC_PACKAGES}`"
        )
    text = _output(path, "--version")
    found = re.search(r"release (\d+)\.(\d+), V([\d.]+)", text)
    if found is None:
        raise InstrumentError(f"{path}: `--version` says no release; this is not nvcc")
    version = int(found[1]), int(found[2])
    if version < MINIMUM_NVCC:
        raise InstrumentError(
            f"{path}: nvcc {found[3]} is too old for FA3; expected {'.'.join(map(str, MINIMUM_NVCC))} or later"
        )
    root = _toolkit_root(path)
    for folder in (root / "lib64", root / "lib", root / "targets" / "x86_64-linux" / "lib"):
        if (folder / "libcudart_static.a").is_file():
            return Nvcc(path, version, found[3], folder)
    raise InstrumentError(
        f"{path}: no libcudart_static.a beside it (looked below {root}); install the CUDA run-time, e.g. "
        "`pip install nvidia-cuda-runtime`"
    )


def find_disassembler() -> Disassembler:
    """Return cuobjdump and nvdisasm, or raise `InstrumentError` with the packages that hold them."""
    cuobjdump = _find("cuobjdump", "nvidia-cuda-cuobjdump")
    nvdisasm = _find("nvdisasm", "nvidia-cuda-nvdisasm")
    if cuobjdump is None or nvdisasm is None:
        missing = "cuobjdump" if cuobjdump is None else "nvdisasm"
        raise InstrumentError(f"no {missing} found; run `pip install {DISASSEMBLER_PACKAGES}` (6 MB, no GPU needed)")
    found = re.search(r"V([\d.]+)", _output(nvdisasm, "--version"))
    return Disassembler(cuobjdump, nvdisasm, found[1] if found else "unknown")


def _find(program: str, package: str) -> Path | None:
    """Return the first executable `program` of all places, or None."""
    for folder in _folders(program, package):
        found = shutil.which(program, path=str(folder))
        if found:
            return Path(found)
    return None


def _folders(program: str, package: str) -> Iterator[Path]:
    if os.environ.get("CUDA_HOME"):
        yield Path(os.environ["CUDA_HOME"], "bin")
    on_path = shutil.which(program)
    if on_path:
        yield Path(on_path).parent
    yield TOOLKIT_BIN
    try:
        files = importlib.metadata.files(package) or []
    except importlib.metadata.PackageNotFoundError:
        return
    for file in files:
        if file.name == program:
            yield Path(str(file.locate())).parent


def _toolkit_root(nvcc: Path) -> Path:
    """Return the folder of the toolkit as nvcc itself sees it: the program on PATH may be a link or a script."""
    found = re.search(r"^#\$ _HERE_=(.+)$", _output(nvcc, "--dryrun", "-x", "cu", "-c", os.devnull), re.MULTILINE)
    return (Path(found[1]) if found else nvcc.resolve().parent).parent


def _output(program: Path, *arguments: str) -> str:
    """Return what a program prints, on either stream; raises `InstrumentError` when it cannot be run."""
    try:
        ended = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    except OSError as error:
        raise InstrumentError(f"{program}: cannot be run: {error.strerror or error}") from error
    return ended.stdout + ended.stderr
