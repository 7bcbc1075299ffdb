"""Random valid traces on random small hardware, seeded or drawn by hypothesis."""

from collections.abc import Callable
from typing import Any, NamedTuple

from hypothesis import strategies as st

from simfa.hardware import HardwareSpec
from simfa.isa import BarArrive, Instruction, Repeat
from simfa.trace import Origin, Program, Schedule, TensorMap, TileKind, Trace
from tests.oracle.chooser import Chooser, HypothesisChooser, SeededChooser, interleave, subset
from tests.oracle.dataflow import BarrierFlow, RingFlow, barrier_chain, draw_barrier, draw_ring, fill_chains
from tests.oracle.extras import NamedSlot, draw_bubbles, draw_extra
from tests.oracle.random_hardware import draw_hardware
from tests.oracle.random_maps import KERNEL, SHAPE, draw_binding, draw_map
from tests.oracle.writer import Action, ProgramWriter

Body = tuple[Instruction | Repeat, ...]


class Case(NamedTuple):
    """One run to compare."""

    trace: Trace
    hardware: HardwareSpec
    memory_latency_cycles: int


class Frame(NamedTuple):
    """What all programs of a trace share."""

    roles: int
    cluster: int
    maps: list[TensorMap]
    prologue_maps: list[TensorMap]
    rings: list[RingFlow]
    barriers: list[BarrierFlow]


def seeded_case(seed: int | str, index: int) -> Case:
    """Return case `index` of the endless list that belongs to a seed."""
    return draw_case(SeededChooser(f"seed {seed} case {index}"))


@st.composite
def cases(draw: Callable[[st.SearchStrategy[Any]], Any]) -> Case:
    """Return a strategy for cases, which hypothesis can shrink."""
    return draw_case(HypothesisChooser(draw))


def draw_case(chooser: Chooser) -> Case:
    """Return a random trace that terminates, small random hardware and a memory latency."""
    hardware = draw_hardware(chooser)
    return Case(draw_trace(chooser), hardware, chooser.pick([1, 2, 20, 90]))


def draw_trace(chooser: Chooser) -> Trace:
    """Return a random trace that terminates: 2-4 roles, one or several CTAs, maybe in clusters of two."""
    roles = chooser.integer(2, 4)
    dynamic = chooser.chance(30)
    cluster = 2 if not dynamic and chooser.chance(40) else 1
    attention = chooser.chance(50)
    frame = _draw_frame(chooser, roles, cluster, attention)
    programs: dict[tuple[int, Body], str] = {}
    kinds: list[TileKind] = []
    pairs: list[tuple[int, ...]] = []
    for number in range(chooser.integer(1, 3)):
        pairs.append(_draw_kinds(chooser, frame, number, programs, kinds))
    prologue = _draw_prologue(chooser, frame, programs)
    return Trace(
        shape=SHAPE if attention else None,
        kernel=KERNEL if attention else None,
        origin=Origin(log_source="none"),
        maps=tuple(frame.maps),
        rings=tuple(flow.ring for flow in frame.rings),
        programs=tuple(Program(name=name, role=role, body=body) for (role, body), name in programs.items()),
        tile_kinds=tuple(kinds),
        prologue=prologue,
        schedule=_draw_schedule(chooser, dynamic, cluster, pairs),
    )


def _draw_frame(chooser: Chooser, roles: int, cluster: int, attention: bool) -> Frame:
    # One map that any program may use, prologues and multicasts included.
    prologue_maps = [draw_map(chooser, "M0", attention=False, least_rank=2)]
    maps = prologue_maps + [draw_map(chooser, f"M{1 + i}", attention) for i in range(chooser.integer(0, 3))]
    rings = [
        draw_ring(chooser, name, roles, cluster, maps, barrier=roles * index)
        for index, name in enumerate("KVQ"[: chooser.integer(1, 3)])
    ]
    first = roles * len(rings)
    barriers = [draw_barrier(chooser, first + i, roles) for i in range(chooser.integer(0, 2))]
    return Frame(roles, cluster, maps, prologue_maps, rings, barriers)


def _draw_kinds(
    chooser: Chooser, frame: Frame, number: int, programs: dict[tuple[int, Body], str], kinds: list[TileKind]
) -> tuple[int, ...]:
    """Add a kind of tile; where only rank 0 loads, one for each rank. Return the kind of each rank."""
    segments = _draw_segments(chooser, frame)
    asymmetric = any(load.leader for flow in frame.rings for load in flow.loads)
    numbers = []
    for rank in range(2 if asymmetric else 1):
        names = []
        for role in range(frame.roles):
            writer = ProgramWriter(chooser)
            for count, actions in segments:
                own = [action for action in actions if action.role == role and not (rank and action.leader)]
                writer.segment(own, count)
            names.append(programs.setdefault((role, writer.finish()), f"kind{number}.rank{rank}.role{role}"))
        numbers.append(len(kinds))
        kinds.append(TileKind(name=f"kind{number}.rank{rank}", programs=tuple(names)))
    return tuple(numbers * 2)[: frame.cluster]


def _draw_segments(chooser: Chooser, frame: Frame) -> list[tuple[int, list[Action]]]:
    """Return (iterations, actions of all roles in a good order) of a tile's loops; the first uses a ring."""
    used = {flow.ring.name: 0 for flow in frame.rings}
    segments = []
    for index in range(chooser.integer(1, 3)):
        count = chooser.pick([1, 2, 3, 4, 6])
        chains: list[list[Action]] = []
        slots: list[NamedSlot] = []
        for flow in subset(chooser, frame.rings, at_least=0 if index else 1):
            lag = 1 if count > 1 and flow.ring.stages > 1 and chooser.chance(40) else 0
            fills = chooser.integer(1, min(2, flow.ring.stages // (1 + lag)))
            first = used[flow.ring.name]
            used[flow.ring.name] += count * fills
            chains += fill_chains(chooser, flow, first, fills, lag)
            slots += [(flow.ring.name, first + offset, fills) for offset in range(fills)]
        for barrier in frame.barriers:
            if chooser.chance(50):
                chains.append(barrier_chain(chooser, barrier))
        slots += [(name, chooser.integer(0, fills - 1), 0) for name, fills in used.items() if fills]
        for _ in range(chooser.integer(0, 7)):
            chains.append(draw_extra(chooser, chooser.integer(0, frame.roles - 1), frame.maps, slots))
        segments.append((count, interleave(chooser, chains)))
    return segments


def _draw_prologue(chooser: Chooser, frame: Frame, programs: dict[tuple[int, Body], str]) -> tuple[str | None, ...]:
    """Return the prologue of each role: first signals of barriers, and some work."""
    bodies: list[list[Instruction]] = [[] for _ in range(frame.roles)]
    for barrier in frame.barriers:
        for _ in range(barrier.initial):
            bodies[chooser.integer(0, frame.roles - 1)].append(BarArrive(barrier=barrier.barrier))
    for body in bodies:
        if chooser.chance(30):
            body.append(draw_bubbles(chooser))
    names: list[str | None] = []
    for role, body in enumerate(bodies):
        writer = ProgramWriter(chooser)
        writer.body += body
        if chooser.chance(25):
            slots = [(flow.ring.name, 0, 0) for flow in frame.rings]
            for _ in range(chooser.integer(1, 2)):
                actions = draw_extra(chooser, role, frame.prologue_maps, slots)
                writer.segment(actions, chooser.pick([1, 1, 3]))
        written = writer.finish()
        named = bool(written) or chooser.chance(10)
        names.append(programs.setdefault((role, written), f"prologue.role{role}") if named else None)
    return tuple(names)


def _draw_schedule(chooser: Chooser, dynamic: bool, cluster: int, pairs: list[tuple[int, ...]]) -> Schedule:
    """Return a schedule; the CTAs of a cluster run tiles of paired kinds, so that their rings stay in step."""
    if dynamic:
        ctas = chooser.integer(1, 4)
        queue = tuple(draw_binding(chooser, chooser.pick(pairs)[0]) for _ in range(chooser.integer(0, 2 * ctas + 2)))
        return Schedule(mode="dynamic", ctas=ctas, cluster=1, tiles=(queue,))
    tiles = []
    for _ in range(chooser.pick([1, 1, 2])):
        drawn = [chooser.pick(pairs) for _ in range(chooser.pick([1, 2, 3, 0]))]
        for rank in range(cluster):
            tiles.append(tuple(draw_binding(chooser, pair[rank]) for pair in drawn))
    return Schedule(mode="static", ctas=len(tiles), cluster=cluster, tiles=tuple(tiles))
