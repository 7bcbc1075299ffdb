"""Leaving out the middle of a loop changes nothing in the program that comes of it."""

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from simfa.events import Event
from simfa.instrument.event_order import tile_events
from simfa.kernel import kernel_for
from simfa.translate import lower, lower_paper, programs
from simfa.translate.compress import compress, expand
from simfa.translate.events import Codes, codes_of
from simfa.translate.fold import compress_folded, fold
from simfa.translate.programs import KindStreams, ProgramStore
from simfa.workload import AttentionShape


def shape_of(head_dim: int) -> AttentionShape:
    return AttentionShape(batch=1, seqlen_q=9000, seqlen_kv=9000, heads_q=1, heads_kv=1, head_dim=head_dim, causal=True)


@pytest.mark.parametrize("rules", ["source", "paper"])
@pytest.mark.parametrize("level", [1, 2])
@pytest.mark.parametrize("head_dim", [64, 128, 256])
def test_programs_are_those_of_the_whole_stream(
    head_dim: int, level: int, rules: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    shape = shape_of(head_dim)
    kernel = kernel_for(shape)
    folded, whole = (ProgramStore(shape, kernel, level, rules) for _ in range(2))
    for blocks in (1, 2, 5, 8, 9, 13, 30):
        for masked in {1, 2, min(4, blocks)}:
            codes = tuple(codes_of(tile_events(kernel, role, blocks, level)) for role in range(kernel.consumers + 1))
            folded.kind(KindStreams(codes, masked))
            with monkeypatch.context() as patch:
                patch.setattr(programs, "fold", lambda codes, special: None)
                whole.kind(KindStreams(codes, masked))
    assert folded.programs == whole.programs
    assert folded.tile_kinds == whole.tile_kinds


@pytest.mark.parametrize("rules", ["source", "paper"])
@pytest.mark.parametrize("head_dim", [64, 128, 256])
def test_the_loops_of_fa3_are_bridged(head_dim: int, rules: str) -> None:
    shape = shape_of(head_dim)
    kernel = kernel_for(shape)
    for role in range(kernel.consumers + 1):
        codes = codes_of(tile_events(kernel, role, 60, 2))
        if rules == "paper":
            codes = lower_paper.of_table_4(codes)
        folded = fold(codes, special=2)
        assert folded is not None
        if rules == "paper":
            body, hole = lower_paper.lower_tile(codes, shape, kernel, role, folded)
        else:
            body, hole = lower.lower_tile(codes, shape, kernel, role, 2, folded)
        assert hole is not None
        assert hole.copies > 40
        assert compress_folded(body, hole) is not None


def test_long_streams_are_folded() -> None:
    kernel = kernel_for(shape_of(128))
    lengths = {}
    for blocks in (50, 500):
        codes = codes_of(tile_events(kernel, 1, blocks, 2))
        folded = fold(codes, special=2)
        assert folded is not None
        assert len(folded.codes) + folded.period * folded.skipped == len(codes)
        lengths[blocks] = len(folded.codes)
    assert lengths[50] == lengths[500]
    assert fold(codes_of(tile_events(kernel, 1, 5, 2)), special=2) is None
    assert fold(np.zeros(0, np.uint32), special=1) is None


@settings(max_examples=30, deadline=None)
@given(
    blocks=st.integers(8, 40),
    masked=st.integers(1, 4),
    role=st.integers(0, 2),
    chance=st.randoms(use_true_random=False),
)
def test_a_stream_with_an_odd_event_runs_the_same(blocks: int, masked: int, role: int, chance: random.Random) -> None:
    """An event doubled, dropped or exchanged somewhere: lowering sees it wherever it is."""
    shape = shape_of(128)
    kernel = kernel_for(shape)
    codes = _disturbed(codes_of(tile_events(kernel, role, blocks, 2)), chance)
    flat = lower.lower_tile(codes, shape, kernel, role, masked).body
    folded = fold(codes, masked)
    event(f"folded: {folded is not None}")
    if folded is None:
        return
    body, hole = lower.lower_tile(codes, shape, kernel, role, masked, folded)
    assert hole is not None
    program = compress_folded(body, hole)
    event(f"bridged: {program is not None}")
    if program is not None:
        assert expand(program) == flat
        assert len(program) <= len(compress(flat)) + 8


def _disturbed(codes: Codes, chance: random.Random) -> Codes:
    place = chance.randrange(len(codes))
    match chance.randrange(4):
        case 0:
            return codes
        case 1:
            return np.insert(codes, place, codes[place])
        case 2:
            return np.delete(codes, place)
        case _:
            changed = codes.copy()
            quiet = [Event.WAIT_WG_0, Event.WAIT_WG_1, Event.WAIT_K_START, Event.WAIT_V_START, Event.RELEASE_K]
            changed[place] = chance.choice(quiet) | changed[place] >> 16 << 16
            return changed
