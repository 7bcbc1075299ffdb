"""What a run of random programs must have met: every opcode, every wait both ways, every wake-up, every option."""

from collections import Counter
from collections.abc import Iterator, Mapping

from simfa.hardware import HardwareSpec
from simfa.isa import MNEMONICS, Instruction, Repeat
from simfa.trace import Trace

OPCODES = tuple(MNEMONICS.values())

# The names that the reference engine counts (`ReferenceResult.paths`).
PATHS = (
    "ACQUIRE_STAGE mbarrier immediate",
    "ACQUIRE_STAGE mbarrier blocked, woken by release",
    "ACQUIRE_STAGE mbarrier blocked, woken by remote release",
    "ACQUIRE_STAGE named immediate",
    "ACQUIRE_STAGE named blocked, woken by release",
    "ACQUIRE_STAGE named blocked, woken by remote release",
    "MB_WAIT immediate",
    "MB_WAIT blocked, woken by credit",
    "MB_WAIT blocked, woken by multicast credit",
    "MB_WAIT blocked, woken by expectation, phase 1",
    "MB_WAIT blocked, woken by expectation, phase 4",
    "BAR_WAIT immediate",
    "BAR_WAIT blocked, woken by signal",
    "TMA_WAIT immediate",
    "TMA_WAIT blocked, woken by store completion",
    "TMA_WAIT read immediate",
    "TMA_WAIT read blocked, woken by shared-memory read",
    "WGMMA_WAIT immediate",
    "WGMMA_WAIT blocked, woken by tensor core",
    "RELEASE_STAGE mbarrier sends release",
    "RELEASE_STAGE mbarrier sends remote release",
    "RELEASE_STAGE named sends release",
    "RELEASE_STAGE named sends remote release",
    "TMA_TENSOR multicast in a cluster of 1",
    "TMA_TENSOR multicast in a cluster of 2",
    "WGMMA SS starts at once",
    "WGMMA SS queues",
    "WGMMA RS starts at once",
    "WGMMA RS queues",
    "thread passed over: WGMMA window full",
    "BUBBLES cycles",
    "BUBBLES softmax",
    "BUBBLES epilogue",
    "BUBBLES without work",
    "CUDA-core job queues",
    "CUDA-core job goes behind",
    "CUDA-core job stays in front",
    "CUDA-core job continues alone",
    "CUDA-core quantum slowed by the tensor pipe",
    "descriptor hit",
    "descriptor miss",
    "operation waits for the issue gap",
    "operation without lines",
    "operation of level 0",
    "line waits for an answer",
    "line waits for issue bandwidth",
    "tile edge",
    "tile granted",
    "tile waits for its grant",
    "queue empty",
)

FEATURES = (
    *(f"schedule {mode}" for mode in ("static", "dynamic")),
    *(f"cluster {size}" for size in (1, 2)),
    *(f"roles {count}" for count in (2, 3, 4)),
    *(f"map of rank {rank}" for rank in (1, 2, 3, 4, 5)),
    *(f"origin {origin}" for origin in ("none", "query", "kv")),
    *(f"scheduler {scheduler}" for scheduler in ("gto", "lrr", "oldest")),
    *(f"issue width {width}" for width in (1, 2, 3)),
    *(f"CUDA cores {kind}" for kind in ("private", "shared fifo", "shared round_robin")),
    "deduplicate on",
    "deduplicate off",
    "line in several cycles",
    "several lines a cycle",
    "REPEAT",
    "REPEAT with a moving operand",
    "prologue",
    "several tile kinds",
)
REQUIRED = (*OPCODES, *PATHS, *FEATURES)


def features_of(trace: Trace, hardware: HardwareSpec) -> Counter[str]:
    """Return which options a case exercises, each counted once."""
    schedule, tma, cores = trace.schedule, hardware.tma, hardware.cuda_core
    named = {
        f"schedule {schedule.mode}",
        f"cluster {schedule.cluster}",
        f"roles {trace.roles}",
        f"scheduler {hardware.sm.scheduler}",
        f"issue width {hardware.sm.issue_width}",
        "CUDA cores private" if cores.sharing == "private" else f"CUDA cores shared {cores.order}",
        "deduplicate on" if tma.deduplicate else "deduplicate off",
        *(f"map of rank {len(tensor.dims)}" for tensor in trace.maps),
        *(f"origin {tensor.origin}" for tensor in trace.maps),
    }
    if tma.issue_bytes_per_cycle != hardware.l2.line_bytes:
        slow = tma.issue_bytes_per_cycle < hardware.l2.line_bytes
        named.add("line in several cycles" if slow else "several lines a cycle")
    repeats = [item for program in trace.programs for item in program.body if isinstance(item, Repeat)]
    if repeats:
        named.add("REPEAT")
    if any(_moves(instruction) for repeat in repeats if repeat.count > 1 for instruction in repeat.body):
        named.add("REPEAT with a moving operand")
    if any(trace.prologue):
        named.add("prologue")
    if len({tile.kind for tiles in schedule.tiles for tile in tiles}) > 1:
        named.add("several tile kinds")
    return Counter(named)


def _moves(instruction: Instruction) -> bool:
    """Return whether an operand of the instruction has a step."""
    operands = [getattr(instruction, name, None) for name in ("slot", "y", "address", "group", "a", "b")]
    return any(getattr(getattr(operand, "index", operand), "step", 0) for operand in operands)


def missing(coverage: Mapping[str, int]) -> list[str]:
    """Return what has not been met."""
    return [name for name in REQUIRED if not coverage.get(name)]


def table(coverage: Mapping[str, int]) -> Iterator[str]:
    """Yield the lines of a table of everything required, and how often it was met."""
    for title, names in (("opcode", OPCODES), ("path", PATHS), ("option (cases)", FEATURES)):
        yield f"{title:58} {'count':>12}"
        yield from (f"  {name:56} {coverage.get(name, 0):12}" for name in names)
