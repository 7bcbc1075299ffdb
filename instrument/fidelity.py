"""How far a kernel's machine code is what it should be, and how far a probed kernel's schedule differs from the plain.

The report is per kernel: WGMMA count against the tile's, spills by role and in the main loop, order of probes and
waits, and how many exponentials run before `wait<0>`. Sources: `docs/probing.md`.
"""

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from simfa.errors import InstrumentError
from simfa.instrument.instantiation import Instantiation, instantiation_of
from simfa.instrument.sass import (
    INSTRUCTION_BYTES,
    Function,
    Instruction,
    Loop,
    exponentials,
    find_main_loops,
    find_roles,
    is_clock_read,
    is_spill,
    is_wgmma,
    landmarks,
    parse_listing,
)
from simfa.instrument.toolchain import Disassembler
from simfa.kernel import KernelSpec
from simfa.watched_process import watched_run


class LoopReport(msgspec.Struct, frozen=True):
    """One main loop: byte addresses, WGMMAs, spills, stamps, order, and exp2 before and after `wait<0>`.

    `spill_stores` and `spill_loads` are instructions per turn; loads alone fetch values spilled before the loop.
    """

    first_address: int
    last_address: int
    wgmma: int
    spill_stores: int
    spill_loads: int
    stamps: int
    order: tuple[str, ...]
    exp2_before_wait_0: int
    exp2_after_wait_0: int


class KernelReport(msgspec.Struct, frozen=True):
    """One kernel of a library. `problems` is empty when the code is fit for tracing or timing."""

    name: str
    level: int
    code_bytes: int
    wgmma: int
    wgmma_expected: int
    stamps: int
    spills: dict[str, int]  # by role: producer, consumer, shared
    loops: tuple[LoopReport, ...]
    problems: tuple[str, ...]


class Difference(msgspec.Struct, frozen=True):
    """What the probes changed in one kernel: exp2 moved across `wait<0>`, code size, spills by role."""

    name: str
    exp2_plain: tuple[int, int]
    exp2_probed: tuple[int, int]
    code_bytes: int
    spills: dict[str, int]
    verdict: str


class Groups(NamedTuple):
    """WGMMAs of one QK and one PV product of a warpgroup's tile."""

    qk: int
    pv: int


def wgmma_groups(head_dim: int, tile_n: int) -> Groups:
    """Return how many k=16 WGMMAs each product takes: D/16 for QK, T_N/16 for PV."""
    return Groups(head_dim // 16, tile_n // 16)


def expected_wgmma(kernel: Instantiation) -> int:
    """Return the WGMMA instructions of the whole kernel: QK before and PV after the loops, both in each loop.

    A causal kernel has two loops, one for the masked blocks.
    """
    groups = wgmma_groups(kernel.head_dim, kernel.kernel.tile_n)
    return (1 + _loop_count(kernel)) * (groups.qk + groups.pv)


def expected_order(kernel: KernelSpec, level: int) -> list[str]:
    """Return the order of landmarks in one turn of the main loop at an event level (`simfa.instrument.sass`)."""
    stamp_1 = ["clock"] if level >= 1 else []
    stamp_2 = ["clock"] if level >= 2 else []
    wait = [*stamp_1, "mbarrier", *stamp_2]
    sync = [*stamp_2, "sync", *stamp_2] if kernel.ping_pong else []
    arrive = [*stamp_2, "arrive"] if kernel.ping_pong else []
    return [
        *wait,
        *sync,
        *stamp_1,
        "qk",
        *wait,
        *stamp_1,
        "pv",
        *arrive,
        *stamp_1,
        "wait 1",
        *stamp_2,  # end of the wait and release of K: one stamp
        *stamp_2,  # end of the softmax
        *stamp_1,
        "wait 0",
        *stamp_2,  # end of the wait and release of V: one stamp
    ]


def report_plain(library: Path, tools: Disassembler, *, quiet: bool = False) -> list[KernelReport]:
    """Return the report of every kernel in a library without probes.

    Reloads of spilled registers in its main loops are reported and not judged: they are FA3's and the compiler's own.
    Raises `InstrumentError` when the library cannot be taken apart or holds no FA3 forward kernel.
    """
    return _report_library(library, 0, tools, lambda _: None, quiet)


def report_probed(
    library: Path,
    level: int,
    tools: Disassembler,
    plain: Sequence[KernelReport],
    allowed_reloads: int = 0,
    *,
    quiet: bool = False,
) -> list[KernelReport]:
    """Return the report of every kernel in a probed library.

    A main loop may reload as often a turn as the plain kernel's does, and `allowed_reloads` times more.
    """
    own = {report.name: max((loop.spill_loads for loop in report.loops), default=0) for report in plain}
    return _report_library(library, level, tools, lambda kernel: own.get(kernel.name, 0) + allowed_reloads, quiet)


def _report_library(
    library: Path, level: int, tools: Disassembler, allowed: Callable[[Instantiation], int | None], quiet: bool
) -> list[KernelReport]:
    reports = [
        report_function(function, kernel, level, allowed(kernel))
        for function in disassemble(library, tools, quiet)
        if (kernel := instantiation_of(function.symbol)) is not None
    ]
    if not reports:
        raise InstrumentError(f"{library}: no FA3 forward kernel inside; was it built by `simfa instrument build`?")
    return sorted(reports, key=lambda report: report.name)


def disassemble(library: Path, tools: Disassembler, quiet: bool = False) -> list[Function]:
    """Return the listing of every kernel in a library."""
    functions = []
    with tempfile.TemporaryDirectory(prefix="simfa-sass-") as scratch:
        _run([str(tools.cuobjdump), "-xelf", "all", str(library.resolve())], library, scratch, quiet)
        for cubin in sorted(Path(scratch).glob("*.cubin")):
            text = _run([str(tools.nvdisasm), "-json", str(cubin)], library, scratch, quiet)
            functions += parse_listing(text, str(library))
    return functions


def report_function(
    function: Function, kernel: Instantiation, level: int, allowed_reloads: int | None = 0
) -> KernelReport:
    """Return the report of one kernel's listing, built at event level `level`.

    A main loop that stores spilled registers is a problem, and one that loads more than `allowed_reloads` a turn;
    None allows any.
    """
    code = function.instructions
    roles = find_roles(code)
    loops = tuple(_report_loop(code, loop) for loop in find_main_loops(code, roles.consumer))
    wgmma = sum(map(is_wgmma, code))
    report = KernelReport(
        name=kernel.name,
        level=level,
        code_bytes=len(code) * INSTRUCTION_BYTES,
        wgmma=wgmma,
        wgmma_expected=expected_wgmma(kernel),
        stamps=sum(map(is_clock_read, code)),
        spills={name: sum(is_spill(code[i]) for i in indices) for name, indices in roles._asdict().items()},
        loops=loops,
        problems=(),
    )
    return msgspec.structs.replace(report, problems=tuple(_problems(report, kernel, allowed_reloads)))


def compare(plain: KernelReport, probed: KernelReport) -> Difference:
    """Return what the probes changed; both reports must be of the same kernel."""
    if plain.name != probed.name:
        raise InstrumentError(f"cannot compare {plain.name} with {probed.name}; build both for the same kernel")
    before, after = _exp2(plain), _exp2(probed)
    if before == after:
        verdict = "the softmax keeps its place around wait<0>"
    else:
        verdict = (
            f"{before[0]} of {sum(before)} exp2 run before wait<0> in the plain kernel, {after[0]} of {sum(after)} in "
            "the probed one: order and counts of events hold, the softmax's place relative to wait<0> does not"
        )
    return Difference(
        name=plain.name,
        exp2_plain=before,
        exp2_probed=after,
        code_bytes=probed.code_bytes - plain.code_bytes,
        spills={role: probed.spills[role] - plain.spills[role] for role in plain.spills},
        verdict=verdict,
    )


def _report_loop(code: Sequence[Instruction], loop: Loop) -> LoopReport:
    body = code[loop.first : loop.last + 1]
    before, after = exponentials(code, loop)
    return LoopReport(
        first_address=loop.first * INSTRUCTION_BYTES,
        last_address=loop.last * INSTRUCTION_BYTES,
        wgmma=sum(map(is_wgmma, body)),
        spill_stores=sum(is_spill(instruction) and instruction.opcode.startswith("ST") for instruction in body),
        spill_loads=sum(is_spill(instruction) and instruction.opcode.startswith("LD") for instruction in body),
        stamps=sum(map(is_clock_read, body)),
        order=tuple(landmarks(code, loop)),
        exp2_before_wait_0=before,
        exp2_after_wait_0=after,
    )


def _problems(report: KernelReport, kernel: Instantiation, allowed_reloads: int | None) -> list[str]:
    """Return what makes the code unfit, one sentence each."""
    found = []
    if report.wgmma != report.wgmma_expected:
        found.append(f"{report.wgmma} WGMMAs, expected {report.wgmma_expected}")
    if len(report.loops) != _loop_count(kernel):
        found.append(f"{len(report.loops)} main loops found, expected {_loop_count(kernel)}")
    order = expected_order(kernel.kernel, report.level)
    for loop in report.loops:
        place = f"main loop at {loop.first_address:#x}"
        limit = loop.spill_loads if allowed_reloads is None else allowed_reloads
        if loop.spill_stores or loop.spill_loads > limit:
            found.append(
                f"{place}: spills, {loop.spill_stores} stores and {loop.spill_loads} loads a turn, expected no stores "
                f"and at most {limit} loads"
            )
        if sum(mark.startswith("wait ") for mark in loop.order) > 2:
            found.append(f"{place}: WGMMAs are serialised: {' '.join(loop.order)}")
        elif list(loop.order) != order:
            found.append(f"{place}: order is {' '.join(loop.order)}; expected {' '.join(order)}")
    return found


def _loop_count(kernel: Instantiation) -> int:
    return 2 if kernel.causal else 1


def _exp2(report: KernelReport) -> tuple[int, int]:
    """Return exp2 before and after `wait<0>` of the last main loop, the one without a mask."""
    if not report.loops:
        raise InstrumentError(f"{report.name}: no main loop found, so there is nothing to compare")
    return report.loops[-1].exp2_before_wait_0, report.loops[-1].exp2_after_wait_0


def _run(command: list[str], library: Path, folder: str, quiet: bool) -> str:
    try:
        ended = watched_run(command, f"taking {library.parent.name} apart", cwd=folder, quiet=quiet)
    except OSError as error:
        raise InstrumentError(f"{command[0]}: cannot be run: {error.strerror or error}") from error
    if ended.returncode:
        reason = (ended.stderr or ended.stdout).strip().splitlines()
        raise InstrumentError(
            f"{library}: {Path(command[0]).name} cannot read it: {reason[-1] if reason else 'no reason given'}"
        )
    return ended.stdout
