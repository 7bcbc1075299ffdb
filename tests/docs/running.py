"""Runs the commands of a page in a folder of their own, and compares what they print with what is shown."""

import doctest
import os
import subprocess
import sys
from pathlib import Path

from tests.docs.pages import ROOT, Command

# What commands may read, as if typed in the repository's root.
_LINKED = ("config", "data", "docs", "examples")


class Sandbox:
    """A working folder with the repository's data, and a home and cache of its own."""

    def __init__(self, folder: Path) -> None:
        """Make it below `folder`."""
        self.work = folder / "work"
        self.work.mkdir()
        for name in _LINKED:
            (self.work / name).symlink_to(ROOT / name)
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self.environment = os.environ | {"PATH": path, "XDG_CACHE_HOME": str(folder / "cache")}

    def run(self, command: Command) -> str:
        """Return what a terminal would show; a command that fails is an `AssertionError`."""
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", command.text],
            cwd=self.work,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, f"{command.place}: `{command.text}` ends with {done.returncode}:\n{done.stdout}"
        return done.stdout


def same(shown: str, found: str) -> bool:
    """Compare output; `...` stands for any text, blanks at the ends of lines do not count."""
    return doctest.OutputChecker().check_output(_trimmed(shown), _trimmed(found), doctest.ELLIPSIS)


def _trimmed(text: str) -> str:
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())
