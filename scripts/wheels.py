"""Build sdist and wheel, the wheel from the sdist, and try the wheel in a fresh environment of every Python here.

The wheel is installed with its dependencies from the package index, so this needs a network or pip's own settings for
one. Every Python must predict the same, but for host times. Exit code 1 when anything fails or no Python was tried.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
MINORS = (11, 12, 13, 14)
PREDICT = ("predict", "--model", "llama3-8b", "--seqlen", "512", "--json")
HOST_FIGURES = ("host_seconds", "simulated_cycles_per_second")


class Built(NamedTuple):
    """The two files of a release."""

    sdist: Path
    wheel: Path


def build(folder: Path) -> Built:
    """Build both into `folder`, emptied first; the wheel comes from the unpacked sdist."""
    shutil.rmtree(folder, ignore_errors=True)
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return Built(sdist, wheel)


def wheel_problems(wheel: Path) -> list[str]:
    """Return what is wrong with a wheel's name and contents."""
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names if ".dist-info/" not in name}
    problems = [] if tops == {"simfa"} else [f"top-level names {sorted(tops)}; expected simfa alone"]
    if "-cp311-abi3-" not in wheel.name:
        problems.append(f"{wheel.name} is not for the stable ABI of Python 3.11 and later")
    problems += [f"{name} is a source of the engine" for name in names if name.endswith((".cpp", ".hpp"))]
    needed = ("simfa/py.typed", "simfa/presets/h100-sxm.toml", "simfa/measured/fa3_public.csv")
    return problems + [f"{name} is missing" for name in needed if name not in names]


def interpreter(minor: int) -> str | None:
    """Return a Python 3.`minor` that starts: on PATH, or among pyenv's."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    places = [shutil.which(f"python3.{minor}"), *sorted(map(str, root.glob(f"3.{minor}.*/bin/python")))]
    for place in filter(None, places):
        ask = [place, "-c", "import sys, venv, ensurepip; print(sys.version_info[:2])"]
        if subprocess.run(ask, capture_output=True, text=True, check=False).stdout.strip() == f"(3, {minor})":
            return place
    return None


def output_of(folder: str, *command: str) -> str:
    """Return what a command prints in `folder`; a failing one raises `CalledProcessError`."""
    return subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE, text=True).stdout


def try_wheel(python: str, wheel: Path) -> dict[str, Any]:
    """Install `wheel` into a fresh environment of `python`; return what it predicts, without host times."""
    with tempfile.TemporaryDirectory() as folder:
        programs = Path(folder) / "venv/bin"
        output_of(folder, python, "-m", "venv", str(programs.parent))
        output_of(folder, str(programs / "python"), "-m", "pip", "install", "--quiet", str(wheel.resolve()))
        output_of(folder, str(programs / "simfa"), "doctor")
        stats: dict[str, Any] = json.loads(output_of(folder, str(programs / "simfa"), *PREDICT))
    return {name: value for name, value in stats.items() if name not in HOST_FIGURES}


def main(arguments: Sequence[str] | None = None) -> int:
    """Build, try, say what happened."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "dist", help="Folder for both files [dist].")
    parser.add_argument("--build-only", action="store_true", help="Do not try the wheel.")
    options = parser.parse_args(arguments)
    built = build(options.output)
    for file in built:
        print(f"{file.name}: {file.stat().st_size:,} bytes")
    problems = wheel_problems(built.wheel)
    predictions = {}
    for minor in () if options.build_only else MINORS:
        python = interpreter(minor)
        if python is None:
            print(f"Python 3.{minor}: skipped, not on this machine")
            continue
        predictions[minor] = try_wheel(python, built.wheel)
        print(f"Python 3.{minor}: installed, predicts {predictions[minor]['cycles']:,} cycles")
    if not predictions and not options.build_only:
        problems.append("no Python from 3.11 on is here to try the wheel with")
    first = next(iter(predictions.values()), None)
    problems += [f"Python 3.{minor} predicts otherwise" for minor, found in predictions.items() if found != first]
    for problem in problems:
        print(f"wheels: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
