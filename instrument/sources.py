"""Where the FA3 and CUTLASS sources are: a checkout the user names, or pinned packages unpacked into the cache.

Only `hopper/` and the CUTLASS headers are unpacked; nothing of either ever enters the project tree.
"""

import hashlib
import os
import shutil
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from simfa.errors import InstrumentError
from simfa.files import sha256_of
from simfa.instrument.cache import cache_dir, make_dir
from simfa.instrument.packages import Pin, download
from simfa.instrument.patch import PATCHED_FILES

# Source distributions of xformers that carry all of FA3's `hopper/` and the CUTLASS headers it was tested with.
RELEASES = {
    "0.0.33.post2": Pin(
        "xformers", "0.0.33.post2", "647ddf26578d2b8643230467ef1f0fbfef0bbe556a546bd27a70d4855d3433e1", True
    ),
    "0.0.32.post2": Pin(
        "xformers", "0.0.32.post2", "9538be803969c6e1ca16a3ece921e472c24f79970b10be1087a389dcb66e412a", True
    ),
}
DEFAULT_RELEASE = "0.0.33.post2"
CUTLASS_PIN = Pin(
    "nvidia-cutlass", "4.2.0.0", "f9599ada45c7bcb6bf53f7d3f0a7d154183e53451c01bfa59eecd37dd4a693f6", False
)

_FA3_IN_SDIST = PurePosixPath("third_party/flash-attention")
_CUTLASS_IN_WHEEL = PurePosixPath("cutlass_library/source/include")
_HEADER_SUFFIXES = (".h", ".hpp", ".cuh", ".inl")


class Fa3Sources(NamedTuple):
    """A tree to build from: FA3's `hopper/`, the CUTLASS `include/`, and a name for the manifest."""

    hopper: Path
    cutlass: Path
    origin: str

    def headers(self) -> dict[str, str]:
        """Return the text of every FA3 header by file name; raises `InstrumentError` for one that is no text."""
        return {path.name: _text(path) for path in _headers(self.hopper, recursive=False)}


def fetch_release(release: str = DEFAULT_RELEASE, *, quiet: bool = False) -> Fa3Sources:
    """Return the sources of a pinned release, downloaded with pip unless the cache has them already.

    Raises `InstrumentError` for an unknown release, no network, a wrong hash, or an archive without FA3.
    """
    if release not in RELEASES:
        raise InstrumentError(f"release {release!r} is unknown; expected one of {', '.join(RELEASES)}")
    pin = RELEASES[release]
    folder = _release_folder(pin)
    if not folder.is_dir():
        with tempfile.TemporaryDirectory(dir=make_dir(folder.parent), prefix=".fetch-") as scratch:
            archive = download(pin, Path(scratch), quiet=quiet)
            unpack_sdist(archive, _FA3_IN_SDIST, Path(scratch, "tree"))
            _move_into_place(Path(scratch, "tree"), folder)
    return _release_sources(pin)


def fetch_cutlass(*, quiet: bool = False) -> Path:
    """Return the CUTLASS include folder of the pinned `nvidia-cutlass`, downloaded unless the cache has it."""
    folder = _release_folder(CUTLASS_PIN)
    if not folder.is_dir():
        with tempfile.TemporaryDirectory(dir=make_dir(folder.parent), prefix=".fetch-") as scratch:
            archive = download(CUTLASS_PIN, Path(scratch), quiet=quiet)
            unpack_wheel(archive, _CUTLASS_IN_WHEEL, Path(scratch, "tree", "include"))
            _move_into_place(Path(scratch, "tree"), folder)
    return folder / "include"


def find_sources(
    source: str | os.PathLike[str] | None = None,
    cutlass: str | os.PathLike[str] | None = None,
    release: str | None = None,
) -> Fa3Sources:
    """Return the sources to build from, without any network.

    `source` is a flash-attention checkout or its `hopper/`; without it, `release` or the newest one in the cache.
    CUTLASS is `cutlass` if given, else the checkout's submodule, else `nvidia-cutlass` from the cache. Raises
    `InstrumentError` that says what is missing and how to get it.
    """
    if source is None:
        for pin in RELEASES.values():
            if release in (None, pin.version) and _release_folder(pin).is_dir():
                found = _release_sources(pin)
                return found if cutlass is None else found._replace(cutlass=_cutlass_include(Path(cutlass)))
        raise InstrumentError(
            f"no FA3 sources in {cache_dir()}; run `simfa instrument fetch`, or give a checkout with --source"
        )
    root = Path(source)
    hopper = root / "hopper" if (root / "hopper").is_dir() else root
    if not (hopper / PATCHED_FILES[0]).is_file():
        raise InstrumentError(
            f"{root}: no FA3 inside ({hopper / PATCHED_FILES[0]} is missing); expected a flash-attention checkout"
        )
    if cutlass is not None:
        include = _cutlass_include(Path(cutlass))
    else:
        nearby = hopper.parent / "csrc" / "cutlass" / "include"
        cached = _release_folder(CUTLASS_PIN) / "include"
        if not (nearby / "cutlass").is_dir() and not cached.is_dir():
            raise InstrumentError(
                f"{root}: no CUTLASS headers ({nearby} is empty or missing); run `git submodule update --init "
                "csrc/cutlass` there, or `simfa instrument fetch --cutlass`, or give a folder with --cutlass-dir"
            )
        include = nearby if (nearby / "cutlass").is_dir() else cached
    return Fa3Sources(hopper, include, f"checkout {tree_hash(hopper)[:12]}")


def tree_hash(folder: Path) -> str:
    """Return one sha256 over names and contents of all headers below `folder`."""
    digest = hashlib.sha256()
    for path in _headers(folder, recursive=True):
        digest.update(f"{path.relative_to(folder).as_posix()}\0{sha256_of(path)}\n".encode())
    return digest.hexdigest()


def unpack_sdist(archive: Path, root: PurePosixPath, target: Path) -> None:
    """Unpack FA3's `hopper/` headers and its CUTLASS headers out of a source distribution into `target`.

    `root` is the flash-attention folder inside the distribution; `target` gets `hopper/` and `csrc/cutlass/include/`,
    laid out as in a checkout. Raises `InstrumentError` for an archive that cannot be read or has no FA3 inside.
    """
    try:
        with tarfile.open(archive) as tar:
            wanted = []
            for member in tar:
                inside = PurePosixPath(*PurePosixPath(member.name).parts[1:])
                if member.isfile() and inside.is_relative_to(root) and _is_needed(inside.relative_to(root)):
                    wanted.append(member.replace(name=str(inside.relative_to(root)), deep=False))
            _require_fa3(archive, {PurePosixPath(member.name) for member in wanted})
            tar.extractall(target, wanted, filter="data")
    except (tarfile.TarError, OSError, EOFError) as error:
        raise InstrumentError(f"{archive.name}: cannot be unpacked: {error}") from error


def unpack_wheel(archive: Path, root: PurePosixPath, target: Path) -> None:
    """Unpack the headers below `root` of a wheel into `target`; raises `InstrumentError` when there are none."""
    try:
        with zipfile.ZipFile(archive) as wheel:
            names = [name for name in wheel.namelist() if PurePosixPath(name).is_relative_to(root)]
            if not any(name.endswith("cutlass/cutlass.h") for name in names):
                raise InstrumentError(f"{archive.name}: no CUTLASS headers inside (below {root})")
            for name in names:
                path = target / PurePosixPath(name).relative_to(root)
                if not name.endswith("/"):
                    path.parent.mkdir(parents=True, exist_ok=True)
                    with wheel.open(name) as packed, path.open("wb") as handle:
                        shutil.copyfileobj(packed, handle)
    except (zipfile.BadZipFile, OSError) as error:
        raise InstrumentError(f"{archive.name}: cannot be unpacked: {error}") from error


def _is_needed(inside: PurePosixPath) -> bool:
    """Return whether a file of a flash-attention tree is a header that the build reads."""
    return inside.suffix in _HEADER_SUFFIXES and (
        inside.parts[0] == "hopper" or inside.is_relative_to("csrc/cutlass/include")
    )


def _require_fa3(archive: Path, names: Iterable[PurePosixPath]) -> None:
    present = set(names)
    missing = [name for name in PATCHED_FILES if PurePosixPath("hopper", name) not in present]
    if missing:
        raise InstrumentError(f"{archive.name}: no FA3 inside: hopper/{missing[0]} is missing")


def _headers(folder: Path, *, recursive: bool) -> Iterator[Path]:
    found = folder.rglob("*") if recursive else folder.iterdir()
    yield from sorted(path for path in found if path.suffix in _HEADER_SUFFIXES and path.is_file())


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InstrumentError(
            f"{path}: byte {error.start} is no UTF-8 text; expected an FA3 header, check the file out again"
        ) from error
    except OSError as error:
        raise InstrumentError(f"{path}: cannot be read: {error.strerror or error}") from error


def _release_folder(pin: Pin) -> Path:
    return cache_dir() / "sources" / f"{pin.project}-{pin.version}-{pin.sha256[:12]}"


def _release_sources(pin: Pin) -> Fa3Sources:
    folder = _release_folder(pin)
    return Fa3Sources(
        folder / "hopper", folder / "csrc" / "cutlass" / "include", f"{pin.project} {pin.version} sha256:{pin.sha256}"
    )


def _cutlass_include(folder: Path) -> Path:
    include = folder if (folder / "cutlass").is_dir() else folder / "include"
    if not (include / "cutlass" / "cutlass.h").is_file():
        raise InstrumentError(f"{folder}: no CUTLASS headers inside; expected include/cutlass/cutlass.h")
    return include


def _move_into_place(tree: Path, folder: Path) -> None:
    """Rename a finished tree to its place in the cache; a tree that another process put there first is as good."""
    try:
        tree.rename(folder)
    except OSError as error:
        if not folder.is_dir():
            raise InstrumentError(f"{folder}: cannot be written: {error.strerror or error}") from error
