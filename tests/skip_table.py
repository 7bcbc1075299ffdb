"""Print what a test run skipped and why; fail when a skipped test's requirement is installed after all.

Every skip says `needs NAME` first: `gpu` (a Hopper GPU), a program on PATH, a module or an installed distribution.
"""

import importlib.metadata
import importlib.util
import re
import shutil
import sys
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from pathlib import Path

from simfa.doctor import examine
from simfa.tables import text_table


def skipped(junit: Path) -> dict[str, list[str]]:
    """Return the names of skipped tests by reason, from a JUnit file."""
    reasons: dict[str, list[str]] = defaultdict(list)
    for case in ElementTree.parse(junit).iter("testcase"):
        for skip in case.iter("skipped"):
            reasons[skip.get("message", "")].append(f"{case.get('classname')}.{case.get('name')}")
    return dict(reasons)


def is_here(requirement: str) -> bool:
    """Return whether a requirement named by a skip is met on this machine."""
    if requirement == "gpu":
        return any(gpu.is_hopper for gpu in examine().gpus)
    if shutil.which(requirement) or importlib.util.find_spec(requirement.replace("-", "_")):
        return True
    return any(True for _ in importlib.metadata.Distribution.discover(name=requirement))


def main(junit: Path) -> int:
    """Print the table of one JUnit file and return the exit code."""
    rows, wrong = [], False
    for reason, tests in sorted(skipped(junit).items()):
        named = re.match(r"(?:Skipped: )?needs ([A-Za-z0-9_-]+)", reason)
        if named is None:
            verdict = "WRONG: the reason does not say `needs NAME`"
        elif is_here(named.group(1)):
            verdict = f"WRONG: {named.group(1)} is installed"
        else:
            verdict = f"{named.group(1)} is not here"
        wrong = wrong or verdict.startswith("WRONG")
        rows.append((str(len(tests)), reason, verdict, tests[0] + (" ..." if len(tests) > 1 else "")))
    print(text_table(("skipped", "reason", "checked", "test"), rows, right=(0,)) if rows else "no test was skipped")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
