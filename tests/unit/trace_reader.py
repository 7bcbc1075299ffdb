"""Reads Perfetto traces in the wire format of protocol buffers, without Perfetto's own classes."""

import struct
from collections import defaultdict
from typing import NamedTuple


class Slice(NamedTuple):
    """A slice as a viewer shows it: the names of its rows from the outermost in, its name, times in ns, arguments."""

    rows: tuple[str, ...]
    name: str
    start_ns: int
    end_ns: int
    arguments: dict[str, int]


class Sample(NamedTuple):
    """A counter at a time."""

    rows: tuple[str, ...]
    unit: str
    time_ns: int
    value: float


def fields(data: bytes) -> dict[int, list]:
    """Return a message's fields by number: integers, the bytes of texts and messages, and doubles."""
    found: dict[int, list] = defaultdict(list)
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        key = varint()
        kind = key & 7
        if kind == 0:
            found[key >> 3].append(varint())
        elif kind == 1:
            found[key >> 3].append(struct.unpack_from("<d", data, at)[0])
            at += 8
        else:
            assert kind == 2, kind
            size = varint()
            assert at + size <= len(data), "cut short"
            found[key >> 3].append(data[at : at + size])
            at += size
    return found


def read(data: bytes) -> tuple[list[Slice], list[Sample]]:
    """Return the slices and samples of a trace in order of their ends; every slice must be closed, on its own track."""
    names: dict[int, str] = {}
    arguments: dict[int, str] = {}
    rows: dict[int, tuple[str, ...]] = {}
    units: dict[int, str] = {}
    open_slices: dict[int, tuple[str, int, dict[str, int]]] = {}
    slices, samples = [], []
    for packet in map(fields, fields(data)[1]):
        assert packet[10] == [1]  # one sequence
        for interned in map(fields, packet[12]):
            names |= {f[1][0]: f[2][0].decode() for f in map(fields, interned[2])}
            arguments |= {f[1][0]: f[2][0].decode() for f in map(fields, interned[3])}
        for track in map(fields, packet[60]):
            parent = rows[track[5][0]] if track[5] else ()
            rows[track[1][0]] = (*parent, track[2][0].decode())
            if track[8]:
                units[track[1][0]] = fields(track[8][0])[6][0].decode()
        for event in map(fields, packet[11]):
            (kind,), (track,), (time,) = event[9], event[11], packet[8]
            if kind == 1:
                assert track not in open_slices, "slices overlap"
                values = {arguments[f[1][0]]: f[4][0] for f in map(fields, event[4])}
                open_slices[track] = (names[event[10][0]], time, values)
            elif kind == 2:
                name, start, values = open_slices.pop(track)
                slices.append(Slice(rows[track], name, start, time, values))
            else:
                assert kind == 4
                samples.append(Sample(rows[track], units[track], time, event[44][0]))
    assert not open_slices
    return slices, samples
