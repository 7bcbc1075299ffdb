"""Where fetched sources and built libraries are kept: the user's cache folder, never the project tree."""

import os
from pathlib import Path

from simfa.errors import InstrumentError


def cache_dir() -> Path:
    """Return `$XDG_CACHE_HOME/simfa`, or `~/.cache/simfa`; the folder need not exist yet."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG rules say that a relative path is to be ignored.
    return (Path(base) if Path(base).is_absolute() else Path.home() / ".cache") / "simfa"


def make_dir(path: Path) -> Path:
    """Create `path` with its parents and return it; raises `InstrumentError` when that is not possible."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InstrumentError(f"{path}: cannot be created: {error.strerror or error}") from error
    return path
