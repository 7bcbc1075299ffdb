"""Counts the instructions of a fixed run of the engine and compares them with the recorded count, within 5 %.

Counts do not depend on how busy or fast a machine is, so a change that makes the engine slower shows. They do depend on
the compiler: `instruction_count.json` has a count for each one it was recorded with. Usage: `python
benchmarks/instruction_count.py PATH/TO/simfa_fixed_kernel [--write]`; `--write` records the count of this compiler.
"""

import argparse
import json
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

RECORDED = Path(__file__).with_suffix(".json")
TOLERANCE_PERCENT = 5


def count(executable: Path) -> tuple[int, str]:
    """Return the instructions of one run as callgrind counts them, and the compiler that made the executable."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "callgrind.out"
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", str(executable)]
        run = subprocess.run(command, capture_output=True, text=True, check=True)
        totals = re.search(r"^totals: (\d+)$", out.read_text(), re.MULTILINE)
    compiler = run.stdout.strip().rsplit(", ", 1)[-1]
    assert totals is not None, "callgrind wrote no totals"
    return int(totals[1]), f"{compiler}, {platform.machine()}"


def verdict(instructions: int, compiler: str, recorded: Mapping[str, int]) -> tuple[bool, str]:
    """Return whether the count is good, and what to say about it."""
    if compiler not in recorded:
        known = "; ".join(sorted(recorded)) or "none"
        return True, f"skipped: no count is recorded for {compiler} (recorded: {known}); --write records this one"
    ratio = instructions / recorded[compiler]
    text = f"{ratio:.3f} of the {recorded[compiler]:,} recorded for {compiler}"
    if 100 * abs(instructions - recorded[compiler]) > TOLERANCE_PERCENT * recorded[compiler]:
        return False, f"{text}: more than {TOLERANCE_PERCENT} % off; find out why, and --write if it is meant"
    return True, text


def main(arguments: list[str] | None = None) -> int:
    """Print the count and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("executable", type=Path)
    parser.add_argument("--write", action="store_true", help="record the count of this compiler")
    options = parser.parse_args(arguments)
    if shutil.which("valgrind") is None:
        print("instruction count skipped: needs valgrind")
        return 0
    try:
        instructions, compiler = count(options.executable.resolve())
    except subprocess.CalledProcessError as error:
        print(f"{options.executable} cannot be counted: {error.stderr.strip()}")
        return 1
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))
    if options.write:
        RECORDED.write_text(json.dumps(recorded | {compiler: instructions}, indent=2, sort_keys=True) + "\n", "utf-8")
        print(f"{instructions:,} instructions recorded for {compiler}")
        return 0
    good, text = verdict(instructions, compiler, recorded)
    print(f"{instructions:,} instructions, {text}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
