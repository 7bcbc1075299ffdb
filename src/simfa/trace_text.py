"""The text form of a trace, `.satrace`: parser and canonical writer. `docs/formats.md` is the grammar.

`parse_trace(format_trace(trace)).trace == trace` for every trace, and `format_trace(parse_trace(text).trace)` is the
canonical form of `text`: comments, blank lines, operand order and number notation are lost, nothing else.
"""

import os
from collections.abc import Iterator
from typing import Any, NamedTuple, NoReturn

from simfa.errors import ShapeError, TraceError
from simfa.files import atomic_write
from simfa.isa import MNEMONICS, Instruction, Repeat
from simfa.kernel import KernelSpec
from simfa.trace import MAX_CLUSTER, Origin, Program, Ring, Schedule, TensorMap, TileBinding, TileKind, Trace
from simfa.trace_operands import (
    DECLARATIONS,
    INSTRUCTIONS,
    OperandError,
    affine_operands,
    format_integer,
    format_operands,
    parse_integer,
    parse_name,
    parse_operands,
)
from simfa.trace_places import Places, read_source
from simfa.workload import AttentionShape

HEADER = "SATRACE 1"
TILES_PER_LINE = 16
# Top-level statements in the order in which they must come; each may repeat only where the value is a tuple.
_ORDER = ("SHAPE", "KERNEL", "ORIGIN", "DEF_TMAP", "DEF_RING", "PROGRAM", "TILE_KIND", "PROLOGUE", "SCHEDULE")
_SINGLE = frozenset({"SHAPE", "KERNEL", "ORIGIN", "PROLOGUE", "SCHEDULE"})
_REQUIRED = ("ORIGIN", "PROLOGUE", "SCHEDULE")


class ParsedTrace(NamedTuple):
    """A trace and where its parts stand in the text it was read from."""

    trace: Trace
    places: Places


class Line(NamedTuple):
    """One statement: its line number and its blank-separated tokens, without comment."""

    number: int
    tokens: list[str]


def format_trace(trace: Trace) -> str:
    """Return the canonical text of `trace`.

    Raises `TraceError` for a value the format cannot hold, such as a name with a blank; use `simfa.verify` first.
    """
    return "".join(f"{line}\n" for line in _lines_of(trace))


def write_trace(path: str | os.PathLike[str], trace: Trace) -> None:
    """Write the canonical text of `trace` to `path`, whole or not at all."""
    text = format_trace(trace)
    with atomic_write(path) as handle:
        handle.write(text)


def read_trace(path: str | os.PathLike[str]) -> ParsedTrace:
    """Return the trace in the file `path`, not verified; raises `TraceError` naming file and line."""
    return parse_trace(read_source(os.fspath(path)), os.fspath(path))


def parse_trace(text: str, source: str = "<text>") -> ParsedTrace:
    """Return the trace that `text` describes, not verified; raises `TraceError` naming `source` and the line."""
    return _Parser(text, source).trace()


def _declared(mnemonic: str, value: object) -> str:
    try:
        return f"{mnemonic} {format_operands(DECLARATIONS[mnemonic], value)}"
    except OperandError as error:
        raise TraceError(f"{mnemonic} cannot be written: {error}") from None


def _instruction_line(instruction: Instruction) -> str:
    mnemonic = MNEMONICS[type(instruction)]
    return f"{mnemonic} {format_operands(INSTRUCTIONS[mnemonic], instruction)}"


def _program_lines(program: Program) -> Iterator[str]:
    try:
        yield f"PROGRAM {parse_name(program.name)} role={format_integer(program.role)}"
        for item in program.body:
            if isinstance(item, Repeat):
                yield f"  REPEAT {format_integer(item.count)}"
                for instruction in item.body:
                    yield f"    {_instruction_line(instruction)}"
                yield "  END"
            else:
                yield f"  {_instruction_line(item)}"
    except OperandError as error:
        raise TraceError(f"program {program.name!r} cannot be written: {error}") from None
    yield "END"


def _tile_lines(kinds: tuple[TileKind, ...], tiles: tuple[TileBinding, ...]) -> Iterator[str]:
    """Yield TILES statements: runs of one kind, broken into lines."""
    start = 0
    while start < len(tiles):
        kind = tiles[start].kind
        stop = start
        while stop < len(tiles) and stop - start < TILES_PER_LINE and tiles[stop].kind == kind:
            stop += 1
        triples = " ".join(f"{tile.m_block},{tile.head},{tile.batch}" for tile in tiles[start:stop])
        yield f"TILES {kinds[kind].name} {triples}"
        start = stop


def _lines_of(trace: Trace) -> Iterator[str]:
    yield HEADER
    if trace.shape is not None:
        yield _declared("SHAPE", trace.shape)
    if trace.kernel is not None:
        yield _declared("KERNEL", trace.kernel)
    yield _declared("ORIGIN", trace.origin)
    for tensor_map in trace.maps:
        yield _declared("DEF_TMAP", tensor_map)
    for ring in trace.rings:
        yield _declared("DEF_RING", ring)
    for program in trace.programs:
        yield from _program_lines(program)
    try:
        for kind in trace.tile_kinds:
            yield " ".join(("TILE_KIND", *map(parse_name, (kind.name, *kind.programs))))
        yield " ".join(("PROLOGUE", *("-" if name is None else parse_name(name) for name in trace.prologue)))
    except OperandError as error:
        raise TraceError(f"tile kinds and prologue cannot be written: {error}") from None
    schedule = trace.schedule
    yield f"SCHEDULE {schedule.mode} ctas={schedule.ctas} cluster={schedule.cluster}"
    for cta, tiles in enumerate(schedule.tiles):
        if schedule.mode == "static":
            yield f"  CTA {cta}"
        indent = "    " if schedule.mode == "static" else "  "
        yield from (indent + line for line in _tile_lines(trace.tile_kinds, tiles))
    yield "END"


class _Parser:
    """Reads statements one after the other; its state is the position in the text and the lines seen so far."""

    def __init__(self, text: str, source: str) -> None:
        self._source = source
        self._lines = self._statements(text)
        self._last = text.count("\n") + 1
        self._declarations: dict[tuple[str, str], int] = {}
        self._instructions: dict[str, tuple[int, ...]] = {}
        self._ctas: list[int] = []
        self._tiles: list[tuple[int, ...]] = []

    @staticmethod
    def _statements(text: str) -> Iterator[Line]:
        for number, line in enumerate(text.split("\n"), 1):
            tokens = line.partition("#")[0].split()
            if tokens:
                yield Line(number, tokens)

    def _fail(self, number: int, message: str) -> NoReturn:
        raise TraceError(f"{self._source}:{number}: {message}")

    def _next(self, inside: str) -> Line:
        """Return the next statement of an open block."""
        line = next(self._lines, None)
        if line is None:
            self._fail(self._last, f"the text ends inside {inside}; expected END, so it is cut short")
        return line

    def trace(self) -> ParsedTrace:
        """Read everything."""
        first = next(self._lines, None)
        if first is None or first.tokens != HEADER.split():
            found = "nothing" if first is None else repr(" ".join(first.tokens))
            self._fail(first.number if first else 1, f"expected {HEADER!r}, found {found}; this is no .satrace text")
        values: dict[str, list[Any]] = {mnemonic: [] for mnemonic in _ORDER}
        stage = 0
        for line in self._lines:
            mnemonic, *tokens = line.tokens
            if mnemonic not in values:
                self._fail(line.number, f"unknown statement {mnemonic!r}; expected one of {', '.join(_ORDER)}")
            if _ORDER.index(mnemonic) < stage:
                self._fail(line.number, f"{mnemonic} after {_ORDER[stage]}; expected the order {', '.join(_ORDER)}")
            stage = _ORDER.index(mnemonic)
            if mnemonic in _SINGLE and values[mnemonic]:
                self._fail(line.number, f"a second {mnemonic}; expected one")
            values[mnemonic].append(self._statement(line, mnemonic, tokens, values["TILE_KIND"]))
        for mnemonic in _REQUIRED:
            if not values[mnemonic]:
                self._fail(self._last, f"{mnemonic} is missing; the text is cut short or incomplete")
        return ParsedTrace(_assemble(values), self._places())

    def _places(self) -> Places:
        return Places(
            source=self._source,
            instructions=self._instructions,
            declarations=self._declarations,
            ctas=tuple(self._ctas),
            tiles=tuple(self._tiles),
        )

    def _statement(self, line: Line, mnemonic: str, tokens: list[str], kinds: list[TileKind]) -> object:
        """Return the value of one top-level statement, reading its block if it has one."""
        try:
            if mnemonic in DECLARATIONS:
                value = parse_operands(DECLARATIONS[mnemonic], tokens)
            elif mnemonic == "PROGRAM":
                value = self._program(line, tokens)
            elif mnemonic == "TILE_KIND":
                if len(tokens) < 2:
                    raise OperandError("expected a name and a program for each role")
                value = TileKind(name=parse_name(tokens[0]), programs=tuple(map(parse_name, tokens[1:])))
            elif mnemonic == "PROLOGUE":
                if not tokens:
                    raise OperandError("expected a program name or '-' for each role")
                value = tuple(None if token == "-" else parse_name(token) for token in tokens)
            else:
                value = self._schedule(line, tokens, kinds)
        except (OperandError, ShapeError) as error:
            self._fail(line.number, f"{mnemonic}: {error}")
        key = (mnemonic, value.name if isinstance(value, TensorMap | Ring | Program | TileKind) else "")
        if key in self._declarations:
            self._fail(line.number, f"{mnemonic} {key[1]} is already defined in line {self._declarations[key]}")
        self._declarations[key] = line.number
        return value

    def _program(self, opening: Line, tokens: list[str]) -> Program:
        if len(tokens) != 2 or not tokens[1].startswith("role="):
            raise OperandError(f"expected NAME role=NUMBER, found {' '.join(tokens)!r}")
        name, role = parse_name(tokens[0]), parse_integer(tokens[1].removeprefix("role="))
        body: list[Instruction | Repeat] = []
        numbers: list[int] = []
        while (line := self._next(f"PROGRAM {name} of line {opening.number}")).tokens != ["END"]:
            if line.tokens[0] == "REPEAT":
                body.append(self._repeat(line, numbers))
            else:
                body.append(self._instruction(line, repeated=False))
                numbers.append(line.number)
        self._instructions.setdefault(name, tuple(numbers))
        return Program(name=name, role=role, body=tuple(body))

    def _repeat(self, opening: Line, numbers: list[int]) -> Repeat:
        try:
            (text,) = opening.tokens[1:]
            count = parse_integer(text)
        except ValueError:
            self._fail(opening.number, f"expected REPEAT COUNT, found {' '.join(opening.tokens)!r}")
        body: list[Instruction] = []
        while (line := self._next(f"REPEAT of line {opening.number}")).tokens != ["END"]:
            if line.tokens[0] == "REPEAT":
                self._fail(line.number, f"REPEAT inside the REPEAT of line {opening.number}; repeats do not nest")
            body.append(self._instruction(line, repeated=True))
            numbers.append(line.number)
        if not body:
            self._fail(opening.number, "an empty REPEAT; expected at least one instruction before END")
        return Repeat(count=count, body=tuple(body))

    def _instruction(self, line: Line, *, repeated: bool) -> Instruction:
        mnemonic, *tokens = line.tokens
        if mnemonic not in INSTRUCTIONS:
            self._fail(line.number, f"unknown instruction {mnemonic!r}; expected one of {', '.join(INSTRUCTIONS)}")
        try:
            instruction: Instruction = parse_operands(INSTRUCTIONS[mnemonic], tokens)
        except OperandError as error:
            self._fail(line.number, f"{mnemonic}: {error}")
        for name, operand in affine_operands(instruction):
            if operand.step and not repeated:
                self._fail(line.number, f"{mnemonic}: {name} advances with i outside a REPEAT")
        return instruction

    def _schedule(self, opening: Line, tokens: list[str], kinds: list[TileKind]) -> Schedule:
        if len(tokens) != 3 or tokens[0] not in ("static", "dynamic"):
            raise OperandError("expected static or dynamic, ctas=NUMBER, cluster=NUMBER")
        sizes = {}
        for key, token in zip(("ctas", "cluster"), tokens[1:], strict=True):
            if not token.startswith(f"{key}="):
                raise OperandError(f"expected {key}=NUMBER, found {token!r}")
            sizes[key] = parse_integer(token.removeprefix(f"{key}="))
        if sizes["cluster"] > MAX_CLUSTER:
            raise OperandError(f"clusters of {sizes['cluster']} are not supported; expected 1 or {MAX_CLUSTER}")
        index = {kind.name: position for position, kind in enumerate(kinds)}
        static = tokens[0] == "static"
        lists: list[list[TileBinding]] = [] if static else [[]]
        numbers: list[list[int]] = [] if static else [[]]
        while (line := self._next(f"SCHEDULE of line {opening.number}")).tokens != ["END"]:
            if static and line.tokens[0] == "CTA":
                if line.tokens[1:] != [str(len(lists))]:
                    self._fail(line.number, f"expected CTA {len(lists)}, found {' '.join(line.tokens)!r}")
                lists.append([])
                numbers.append([])
                self._ctas.append(line.number)
            elif line.tokens[0] == "TILES" and lists:
                bindings = self._bindings(line, index)
                lists[-1].extend(bindings)
                numbers[-1].extend([line.number] * len(bindings))
            else:
                expected = "CTA, TILES or END" if static and lists else "CTA or END" if static else "TILES or END"
                self._fail(line.number, f"expected {expected}, found {line.tokens[0]!r}")
        if static and len(lists) != sizes["ctas"]:
            raise OperandError(f"expected {sizes['ctas']} CTA lists, found {len(lists)}")
        self._tiles = [tuple(entry) for entry in numbers]
        mode: Any = tokens[0]
        return Schedule(mode=mode, tiles=tuple(tuple(tiles) for tiles in lists), **sizes)

    def _bindings(self, line: Line, kinds: dict[str, int]) -> list[TileBinding]:
        if len(line.tokens) < 3:
            self._fail(line.number, "expected TILES KIND m_block,head,batch ...")
        _, name, *triples = line.tokens
        if name not in kinds:
            self._fail(line.number, f"TILES: tile kind {name!r} is not defined; expected one of {', '.join(kinds)}")
        bindings = []
        for triple in triples:
            parts = triple.split(",")
            try:
                m_block, head, batch = map(parse_integer, parts)
            except ValueError:
                self._fail(line.number, f"TILES: expected m_block,head,batch, found {triple!r}")
            bindings.append(TileBinding(kinds[name], m_block, head, batch))
        return bindings


def _assemble(values: dict[str, list[Any]]) -> Trace:
    """Return the trace of all statement values."""
    shape: AttentionShape | None = values["SHAPE"][0] if values["SHAPE"] else None
    kernel: KernelSpec | None = values["KERNEL"][0] if values["KERNEL"] else None
    origin: Origin = values["ORIGIN"][0]
    return Trace(
        shape=shape,
        kernel=kernel,
        origin=origin,
        maps=tuple(values["DEF_TMAP"]),
        rings=tuple(values["DEF_RING"]),
        programs=tuple(values["PROGRAM"]),
        tile_kinds=tuple(values["TILE_KIND"]),
        prologue=values["PROLOGUE"][0],
        schedule=values["SCHEDULE"][0],
    )
