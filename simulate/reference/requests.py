"""Which memory requests a copy makes: lines, and sectors of them, of a box of a tensor map or of a run of bytes."""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

from simfa.hardware import HardwareSpec
from simfa.trace import TensorMap


class Request(NamedTuple):
    """What one request asks for: sectors of a line, numbered from its start."""

    line: int
    sectors: frozenset[int]


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


def requests_of_rows(rows: Iterator[tuple[int, int]], hardware: HardwareSpec) -> list[Request]:
    """Return the requests for rows of (address, bytes), in order.

    With `tma.deduplicate` every line once, unless another was requested in between, and the sectors of it that the rows
    touch; without, a line for every piece of `tma.request_bytes` (aligned to its size) of every row.
    """
    line_bytes, sector_bytes = hardware.l2.line_bytes, hardware.l2.sector_bytes
    piece = line_bytes if hardware.tma.deduplicate else hardware.tma.request_bytes
    requests: list[Request] = []
    for address, size in rows:
        end = address + size
        for index in range(address // piece, (end - 1) // piece + 1):
            line = index * piece // line_bytes
            sectors = frozenset(range(line_bytes // sector_bytes))
            if hardware.tma.deduplicate:
                first, last = max(address, line * line_bytes), min(end, (line + 1) * line_bytes) - 1
                sectors = frozenset(range(first % line_bytes // sector_bytes, last % line_bytes // sector_bytes + 1))
                if requests and requests[-1].line == line:
                    sectors |= requests.pop().sectors
            requests.append(Request(line, sectors))
    return requests


def asked_bytes(requests: list[Request], hardware: HardwareSpec) -> int:
    """Return the bytes of all sectors that requests ask for."""
    return sum(len(request.sectors) for request in requests) * hardware.l2.sector_bytes
