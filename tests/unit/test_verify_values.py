"""The verifier on traces that never were text, and on kinds of tiles that meet in a cluster."""

import msgspec
import pytest

from simfa import isa
from simfa.errors import TraceError
from simfa.isa import Affine
from simfa.trace import Program
from simfa.trace_text import format_trace, parse_trace
from simfa.verify import verify
from tests.unit.trace_texts import GOOD


def test_values_made_in_memory_are_checked_like_parsed_ones() -> None:
    good = parse_trace(GOOD).trace
    nested = isa.Repeat(count=1, body=(isa.Repeat(count=1, body=()),))  # type: ignore[arg-type]
    outside = isa.BarArrive(barrier=0), isa.WgmmaCommit(group=Affine(0, 1))
    for changes, message in [
        ({"maps": (msgspec.structs.replace(good.maps[0], dims=(), box=(), strides=()),)}, "rank 0; expected 1 to 5"),
        ({"maps": (msgspec.structs.replace(good.maps[0], base=-1),)}, "base -1; expected an address from 0 to"),
        ({"maps": (msgspec.structs.replace(good.maps[0], base=2**63),)}, f"expected an address from 0 to {2**63 - 1}"),
        ({"maps": (msgspec.structs.replace(good.maps[0], origin="key"),)}, "origin 'key'; expected query, kv or none"),
        ({"maps": (*good.maps, good.maps[0])}, "DEF_TMAP K is defined twice"),
        ({"programs": (*good.programs, good.programs[0])}, "PROGRAM start is defined twice"),
        ({"programs": (Program(name="p", role=0, body=(nested,)),)}, "a body of instructions without REPEAT"),
        ({"programs": (Program(name="p", role=0, body=outside),)}, "group has step 1 outside a REPEAT"),
        ({"shape": None}, "origin kv needs the trace's SHAPE and KERNEL"),
        ({"prologue": ()}, "PROLOGUE has the roles 0 to -1"),
        ({"schedule": msgspec.structs.replace(good.schedule, cluster=4)}, "clusters of 4 are not supported"),
        ({"schedule": msgspec.structs.replace(good.schedule, ctas=3)}, "3 CTAs; expected a positive multiple"),
        ({"schedule": msgspec.structs.replace(good.schedule, mode="dynamic")}, "a dynamic schedule with clusters of 2"),
        ({"schedule": msgspec.structs.replace(good.schedule, tiles=())}, "0 lists of tiles; expected one for each of"),
    ]:
        with pytest.raises(TraceError) as error:
            verify(msgspec.structs.replace(good, **changes))
        assert message in str(error.value)


def test_a_tile_of_no_kind_is_refused() -> None:
    good = parse_trace(GOOD).trace
    tiles = tuple(tuple(tile._replace(kind=7) for tile in run) for run in good.schedule.tiles)
    with pytest.raises(TraceError, match="tile kind 7; expected an index below 1"):
        verify(msgspec.structs.replace(good, schedule=msgspec.structs.replace(good.schedule, tiles=tiles)))


def test_a_pair_of_kinds_that_do_not_fit_together_is_refused() -> None:
    """Both kinds work with themselves; one loads fewer K blocks, so halves of the other's are missing."""
    shorter = GOOD
    for name in ("load", "first", "second"):
        shorter = shorter.replace(f"PROGRAM {name} ", f"PROGRAM {name}.3 ")
    programs = shorter[shorter.index("PROGRAM load.3") : shorter.index("TILE_KIND")]
    programs = programs.replace("REPEAT 4", "REPEAT 3").replace("y=192", "y=128")
    text = GOOD.replace("TILE_KIND", programs + "TILE_KIND", 1)
    text = text.replace("PROLOGUE", "TILE_KIND short load.3 first.3 second.3\nPROLOGUE", 1)
    verify(parse_trace(text.replace("tile 0,1,0", "short 0,1,0").replace("tile 1,1,0", "short 1,1,0")).trace)
    with pytest.raises(TraceError, match=r"K\[3\].*\(tile kind tile with short\)"):
        verify(parse_trace(text.replace("tile 1,1,0", "short 1,1,0")).trace)


def test_the_text_stays_canonical() -> None:
    assert format_trace(parse_trace(GOOD).trace) == GOOD
