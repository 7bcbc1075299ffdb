"""What a `.satrace` holds, as frozen values: declarations, programs, tile kinds and the schedule that binds tiles.

`docs/formats.md` has the text form; `simfa.trace_text` reads and writes it.
"""

from typing import Annotated, Literal, NamedTuple

import msgspec
from msgspec import Meta

from simfa.isa import Instruction, Repeat
from simfa.kernel import KernelSpec
from simfa.workload import AttentionShape

MAX_CLUSTER = 2
Count = Annotated[int, Meta(ge=1)]
Size = Annotated[int, Meta(ge=0)]


class TensorMap(msgspec.Struct, frozen=True, kw_only=True):
    """DEF_TMAP: a tensor of rank 1-5 in global memory and the box one TMA instruction moves.

    Dimension 0 is contiguous. `strides` are the byte strides of dimensions 1 and up, so one fewer than `dims`. `origin`
    says which coordinates a tile adds: `query` (0, m_block * tile_m, head, batch), `kv` (0, 0, head // group_size,
    batch), `none` adds nothing. A box may end outside the tensor: those rows are counted for completion, not fetched.
    """

    name: str
    base: Size
    dims: tuple[Count, ...]
    strides: tuple[Count, ...]
    box: tuple[Count, ...]
    element_bytes: Literal[1, 2, 4, 8]
    origin: Literal["query", "kv", "none"]

    @property
    def box_bytes(self) -> int:
        """Bytes of one whole box: what its arrival adds to the mbarrier."""
        total: int = self.element_bytes
        for extent in self.box:
            total *= extent
        return total


class Ring(msgspec.Struct, frozen=True, kw_only=True):
    """A ring of shared-memory stages with a full and an empty barrier each.

    A fill is complete when `bytes` have arrived (0: the ring is only acquired and released, nothing is loaded). A stage
    is free again after `releases` RELEASE_STAGE arrivals. `empty` is what the empty barrier is made of: its latency.
    """

    name: str
    stages: Count
    bytes: Size
    releases: Count
    empty: Literal["mbarrier", "named"] = "mbarrier"


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """Instructions of one role for one kind of tile."""

    name: str
    role: Size
    body: tuple[Instruction | Repeat, ...]


class TileKind(msgspec.Struct, frozen=True, kw_only=True):
    """The programs of all roles for one kind of tile, in role order."""

    name: str
    programs: tuple[str, ...]


class TileBinding(NamedTuple):
    """One output tile: index of its kind in `Trace.tile_kinds`, and its coordinates."""

    kind: int
    m_block: int
    head: int
    batch: int


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """Which CTA runs which tiles.

    `static`: `tiles[c]` are CTA c's tiles in order. `dynamic`: `tiles[0]` is one queue; CTA c starts with entry c and
    fetches the next entry whenever it begins a tile. `ctas` is the grid; consecutive CTAs form clusters of `cluster`.
    """

    mode: Literal["static", "dynamic"]
    ctas: Count
    cluster: Annotated[int, Meta(ge=1, le=MAX_CLUSTER)]
    tiles: tuple[tuple[TileBinding, ...], ...]


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """Where a trace comes from, for reports: log source, rules, and what had to be reconstructed."""

    log_source: Literal["captured", "synthetic", "none"]
    log_sha256: str = ""
    seed: int | None = None
    event_level: int = 0
    rules: Literal["source", "paper", "none"] = "none"
    reconstructed: bool = False


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """A whole kernel launch for the simulator.

    `prologue` names, role by role, a program each CTA runs once before its first tile (None: nothing). Programs are
    stored once and shared by all tiles of the same kind. A trace that is not of an attention kernel (a microbenchmark)
    has no shape and no kernel; all its maps have origin `none`.
    """

    shape: AttentionShape | None
    kernel: KernelSpec | None
    origin: Origin
    maps: tuple[TensorMap, ...]
    rings: tuple[Ring, ...]
    programs: tuple[Program, ...]
    tile_kinds: tuple[TileKind, ...]
    prologue: tuple[str | None, ...]
    schedule: Schedule

    @property
    def roles(self) -> int:
        """Warpgroups per CTA: the producer and the consumers."""
        return len(self.prologue)
