"""Every malformed text is refused with its line, what was expected and what was found."""

import re

import pytest

from simfa.errors import TraceError
from simfa.trace_text import parse_trace

GOOD = """\
SATRACE 1
SHAPE batch=1 seqlen_q=128 seqlen_kv=256 heads_q=2 heads_kv=1 head_dim=64 causal=no dtype=fp16
KERNEL version=x tile_m=64 tile_n=64 stages=2 consumers=1 cluster=1 schedule=static ping_pong=no overlap=yes \
p_in_registers=yes rescale_before_pv=no
ORIGIN log_source=none
DEF_TMAP K base=0x0 dims=64,256,1,1 strides=128,128,32768 box=64,64,1,1 element_bytes=2 origin=kv
DEF_RING K stages=2 bytes=8192 releases=1 empty=mbarrier
PROGRAM load role=0
  REPEAT 4
    ACQUIRE_STAGE K[i]
    TMA_TENSOR K[i] map=K x=0 y=192-64*i
  END
END
PROGRAM use role=1
  MB_WAIT K[0]
  BUBBLES softmax elements=4096
END
TILE_KIND tile load use
PROLOGUE - -
SCHEDULE static ctas=2 cluster=1
  CTA 0
    TILES tile 0,0,0 1,0,0
  CTA 1
    TILES tile 0,1,0
END
"""


def test_the_text_that_the_others_spoil_is_good() -> None:
    trace = parse_trace(GOOD, "a.satrace").trace
    assert [len(tiles) for tiles in trace.schedule.tiles] == [2, 1]


LINES = GOOD.splitlines()


def line_of(text: str) -> int:
    """Number of the first line that starts with `text`."""
    return next(number for number, line in enumerate(LINES, 1) if line.strip().startswith(text))


# What to replace, by what, the line that the message names (found by its text), and the message.
SPOILED = [
    ("SATRACE 1\n", "", "SATRACE", "expected 'SATRACE 1', found 'SHAPE batch=1"),
    ("SATRACE 1", "SATRACE 2", "SATRACE", "expected 'SATRACE 1', found 'SATRACE 2'"),
    ("SHAPE ", "SHAPES ", "SHAPE", "unknown statement 'SHAPES'; expected one of SHAPE, KERNEL"),
    ("batch=1 ", "batch=one ", "SHAPE", "batch: expected a whole number below 2^63, found 'one'"),
    ("batch=1 ", "batch=-1 ", "SHAPE", "batch: expected a whole number"),
    ("batch=1 ", "batch=0 ", "SHAPE", "batch is 0; expected a positive whole number"),
    ("batch=1 ", "batch=1 batch=1 ", "SHAPE", "batch is given twice"),
    ("batch=1 ", "", "SHAPE", "batch is missing"),
    ("batch=1 ", "bach=1 ", "SHAPE", "unknown operand 'bach=1'; expected batch=, seqlen_q="),
    ("heads_q=2", "heads_q=3 heads_kv=2 ", "SHAPE", "heads_kv is given twice"),
    ("heads_q=2 heads_kv=1", "heads_q=3 heads_kv=2", "SHAPE", "heads_q 3 is not a multiple of heads_kv 2"),
    ("causal=no", "causal=false", "SHAPE", "causal: expected yes or no, found 'false'"),
    ("dtype=fp16", "dtype=fp32", "SHAPE", "dtype 'fp32' is unknown"),
    ("seqlen_q=128", "seqlen_q=9223372036854775808", "SHAPE", "seqlen_q: expected a whole number below 2^63"),
    ("ORIGIN log_source=none\n", "", None, "ORIGIN is missing"),
    ("log_source=none", "log_source=guess", "ORIGIN", "log_source: expected captured or synthetic or none"),
    ("log_source=none", "log_source=none reconstructed=yes", "ORIGIN", "reconstructed: expected reconstructed alone"),
    ("log_source=none", "log_source=none\nORIGIN log_source=none", 5, "a second ORIGIN; expected one"),
    ("log_source=none", "log_source=none\nSHAPE batch=1", 5, "SHAPE after ORIGIN; expected the order SHAPE, KERNEL"),
    ("DEF_TMAP K base", "DEF_TMAP 9K base", "DEF_TMAP", "name: expected a name"),
    ("DEF_TMAP K base", "DEF_TMAP base", "DEF_TMAP", "name: expected a name (letters"),
    ("base=0x0", "base=0xZZ", "DEF_TMAP", "base: expected a whole number"),
    ("dims=64,256,1,1", "dims=64,,1,1", "DEF_TMAP", "dims: expected a whole number"),
    ("dims=64,256,1,1", "dims=", "DEF_TMAP", "dims: expected a whole number"),
    ("origin=kv", "origin=key", "DEF_TMAP", "origin: expected query or kv or none, found 'key'"),
    ("origin=kv", "origin=kv fast", "DEF_TMAP", "unknown operand 'fast'"),
    ("empty=mbarrier", "empty=barrier", "DEF_RING", "empty: expected mbarrier or named"),
    ("empty=mbarrier", "empty", "DEF_RING", "empty: expected empty=VALUE, found 'empty'"),
    (
        "DEF_RING K stages=2 bytes=8192 releases=1 empty=mbarrier",
        "DEF_RING K stages=2 bytes=8192 releases=1 empty=mbarrier\n" * 2,
        7,
        "DEF_RING K is already defined in line 6",
    ),
    ("PROGRAM load role=0", "PROGRAM load", "PROGRAM load", "expected NAME role=NUMBER, found 'load'"),
    ("PROGRAM load role=0", "PROGRAM load roll=0", "PROGRAM load", "expected NAME role=NUMBER"),
    ("PROGRAM load role=0", "PROGRAM lo[ad role=0", "PROGRAM load", "expected a name"),
    ("PROGRAM use role=1", "PROGRAM load role=1", "PROGRAM use", "PROGRAM load is already defined in line 7"),
    ("REPEAT 4", "REPEAT", "REPEAT", "expected REPEAT COUNT, found 'REPEAT'"),
    ("REPEAT 4", "REPEAT four", "REPEAT", "expected REPEAT COUNT"),
    ("REPEAT 4", "REPEAT 4\n    REPEAT 2", 9, "REPEAT inside the REPEAT of line 8; repeats do not nest"),
    ("    ACQUIRE_STAGE K[i]\n    TMA_TENSOR K[i] map=K x=0 y=192-64*i\n", "", "REPEAT", "an empty REPEAT"),
    ("ACQUIRE_STAGE K[i]", "ACQUIRE K[i]", "ACQUIRE", "unknown instruction 'ACQUIRE'; expected one of TMA_TENSOR"),
    ("ACQUIRE_STAGE K[i]", "ACQUIRE_STAGE", "ACQUIRE", "slot is missing"),
    ("ACQUIRE_STAGE K[i]", "ACQUIRE_STAGE K", "ACQUIRE", "slot: expected a slot RING[ordinal], found 'K'"),
    ("ACQUIRE_STAGE K[i]", "ACQUIRE_STAGE K[]", "ACQUIRE", "slot: expected a slot RING[ordinal]"),
    ("ACQUIRE_STAGE K[i]", "ACQUIRE_STAGE K[j]", "ACQUIRE", "slot: expected a number or start+step*i, found 'j'"),
    ("ACQUIRE_STAGE K[i]", "ACQUIRE_STAGE K[2i]", "ACQUIRE", "slot: expected a number or start+step*i"),
    ("ACQUIRE_STAGE K[i]", "ACQUIRE_STAGE K[i+1]", "ACQUIRE", "slot: expected a number or start+step*i"),
    ("ACQUIRE_STAGE K[i]", "ACQUIRE_STAGE K[-1]", "ACQUIRE", "slot: expected a number or start+step*i"),
    ("ACQUIRE_STAGE K[i]", "ACQUIRE_STAGE K[i] K[i]", "ACQUIRE", "unknown operand 'K[i]'; expected none"),
    ("x=0 y=192-64*i", "x=0", "TMA_TENSOR", "y is missing"),
    ("x=0 y=192-64*i", "x=i y=0", "TMA_TENSOR", "x: expected a whole number"),
    ("x=0 y=192-64*i", "x=0 y=0 multicast=yes", "TMA_TENSOR", "multicast: expected multicast alone"),
    ("MB_WAIT K[0]", "MB_WAIT K[i]", "MB_WAIT", "slot advances with i outside a REPEAT"),
    ("MB_WAIT K[0]", "WGMMA_WAIT group=0", "MB_WAIT", "outstanding is missing"),
    (
        "MB_WAIT K[0]",
        "BAR_WAIT arrivals=1",
        "MB_WAIT",
        "barrier: expected a whole number below 2^63, found 'arrivals=1'",
    ),
    (
        "MB_WAIT K[0]",
        "WGMMA m=64 n=64 k=16 count=4 mode=SR d=S a=Q b=K[0] group=0",
        "MB_WAIT",
        "mode: expected SS or RS, found 'SR'",
    ),
    (
        "MB_WAIT K[0]",
        "WGMMA m=64 n=64 k=16 count=4 mode=SS d=S a=Q b=K group=0",
        "MB_WAIT",
        "b: expected a slot RING[ordinal], found 'K'",
    ),
    ("BUBBLES softmax", "BUBBLES soft", "BUBBLES", "kind: expected cycles or softmax or epilogue, found 'soft'"),
    ("BUBBLES softmax elements=4096", "BUBBLES elements=4096", "BUBBLES", "kind: expected cycles"),
    ("TILE_KIND tile load use", "TILE_KIND tile", "TILE_KIND", "expected a name and a program for each role"),
    ("TILE_KIND tile load use", "TILE_KIND tile load 1use", "TILE_KIND", "expected a name"),
    ("TILE_KIND tile load use", "TILE_KIND tile load use\n" * 2, 18, "TILE_KIND tile is already defined in line 17"),
    ("PROLOGUE - -", "PROLOGUE", "PROLOGUE", "expected a program name or '-' for each role"),
    ("PROLOGUE - -\n", "", None, "PROLOGUE is missing"),
    ("SCHEDULE static", "SCHEDULE fixed", "SCHEDULE", "expected static or dynamic, ctas=NUMBER, cluster=NUMBER"),
    ("ctas=2", "CTAs=2", "SCHEDULE", "expected ctas=NUMBER, found 'CTAs=2'"),
    ("cluster=1\n", "cluster=4\n", "SCHEDULE", "clusters of 4 are not supported; expected 1 or 2"),
    ("ctas=2", "ctas=3", "SCHEDULE", "expected 3 CTA lists, found 2"),
    ("  CTA 1", "  CTA 2", "CTA 1", "expected CTA 1, found 'CTA 2'"),
    ("  CTA 0\n", "", 20, "expected CTA or END, found 'TILES'"),
    ("SCHEDULE static", "SCHEDULE dynamic", 20, "expected TILES or END, found 'CTA'"),
    ("TILES tile 0,1,0", "TILES tile", "TILES tile 0,1,0", "expected TILES KIND m_block,head,batch"),
    ("TILES tile 0,1,0", "TILES tile 0,1", "TILES tile 0,1,0", "TILES: expected m_block,head,batch, found '0,1'"),
    ("TILES tile 0,1,0", "TILES tile 0,1,-2", "TILES tile 0,1,0", "TILES: expected m_block,head,batch"),
    (
        "TILES tile 0,1,0",
        "TILES last 0,1,0",
        "TILES tile 0,1,0",
        "TILES: tile kind 'last' is not defined; expected one of",
    ),
]


@pytest.mark.parametrize(("old", "new", "place", "message"), SPOILED, ids=[case[3][:60] for case in SPOILED])
def test_a_spoiled_text_is_refused_with_its_line(old: str, new: str, place: str | int | None, message: str) -> None:
    assert old in GOOD
    text = GOOD.replace(old, new, 1)
    with pytest.raises(TraceError) as error:
        parse_trace(text, "a.satrace")
    number = {int: lambda: place, str: lambda: line_of(str(place)), type(None): lambda: text.count("\n") + 1}
    assert str(error.value).startswith(f"a.satrace:{number[type(place)]()}: "), str(error.value)
    assert message in str(error.value)


@pytest.mark.parametrize("length", range(len(LINES)))
def test_a_text_that_is_cut_short_is_refused(length: int) -> None:
    with pytest.raises(TraceError, match=r"cut short|missing|expected 'SATRACE 1'|CTA lists"):
        parse_trace("\n".join(LINES[:length]), "a.satrace")


def test_nothing_is_no_trace() -> None:
    with pytest.raises(TraceError, match=re.escape("a.satrace:1: expected 'SATRACE 1', found nothing")):
        parse_trace("# only a comment\n", "a.satrace")
