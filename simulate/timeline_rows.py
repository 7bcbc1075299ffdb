"""The engine's recorded rows as a `Timeline`, and the engine's choice of what to record."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from simfa.errors import SimulationError
from simfa.recording import Recording
from simfa.simulate import _core
from simfa.timeline import Timeline
from simfa.trace import Trace

ROLE_NAMES = ("producer", "consumer1", "consumer2", "consumer3")
_STAGE_STATES = ("loading", "full")
_BARRIER_STATES = ("waiting", "arrived")
_COLUMNS = 8  # before those of SMs


class Names(NamedTuple):
    """Names that belong to the engine's numbers of a kernel."""

    roles: int
    rings: list[str]
    accumulators: list[str]


def engine_choice(recording: Recording, trace: Trace, sm_count: int) -> _core.TimelineChoice:
    """Return the engine's form of a recording; raises `SimulationError` for SMs or tiles that the run does not have."""
    unknown = [sm for sm in recording.sms if sm >= sm_count]
    if unknown:
        raise SimulationError(f"SM {unknown[0]} cannot be recorded; the GPU has SMs 0 to {sm_count - 1}")
    idle = [sm for sm in recording.sms if sm >= trace.schedule.ctas]
    if idle and len(idle) == len(recording.sms):
        raise SimulationError(f"SM {idle[0]} runs nothing; the grid has CTAs 0 to {trace.schedule.ctas - 1}")
    choice = _core.TimelineChoice()
    choice.sms = list(recording.sms or range(sm_count))
    choice.period_cycles = recording.period_cycles
    if recording.window is not None:
        choice.begin, choice.end = recording.window
    if recording.ordinals is not None:
        choice.first_tile, choice.last_tile = recording.ordinals
    if recording.tile is not None:
        tiles = [(tile.m_block, tile.head, tile.batch) for part in trace.schedule.tiles for tile in part]
        if recording.tile not in tiles:
            most = tuple(max(column) for column in zip(*tiles, strict=True))
            raise SimulationError(
                f"tile {recording.tile} is not in the trace; expected m_block, head, batch up to {most}"
            )
        choice.m_block, choice.head, choice.batch = recording.tile
    return choice


def timeline_of(core: _core.Engine, names: Names, choice: _core.TimelineChoice, sm_clock_hz: float) -> Timeline:
    """Return what the engine recorded: tracks by SM in the order of the engine's numbers, slices by track and start."""
    rows = core.timeline()
    units, labels = _unit_names(names), _slice_names(names)
    sm, unit = rows[:, 0], rows[:, 1]
    key, track = np.unique(sm * len(units) + unit, return_inverse=True)
    order = np.lexsort((rows[:, 4], rows[:, 3], track))
    counter_names, counter_units, cycles, values = _counters(core.timeline_counters(), list(choice.sms))
    tiles = core.timeline_tiles()
    return Timeline(
        track_name=[f"sm{number // len(units)}/{units[number % len(units)]}" for number in key.tolist()],
        slice_name=labels,
        track=track[order].astype(np.int32),
        name=_names_of(unit, rows[:, 2], names, labels)[order],
        start_cycle=rows[order, 3].copy(),
        end_cycle=rows[order, 4].copy(),
        arg=rows[order, 5].astype(np.int32),
        sm_clock_hz=sm_clock_hz,
        counter_name=counter_names,
        counter_unit=counter_units,
        counter_cycle=cycles,
        counter_value=values,
        tile_sm=tiles[:, 0].astype(np.int32),
        tile_ordinal=tiles[:, 1].astype(np.int32),
        tile_m_block=tiles[:, 2].astype(np.int32),
        tile_head=tiles[:, 3].astype(np.int32),
        tile_batch=tiles[:, 4].astype(np.int32),
        tile_begin_cycle=tiles[:, 5].copy(),
    )


def _unit_names(names: Names) -> list[str]:
    """Return the name of each of an SM's tracks, by the engine's number."""
    tracks = _core.TRACKS
    units = [""] * tracks["end"]
    units[: names.roles] = ROLE_NAMES[: names.roles]
    for name in ("tensor", "tma", "tma_issue"):
        units[tracks[name]] = name
    for ring, name in enumerate(names.rings):
        for stage in range(_core.MAX_STAGES):
            units[tracks["stages"] + ring * _core.MAX_STAGES + stage] = f"{name} stage {stage}"
    for barrier in range(tracks["end"] - tracks["barriers"]):
        units[tracks["barriers"] + barrier] = f"barrier {barrier}"
    return units


def _slice_names(names: Names) -> list[str]:
    """Return the labels: stall reasons, accumulators, rings, and what the tracks of units add."""
    added = ["drain", *_STAGE_STATES, *_BARRIER_STATES]
    return list(dict.fromkeys([*_core.REASONS, *names.accumulators, *names.rings, *added]))


def _names_of(unit: NDArray[np.int64], name: NDArray[np.int64], names: Names, labels: list[str]) -> NDArray[np.int32]:
    """Return the index in `labels` of each slice's name, which the engine numbers anew on each kind of track."""
    tracks = _core.TRACKS
    # By kind of track: its first number, and the labels of the names -1, 0, 1, ... there.
    kinds = [
        (0, ["", *_core.REASONS]),
        (tracks["tensor"], ["drain", *names.accumulators]),
        (tracks["tma"], ["store", *names.rings]),
        (tracks["stages"], ["", *_STAGE_STATES]),
        (tracks["barriers"], ["", *_BARRIER_STATES]),
    ]
    found = np.zeros(len(name), np.int32)
    for number, (first, texts) in enumerate(kinds):
        last = kinds[number + 1][0] if number + 1 < len(kinds) else tracks["end"]
        here = (unit >= first) & (unit < last)
        table = np.array([labels.index(text) if text else -1 for text in texts], np.int32)
        found[here] = table[name[here] + 1]
    return found


def _counters(
    rows: NDArray[np.int64], sms: list[int]
) -> tuple[list[str], list[str], NDArray[np.int64], NDArray[np.float64]]:
    """Return names, units, cycles and values of the counters; the last row only ends the interval before it."""
    if len(rows) < 2:
        return [], [], np.zeros(0, np.int64), np.zeros((0, 0))
    steps = np.diff(rows, axis=0).astype(np.float64)
    cycles, hits, misses, dram_bytes = steps[:, 0], steps[:, 1], steps[:, 2], steps[:, 3]
    looked_up = hits + misses
    hit_rate = np.divide(hits, looked_up, out=np.full(len(hits), np.nan), where=looked_up > 0)
    named: list[tuple[str, str, NDArray[np.float64]]] = [
        ("chip/lines_in_flight", "lines", rows[:-1, 7].astype(np.float64)),
        ("chip/l2_hit_rate", "fraction", hit_rate),
        ("chip/l2_requests_waiting", "requests", rows[:-1, 5].astype(np.float64)),
        ("chip/l2_responses_waiting", "responses", rows[:-1, 6].astype(np.float64)),
        ("chip/mshr_entries", "entries", rows[:-1, 4].astype(np.float64)),
        ("chip/dram_bytes_per_cycle", "B/cycle", dram_bytes / cycles),
    ]
    for column, sm in enumerate(sms, _COLUMNS):
        named.append((f"sm{sm}/lines_in_flight", "lines", rows[:-1, column].astype(np.float64)))
    values = np.array([value for _, _, value in named])
    return [name for name, _, _ in named], [unit for _, unit, _ in named], rows[:-1, 0].copy(), values
