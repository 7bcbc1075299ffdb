"""Where the probes go in FA3's Hopper forward kernel: one rule for each kind of call-site, naming API identifiers only.

Counts are those of FA3 v2.8.0 to v2.8.3 and of later trees with the same main loop. A rule that does not hit exactly as
often as it says stops the patch: an unknown tree is refused, never half patched.
"""

from typing import Literal, NamedTuple

from simfa.events import LEVEL_1_EVENTS, Event

MAINLOOP = "mainloop_fwd_sm90_tma_gmma_ws.hpp"
KERNEL = "flash_fwd_kernel_sm90.h"
EPILOGUE = "epilogue_fwd.hpp"
MARKER = "simfa_probe"


class Region(NamedTuple):
    """A function of a file: from the one match of `start` to the one match of `end`; None is the file's edge."""

    start: str | None
    end: str | None


WHOLE = Region(None, None)
LOAD = Region(r"\bload\(Params const& params\b", r"\bload_tail\(MainloopPipelineK\b")
BARRIER_SYNC = Region(r"\bwarp_scheduler_barrier_sync\(\)\s*\{", r"\bwarp_scheduler_barrier_arrive\(\)\s*\{")
BARRIER_ARRIVE = Region(r"\bwarp_scheduler_barrier_arrive\(\)\s*\{", r"\bmma_init\(\)\s*\{")
MMA_INIT = Region(r"\bmma_init\(\)\s*\{", r"\bmma\(Params const& params\b")
MMA = Region(r"\bmma\(Params const& params\b", r"\bmma_pv\(Params const& params\b")
STORE = Region(r"\bstore\(Params const& params\b", r"\bstore_tail\(\)")


class Rule(NamedTuple):
    r"""One insertion: where, how often it must match, and what goes in.

    `text` may use the named groups of `pattern` as `\g<name>`. A `statement` is refused where the match does not begin
    one: under an `if` without braces the probe would take the statement's place.
    """

    name: str
    level: int
    file: str
    region: Region
    where: Literal["before", "after"]
    pattern: str
    hits: int
    text: str
    statement: bool


def _code(
    name: str, level: int, file: str, where: Literal["before", "after"], pattern: str, text: str, hits: int = 1
) -> Rule:
    """Return a rule that inserts plain text anywhere in a file."""
    return Rule(name, level, file, WHOLE, where, pattern, hits, text, statement=False)


def _stamp(
    event: Event,
    where: Literal["before", "after"],
    region: Region,
    pattern: str,
    hits: int = 1,
    stage: str = "0",
    payload: str = "0",
    file: str = MAINLOOP,
    probe: str = MARKER,
) -> Rule:
    """Return a rule that records `event` before or after a call; its level is the event's."""
    level = 1 if event in LEVEL_1_EVENTS else 2
    call = f"{probe}.record(simfa::Event::{event.name}, {stage}, {payload});"
    text = f"{call} " if where == "before" else f" {call}"
    return Rule(event.name, level, file, region, where, pattern, hits, text, statement=True)


def _release(end: Event, release: Event, pattern: str, hits: int, payload: str) -> Rule:
    """Return a rule that records the end of a WGMMA wait and the release that follows it, both at one moment."""
    call = f"{MARKER}.record_both(simfa::Event::{end.name}, simfa::Event::{release.name}, {_STATE}, {payload});"
    return Rule(f"{end.name}, {release.name}", 2, MAINLOOP, MMA, "after", pattern, hits, f" {call}", statement=True)


# Stage: the pipeline state that the call names. Block: V trails K by one where the next QK product is issued first.
_STATE = r"\g<state>.index()"
_WRITE = "smem_pipe_write.index()"
_READ = "smem_pipe_read.index()"
_K_BLOCK = "n_block"
_V_BLOCK = "n_block + (IntraWGOverlap ? 1 : 0)"

_WAIT_Q = r"\bbarrier_Q\.wait\([^;]*;"
_WAIT_K = r"\bconsumer_wait\(pipeline_k,\s*(?P<state>\w+)\);"
_WAIT_V = r"\bconsumer_wait\(pipeline_v,\s*(?P<state>\w+)\);"
_WAIT_1_K = r"\bwarpgroup_wait<1>\(\);(?=\s*pipeline_k\.consumer_release\((?P<state>\w+)\);)"
_WAIT_0_K = r"\bwarpgroup_wait<0>\(\);(?=\s*pipeline_k\.consumer_release\((?P<state>\w+)\);)"
_WAIT_0_V = r"\bwarpgroup_wait<0>\(\);(?=\s*pipeline_v\.consumer_release\((?P<state>\w+)\);)"
_SOFTMAX = r"\bsoftmax\.template online_softmax<[^;]*;"
_GEMM_QK = r"\bflash::gemm<[^;]*?>\(\s*tiled_mma_qk\b[^;]*?\b(?P<state>smem_pipe_\w+)\.index\(\)[^;]*;"
_GEMM_PV = r"\bflash::gemm<[^;]*?>\(\s*tiled_mma_pv(?:_rs)?\b[^;]*?\b(?P<state>smem_pipe_\w+)\.index\(\)[^;]*;"
_QUERY_EMPTY_SYNC = r"\bcutlass::arch::NamedBarrier::sync\([^;]*FwdNamedBarriers::QueryEmpty\b[^;]*\);"
_QUERY_EMPTY_ARRIVE = r"\bcutlass::arch::NamedBarrier::arrive\([^;]*FwdNamedBarriers::QueryEmpty\b[^;]*\);"
_TURN_SYNC = r"\bcutlass::arch::NamedBarrier::sync\([^,;]*,(?P<id>[^;]*)\);"
_TURN_ARRIVE = r"\bcutlass::arch::NamedBarrier::arrive\([^,;]*,(?P<id>[^;]*FwdNamedBarriers::WarpScheduler\w+[^;]*)\);"
# Hardware number of a named barrier: CUTLASS keeps the first ones for itself.
_BARRIER = r"static_cast<uint32_t>(cutlass::arch::ReservedNamedBarriers::FirstUserBarrier) + (\g<id>)"
_PRAGMA_ONCE = r"#pragma once\b[^\n]*\n"
_INCLUDE = '#include "simfa_probe.cuh"\n'
_KERNEL_PROBE = f"mainloop.{MARKER}"

RULES = (
    # The probe is a data member of the main loop, so that its two registers live across tiles.
    _code("include in the main loop", 1, MAINLOOP, "after", _PRAGMA_ONCE, _INCLUDE),
    _code(
        "probe member",
        1,
        MAINLOOP,
        "after",
        r"\bstruct\s+CollectiveMainloopFwdSm90\s*\{",
        f"\n    simfa::Probe {MARKER};",
    ),
    # Producer.
    _stamp(Event.TMA_Q_ISSUE, "before", LOAD, r"\bcopy\(params\.tma_load_Q\.with\(", payload="m_block"),
    _stamp(Event.TMA_K_ISSUE, "before", LOAD, r"\bcopy\(params\.tma_load_K\.with\(", stage=_WRITE, payload=_K_BLOCK),
    _stamp(Event.TMA_V_ISSUE, "before", LOAD, r"\bcopy\(params\.tma_load_V\.with\(", stage=_WRITE, payload=_K_BLOCK),
    _stamp(Event.ACQUIRE_K_START, "before", LOAD, r"\bpipeline_k\.producer_acquire\(", stage=_WRITE, payload=_K_BLOCK),
    _stamp(
        Event.ACQUIRE_V_START, "before", LOAD, r"\bpipeline_v_load\.producer_acquire\(", stage=_WRITE, payload=_K_BLOCK
    ),
    _stamp(Event.QUERY_EMPTY_WAIT, "before", LOAD, _QUERY_EMPTY_SYNC, 2),
    _stamp(Event.WAIT_O_START, "before", LOAD, r"(?<![\w.])[\w.]*\bbarrier_O\.wait\("),
    # Consumers.
    _stamp(Event.WAIT_Q_START, "before", MMA, _WAIT_Q, 4),
    _stamp(Event.WAIT_Q_END, "after", MMA, _WAIT_Q, 4),
    _stamp(Event.WAIT_K_START, "before", MMA, _WAIT_K, 3, _STATE, _K_BLOCK),
    _stamp(Event.WAIT_K_END, "after", MMA, _WAIT_K, 3, _STATE, _K_BLOCK),
    _stamp(Event.WAIT_V_START, "before", MMA, _WAIT_V, 6, _STATE, _V_BLOCK),
    _stamp(Event.WAIT_V_END, "after", MMA, _WAIT_V, 6, _STATE, _V_BLOCK),
    _stamp(Event.GEMM_QK_ISSUE, "before", MMA, _GEMM_QK, 3, _STATE, _K_BLOCK),
    _stamp(Event.GEMM_PV_ISSUE, "before", MMA, _GEMM_PV, 4, _STATE, _V_BLOCK),
    _stamp(Event.WAIT_WG_1, "before", MMA, _WAIT_1_K, 2, _STATE, _K_BLOCK),
    _release(Event.WAIT_WG_1_END, Event.RELEASE_K, _WAIT_1_K, 2, _K_BLOCK),
    _stamp(Event.WAIT_WG_0, "before", MMA, _WAIT_0_K, 2, _STATE, _K_BLOCK),
    _release(Event.WAIT_WG_0_END, Event.RELEASE_K, _WAIT_0_K, 2, _K_BLOCK),
    _stamp(Event.WAIT_WG_0, "before", MMA, _WAIT_0_V, 4, _STATE, _V_BLOCK),
    _release(Event.WAIT_WG_0_END, Event.RELEASE_V, _WAIT_0_V, 4, _V_BLOCK),
    _stamp(Event.SOFTMAX_END, "after", MMA, _SOFTMAX, 3, _READ, _K_BLOCK),
    _stamp(Event.QUERY_EMPTY_ARRIVE, "before", MMA_INIT, _QUERY_EMPTY_ARRIVE),
    _stamp(Event.QUERY_EMPTY_ARRIVE, "before", MMA, _QUERY_EMPTY_ARRIVE, 2),
    _stamp(Event.BAR_SYNC_START, "before", BARRIER_SYNC, _TURN_SYNC, payload=_BARRIER),
    _stamp(Event.BAR_SYNC_END, "after", BARRIER_SYNC, _TURN_SYNC, payload=_BARRIER),
    _stamp(Event.BAR_ARRIVE, "before", MMA_INIT, _TURN_ARRIVE, payload=_BARRIER),
    _stamp(Event.BAR_ARRIVE, "before", BARRIER_ARRIVE, _TURN_ARRIVE, payload=_BARRIER),
    # Both roles: the tile's coordinates, which a dynamic schedule does not tell otherwise.
    _code(
        Event.TILE.name,
        2,
        KERNEL,
        "after",
        r"\b(?P<tile>\w+)\s*=\s*work_tile_info\.get_block_coord\(params\.scheduler\);",
        f" {_KERNEL_PROBE}.record(simfa::Event::TILE, get<0>(\\g<tile>), get<1>(\\g<tile>), get<2>(\\g<tile>));",
        2,
    ),
    # The epilogue is another object: the probe is handed to it.
    _stamp(
        Event.EPILOGUE_START,
        "before",
        WHOLE,
        r"\bepilogue\.store\((?=params\.epilogue\b)",
        file=KERNEL,
        probe=_KERNEL_PROBE,
    ),
    _code("epilogue argument", 2, KERNEL, "after", r"\bepilogue\.store\((?=params\.epilogue\b)", f"{_KERNEL_PROBE}, "),
    _code("include in the epilogue", 2, EPILOGUE, "after", _PRAGMA_ONCE, _INCLUDE),
    _code(
        "epilogue parameter",
        2,
        EPILOGUE,
        "after",
        r"\bstore\((?=Params const& params\b)",
        f"simfa::Probe& {MARKER}, ",
    ),
    _stamp(Event.TMA_O_ISSUE, "before", STORE, r"\bcute::copy\(params\.tma_store_O\b", file=EPILOGUE),
    _stamp(Event.TMA_O_WAIT_END, "after", STORE, r"\btma_store_wait<0>\(\);", file=EPILOGUE),
)
