"""Which memory requests a copy makes: lines of a box of a tensor map, or of a run of bytes."""

from collections.abc import Iterator, Sequence
from itertools import product

from simfa.hardware import HardwareSpec
from simfa.trace import TensorMap


def rows_of_box(tensor: TensorMap, first: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield (address, bytes) of each row of the box at coordinates `first` that has a part inside the tensor.

    Dimension 1 varies fastest, then 2, and so on. `first` has one coordinate for each dimension, in elements.
    """
    columns = min(first[0] + tensor.box[0], tensor.dims[0]) - first[0]
    if columns <= 0:
        return
    start = tensor.base + first[0] * tensor.element_bytes
    # product() varies its last argument fastest, so the dimensions go in from the highest down to 1.
    ranges = [range(first[d], first[d] + tensor.box[d]) for d in range(len(tensor.dims) - 1, 0, -1)]
    for reversed_coordinates in product(*ranges):
        coordinates = reversed_coordinates[::-1]
        if all(c < extent for c, extent in zip(coordinates, tensor.dims[1:], strict=True)):
            offset = sum(c * stride for c, stride in zip(coordinates, tensor.strides, strict=True))
            yield start + offset, columns * tensor.element_bytes


def requests_of_rows(rows: Iterator[tuple[int, int]], hardware: HardwareSpec) -> list[int]:
    """Return the line number of each request for rows of (address, bytes), in order.

    With `tma.deduplicate` every line once, unless another was requested in between; without, every piece of
    `tma.request_bytes` (aligned to its size) of every row.
    """
    line_bytes = hardware.l2.line_bytes
    lines: list[int] = []
    for address, size in rows:
        if hardware.tma.deduplicate:
            for line in range(address // line_bytes, (address + size - 1) // line_bytes + 1):
                if not lines or lines[-1] != line:
                    lines.append(line)
        else:
            piece = hardware.tma.request_bytes
            pieces = range(address // piece, (address + size - 1) // piece + 1)
            lines += [index * piece // line_bytes for index in pieces]
    return lines
