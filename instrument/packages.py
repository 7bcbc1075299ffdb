"""Get one pinned distribution file with pip, by hash, without running any code that comes inside it."""

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from simfa.errors import InstrumentError
from simfa.files import sha256_of
from simfa.watched_process import watched_run

# pip asks a source distribution's build system for metadata before it keeps the file. This stand-in for setuptools
# answers from the PKG-INFO that every source distribution carries, so the package's own setup.py never runs and
# nothing it would import (torch, say) is needed.
_BUILD_BACKEND = '''\
"""Metadata-only build backend: hands out the PKG-INFO of the source distribution."""

import email
import pathlib
import sys

__legacy__ = sys.modules[__name__]


def get_requires_for_build_wheel(config_settings=None):
    return []


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    text = pathlib.Path("PKG-INFO").read_bytes()
    fields = email.message_from_bytes(text)
    folder = pathlib.Path(metadata_directory) / f"{fields['Name']}-{fields['Version']}.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_bytes(text)
    return folder.name
'''


class Pin(NamedTuple):
    """One file of a package index: project, version, its sha256, and whether it is a source distribution."""

    project: str
    version: str
    sha256: str
    is_source: bool


def download(pin: Pin, folder: Path, *, quiet: bool = False) -> Path:
    """Download the file of `pin` into `folder` and return its path.

    pip does the work, so mirrors, proxies and certificates are those of its configuration. Raises `InstrumentError`
    when pip is missing, cannot reach an index, does not find the file or finds one with another hash.
    """
    with tempfile.TemporaryDirectory(prefix="simfa-pip-") as scratch:
        backend = Path(scratch, "backend", "setuptools")
        backend.mkdir(parents=True)
        (backend / "__init__.py").touch()
        (backend / "build_meta.py").write_text(_BUILD_BACKEND, encoding="utf-8")
        requirements = Path(scratch, "requirements.txt")
        requirements.write_text(f"{pin.project}=={pin.version} --hash=sha256:{pin.sha256}\n", encoding="utf-8")
        kept = Path(scratch, "kept")
        command = [sys.executable, "-m", "pip", "download", "--disable-pip-version-check", "--no-input", "--no-deps"]
        command += ["--no-build-isolation", "--no-binary" if pin.is_source else "--only-binary", pin.project]
        command += ["--dest", str(kept), "--requirement", str(requirements)]
        environment = {**os.environ, "PYTHONPATH": str(backend.parent)} if pin.is_source else None
        ended = watched_run(command, f"downloading {pin.project} {pin.version}", env=environment, quiet=quiet)
        if ended.returncode:
            raise InstrumentError(_failure(pin, ended.stdout + ended.stderr))
        (found,) = kept.iterdir()
        # pip has checked the hash; a second look costs nothing and keeps the promise without trusting its options.
        if sha256_of(found) != pin.sha256:
            raise InstrumentError(f"{found.name}: its sha256 is not {pin.sha256}; the file was refused")
        return Path(shutil.move(found, folder / found.name))


def _failure(pin: Pin, output: str) -> str:
    """Return one message for what pip said: what was wanted, why it failed, what to do."""
    wanted = f"{pin.project} {pin.version}"
    if "No module named pip" in output:
        return f"{wanted}: this Python has no pip; run `{sys.executable} -m ensurepip` and try again"
    if "DO NOT MATCH THE HASHES" in output:
        return (
            f"{wanted}: the package index serves a file whose sha256 is not {pin.sha256}; it was refused. "
            "Ask who runs the index, or give the sources with --source"
        )
    if "No matching distribution" in output and "from versions: none" not in output:
        return f"{wanted}: the package index does not offer this file; give the sources with --source"
    last = next((line for line in reversed(output.splitlines()) if "ERROR" in line), "pip gave no reason").strip()
    return (
        f"{wanted}: could not be downloaded ({last}). Check the network and pip's configuration, or copy a filled "
        "cache folder here, or give the sources with --source"
    )
