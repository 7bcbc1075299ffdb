"""The hidden dataflow behind a random program: rings with producers and consumers, barriers with signallers.

Every fill is acquired, loaded, awaited and released, and every signal is consumed, within its tile, and actions are
listed in an order in which each wait is satisfied by what comes before it. So programs made from them terminate
under any interleaving: conditions only ever grow truer.
"""

from typing import NamedTuple

from simfa.isa import AcquireStage, BarArrive, BarWait, MbWait, ReleaseStage, Slot, TmaBulk, TmaTensor
from simfa.trace import Ring, TensorMap
from tests.oracle.chooser import Chooser, interleave, subset
from tests.oracle.random_maps import draw_place
from tests.oracle.writer import Action, Place, Writer, always


class Load(NamedTuple):
    """One copy of a fill: by `role`, of a map's box or (map None) of `size` bytes; `leader` only by rank 0."""

    role: int
    map: TensorMap | None
    size: int
    multicast: bool
    leader: bool


class RingFlow(NamedTuple):
    """A ring and who uses it. A consumer in `handed` takes no MB_WAIT: another consumer signals its named barrier."""

    ring: Ring
    producer: int
    consumers: tuple[int, ...]
    loads: tuple[Load, ...]
    remote: bool
    waits: bool
    handed: dict[int, int]


class BarrierFlow(NamedTuple):
    """A named barrier: roles that signal it once in each use, the role that waits, signals it holds at the start."""

    barrier: int
    signallers: tuple[int, ...]
    waiter: int
    initial: int


def draw_ring(chooser: Chooser, name: str, roles: int, cluster: int, maps: list[TensorMap], barrier: int) -> RingFlow:
    """Return a ring flow; barrier ids from `barrier` on, one for each role, may be used for hand-over."""
    producer = chooser.integer(0, roles - 1)
    others = [role for role in range(roles) if role != producer]
    consumers = subset(chooser, others, at_least=1)
    if chooser.chance(10):
        consumers.append(producer)
    loads = _draw_loads(chooser, producer, consumers, cluster, maps)
    multicast = any(load.multicast for load in loads)
    remote = chooser.chance(20) or (multicast and cluster == 2)
    size = sum(load.size * (2 if load.multicast and not load.leader and cluster == 2 else 1) for load in loads)
    handed = {}
    if len(consumers) > 1 and chooser.chance(30):
        handed[consumers[-1]] = barrier + consumers[-1]
    ring = Ring(
        name=name,
        stages=chooser.integer(1, 4),
        bytes=size,
        releases=len(consumers) * (2 if remote and cluster == 2 else 1),
        empty=chooser.pick(["mbarrier", "named"]),
    )
    waits = bool(loads) or chooser.chance(70)
    return RingFlow(ring, producer, tuple(consumers), tuple(loads), remote, waits, handed if waits else {})


def _draw_loads(
    chooser: Chooser, producer: int, consumers: list[int], cluster: int, maps: list[TensorMap]
) -> list[Load]:
    """Return the copies of each fill: none (a ring without data), or some that always add up to the same bytes."""
    if chooser.chance(10):
        return []
    leader_only = cluster == 2 and chooser.chance(20)
    loads = []
    for _ in range(chooser.pick([1, 1, 2])):
        # A second loader has taken the fills before, so it never runs a round ahead of the stage.
        role = chooser.pick(consumers) if not leader_only and chooser.chance(12) else producer
        tensor = chooser.pick([*maps, None])
        if leader_only:
            tensor = chooser.pick([tensor for tensor in maps if len(tensor.box) > 1])
        size = chooser.integer(1, 400) if tensor is None else tensor.box_bytes
        can_multicast = tensor is not None and len(tensor.box) > 1 and role == producer
        multicast = leader_only or (can_multicast and chooser.chance(50 if cluster == 2 else 10))
        loads.append(Load(role, tensor, size, multicast, leader_only))
    return loads


def draw_barrier(chooser: Chooser, barrier: int, roles: int) -> BarrierFlow:
    """Return a barrier flow; with `initial` signals its wait may come before the signals of its tile."""
    signallers = [chooser.integer(0, roles - 1) for _ in range(chooser.integer(1, 3))]
    initial = len(signallers) + chooser.integer(0, 1) if chooser.chance(40) else 0
    return BarrierFlow(barrier, tuple(signallers), chooser.integer(0, roles - 1), initial)


def barrier_chain(chooser: Chooser, flow: BarrierFlow) -> list[Action]:
    """Return one use of a barrier: signals, then a wait for all of them, or two that share them; or waits first."""
    signals = [Action(role, always(BarArrive(barrier=flow.barrier))) for role in flow.signallers]
    total = len(signals)
    parts = [total]
    if total > 1 and chooser.chance(30):
        parts = [1, total - 1]
    waits = [Action(flow.waiter, always(BarWait(barrier=flow.barrier, arrivals=part))) for part in parts]
    return waits + signals if flow.initial else signals + waits


def fill_chains(chooser: Chooser, flow: RingFlow, first: int, fills: int, lag: int) -> list[list[Action]]:
    """Return, for each of an iteration's `fills` fills, its actions in an order that is good.

    Iteration j takes fills `first + j * fills` on. With `lag` 1 consumers release, or also wait, an iteration later.
    """
    chains = []
    for offset in range(fills):
        chain = interleave(chooser, _load_chains(chooser, flow, first + offset, fills))
        chain += interleave(chooser, _consumer_chains(chooser, flow, first + offset, fills, lag))
        chains.append(chain)
    return chains


def _load_chains(chooser: Chooser, flow: RingFlow, start: int, step: int) -> list[list[Action]]:
    """Return the producer's actions of a fill, and those of other loaders."""
    name = flow.ring.name
    chains = [
        [Action(flow.producer, lambda place: AcquireStage(slot=Slot(name, place.affine(start, step))))],
    ]
    for load in flow.loads:
        action = Action(load.role, _load_writer(chooser, name, load, start, step), leader=load.leader)
        if load.role == flow.producer:
            chains[0].append(action)
        else:
            chains.append([action])
    return chains


def _load_writer(chooser: Chooser, ring: str, load: Load, start: int, step: int) -> Writer:
    """Return what writes one copy, at a random place that may move with the iteration."""
    tensor = load.map
    if tensor is None:
        address, stride = chooser.integer(0, 5000), chooser.integer(0, 700)
        return lambda place: TmaBulk(
            slot=Slot(ring, place.affine(start, step)), address=place.affine(address, stride), bytes=load.size
        )
    name = tensor.name
    x, y, rows = draw_place(chooser, tensor)
    return lambda place: TmaTensor(
        slot=Slot(ring, place.affine(start, step)),
        map=name,
        x=x,
        y=place.affine(y, rows),
        multicast=load.multicast,
    )


def _consumer_chains(chooser: Chooser, flow: RingFlow, start: int, step: int, lag: int) -> list[list[Action]]:
    """Return each consumer's wait and release; hand-overs join two consumers into one chain."""

    def slot(place: Place) -> Slot:
        return Slot(flow.ring.name, place.affine(start, step))

    def wait(place: Place) -> MbWait:
        return MbWait(slot=slot(place))

    def release(place: Place) -> ReleaseStage:
        return ReleaseStage(slot=slot(place), remote=flow.remote)

    chains: list[list[Action]] = []
    for consumer in flow.consumers:
        if consumer in flow.handed:
            continue
        wait_lag = lag if chooser.chance(50) else 0
        chain = [Action(consumer, wait, lag=wait_lag)] if flow.waits else []
        if not chains and flow.handed:
            # The first consumer hands over to those that do not wait themselves, so its wait does not lag.
            chain = [Action(consumer, wait)]
            for follower, barrier in flow.handed.items():
                chain.append(Action(consumer, always(BarArrive(barrier=barrier))))
                chain.append(Action(follower, always(BarWait(barrier=barrier, arrivals=1))))
                chain.append(Action(follower, release))
        chain.append(Action(consumer, release, lag=lag))
        chains.append(chain)
    return chains
