"""The simulator's instruction set: Table 3 of the paper, every instruction with its operands.

Timing of each instruction is defined in `docs/isa.md`. A program belongs to one role (warpgroup) of a CTA and to one
output tile; its operands are relative to that tile:

* `Slot` names a ring and the ordinal of a fill within the tile, not a physical stage: `K[3]` is the fourth K block this
  tile loads. The simulator adds the fills of earlier tiles and takes the ring's stage count modulo.
* group ids count the role's commits within the tile from 0, in order.
* inside a `Repeat`, an `Affine` operand is `start + step * iteration`; outside, `step` is 0.
"""

from typing import Annotated, Literal, NamedTuple, get_args

import msgspec
from msgspec import Meta

Count = Annotated[int, Meta(ge=1)]
Size = Annotated[int, Meta(ge=0)]


class Affine(NamedTuple):
    """An operand that a `Repeat` advances: `start + step * iteration`."""

    start: int
    step: int = 0


class Slot(NamedTuple):
    """A fill of a ring buffer: ring name, ordinal within the tile."""

    ring: str
    index: Affine  # type: ignore[assignment]  # hides tuple.index, which a slot does not need


class _Instruction(msgspec.Struct, frozen=True, kw_only=True):
    """Base of all instructions: frozen and comparable."""


class TmaTensor(_Instruction, frozen=True, kw_only=True):
    """TMA_TENSOR: asynchronous copy of one box of tensor map `map` into `slot`.

    `x` and `y` are the box's first column and row in elements, added to the map's origin for the tile. With `multicast`
    the CTA of rank r in its cluster of two loads the box at row `y + r * box rows` and both CTAs receive it.
    """

    slot: Slot
    map: str
    x: Size
    y: Affine
    multicast: bool = False


class TmaBulk(_Instruction, frozen=True, kw_only=True):
    """TMA_BULK: asynchronous copy of `bytes` from byte address `address` into `slot`, without a tensor map."""

    slot: Slot
    address: Affine
    bytes: Count


class MbWait(_Instruction, frozen=True, kw_only=True):
    """MB_WAIT: block until the fill `slot` has arrived completely."""

    slot: Slot


class AcquireStage(_Instruction, frozen=True, kw_only=True):
    """ACQUIRE_STAGE: block until the stage of `slot` was released by all its consumers, then expect the fill."""

    slot: Slot


class ReleaseStage(_Instruction, frozen=True, kw_only=True):
    """RELEASE_STAGE: signal that this warpgroup is done with `slot`; with `remote` the cluster's other CTA as well."""

    slot: Slot
    remote: bool = False


class TmaStore(_Instruction, frozen=True, kw_only=True):
    """TMA_STORE: asynchronous copy of one box from shared memory to tensor map `map`, in store group `group`."""

    map: str
    x: Size
    y: Affine
    group: Affine


class TmaCommit(_Instruction, frozen=True, kw_only=True):
    """TMA_COMMIT: seal store group `group`."""

    group: Affine


class TmaWait(_Instruction, frozen=True, kw_only=True):
    """TMA_WAIT: block until at most `outstanding` committed store groups with id <= `group` remain.

    With `read` a group counts as done once its shared memory was read (`cp.async.bulk.wait_group.read`).
    """

    group: Affine
    outstanding: Size
    read: bool = False


class Wgmma(_Instruction, frozen=True, kw_only=True):
    """WGMMA: `count` back-to-back asynchronous MMAs of shape m x n x k into group `group`.

    `d` is the accumulator's name; `a` and `b` are a register tile's name or the slot read from shared memory; `mode` is
    SS (both operands in shared memory) or RS (a in registers).
    """

    d: str
    a: str | Slot
    b: Slot
    m: Count
    n: Count
    k: Count
    count: Count
    mode: Literal["SS", "RS"]
    group: Affine
    dtype: Literal["fp16", "bf16"] = "fp16"
    acc: Literal["f32"] = "f32"
    sparse: bool = False


class WgmmaCommit(_Instruction, frozen=True, kw_only=True):
    """WGMMA_COMMIT: commit group `group`."""

    group: Affine


class WgmmaWait(_Instruction, frozen=True, kw_only=True):
    """WGMMA_WAIT: block until at most `outstanding` committed groups with id <= `group` are in flight."""

    group: Affine
    outstanding: Size


class BarArrive(_Instruction, frozen=True, kw_only=True):
    """BAR_ARRIVE: non-blocking signal on named barrier `barrier`."""

    barrier: Size


class BarWait(_Instruction, frozen=True, kw_only=True):
    """BAR_WAIT: block until named barrier `barrier` has received at least `arrivals` signals, and consume them."""

    barrier: Size
    arrivals: Count


class Bubbles(_Instruction, frozen=True, kw_only=True):
    """BUBBLES: CUDA-core work of the warpgroup.

    `kind` is `cycles` (a fixed number), `softmax` (priced by the preset from `elements` scores, `masked` of them
    compared with a mask, and `rescale` elements of O multiplied), or `epilogue` (`elements` of O finished and written
    to shared memory). Counts are per warpgroup.
    """

    kind: Literal["cycles", "softmax", "epilogue"]
    cycles: Size = 0
    elements: Size = 0
    masked: Size = 0
    rescale: Size = 0


Instruction = (
    TmaTensor
    | TmaBulk
    | MbWait
    | AcquireStage
    | ReleaseStage
    | TmaStore
    | TmaCommit
    | TmaWait
    | Wgmma
    | WgmmaCommit
    | WgmmaWait
    | BarArrive
    | BarWait
    | Bubbles
)


class Repeat(_Instruction, frozen=True, kw_only=True):
    """REPEAT count ... END: the body runs `count` times; repeats do not nest."""

    count: Count
    body: tuple[Instruction, ...]


MNEMONICS: dict[type[_Instruction], str] = {
    TmaTensor: "TMA_TENSOR",
    TmaBulk: "TMA_BULK",
    MbWait: "MB_WAIT",
    AcquireStage: "ACQUIRE_STAGE",
    ReleaseStage: "RELEASE_STAGE",
    TmaStore: "TMA_STORE",
    TmaCommit: "TMA_COMMIT",
    TmaWait: "TMA_WAIT",
    Wgmma: "WGMMA",
    WgmmaCommit: "WGMMA_COMMIT",
    WgmmaWait: "WGMMA_WAIT",
    BarArrive: "BAR_ARRIVE",
    BarWait: "BAR_WAIT",
    Bubbles: "BUBBLES",
}
assert set(MNEMONICS) == set(get_args(Instruction))
