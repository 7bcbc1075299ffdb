"""The text form and the values say the same: parse after write is the identity, and the text is canonical."""

import random
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simfa import isa
from simfa.errors import TraceError
from simfa.isa import Affine
from simfa.trace import Program, Ring, TileKind, Trace
from simfa.trace_operands import DECLARATIONS, INSTRUCTIONS, format_affine, parse_affine
from simfa.trace_places import flat_instructions
from simfa.trace_text import format_trace, parse_trace, read_trace, write_trace
from tests.unit.trace_strategies import any_traces, valid_traces


@settings(max_examples=25, deadline=None)
@given(trace=any_traces())
def test_what_is_written_is_read_back(trace: Trace) -> None:
    text = format_trace(trace)
    assert parse_trace(text).trace == trace
    assert format_trace(parse_trace(text).trace) == text


@settings(max_examples=10, deadline=None)
@given(trace=valid_traces(), noise=st.randoms(use_true_random=False))
def test_layout_and_comments_do_not_matter(trace: Trace, noise: random.Random) -> None:
    canonical = format_trace(trace)
    lines = []
    for line in canonical.splitlines():
        blank = noise.choice([" ", "  ", "\t"])
        lines.append(blank + line.replace(" ", blank) + noise.choice(["", "  # PROGRAM", "   ", "\r"]))
        lines.append(noise.choice(["", "# END", "   "]))
    assert format_trace(parse_trace("\n".join(lines)).trace) == canonical


@settings(deadline=None)
@given(start=st.integers(0, 1 << 62), step=st.integers(-(1 << 62), 1 << 62))
def test_an_operand_that_advances_is_read_back(start: int, step: int) -> None:
    assert parse_affine(format_affine(Affine(start, step))) == Affine(start, step)


@pytest.mark.parametrize(
    ("text", "start", "step"),
    [
        ("7", 7, 0),
        ("0x10", 16, 0),
        ("i", 0, 1),
        ("-i", 0, -1),
        ("3*i", 0, 3),
        ("-3*i", 0, -3),
        ("5+i", 5, 1),
        ("5-i", 5, -1),
        ("5808-176*i", 5808, -176),
        ("5+0*i", 5, 0),
    ],
)
def test_forms_of_an_operand_that_advances(text: str, start: int, step: int) -> None:
    assert parse_affine(text) == Affine(start, step)


def test_every_field_of_every_value_has_a_place_in_the_text() -> None:
    for mnemonic, syntax in (DECLARATIONS | INSTRUCTIONS).items():
        fields = [field.name for field in msgspec.structs.fields(syntax.make)]
        assert sorted(fields) == sorted(operand.name for operand in syntax.operands), mnemonic
    assert set(INSTRUCTIONS) == set(isa.MNEMONICS.values())


@settings(max_examples=10, deadline=None)
@given(trace=any_traces())
def test_the_line_of_each_instruction_is_where_its_mnemonic_stands(trace: Trace) -> None:
    text = format_trace(trace)
    places = parse_trace(text, "x.satrace").places
    lines = text.splitlines()
    for program in trace.programs:
        for flat in flat_instructions(program):
            line = places.line_of(program.name, flat.position)
            assert line is not None
            assert lines[line - 1].split()[0] == isa.MNEMONICS[type(flat.instruction)]
            assert places.instruction(program.name, flat.position, flat.instruction).startswith(f"x.satrace:{line}: ")
    assert places.line_of("no such program", 0) is None


@settings(max_examples=10, deadline=None)
@given(trace=any_traces())
def test_the_line_of_each_tile_holds_it(trace: Trace) -> None:
    text = format_trace(trace)
    places = parse_trace(text).places
    lines = text.splitlines()
    for run, numbers in zip(trace.schedule.tiles, places.tiles, strict=True):
        for tile, number in zip(run, numbers, strict=True):
            assert f"{tile.m_block},{tile.head},{tile.batch}" in lines[number - 1].split()


@settings(max_examples=5, deadline=None)
@given(trace=any_traces())
def test_files_hold_the_canonical_text(trace: Trace, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("traces") / "a.satrace"
    write_trace(path, trace)
    assert path.read_text(encoding="utf-8") == format_trace(trace)
    parsed = read_trace(path)
    assert parsed.trace == trace
    assert parsed.places.source == str(path)


EMPTY = "SATRACE 1\nORIGIN log_source=none\nPROLOGUE -\nSCHEDULE static ctas=1 cluster=1\nCTA 0\nEND\n"


@pytest.mark.parametrize("name", ["", "a b", "1a", "a#", "a=b", "a[0]"])
def test_a_name_the_format_cannot_hold_is_refused(name: str) -> None:
    trace = parse_trace(EMPTY).trace
    for changes in (
        {"programs": (Program(name=name, role=0, body=()),)},
        {"rings": (Ring(name=name, stages=1, bytes=0, releases=1),)},
        {"tile_kinds": (TileKind(name=name, programs=("a",)),)},
        {"prologue": (name,)},
    ):
        with pytest.raises(TraceError, match="cannot be written"):
            format_trace(msgspec.structs.replace(trace, **changes))


@pytest.mark.parametrize("value", [-1, 1 << 63])
def test_a_number_the_format_cannot_hold_is_refused(value: int) -> None:
    body = (isa.BarArrive(barrier=value),)
    trace = msgspec.structs.replace(parse_trace(EMPTY).trace, programs=(Program(name="p", role=0, body=body),))
    with pytest.raises(TraceError, match="barrier: expected a whole number"):
        format_trace(trace)


def test_a_missing_file_and_a_binary_file_are_named(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"none\.satrace: cannot be read: No such file"):
        read_trace(tmp_path / "none.satrace")
    (tmp_path / "log.satrace").write_bytes(b"SIMFALOG\xff\xff")
    with pytest.raises(TraceError, match=r"log\.satrace: offset 8: expected UTF-8"):
        read_trace(tmp_path / "log.satrace")
