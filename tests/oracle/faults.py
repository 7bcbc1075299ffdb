"""Faults seeded into a copy of the core: each must make some random program take other cycles than on the reference.

The copy is built once with all faults in it and runs one of them at a time. `python -m tests.oracle.faults DIR` builds
into DIR and prints which program catches which fault.
"""

import argparse
import ctypes
import functools
import importlib.util
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from simfa.simulate.reference import ReferenceResult
    from tests.oracle.cases import Case

CORE = Path(__file__).parents[2] / "simulate" / "core"
SYMBOL = "simfa_seeded_fault"
SEED, PROGRAMS = 1, 1000  # the first programs of the long comparison


NO_FAULT = "no fault"


class Fault(NamedTuple):
    """One mistake: in `file`, `right` becomes `wrong`, in which FAULT is true while this fault is on."""

    name: str
    file: str
    right: str
    wrong: str


FAULTS = (
    Fault(
        "lost wake of a named barrier",
        "sm.cpp",
        "wake(role, now + config_.named_wake_cycles);",
        "if (!FAULT) wake(role, now + config_.named_wake_cycles);",
    ),
    Fault("lost expectation of a woken acquire", "sm.cpp", "barriers_.expect(ring, target);",
          "if (!FAULT) barriers_.expect(ring, target);"),
    Fault("lost multicast credit", "tma.cpp", "if (multicast) finish", "if (multicast && !FAULT) finish"),
    Fault("wake of a full stage a cycle late", "sm.cpp", "wake(role, now + std::max<Cycle>(least,",
          "wake(role, now + FAULT + std::max<Cycle>(least,"),
    Fault("issue of a WGMMA a cycle short", "sm.cpp", "role.ready = now + config_.wgmma_issue_cycles;",
          "role.ready = now + config_.wgmma_issue_cycles - FAULT;"),
    Fault("gap between TMA operations a cycle long", "tma.cpp",
          "const Cycle start = std::max(op.eligible, last_start_ + config_.issue_gap_cycles);",
          "const Cycle start = std::max(op.eligible, last_start_ + config_.issue_gap_cycles + FAULT);"),
    Fault("answer of the grid a cycle late", "grid.hpp", "now + config_.tile_fetch_cycles -",
          "now + FAULT + config_.tile_fetch_cycles -"),
    Fault("stretch by register pressure rounded down", "cuda_core.hpp", "+ 999999)", "+ (FAULT ? 0 : 999999))"),
    Fault("swapped named barriers", "sm.cpp", "host_.signal_later(index_, instruction.ring,",
          "host_.signal_later(index_, FAULT ? instruction.ring ^ 1 : instruction.ring,"),
    Fault("swapped tails of SS and RS", "tensor_core.hpp", "free_ + (register_a ?", "free_ + (register_a != FAULT ?"),
    Fault("remote release to the own SM", "sm.cpp", "release_later(index_ ^ 1,", "release_later(index_ ^ !FAULT,"),
    Fault("WGMMA window one too long", "tensor_core.hpp", "ends_[(issued_ - window)",
          "ends_[(issued_ - window - FAULT)"),
    Fault("no drain after a group", "tensor_core.hpp", "group_end + drain_cycles_;",
          "group_end + (FAULT ? 0 : drain_cycles_);"),
    Fault("stage taken a round early", "barriers.hpp", "fill / r.stages * r.releases",
          "(fill / r.stages - FAULT) * r.releases"),
    Fault("wait for one group less", "sm.cpp", "completion(role.group_base + group -",
          "completion(role.group_base + group - FAULT -"),
    Fault("wait for a store's answer, not its read", "sm.cpp", "role.stores.done(role.wait_target, true)",
          "role.stores.done(role.wait_target, !FAULT)"),
    Fault("scheduler forgets who issued last", "sm.cpp", "policy == Scheduler::gto &&",
          "policy == Scheduler::gto && !FAULT &&"),
    Fault("descriptor cache keeps the order of arrival", "tma.cpp", "if (!miss) descriptors_.erase(found);",
          "if (!miss && FAULT) return config_.tensor_map_cycles;\n    if (!miss) descriptors_.erase(found);"),
    Fault("CUDA cores do not take turns", "cuda_core.hpp", "round_robin_ && size_ > 1",
          "round_robin_ && size_ > 1 && !FAULT"),
    Fault("asks for a tile in each round of a loop", "sm.cpp", "role.iteration + 1 == role.body[-1].count",
          "FAULT || role.iteration + 1 == role.body[-1].count"),
    Fault("no cost between tiles", "sm.cpp", "role.edge_due = index > 0 &&", "role.edge_due = index > 0 && !FAULT &&"),
)  # fmt: skip


class Catch(NamedTuple):
    """The first random program that a fault changes, and how; both empty when none does."""

    fault: str
    program: int | None
    difference: str


def seed_faults(core: Path, faults: Sequence[Fault] = FAULTS) -> None:
    """Put every fault into the sources at `core`, numbered from 1; raises `ValueError` for one that does not fit."""
    for number, fault in enumerate(faults, 1):
        path = core / fault.file
        text = path.read_text(encoding="utf-8")
        if text.count(fault.right) != 1:
            raise ValueError(
                f"fault {fault.name!r}: {fault.file} has {text.count(fault.right)} of {fault.right!r}, expected 1; "
                "say in tests/oracle/faults.py where this code went"
            )
        path.write_text(text.replace(fault.right, fault.wrong.replace("FAULT", f"({SYMBOL} == {number})")), "utf-8")
    declaration = f'extern "C" __attribute__((visibility("default"))) int {SYMBOL};\n'
    types = core / "types.hpp"
    types.write_text(f"{types.read_text(encoding='utf-8')}\n{declaration}", "utf-8")
    (core / "seeded_fault.cpp").write_text(f'#include "types.hpp"\n\nint {SYMBOL} = 0;\n', "utf-8")


def build(folder: Path) -> Path:
    """Build the extension module with all faults below `folder` and return its path; takes a minute of one core."""
    import nanobind

    core = folder / "simulate" / "core"
    shutil.copytree(CORE, core, ignore=shutil.ignore_patterns("tests"))
    shutil.copy(CORE.parents[1] / "CMakeLists.txt", folder)
    seed_faults(core)
    cmake = shutil.which("cmake", path=str(Path(sys.executable).parent)) or "cmake"
    built = folder / "build"
    options = {
        "SKBUILD": "ON",
        "CMAKE_BUILD_TYPE": "Debug",
        "Python_EXECUTABLE": sys.executable,
        "nanobind_DIR": nanobind.cmake_dir(),
    }
    configure = [cmake, "-S", str(folder), "-B", str(built), *(f"-D{name}={value}" for name, value in options.items())]
    for command in (configure, [cmake, "--build", str(built), "--target", "_core"]):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)} failed:\n{(done.stdout + done.stderr)[-3000:]}")
    (module,) = built.glob("_core*.so")
    return module


def load(module: Path) -> ctypes.c_int:
    """Make a module of `build` the engine of this process and return its switch; call it before any engine import."""
    name = "simfa.simulate._core"
    if name in sys.modules:
        raise RuntimeError("this process has the core already; seeded faults need one of their own")
    spec = importlib.util.spec_from_file_location(name, module)
    assert spec is not None
    assert spec.loader is not None
    sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules[name])
    return ctypes.c_int.in_dll(ctypes.CDLL(str(module)), SYMBOL)


def catches(module: Path, programs: int = PROGRAMS) -> Iterator[Catch]:
    """Yield for each fault which of the random programs catches it; last of all for none, with every program used."""
    switch = load(module)
    from tests.oracle.cases import seeded_case
    from tests.oracle.harness import differences_from, run_core, run_reference

    @functools.cache
    def drawn(index: int) -> "tuple[Case, ReferenceResult]":
        case = seeded_case(SEED, index)
        return case, run_reference(case)

    def caught(fault: str, within: int) -> Catch:
        for index in range(within):
            case, expected = drawn(index)
            if different := differences_from(expected, case, run_core):
                return Catch(fault, index, different[0].splitlines()[0])
        return Catch(fault, None, "")

    for number, fault in enumerate(FAULTS, 1):
        switch.value = number
        yield caught(fault.name, programs)
    switch.value = 0
    yield caught(NO_FAULT, drawn.cache_info().currsize)


def main() -> int:
    """Print the catches as JSON lines; return 1 if a fault went unnoticed or the right core differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where to build; reused if it holds a build")
    options = parser.parse_args()
    modules = sorted(options.folder.glob("build/_core*.so"))
    bad = 0
    for catch in catches(modules[0] if modules else build(options.folder)):
        print(json.dumps(catch._asdict()), flush=True)
        bad += (catch.program is None) == (catch.fault != NO_FAULT)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
