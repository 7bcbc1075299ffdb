"""Programs and tile kinds of a trace: lowered once for each distinct stream, stored once, named for people."""

from typing import Literal, NamedTuple

import numpy as np

from simfa.events import PRODUCER, Event
from simfa.isa import Instruction, Repeat
from simfa.kernel import KernelSpec
from simfa.trace import Program, TileKind
from simfa.translate import lower, lower_paper
from simfa.translate.builder import Lowered
from simfa.translate.compress import compress
from simfa.translate.events import Codes, count
from simfa.translate.fold import Folded, compress_folded, fold
from simfa.translate.reconstruct import complete_prologue, complete_tile
from simfa.workload import AttentionShape

Rules = Literal["source", "paper"]
Body = tuple[Instruction | Repeat, ...]


class KindStreams(NamedTuple):
    """One kind of tile: the events of each role in role order, and how many of its first blocks are masked."""

    codes: tuple[Codes, ...]
    masked: int


class ProgramStore:
    """Lowers streams and keeps the resulting programs and tile kinds, equal ones once."""

    def __init__(self, shape: AttentionShape, kernel: KernelSpec, level: int, rules: Rules) -> None:
        """Start empty."""
        self._shape, self._kernel, self._level, self._rules = shape, kernel, level, rules
        self._bodies: dict[tuple[int, int, bytes], Body] = {}
        self._names: dict[tuple[int, Body], str] = {}
        self._kinds: dict[tuple[str, ...], int] = {}
        self._known: dict[tuple[object, ...], int] = {}
        self._taken: set[str] = set()
        self.programs: list[Program] = []
        self.tile_kinds: list[TileKind] = []
        self.reconstructed = False

    def kind(self, streams: KindStreams) -> int:
        """Return the index of the tile kind that `streams` lower to."""
        key = (streams.masked, *(codes.tobytes() for codes in streams.codes))
        if key not in self._known:
            self._known[key] = self._new_kind(streams)
        return self._known[key]

    def _new_kind(self, streams: KindStreams) -> int:
        label = f"n{count(streams.codes[PRODUCER], Event.TMA_K_ISSUE)}"
        masked = f"{label}.m{streams.masked}" if self._shape.causal and self._rules == "source" else label
        programs = tuple(
            self._program(role, self._body(role, codes, streams.masked), masked if role else label)
            for role, codes in enumerate(streams.codes)
        )
        number = self._kinds.setdefault(programs, len(self.tile_kinds))
        if number == len(self.tile_kinds):
            name = self._unused(masked)
            self.tile_kinds.append(TileKind(name=name, programs=programs))
        return number

    def prologue(self, codes: tuple[Codes, ...] | None) -> tuple[str | None, ...]:
        """Return the names of the roles' prologues (None: nothing to do), from their events or the kernel's facts."""
        level = 1 if codes is None else self._level
        names: list[str | None] = []
        for role in range(1 + self._kernel.consumers):
            stream = np.zeros(0, np.uint32) if codes is None else codes[role]
            completed = complete_prologue(stream, self._kernel, role, level)
            body = lower.lower_prologue(completed.codes, role) if self._rules == "source" else ()
            self.reconstructed |= codes is not None and completed.reconstructed and bool(body)
            names.append(self._program(role, body, "start") if body else None)
        return tuple(names)

    def _body(self, role: int, codes: Codes, masked: int) -> Body:
        """Return the compressed program of a stream."""
        key = (role, masked if role else 0, codes.tobytes())
        if key not in self._bodies:
            self._bodies[key] = self._lower(role, codes, masked if role else 0)
        return self._bodies[key]

    def _lower(self, role: int, codes: Codes, masked: int) -> Body:
        """Lower and compress a stream; of a long loop only its ends are lowered."""
        shape, kernel = self._shape, self._kernel
        if self._rules == "paper":
            codes = lower_paper.of_table_4(codes)
        else:
            completed = complete_tile(codes, kernel, role, self._level)
            codes, self.reconstructed = completed.codes, self.reconstructed or completed.reconstructed

        def lowered(folded: Folded | None) -> Lowered:
            if self._rules == "paper":
                return lower_paper.lower_tile(codes, shape, kernel, role, folded)
            return lower.lower_tile(codes, shape, kernel, role, masked, folded)

        folded = fold(codes, special=masked)
        if folded is not None:
            body, hole = lowered(folded)
            program = compress_folded(body, hole) if hole is not None else None
            if program is not None:
                return program
        return compress(lowered(None).body)

    def _program(self, role: int, body: Body, label: str) -> str:
        """Return the name of the program with this body, storing it when it is new."""
        if (role, body) not in self._names:
            who = "producer" if role == PRODUCER else f"consumer{role}"
            name = self._unused(f"{who}.{label}")
            self._names[role, body] = name
            self.programs.append(Program(name=name, role=role, body=body))
        return self._names[role, body]

    def _unused(self, name: str) -> str:
        """Return `name`, or `name.v2`, `name.v3`, ... when it is taken."""
        version = 1
        candidate = name
        while candidate in self._taken:
            version += 1
            candidate = f"{name}.v{version}"
        self._taken.add(candidate)
        return candidate
