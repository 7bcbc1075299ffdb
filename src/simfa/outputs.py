"""Names of files and folders to write, checked when the command line is read: what runs for minutes fails at once.

Nothing is created by a check. A file's folder must be there; folders are made by the command that fills them.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from simfa.errors import SimfaError

# What writing adds to a name: the manifest beside a file, and the random part of a name for the time of writing.
_ADDED_BYTES = len(".manifest.json") + 10


class OutputFile(click.Path):
    """A command line's name of a file to write; a `SimfaError` says why it could not be."""

    def __init__(self, path_type: type[Path] | None = None) -> None:
        """Pass the name on as text, or as `path_type`."""
        super().__init__(path_type=path_type)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the name after checking it."""
        check_output_file(value)
        return super().convert(value, param, ctx)


class OutputFolder(click.Path):
    """A command line's name of a folder to fill with files of known names."""

    def __init__(self, *names: str, path_type: type[Path] | None = None) -> None:
        """Pass the name on as text, or as `path_type`; `names` are files that will be written into the folder."""
        super().__init__(path_type=path_type)
        self.names = names

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the name after checking it."""
        check_output_folder(value, *self.names)
        return super().convert(value, param, ctx)


def check_output_file(path: str | os.PathLike[str]) -> None:
    """Raise `SimfaError` if `path` cannot be written as a file in a folder that exists."""
    _check_name(path)
    try:
        target = Path(os.path.realpath(path))
        if not target.parent.is_dir():
            raise SimfaError(f"{path}: folder {Path(path).parent} does not exist; make it first")
        if target.is_dir():
            raise SimfaError(f"{path}: is a folder; expected the name of a file")
        if target.exists() and not target.is_file():
            raise SimfaError(f"{path}: is a device or a pipe; expected the name of a file")
        if len(os.fsencode(target.name)) + _ADDED_BYTES > os.pathconf(target.parent, "PC_NAME_MAX"):
            raise SimfaError(f"{path}: the name is too long for a file and its manifest; expected a shorter one")
        _check_permission(path, target.parent)
    except OSError as error:
        raise SimfaError(f"{path}: cannot be written: {error.strerror or error}") from error


def check_output_folder(path: str | os.PathLike[str], *names: str) -> None:
    """Raise `SimfaError` if `path` is no folder and cannot become one, or if files `names` could not be written in it.

    Folders above it may be missing too.
    """
    _check_name(path)
    try:
        target = Path(os.path.realpath(path))
        above = next(folder for folder in (target, *target.parents) if folder.exists())
        if not above.is_dir():
            raise SimfaError(f"{path}: cannot be made: {above} is not a folder")
        if any(len(os.fsencode(part)) > os.pathconf(above, "PC_NAME_MAX") for part in target.parts):
            raise SimfaError(f"{path}: the name is too long for a folder; expected a shorter one")
        _check_permission(path, above)
    except OSError as error:
        raise SimfaError(f"{path}: cannot be made: {error.strerror or error}") from error
    for name in names if above == target else ():
        check_output_file(target / name)


def _check_permission(path: str | os.PathLike[str], folder: Path) -> None:
    if not os.access(folder, os.W_OK | os.X_OK):
        raise SimfaError(f"{path}: cannot be written: folder {folder} is read-only or not yours to write in")


def check_not_input(output: str | os.PathLike[str], inputs: Iterable[str | os.PathLike[str]]) -> None:
    """Raise `SimfaError` if `output` is one of the files that are read, by whatever name."""
    for path in map(Path, inputs):
        if Path(output).exists() and path.exists() and path.samefile(output):
            raise SimfaError(f"{output}: is what is read and would be overwritten; expected another name to write")


def make_folder(path: str | os.PathLike[str]) -> None:
    """Make a folder, and those above it, unless it is there; raises `SimfaError`."""
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SimfaError(f"{path}: cannot be made: {error.strerror}") from error


def _check_name(path: str | os.PathLike[str]) -> None:
    """Refuse names that no file can have."""
    text = os.fspath(path)
    if not text:
        raise SimfaError("the name of an output is empty; expected a file or folder to write")
    if "\0" in text:
        raise SimfaError(f"{text!r}: expected the name of a file or folder")
