"""Writing files so that a reader never meets half of one, and the manifests that say where each came from."""

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import msgspec

from simfa import __version__
from simfa.errors import SimfaError


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike[str], mode: str = "w") -> Iterator[IO[Any]]:
    """Yield a file that becomes `path` when the block ends well, and vanishes when it does not.

    The file is written beside `path` under a temporary name, flushed to disk, then renamed. An `OSError` (disk full,
    no permission, no such folder) becomes a `SimfaError` naming `path`, and so do devices and pipes, which a rename
    would replace. A symbolic link stays, and what it points to is written.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file() and not target.is_dir():
        raise SimfaError(f"{path}: is a device or a pipe; expected the name of a file")
    temporary: str | None = None
    try:
        descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        encoding = None if "b" in mode else "utf-8"
        newline = None if "b" in mode else "\n"
        with os.fdopen(descriptor, mode, encoding=encoding, newline=newline) as handle:
            yield handle
            handle.flush()
            os.fsync(handle.fileno())
        umask = os.umask(0)
        os.umask(umask)
        Path(temporary).chmod(0o666 & ~umask)
        Path(temporary).replace(target)
        temporary = None
    except OSError as error:
        raise SimfaError(f"{path}: cannot be written: {error.strerror or error}; nothing was left behind") from error
    finally:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)


def sha256_of(path: str | os.PathLike[str]) -> str:
    """Return the hex sha256 of a file's bytes."""
    with Path(path).open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def json_bytes(value: object) -> bytes:
    """Return `value` as indented JSON with sorted keys and a final newline: the same value gives the same bytes."""
    return msgspec.json.format(msgspec.json.encode(value, order="sorted"), indent=2) + b"\n"


def write_json(path: str | os.PathLike[str], value: object) -> None:
    """Write `value` to `path` as `json_bytes`, atomically."""
    with atomic_write(path, "wb") as handle:
        handle.write(json_bytes(value))


def manifest(command: str, inputs: Mapping[str, str | os.PathLike[str]], **facts: object) -> dict[str, Any]:
    """Return where a result comes from: tool version, command, sha256 of each input, and `facts`.

    File names are stored without their folders, so that the manifest does not depend on where it was made.
    """
    return {
        "tool": "simfa",
        "tool_version": __version__,
        "command": command,
        "inputs": {key: {"name": Path(path).name, "sha256": sha256_of(path)} for key, path in inputs.items()},
        **facts,
    }


def write_manifest(
    output: str | os.PathLike[str], command: str, inputs: Mapping[str, str | os.PathLike[str]], **facts: object
) -> None:
    """Write `<output>.manifest.json`: what `manifest` returns, and the sha256 of the output."""
    target = Path(output)
    written = manifest(command, inputs, **facts)
    if target.is_file():
        written["output"] = {"name": target.name, "sha256": sha256_of(target)}
    write_json(target.with_name(target.name + ".manifest.json"), written)
