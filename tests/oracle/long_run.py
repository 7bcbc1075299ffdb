"""Long comparison of the reference and the core: `python -m tests.oracle.long_run --programs 10000 --seed 1`."""

import argparse
import sys
from collections.abc import Sequence

from tests.oracle.cases import seeded_case
from tests.oracle.coverage import missing, table
from tests.oracle.harness import Comparison, Engine, run_core


def compare(programs: int, seed: int, engine: Engine | None, progress: bool = False) -> Comparison:
    """Run `programs` seeded cases on the reference and on `engine` (None: the reference alone)."""
    comparison = Comparison(engine)
    for index in range(programs):
        comparison.add(f"seed {seed} case {index}", seeded_case(seed, index))
        if progress and (index + 1) % 500 == 0:
            print(f"{index + 1} programs, {len(comparison.different)} differ", file=sys.stderr)
    return comparison


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the coverage and what differed; return 1 if anything did, or if something was never met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--reference-only", action="store_true", help="do not run the compiled core")
    parser.add_argument("--show", type=int, default=10, metavar="N", help="differences to print (default 10)")
    options = parser.parse_args(arguments)
    engine = None if options.reference_only else run_core
    comparison = compare(options.programs, options.seed, engine, progress=True)
    print("\n".join(table(comparison.coverage)))
    for difference in comparison.different[: options.show]:
        print("\n".join([difference.name, *(f"  {line}" for line in difference.found)]))
    unmet = missing(comparison.coverage)
    if unmet:
        print(f"never met: {'; '.join(unmet)}")
    against = "run on the reference alone" if engine is None else f"compared, {len(comparison.different)} differ"
    print(f"{comparison.cases} programs, {comparison.issues} issued instructions {against}")
    return 1 if comparison.different or unmet else 0


if __name__ == "__main__":
    sys.exit(main())
