"""Where the parts of a trace stand, so that messages can name `file:line`."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from simfa.errors import TraceError
from simfa.isa import MNEMONICS, Instruction, Repeat
from simfa.trace import Program


class FlatInstruction(NamedTuple):
    """One instruction of a program with its flat index: REPEAT bodies count once, REPEAT and END not at all."""

    position: int
    instruction: Instruction
    repeats: int | None
    """The count of the REPEAT around it, None outside."""


def flat_instructions(program: Program) -> Iterator[FlatInstruction]:
    """Yield the instructions of a program in the order of its text, each once."""
    index = 0
    for item in program.body:
        body, count = (item.body, item.count) if isinstance(item, Repeat) else ((item,), None)
        for instruction in body:
            yield FlatInstruction(index, instruction, count)
            index += 1


class Places(msgspec.Struct, frozen=True, kw_only=True):
    """Line numbers of a trace's text. Those of a trace that was made in memory are empty and it has no `source`.

    `instructions` maps a program's name to the lines of its instructions by flat index; `declarations` maps (mnemonic,
    name), and (mnemonic, "") for statements without a name; `ctas` and `tiles` are the lines of each CTA statement (by
    CTA) and tile (by list, then position).
    """

    source: str | None = None
    instructions: Mapping[str, tuple[int, ...]] = MappingProxyType({})
    declarations: Mapping[tuple[str, str], int] = MappingProxyType({})
    ctas: tuple[int, ...] = ()
    tiles: tuple[tuple[int, ...], ...] = ()

    def line_of(self, program: str, index: int) -> int | None:
        """Return the text line of instruction `index` (flat) of a program, or None when there is no text."""
        lines = self.instructions.get(program, ())
        return lines[index] if index < len(lines) else None

    def instruction(self, program: str, index: int, instruction: Instruction | Repeat) -> str:
        """Name an instruction: `file:line: MNEMONIC of program NAME`, or `program NAME, instruction k (MNEMONIC)`."""
        mnemonic = "REPEAT" if isinstance(instruction, Repeat) else MNEMONICS[type(instruction)]
        line = self.line_of(program, index)
        if line is None:
            return f"program {program}, instruction {index} ({mnemonic})"
        return f"{self.source}:{line}: {mnemonic} of program {program}"

    def declaration(self, mnemonic: str, name: str = "") -> str:
        """Name a declaration: `file:line: MNEMONIC NAME`, or `MNEMONIC NAME`."""
        return self._at(self.declarations.get((mnemonic, name)), f"{mnemonic} {name}".rstrip())

    def tile(self, cta: int | None, position: int) -> str:
        """Name a tile of a CTA's list, or of the queue (`cta` None)."""
        tiles = self.tiles[cta or 0] if self.tiles else ()
        what = f"tile {position} of " + ("the queue" if cta is None else f"CTA {cta}")
        return self._at(tiles[position] if tiles else None, what)

    def cta(self, cta: int) -> str:
        """Name a CTA's list of tiles."""
        return self._at(self.ctas[cta] if self.ctas else None, f"CTA {cta}")

    def _at(self, line: int | None, what: str) -> str:
        return what if line is None else f"{self.source}:{line}: {what}"


NO_PLACES = Places()


def read_source(path: str | Path) -> str:
    """Return the text of a trace file; raises `TraceError` naming the file when it cannot be read."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise TraceError(f"{path}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise TraceError(f"{path}: offset {error.start}: expected UTF-8 text; this is no .satrace file") from error
