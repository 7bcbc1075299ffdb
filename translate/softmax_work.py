"""CUDA-core work of a consumer warpgroup as operation counts; the simulator's preset prices them."""

from simfa.isa import Bubbles
from simfa.kernel import KernelSpec
from simfa.workload import AttentionShape

WARPGROUP_ROWS = 64


def scores(kernel: KernelSpec) -> int:
    """Return scores of one K/V block a warpgroup works on: T_M * T_N with its own T_M of 64."""
    return WARPGROUP_ROWS * kernel.tile_n


def softmax(kernel: KernelSpec, *, masked: bool) -> Bubbles:
    """Return the work between the QK product and the PV product of one block: max, exp, sum, conversion."""
    return Bubbles(kind="softmax", elements=scores(kernel), masked=scores(kernel) if masked else 0)


def rescale(shape: AttentionShape) -> Bubbles:
    """Return the multiplication of the warpgroup's 64 x D accumulator of O by the change of the row maxima."""
    return Bubbles(kind="softmax", rescale=WARPGROUP_ROWS * shape.head_dim)


def paper_softmax(shape: AttentionShape, kernel: KernelSpec) -> Bubbles:
    """Return section 5.2's work of one block, O's rescale included: 988 cycles for T_N 176, D 128 and its rates."""
    return Bubbles(kind="softmax", elements=scores(kernel), rescale=WARPGROUP_ROWS * shape.head_dim)


def epilogue(shape: AttentionShape) -> Bubbles:
    """Return the work after the last PV product: divide O by the row sums, convert, write to shared memory."""
    return Bubbles(kind="epilogue", elements=WARPGROUP_ROWS * shape.head_dim)
