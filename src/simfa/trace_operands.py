"""How the operands of a `.satrace` are written: numbers, names, slots, and which operands each statement has.

A statement is a mnemonic, then positional operands, then `key=value` operands and bare flags in any order. `SYNTAX`
lists them for every statement that maps to one frozen value; `docs/formats.md` is the grammar in words.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec

from simfa import isa
from simfa.isa import Affine, Slot
from simfa.kernel import KernelSpec
from simfa.trace import Origin, Ring, TensorMap
from simfa.workload import AttentionShape

_NUMBER = r"(?:0x[0-9a-f]{1,16}|[0-9]{1,19})"
_LIMIT = 1 << 63  # numbers are signed 64-bit in the engine
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_WORD = re.compile(r"[^\s#=]+")
_INTEGER = re.compile(_NUMBER)
_AFFINE = re.compile(
    rf"(?P<start>{_NUMBER})(?:(?P<sign>[+-])(?:(?P<step>{_NUMBER})\*)?(?P<i>i))?"
    rf"|(?P<minus>-?)(?:(?P<only>{_NUMBER})\*)?i"
)
_SLOT = re.compile(r"(?P<ring>[^\[\]]+)\[(?P<index>[^\[\]]+)\]")


class OperandError(ValueError):
    """An operand that is not what its place wants; the message says what was expected and found."""


class Codec(NamedTuple):
    """One kind of operand: text to value, value to text. Both raise `OperandError`."""

    parse: Callable[[str], Any]
    format: Callable[[Any], str]


def _refuse(expected: str, found: object) -> OperandError:
    return OperandError(f"expected {expected}, found {found!r}")


def parse_integer(text: str) -> int:
    """Return a whole number >= 0, decimal or hexadecimal."""
    value = int(text, 16 if text.startswith("0x") else 10) if _INTEGER.fullmatch(text) else _LIMIT
    if value >= _LIMIT:
        raise _refuse("a whole number below 2^63", text)
    return value


def format_integer(value: int) -> str:
    """Return the decimal form of a whole number >= 0."""
    if not 0 <= value < _LIMIT:
        raise _refuse("a whole number below 2^63", value)
    return str(value)


def parse_affine(text: str) -> Affine:
    """Return `5`, `5+i`, `5-176*i`, `2*i` or `i` as an `Affine`."""
    match = _AFFINE.fullmatch(text)
    if not match:
        raise _refuse("a number or start+step*i", text)
    if match["start"] is None:
        step = parse_integer(match["only"] or "1")
        return Affine(0, -step if match["minus"] else step)
    start = parse_integer(match["start"])
    if match["i"] is None:
        return Affine(start)
    step = parse_integer(match["step"] or "1")
    return Affine(start, -step if match["sign"] == "-" else step)


def format_affine(value: Affine) -> str:
    """Return the canonical text of an operand: the inverse of `parse_affine`."""
    start = format_integer(value.start)
    if value.step == 0:
        return start
    size = abs(value.step)
    moving = "i" if size == 1 else f"{size}*i"
    if value.step < 0:
        return f"{start}-{moving}" if value.start else f"-{moving}"
    return f"{start}+{moving}" if value.start else moving


def parse_name(text: str) -> str:
    """Return a name: a letter or underscore, then letters, digits, `_`, `.` or `-`."""
    if not _NAME.fullmatch(text):
        raise _refuse("a name (letters, digits, '_', '.', '-')", text)
    return text


def parse_word(text: str) -> str:
    """Return a word without blanks, `#` or `=`."""
    if not _WORD.fullmatch(text):
        raise _refuse("a word without blanks, '#' or '='", text)
    return text


def parse_slot(text: str) -> Slot:
    """Return `RING[ordinal]` as a `Slot`."""
    match = _SLOT.fullmatch(text)
    if not match:
        raise _refuse("a slot RING[ordinal]", text)
    return Slot(parse_name(match["ring"]), parse_affine(match["index"]))


def format_slot(value: Slot) -> str:
    """Return the text of a slot: the inverse of `parse_slot`."""
    return f"{parse_name(value.ring)}[{format_affine(value.index)}]"


def _parse_tile(text: str) -> str | Slot:
    return parse_slot(text) if "[" in text else parse_name(text)


def _format_tile(value: str | Slot) -> str:
    return format_slot(value) if isinstance(value, Slot) else parse_name(value)


def _parse_switch(text: str) -> bool:
    if text not in ("yes", "no"):
        raise _refuse("yes or no", text)
    return text == "yes"


def _parse_list(text: str) -> tuple[int, ...]:
    return tuple(parse_integer(part) for part in text.split(","))


def _format_list(values: tuple[int, ...]) -> str:
    if not values:
        raise OperandError("expected at least one number")
    return ",".join(format_integer(value) for value in values)


def _choice(*words: str) -> Codec:
    def parse(text: str) -> str:
        if text not in words:
            raise _refuse(" or ".join(words), text)
        return text

    return Codec(parse, parse)


INTEGER = Codec(parse_integer, format_integer)
ADDRESS = Codec(parse_integer, lambda value: f"0x{value:x}" if value >= 0 else format_integer(value))
AFFINE = Codec(parse_affine, format_affine)
NAME = Codec(parse_name, parse_name)
WORD = Codec(parse_word, parse_word)
SLOT = Codec(parse_slot, format_slot)
TILE = Codec(_parse_tile, _format_tile)
SWITCH = Codec(_parse_switch, lambda value: "yes" if value else "no")
LIST = Codec(_parse_list, _format_list)
FLAG = Codec(lambda text: True, lambda value: "")


class Operand(NamedTuple):
    """One operand of a statement, stored in the value's field `name`.

    Written bare when `positional`, as the operand's name alone for a `FLAG` that is set, else `name=value`. An operand
    that equals `default` is left out; `msgspec.NODEFAULT` means that it must be there.
    """

    name: str
    codec: Codec
    positional: bool = False
    default: object = msgspec.NODEFAULT


class Syntax(NamedTuple):
    """The operands of one statement and the value they make."""

    make: Callable[..., Any]
    operands: tuple[Operand, ...]


_SLOT_OPERAND = Operand("slot", SLOT, positional=True)
_GROUP = Operand("group", AFFINE)
_OUTSTANDING = Operand("outstanding", INTEGER)
_BARRIER = Operand("barrier", INTEGER, positional=True)
_MAP_BOX = (Operand("map", NAME), Operand("x", INTEGER), Operand("y", AFFINE))


def _flag(name: str) -> Operand:
    return Operand(name, FLAG, default=False)


def _switches(*names: str) -> tuple[Operand, ...]:
    return tuple(Operand(name, SWITCH) for name in names)


def _integers(*names: str) -> tuple[Operand, ...]:
    return tuple(Operand(name, INTEGER) for name in names)


DECLARATIONS: dict[str, Syntax] = {
    "SHAPE": Syntax(
        AttentionShape,
        (
            *_integers("batch", "seqlen_q", "seqlen_kv", "heads_q", "heads_kv", "head_dim"),
            Operand("causal", SWITCH),
            Operand("dtype", WORD),
        ),
    ),
    "KERNEL": Syntax(
        KernelSpec,
        (
            Operand("version", WORD),
            *_integers("tile_m", "tile_n", "stages", "consumers", "cluster"),
            Operand("schedule", WORD),
            *_switches("ping_pong", "overlap", "p_in_registers", "rescale_before_pv"),
        ),
    ),
    "ORIGIN": Syntax(
        Origin,
        (
            Operand("log_source", _choice("captured", "synthetic", "none")),
            Operand("log_sha256", WORD, default=""),
            Operand("seed", INTEGER, default=None),
            Operand("event_level", INTEGER, default=0),
            Operand("rules", _choice("source", "paper", "none"), default="none"),
            Operand("reconstructed", FLAG, default=False),
        ),
    ),
    "DEF_TMAP": Syntax(
        TensorMap,
        (
            Operand("name", NAME, positional=True),
            Operand("base", ADDRESS),
            Operand("dims", LIST),
            Operand("strides", LIST, default=()),
            Operand("box", LIST),
            Operand("element_bytes", INTEGER),
            Operand("origin", _choice("query", "kv", "none")),
        ),
    ),
    "DEF_RING": Syntax(
        Ring,
        (
            Operand("name", NAME, positional=True),
            *_integers("stages", "bytes", "releases"),
            Operand("empty", _choice("mbarrier", "named")),
        ),
    ),
}


def _instruction(make: Any, *operands: Operand) -> tuple[str, Syntax]:
    return isa.MNEMONICS[make], Syntax(make, operands)


INSTRUCTIONS: dict[str, Syntax] = dict(
    (
        _instruction(isa.TmaTensor, _SLOT_OPERAND, *_MAP_BOX, _flag("multicast")),
        _instruction(isa.TmaBulk, _SLOT_OPERAND, Operand("address", AFFINE), Operand("bytes", INTEGER)),
        _instruction(isa.MbWait, _SLOT_OPERAND),
        _instruction(isa.AcquireStage, _SLOT_OPERAND),
        _instruction(isa.ReleaseStage, _SLOT_OPERAND, _flag("remote")),
        _instruction(isa.TmaStore, *_MAP_BOX, _GROUP),
        _instruction(isa.TmaCommit, _GROUP),
        _instruction(isa.TmaWait, _GROUP, _OUTSTANDING, _flag("read")),
        _instruction(
            isa.Wgmma,
            *_integers("m", "n", "k", "count"),
            Operand("mode", _choice("SS", "RS")),
            Operand("d", NAME),
            Operand("a", TILE),
            Operand("b", SLOT),
            _GROUP,
            Operand("dtype", _choice("fp16", "bf16"), default="fp16"),
            Operand("acc", _choice("f32"), default="f32"),
            _flag("sparse"),
        ),
        _instruction(isa.WgmmaCommit, _GROUP),
        _instruction(isa.WgmmaWait, _GROUP, _OUTSTANDING),
        _instruction(isa.BarArrive, _BARRIER),
        _instruction(isa.BarWait, _BARRIER, Operand("arrivals", INTEGER)),
        _instruction(
            isa.Bubbles,
            Operand("kind", _choice("cycles", "softmax", "epilogue"), positional=True),
            *(Operand(name, INTEGER, default=0) for name in ("cycles", "elements", "masked", "rescale")),
        ),
    )
)


def affine_operands(instruction: isa.Instruction) -> Iterator[tuple[str, Affine]]:
    """Yield name and value of each operand that a REPEAT can advance, in the order of the text."""
    for operand in INSTRUCTIONS[isa.MNEMONICS[type(instruction)]].operands:
        value = getattr(instruction, operand.name)
        if isinstance(value, Slot):
            yield operand.name, value.index
        elif isinstance(value, Affine):
            yield operand.name, value


def format_operands(syntax: Syntax, value: object) -> str:
    """Return the canonical operand text of `value`; raises `OperandError` for what the format cannot hold."""
    parts = []
    for operand in syntax.operands:
        field = getattr(value, operand.name)
        if operand.default is not msgspec.NODEFAULT and field == operand.default:
            continue
        try:
            text = operand.codec.format(field)
        except OperandError as error:
            raise OperandError(f"{operand.name}: {error}") from None
        if operand.codec is FLAG:
            parts.append(operand.name)
        else:
            parts.append(text if operand.positional else f"{operand.name}={text}")
    return " ".join(parts)


def parse_operands(syntax: Syntax, tokens: list[str]) -> Any:
    """Return the value that the operands `tokens` make; raises `OperandError`."""
    values: dict[str, Any] = {}
    expected = [operand for operand in syntax.operands if operand.positional]
    named = {operand.name: operand for operand in syntax.operands if not operand.positional}
    for position, token in enumerate(tokens):
        key, equals, text = token.partition("=")
        if position < len(expected):
            operand, text = expected[position], token
        elif key not in named:
            known = ", ".join(name if item.codec is FLAG else f"{name}=" for name, item in named.items()) or "none"
            raise OperandError(f"unknown operand {token!r}; expected {known}")
        else:
            operand = named[key]
            if (operand.codec is FLAG) == bool(equals):
                raise OperandError(f"{key}: expected {f'{key} alone' if equals else f'{key}=VALUE'}, found {token!r}")
        if operand.name in values:
            raise OperandError(f"{operand.name} is given twice")
        try:
            values[operand.name] = operand.codec.parse(text)
        except OperandError as error:
            raise OperandError(f"{operand.name}: {error}") from None
    for operand in syntax.operands:
        if operand.name not in values:
            if operand.default is msgspec.NODEFAULT:
                raise OperandError(f"{operand.name} is missing")
            values[operand.name] = operand.default
    return syntax.make(**values)
