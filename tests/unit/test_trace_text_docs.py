"""`docs/formats.md` names every statement and operand of a trace, and its example is one."""

import re
from pathlib import Path

import pytest

from simfa.trace_operands import DECLARATIONS, INSTRUCTIONS
from simfa.trace_text import HEADER, parse_trace

TEXT = (Path(__file__).parents[2] / "docs" / "formats.md").read_text(encoding="utf-8")
SECTION = TEXT[TEXT.index("## Traces: `.satrace`") :]


@pytest.mark.parametrize("mnemonic", [*DECLARATIONS, *INSTRUCTIONS])
def test_every_operand_is_in_the_tables(mnemonic: str) -> None:
    (row,) = (line for line in SECTION.splitlines() if re.match(rf"\| ([^|]*, )?{mnemonic}\b", line))
    for operand in (DECLARATIONS | INSTRUCTIONS)[mnemonic].operands:
        named = f"`{operand.name}`" in row
        assert named or (operand.positional and f"*{operand.name}*" in row), operand.name


def test_the_example_is_a_trace_but_for_what_it_leaves_out() -> None:
    example = SECTION[SECTION.index("```") + 4 :]
    lines = [line for line in example[: example.index("```")].splitlines() if line.strip() != "..."]
    assert lines[0] == HEADER
    lines = [
        line.replace("ping_pong=yes ...", "ping_pong=yes overlap=yes p_in_registers=yes rescale_before_pv=no").replace(
            "...", ""
        )
        for line in lines
    ]
    trace = parse_trace("\n".join(lines)).trace
    assert trace.tile_kinds[0].programs[0] == trace.programs[0].name
