"""Whole logs to traces: what is kept, what is refused, what a partial log still gives."""

from typing import Any

import msgspec
import numpy as np
import pytest

from simfa.errors import LogError, ShapeError
from simfa.events import Event
from simfa.hardware import load_preset
from simfa.instrument.event_order import begin_events, tile_events
from simfa.instrument.synthetic import synthesize
from simfa.kernel import KERNEL_VERSIONS, kernel_for
from simfa.pipeline import kernel_trace
from simfa.salog import LogMetadata, LogSource, RowHeaders
from simfa.trace import Trace
from simfa.trace_text import format_trace
from simfa.translate.events import Records
from simfa.translate.log_translation import translate_log
from simfa.translate.trace_builder import trace_from_kernel
from simfa.workload import AttentionShape, model_shape

PRESET = load_preset("h100-sxm", (), ["gpu.sm_count=4"])


def shape_of(head_dim: int = 128, causal: bool = False) -> AttentionShape:
    return AttentionShape(batch=1, seqlen_q=768, seqlen_kv=768, heads_q=2, heads_kv=1, head_dim=head_dim, causal=causal)


def log_of(shape: AttentionShape, version: str = "latest", **options: Any) -> LogSource:
    return synthesize(shape, kernel_for(shape, version), PRESET, **options)


class Edited:
    """A log with changed records: `edit(header, records)` returns what the row holds instead."""

    def __init__(self, log: LogSource, edit: Any, metadata: LogMetadata | None = None) -> None:
        self.metadata = metadata or log.metadata
        self.ctas, self.row_bytes = log.ctas, log.row_bytes
        self._log, self._edit = log, edit
        self.rows: RowHeaders = log.rows

    def records(self, row: int) -> Records:
        records: Records = self._edit(self.rows[row], self._log.records(row).copy())
        return records


def bound(trace: Trace) -> list[tuple[object, ...]]:
    """All tiles with the name of their kind, in order of their coordinates."""
    names = [kind.name for kind in trace.tile_kinds]
    return sorted((*tile[1:], names[tile.kind]) for tiles in trace.schedule.tiles for tile in tiles)


def without_origin(trace: Trace) -> Trace:
    return msgspec.structs.replace(trace, origin=msgspec.structs.replace(trace.origin, log_source="none", seed=None))


@pytest.mark.parametrize(
    ("version", "one_warp"), [*((version, True) for version in KERNEL_VERSIONS), ("latest", False)]
)
@pytest.mark.parametrize("level", [1, 2])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("head_dim", [64, 128, 256])
def test_a_log_says_what_the_kernel_does(head_dim: int, causal: bool, version: str, level: int, one_warp: bool) -> None:
    shape = shape_of(head_dim, causal)
    kernel = kernel_for(shape, version)
    log = log_of(shape, version, level=level, one_warp=one_warp)
    rules: Any
    for rules in ("source", "paper"):
        translation = translate_log(log, rules=rules)
        expected = trace_from_kernel(
            shape,
            kernel,
            log.ctas,
            lambda role, blocks: tile_events(kernel, role, blocks, level),
            level=level,
            rules=rules,
            begin_of=lambda role: begin_events(kernel, role, level),
        )
        assert without_origin(translation.trace) == expected
        assert translation.trace.origin.reconstructed == (level == 1 and rules == "source")
        assert translation.outvoted_warps == translation.cut_tiles == 0


def test_timestamps_and_auxiliary_fields_change_nothing() -> None:
    log = log_of(shape_of())
    random = np.random.default_rng(1)

    def scramble(header: Any, records: Records) -> Records:
        records["timestamp"] = random.integers(0, 1 << 63, len(records), dtype=np.uint64)
        other = records["event"] != Event.TILE
        records["aux"][other] = random.integers(0, 1 << 16, int(other.sum()), dtype=np.uint16)
        return records

    assert translate_log(Edited(log, scramble)).trace == translate_log(log).trace


def test_where_a_tile_ran_changes_a_replay_alone() -> None:
    """The CTAs of a dynamic grid swap their lists: the queue stays, the replay follows the log."""
    log = log_of(shape_of(causal=True), seed=3)
    replayed = translate_log(log, schedule="replay").trace
    assert replayed.schedule.mode == "static"
    assert bound(replayed) == bound(translate_log(log).trace)
    lists = [[tile[1:] for tile in tiles] for tiles in replayed.schedule.tiles]
    for row in range(len(log.rows)):
        if log.rows["role"][row] == 0:
            records = log.records(row)
            logged = records[records["event"] == Event.TILE][["stage", "payload", "aux"]].tolist()
            assert lists[log.rows["block"][row]] == logged


def test_static_grids_replay_as_modelled() -> None:
    log = log_of(shape_of())
    assert translate_log(log, schedule="replay").trace == translate_log(log, schedule="model").trace


def test_a_part_of_a_static_grid_gives_the_whole() -> None:
    shape = shape_of()
    whole = translate_log(log_of(shape)).trace
    part = translate_log(log_of(shape, ctas=(2, 3)))
    assert part.trace.programs == whole.programs
    assert part.trace.schedule == whole.schedule
    assert part.borrowed_tiles == 6
    with pytest.raises(
        LogError, match="only 2 of 4 CTAs are in the log, so it cannot be replayed; use --schedule model"
    ):
        translate_log(log_of(shape, ctas=(2, 3)), schedule="replay")


def test_a_kind_of_tile_that_was_not_logged_is_named() -> None:
    with pytest.raises(LogError, match=r"query block \d+ visits \d+ K/V blocks, and no logged tile visits so many"):
        translate_log(log_of(shape_of(causal=True), ctas=(0,)))


def test_a_dynamic_log_of_level_1_cannot_be_replayed() -> None:
    log = log_of(shape_of(causal=True), level=1)
    translate_log(log)
    with pytest.raises(LogError, match="no TILE events and its schedule is dynamic"):
        translate_log(log, schedule="replay")


def edit_first(event: Event, role: int, /, **fields: int) -> Any:
    """An edit that changes the second record of `event` of the first row of `role`."""

    def edit(header: Any, records: Records) -> Records:
        if header["role"] == role and header["block"] == 0:
            place = np.flatnonzero(records["event"] == event)[1]
            for name, value in fields.items():
                records[name][place] = value
        return records

    return edit


def drop_from_last(event: Event, role: int, keep: int = 0) -> Any:
    """An edit that cuts the rows of `role` before the last record of `event`, plus `keep` records."""

    def edit(header: Any, records: Records) -> Records:
        if header["role"] == role and header["block"] == 0:
            return records[: int(np.flatnonzero(records["event"] == event)[-1]) + keep]
        return records

    return edit


@pytest.mark.parametrize(
    ("level", "edit", "message"),
    [
        (
            2,
            edit_first(Event.GEMM_QK_ISSUE, 1, stage=0),
            r"block 0 warp 7 record \d+: GEMM_QK_ISSUE with stage 0; its ring",
        ),
        (
            1,
            edit_first(Event.TMA_V_ISSUE, 0, stage=0),
            r"block 0 warp 0 record \d+: TMA_V_ISSUE with stage 0; its ring is",
        ),
        (
            2,
            edit_first(Event.TILE, 2, payload=0, stage=0),
            "block 0: role 2 logged other TILE coordinates than the prod",
        ),
        (
            2,
            edit_first(Event.TMA_K_ISSUE, 0, event=int(Event.ACQUIRE_K_START)),
            r"TMA_K_ISSUE with stage \d; its ring|GEM",
        ),
        (1, drop_from_last(Event.GEMM_PV_ISSUE, 1), "a tile begins that does not end; records are missing"),
        (1, drop_from_last(Event.GEMM_PV_ISSUE, 1, keep=1), "a tile begins that does not end; records are missing"),
        (
            2,
            drop_from_last(Event.TILE, 1),
            r"its roles logged different numbers of tiles \(role 0: 3, role 1: 2, role 2: 3",
        ),
        (1, edit_first(Event.WAIT_WG_0, 1, event=int(Event.WAIT_WG_1)), "RELEASE_STAGE|group"),
    ],
)
def test_a_spoiled_log_is_refused(level: int, edit: Any, message: str) -> None:
    from simfa.errors import SimfaError

    with pytest.raises(SimfaError, match=message):
        translate_log(Edited(log_of(shape_of(), level=level), edit))


def test_a_missing_warpgroup_is_named() -> None:
    log = log_of(shape_of())
    kept = log.rows["role"] != 1
    edited = Edited(log, lambda header, records: records)
    edited.rows = log.rows[kept]
    numbers = np.flatnonzero(kept)
    edited.records = lambda row: log.records(int(numbers[row]))  # type: ignore[method-assign]
    with pytest.raises(LogError, match="block 0: no warp of role 1 logged; log at least one warp of each warpgroup"):
        translate_log(edited)


def test_coordinates_of_a_static_grid_must_be_its_own() -> None:
    def swap(header: Any, records: Records) -> Records:
        if header["block"] == 0:
            (places,) = np.nonzero(records["event"] == Event.TILE)
            first, second = records[places[0]].copy(), records[places[1]].copy()
            for name in ("stage", "payload", "aux"):
                records[name][places[0]], records[name][places[1]] = second[name], first[name]
        return records

    with pytest.raises(LogError, match="block 0: TILE coordinates are not those of the static schedule"):
        translate_log(Edited(log_of(shape_of()), swap))


def test_a_tile_must_visit_the_blocks_of_its_query_block() -> None:
    """All roles say that they ran query block 0 where they ran the longest one."""

    def rename(header: Any, records: Records) -> Records:
        if header["block"] == 0:
            records["stage"][np.flatnonzero(records["event"] == Event.TILE)[0]] = 0
        return records

    with pytest.raises(LogError, match=r"block 0: tile 0 is query block 0 with \d K/V blocks; this kernel visits 1"):
        translate_log(Edited(log_of(shape_of(causal=True)), rename))


def test_warps_that_disagree_are_outvoted_when_allowed() -> None:
    def disturb(header: Any, records: Records) -> Records:
        if header["warp"] == 5:
            records["payload"][3] ^= 1
        return records

    log = Edited(log_of(shape_of(), one_warp=False), disturb)
    with pytest.raises(LogError, match="block 0: warps of role 1 disagree: record 3 of warp 5 is"):
        translate_log(log)
    translation = translate_log(log, allow_disagreement=True)
    assert translation.outvoted_warps == 4
    assert translation.trace == translate_log(log_of(shape_of(), one_warp=False)).trace


@pytest.mark.parametrize("level", [1, 2])
def test_a_truncated_log_gives_its_whole_tiles(level: int) -> None:
    log = log_of(shape_of(), level=level)
    cut = Edited(log, drop_from_last(Event.GEMM_QK_ISSUE, 1))
    with pytest.raises(LogError):
        translate_log(cut)
    translation = translate_log(cut, schedule="replay", truncated=True)
    assert translation.cut_tiles == 1
    lengths = [len(tiles) for tiles in translation.trace.schedule.tiles]
    assert lengths == [2, 2, 3, 3]
    assert translate_log(cut, truncated=True).trace.schedule == translate_log(log).trace.schedule


def test_a_cta_that_logged_nothing_is_not_taken_for_an_idle_one() -> None:
    log = log_of(shape_of())
    silent = Edited(log, lambda header, records: records[:0] if header["block"] == 3 else records)
    with pytest.raises(LogError, match="block 3: 0 tiles logged; the static schedule of 4 CTAs gives it 3"):
        translate_log(silent)
    absent = Edited(log, lambda header, records: records)
    absent.rows = log.rows[log.rows["block"] < 2]
    with pytest.raises(LogError, match="6 of 12 tiles are in the log, so it cannot be replayed; use --schedule model"):
        translate_log(absent, schedule="replay")
    assert translate_log(absent).borrowed_tiles == 6


def test_a_cta_whose_last_rows_are_cut_off_has_no_whole_tile() -> None:
    log = log_of(shape_of())
    cut = Edited(log, lambda header, records: records)
    cut.rows = log.rows[:-1]
    with pytest.raises(LogError, match="block 3: no warp of role 2 logged"):
        translate_log(cut)
    translation = translate_log(cut, schedule="replay", truncated=True)
    assert translation.cut_tiles == 3
    assert [len(tiles) for tiles in translation.trace.schedule.tiles] == [3, 3, 0, 0]


def test_ctas_without_tiles_are_fine() -> None:
    shape = AttentionShape(batch=1, seqlen_q=256, seqlen_kv=256, heads_q=1, heads_kv=1, head_dim=128)
    trace = translate_log(log_of(shape)).trace
    assert [len(tiles) for tiles in trace.schedule.tiles] == [1, 1, 0, 0]


@pytest.mark.parametrize(
    ("changes", "tile_n", "message"),
    [
        ({"dtype": "fp8"}, 176, "dtype fp8 is not supported yet"),
        ({"head_dim": 24}, 176, "head_dim 24 is not a multiple of 16"),
        ({}, 100, "kernel.tile_n 100 is not a multiple of 16"),
        ({"seqlen_kv": 176 * 65536 + 1}, 176, "65537 K/V blocks of a head; expected at most 65536"),
        ({"batch": 10**20}, 176, "output tiles; expected at most 4194304"),
    ],
)
def test_shapes_that_would_run_as_others_are_refused(changes: dict[str, Any], tile_n: int, message: str) -> None:
    shape = msgspec.structs.replace(shape_of(), **changes)
    kernel = msgspec.structs.replace(kernel_for(shape_of()), tile_n=tile_n)
    with pytest.raises(ShapeError, match=message):
        kernel_trace(shape, kernel, 132)


def test_a_log_of_another_dtype_is_not_taken_for_fp16() -> None:
    log = log_of(shape_of())
    eight_bits = msgspec.structs.replace(log.metadata, shape=msgspec.structs.replace(log.metadata.shape, dtype="fp8"))
    with pytest.raises(ShapeError, match="dtype fp8 is not supported yet"):
        translate_log(Edited(log, lambda header, records: records, eight_bits))


def test_llama_405b_at_6144_tokens_is_small() -> None:
    shape = model_shape("llama3.1-405b", 6144)
    kernel = kernel_for(shape)
    trace = trace_from_kernel(shape, kernel, 132, lambda role, blocks: tile_events(kernel, role, blocks, 2))
    text = format_trace(trace)
    assert len(trace.tile_kinds) == 1
    assert sum(len(tiles) for tiles in trace.schedule.tiles) == 48 * 128
    assert max(len(program.body) for program in trace.programs) < 40
    assert len(text.encode()) < 1_000_000
