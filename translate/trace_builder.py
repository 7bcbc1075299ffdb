"""From events of tiles to a verified trace: the part that logs and predictions without a log share."""

from collections.abc import Callable, Iterable
from typing import Literal

import msgspec

from simfa.errors import LogError, ShapeError
from simfa.kernel import KernelSpec, ceil_div
from simfa.schedule import Tile, static_tiles, tile_count, tile_order
from simfa.trace import Origin, Schedule, TileBinding, Trace
from simfa.translate.builder import WGMMA_DEPTH
from simfa.translate.events import Codes, Records, codes_of
from simfa.translate.programs import KindStreams, ProgramStore, Rules
from simfa.translate.tensor_maps import paper_layout, paper_rings, source_layout, source_rings, tensor_maps
from simfa.verify import verify
from simfa.workload import AttentionShape

MOST_KEY_BLOCKS = 1 << 16  # a record holds the number of a block in 16 bits
MOST_TILES = 1 << 22
MOST_CTAS = 1 << 16

StreamsOf = Callable[[Tile], KindStreams]
ScheduleMode = Literal["replay", "model"]


def translate_streams(
    shape: AttentionShape,
    kernel: KernelSpec,
    origin: Origin,
    tiles: Iterable[Iterable[Tile]],
    streams_of: StreamsOf,
    *,
    ctas: int,
    mode: Literal["static", "dynamic"],
    prologue: tuple[Codes, ...] | None = None,
) -> Trace:
    """Return the verified trace of a launch.

    `tiles` are each CTA's tiles in order (`static`), or one queue (`dynamic`); `streams_of` gives a tile's events, of
    the level that `origin.event_level` says, and is asked once a tile. Without `prologue` what comes before the first
    tile follows from the kernel. `origin.rules` chooses the rules; `origin.reconstructed` is set when events of a log
    were added.

    Raises `ShapeError` for a shape or kernel that cannot be lowered, `LogError` for events that have no place in the
    kernel and `TraceError` when the outcome would hang.
    """
    _check_shape(shape, kernel, ctas)
    if not kernel.overlap:
        raise LogError(
            "the kernel runs without overlap inside a warpgroup, which no FA3 forward kernel in fp16 or bf16 does; "
            "capture one of those"
        )
    rules: Rules = "paper" if origin.rules == "paper" else "source"
    store = ProgramStore(shape, kernel, origin.event_level, rules)
    start = store.prologue(prologue)
    lists = tuple(tuple(TileBinding(store.kind(streams_of(tile)), *tile) for tile in run) for run in tiles)
    source = rules == "source"
    trace = Trace(
        shape=shape,
        kernel=kernel,
        origin=msgspec.structs.replace(origin, reconstructed=origin.reconstructed or store.reconstructed),
        maps=tensor_maps(shape, kernel, source_layout(shape, kernel) if source else paper_layout(shape)),
        rings=source_rings(shape, kernel) if source else paper_rings(shape, kernel),
        prologue=start,
        programs=tuple(store.programs),
        tile_kinds=tuple(store.tile_kinds),
        schedule=Schedule(mode=mode, ctas=ctas, cluster=kernel.cluster if source else 1, tiles=lists),
    )
    verify(trace)
    return trace


def _check_shape(shape: AttentionShape, kernel: KernelSpec, ctas: int) -> None:
    """Raise `ShapeError` for what has no WGMMAs of its own, and for launches that are too large to list."""
    if shape.dtype not in ("fp16", "bf16"):
        raise ShapeError(f"dtype {shape.dtype} is not supported yet; expected fp16 or bf16")
    for name, columns in (("head_dim", shape.head_dim), ("kernel.tile_n", kernel.tile_n)):
        if columns % WGMMA_DEPTH:
            raise ShapeError(f"{name} {columns} is not a multiple of {WGMMA_DEPTH}, the depth of a WGMMA")
    for what, found, most in (
        ("K/V blocks of a head", ceil_div(shape.seqlen_kv, kernel.tile_n), MOST_KEY_BLOCKS),
        ("output tiles", tile_count(shape, kernel), MOST_TILES),
        ("CTAs", ctas, MOST_CTAS),
    ):
        if found > most:
            raise ShapeError(f"{shape.describe()}: {found} {what}; expected at most {most}; use a smaller shape")


def model_tiles(shape: AttentionShape, kernel: KernelSpec, ctas: int) -> Iterable[Iterable[Tile]]:
    """Return the tiles as the kernel's scheduler hands them out: each CTA's list, or the one queue."""
    if kernel.schedule == "static":
        return (static_tiles(shape, kernel, ctas, cta) for cta in range(ctas))
    return (tile_order(shape, kernel),)


def model_mode(kernel: KernelSpec) -> Literal["static", "dynamic"]:
    """Return the schedule's mode under `--schedule model`."""
    return "static" if kernel.schedule == "static" else "dynamic"


def trace_from_kernel(
    shape: AttentionShape,
    kernel: KernelSpec,
    grid_ctas: int,
    events_of: Callable[[int, int], Records],
    *,
    level: int = 2,
    rules: Rules = "source",
    begin_of: Callable[[int], Records] | None = None,
) -> Trace:
    """Return the verified trace of a launch without a log.

    `events_of(role, key_blocks)` gives the records of one role for a tile that visits `key_blocks` blocks, and
    `begin_of(role)` those before its first tile; timestamps, stages and TILE coordinates in them are ignored.
    """
    kinds: dict[tuple[int, int], KindStreams] = {}

    def streams_of(tile: Tile) -> KindStreams:
        blocks, masked = kernel.key_blocks(shape, tile.m_block), kernel.masked_blocks(shape, tile.m_block)
        if (blocks, masked) not in kinds:
            roles = range(1 + kernel.consumers)
            kinds[blocks, masked] = KindStreams(tuple(codes_of(events_of(role, blocks)) for role in roles), masked)
        return kinds[blocks, masked]

    begin = None
    if begin_of is not None and level >= 2:
        begin = tuple(codes_of(begin_of(role)) for role in range(1 + kernel.consumers))
    return translate_streams(
        shape,
        kernel,
        Origin(log_source="none", event_level=level, rules=rules),
        model_tiles(shape, kernel, grid_ctas),
        streams_of,
        ctas=grid_ctas,
        mode=model_mode(kernel),
        prologue=begin,
    )
