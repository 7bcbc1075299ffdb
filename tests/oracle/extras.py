"""Actions that belong to no dataflow: CUDA-core work, WGMMA groups, store groups, put anywhere into a role's order."""

from typing import Literal

from simfa.isa import (
    Affine,
    Bubbles,
    Slot,
    TmaCommit,
    TmaStore,
    TmaWait,
    Wgmma,
    WgmmaCommit,
    WgmmaWait,
)
from simfa.trace import TensorMap
from tests.oracle.chooser import Chooser
from tests.oracle.random_maps import draw_place
from tests.oracle.writer import Action, Place, always

KINDS = ("bubbles", "wgmma group", "store group", "wgmma", "wgmma commit", "wgmma wait", "store", "store commit")
# A slot a WGMMA may name: ring, first ordinal, ordinals an iteration.
NamedSlot = tuple[str, int, int]


def draw_extra(chooser: Chooser, role: int, maps: list[TensorMap], slots: list[NamedSlot]) -> list[Action]:
    """Return a few actions of `role` in order, a whole group or a single one; `slots` is not empty."""
    kind = chooser.pick(KINDS)
    if not kind.endswith("group"):
        return [_draw_action(chooser, kind, role, maps, slots)]
    family = kind.removesuffix(" group")
    kinds = [family] * chooser.pick([1, 1, 2]) + [f"{family} commit"] + [f"{family} wait"] * chooser.integer(0, 1)
    return [_draw_action(chooser, member, role, maps, slots) for member in kinds]


def _draw_action(chooser: Chooser, kind: str, role: int, maps: list[TensorMap], slots: list[NamedSlot]) -> Action:
    """Return an action of a kind."""
    if kind == "bubbles":
        return Action(role, always(draw_bubbles(chooser)))
    if kind == "wgmma":
        return _wgmma(chooser, role, slots)
    if kind == "wgmma commit":
        return Action(role, lambda place: WgmmaCommit(group=place.group()), family="wgmma", commits=True)
    if kind == "store":
        return _store(chooser, role, chooser.pick(maps))
    if kind == "store commit":
        return Action(role, lambda place: TmaCommit(group=place.group()), family="store", commits=True)
    return _group_wait(chooser, role, kind)


def draw_bubbles(chooser: Chooser) -> Bubbles:
    """Return CUDA-core work of any kind, none included."""
    kind = chooser.pick(["cycles", "softmax", "epilogue"])
    if kind == "cycles":
        return Bubbles(kind="cycles", cycles=chooser.pick([0, 1, 7, 40]))
    if kind == "epilogue":
        return Bubbles(kind="epilogue", elements=chooser.pick([0, 1, 63, 200]))
    elements = chooser.pick([0, 1, 30, 100])
    masked = chooser.pick([0, elements, elements // 2])
    return Bubbles(kind="softmax", elements=elements, masked=masked, rescale=chooser.pick([0, 5, 64]))


def _wgmma(chooser: Chooser, role: int, slots: list[NamedSlot]) -> Action:
    """Return a WGMMA of one to four single ones, as SS or RS."""
    modes: tuple[Literal["SS", "RS"], ...] = ("SS", "RS")
    mode = chooser.pick(modes)
    n, count = chooser.pick([8, 16, 24, 64, 128]), chooser.pick([1, 2, 4])
    b = chooser.pick(slots)
    a = chooser.pick(slots) if mode == "SS" else None

    def write(place: Place) -> Wgmma:
        def slot(named: NamedSlot) -> Slot:
            return Slot(named[0], place.affine(named[1], named[2]))

        return Wgmma(
            d="D",
            a="A" if a is None else slot(a),
            b=slot(b),
            m=64,
            n=n,
            k=16,
            count=count,
            mode=mode,
            group=place.group(),
        )

    return Action(role, write, family="wgmma")


def _store(chooser: Chooser, role: int, tensor: TensorMap) -> Action:
    """Return a store of one box."""
    x, y, rows = draw_place(chooser, tensor)
    return Action(
        role,
        lambda place: TmaStore(map=tensor.name, x=x, y=place.affine(y, rows), group=place.group()),
        family="store",
    )


def _group_wait(chooser: Chooser, role: int, kind: str) -> Action:
    """Return a wait for the last group or the one before; before the tile's first commit it is left out."""
    outstanding = chooser.pick([0, 0, 1, 2])
    behind = 1 + chooser.pick([0, 0, 1])
    read = chooser.chance(50)

    def named(place: Place) -> Affine | None:
        group = place.group(behind)
        return group if group.start >= 0 else None

    def wgmma_wait(place: Place) -> WgmmaWait | None:
        group = named(place)
        return None if group is None else WgmmaWait(group=group, outstanding=outstanding)

    def store_wait(place: Place) -> TmaWait | None:
        group = named(place)
        return None if group is None else TmaWait(group=group, outstanding=outstanding, read=read)

    if kind == "wgmma wait":
        return Action(role, wgmma_wait, family="wgmma")
    return Action(role, store_wait, family="store")
