"""The files that a preset or overlay given by path is made of: inputs of whatever reads it."""

import tomllib
from pathlib import Path


def preset_files(name: str) -> list[str]:
    """Return a preset's file and those it extends beside it, in that order; a shipped preset has none to watch.

    The chain ends at a file that cannot be read: `simfa.hardware.load_preset` says what is wrong with it.
    """
    files: list[str] = []
    while name.endswith(".toml") and name not in files:
        files.append(name)
        try:
            parent = tomllib.loads(Path(name).read_text(encoding="utf-8")).get("extends")
        except (OSError, ValueError):
            break
        if not isinstance(parent, str):
            break
        name = str(Path(name).parent / parent) if parent.endswith(".toml") else parent
    return files
