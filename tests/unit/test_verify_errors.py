"""What the verifier refuses, each with the line at fault and a message that says what to do."""

import msgspec
import pytest

from simfa.errors import TraceError
from simfa.trace_text import parse_trace
from simfa.verify import verify
from tests.unit.trace_texts import GOOD


def test_the_trace_that_the_others_spoil_is_good() -> None:
    parsed = parse_trace(GOOD, "a.satrace")
    verify(parsed.trace, parsed.places)
    verify(parsed.trace)


# What to replace, by what, how the line begins that the message names, and the message.
SPOILED = [
    ("box=64,32,1,1", "box=64,257,1,1", "DEF_TMAP K base=0x0 dims", "DEF_TMAP K: box extent 257; expected 1 to 256"),
    ("box=64,32,1,1", "box=64,0,1,1", "DEF_TMAP K base=0x0 dims", "box extent 0; expected 1 to 256"),
    ("box=64,32,1,1", "box=64,32,1", "DEF_TMAP K base=0x0 dims", "3 box extents; expected one for each of the 4 dims"),
    ("dims=64,256,2,1", "dims=64,0,2,1", "DEF_TMAP K base=0x0 dims", "dims extent 0; expected 1 to 4294967296"),
    ("dims=64,256,2,1", "dims=64,256,2,1,1,1", "DEF_TMAP K base=0x0 dims", "rank 6; expected 1 to 5 dims"),
    (
        "dims=64,256,2,1",
        "dims=64,256,2",
        "DEF_TMAP K base=0x0 dims",
        "4 box extents; expected one for each of the 3 dims",
    ),
    (
        "strides=256,128,65536",
        "strides=256,128",
        "DEF_TMAP K base=0x0 dims",
        "2 strides; expected 3, one for each dim but the first",
    ),
    (
        "strides=256,128,65536",
        "strides=256,120,65536",
        "DEF_TMAP K base=0x0 dims",
        "stride 120; expected a positive multiple of 16 below",
    ),
    (
        "strides=256,128,65536",
        "strides=256,0,65536",
        "DEF_TMAP K base=0x0 dims",
        "stride 0; expected a positive multiple of 16 below",
    ),
    (
        "element_bytes=2 origin=kv",
        "element_bytes=3 origin=kv",
        "DEF_TMAP K base=0x0 dims",
        "element_bytes 3; expected 1, 2, 4 or 8",
    ),
    (
        "dims=64,256,2,1 strides=256,128,65536 box=64,32,1,1",
        "dims=64,256,2 strides=256,128 box=64,32,1",
        "DEF_TMAP K base=0x0 dims",
        "origin kv with rank 3; expected dims (column, row, head, batch)",
    ),
    ("stages=2 bytes", "stages=0 bytes", "DEF_RING K stages=0 byte", "DEF_RING K: stages 0; expected 1 to"),
    ("bytes=8192 releases=4", "bytes=8192 releases=0", "DEF_RING K stages=2 byte", "releases 0; expected 1 to"),
    (
        "RELEASE_STAGE K[i] remote",
        "RELEASE_STAGE L[i] remote",
        "RELEASE_STAGE L[i] remot",
        "ring 'L' is not defined; expected one of K",
    ),
    ("map=K x=0", "map=L x=0", "TMA_TENSOR K[i] map=L x=", "tensor map 'L' is not defined; expected one of K, O"),
    ("map=O x=0", "map=P x=0", "TMA_STORE map=P x=0 y=0 ", "tensor map 'P' is not defined"),
    ("y=192-64*i", "y=128-64*i", "TMA_TENSOR K[i] map=K x=", "y runs from 128 to -64; expected values from 0"),
    ("  REPEAT 4\n    ACQUIRE", "  REPEAT 0\n    ACQUIRE", "ACQUIRE_STAGE K[i]", "expected a count of 1 to"),
    ("    BAR_ARRIVE 2", "    BAR_ARRIVE 16", "BAR_ARRIVE 16", "barrier 16; a CTA has the named barriers 0 to 15"),
    ("BAR_WAIT 1 arrivals=1", "BAR_WAIT 1 arrivals=0", "BAR_WAIT 1 arrivals=0", "arrivals 0; expected 1 to"),
    ("m=64 n=64", f"m={1 << 31} n=64", "WGMMA m=2147483648", "m 2147483648; expected 1 to 2147483647"),
    ("count=4", f"count={10**18}", "WGMMA m=64 n=64 k=16 cou", "count 1000000000000000000; expected 1 to 2147483647"),
    ("y=192-64*i", f"y={1 << 31}", "TMA_TENSOR K[i] map=K x=", "y runs from 2147483648 to 2147483648"),
    ("    MB_WAIT K[i]", f"    MB_WAIT K[{10**18}]", "MB_WAIT K[1000", "slot runs from 1000000000000000000"),
    ("    MB_WAIT K[i]", "    MB_WAIT K[2000000000]", "MB_WAIT K[2000000000]", "more than 65536 fills ahead of K[0]"),
    ("dims=64,256,2,1", f"dims=64,{10**18},2,1", "DEF_TMAP K base=0x0 dims", "expected 1 to 4294967296"),
    ("tile_m=64", "tile_m=0", "KERNEL version", "KERNEL: tile_m 0; expected 1 to"),
    ("m=64 n=64", "m=64 n=0", "WGMMA m=64 n=0 k=16 coun", "n 0; expected 1 to"),
    ("mode=RS d=S a=Q b=K[i]", "mode=RS d=S a=K[i] b=K[i]", "WGMMA m=64 n=64 k=16 cou", "mode RS with a in a slot"),
    (
        "RELEASE_STAGE K[i] remote",
        "RELEASE_STAGE K[i]",
        "RELEASE_STAGE K[i]",
        "ring K is filled by multicast; expected remote",
    ),
    (
        "PROGRAM second role=2",
        "PROGRAM second role=3",
        "PROGRAM second role=3",
        "PROGRAM second: role 3; PROLOGUE has the roles 0 to 2",
    ),
    (
        "PROGRAM second role=2",
        "PROGRAM second role=1",
        "TILE_KIND tile load firs",
        "program second is of role 1; expected role 2 at this",
    ),
    (
        "TILE_KIND tile load first second",
        "TILE_KIND tile load first",
        "TILE_KIND tile load firs",
        "2 programs; expected one for each of the 3",
    ),
    (
        "TILE_KIND tile load first second",
        "TILE_KIND tile load first third",
        "TILE_KIND tile load firs",
        "program 'third' is not defined",
    ),
    ("PROLOGUE - start -", "PROLOGUE - begin -", "PROLOGUE - begin -", "PROLOGUE: program 'begin' is not defined"),
    (
        "PROLOGUE - start -",
        "PROLOGUE start - -",
        "PROLOGUE start - -",
        "program start is of role 1; expected role 0 at this place",
    ),
    (
        "PROLOGUE - start -",
        "PROLOGUE - start - -",
        "TILE_KIND tile load firs",
        "3 programs; expected one for each of the 4 roles",
    ),
    (
        "PROGRAM start role=1\n  BAR_ARRIVE 1",
        "PROGRAM start role=1\n  MB_WAIT K[0]",
        "MB_WAIT K[0]",
        "a prologue cannot use ring",
    ),
    (
        "PROGRAM start role=1\n  BAR_ARRIVE 1",
        "PROGRAM start role=1\n  BAR_WAIT 1 arrivals=1",
        "BAR_WAIT 1 arrivals=1",
        "waits for ever",
    ),
    (
        "    BAR_WAIT 2 arrivals=1",
        "    BAR_WAIT 1 arrivals=2",
        "BAR_WAIT 1 arrivals=2",
        "role 2 waits on barrier 1, and so does role 1 in",
    ),
    (
        "ctas=4 cluster=2",
        "ctas=4 cluster=1",
        "TMA_TENSOR K[i] map=K x=",
        "multicast in clusters of 1; expected a SCHEDULE with cluster=2",
    ),
    (
        "TILES tile 1,1,0",
        "TILES tile 4,1,0",
        "TILES tile 4,1,0",
        "tile 0 of CTA 3: m_block 4 is out of range; expected 0 to 3",
    ),
    (
        "TILES tile 1,1,0",
        "TILES tile 1,4,0",
        "TILES tile 1,4,0",
        "tile 0 of CTA 3: head 4 is out of range; expected 0 to 3",
    ),
    (
        "TILES tile 1,1,0",
        "TILES tile 1,1,1",
        "TILES tile 1,1,1",
        "tile 0 of CTA 3: batch 1 is out of range; expected 0 to 0",
    ),
    ("    TILES tile 1,1,0\n", "", "CTA 3", "CTA 3 has 0 tiles, CTA 2 of its cluster has 1; expected equal numbers"),
    (
        "TILES tile 1,1,0",
        "TILES tile 1,2,0",
        "TILES tile 1,2,0",
        "K and V are multicast, but CTA 2 works on another head",
    ),
    (
        "    WGMMA_COMMIT group=i\n    BAR_ARRIVE 2",
        "    BAR_ARRIVE 2",
        "WGMMA_WAIT group=i outst",
        "waits for WGMMA group 0, but only 0 are",
    ),
    (
        "d=S a=Q b=K[i] group=i",
        "d=S a=Q b=K[i] group=1+i",
        "WGMMA m=64 n=64 k=16 cou",
        "group 1 after 0 committed; expected group 0",
    ),
    (
        "    WGMMA_COMMIT group=i",
        "    WGMMA_COMMIT group=2*i",
        "WGMMA_COMMIT group=2*i",
        "group 2 after 1 committed; expected group 1",
    ),
    (
        "WGMMA_WAIT group=i outstanding=0",
        "WGMMA_WAIT group=1+i outstanding=0",
        "WGMMA_WAIT group=1+i out",
        "waits for WGMMA group 1, but only 1",
    ),
    (
        "WGMMA_WAIT group=i outstanding=0",
        "WGMMA_WAIT group=i outstanding=1",
        "RELEASE_STAGE K[i] remot",
        "K[0] may still be read by WGMMA",
    ),
    (
        "TMA_COMMIT group=0\n",
        "TMA_WAIT group=0 outstanding=0\n",
        "TMA_WAIT group=0 outstan",
        "waits for store group 0, but only 0 are committed",
    ),
    (
        "  TMA_COMMIT group=0\n  TMA_WAIT group=0 outstanding=0 read\n",
        "",
        "TMA_STORE map=O x=0 y=0 ",
        "its store group is never committed",
    ),
    (
        "    RELEASE_STAGE K[i] remote\n  END\n  TMA",
        "  END\n  TMA",
        "ACQUIRE_STAGE K[i]",
        "waits for ever: K[0] was released 2 of 4 times",
    ),
    (
        "  END\n  TMA_STORE",
        "  END\n  RELEASE_STAGE K[3] remote\n  TMA_STORE",
        "RELEASE_STAGE K[3] remot",
        "K[3] is released more often than the 4",
    ),
    (
        "    MB_WAIT K[i]\n",
        "",
        "WGMMA m=64 n=64 k=16 cou",
        "nothing says that K[0] has arrived; expected an MB_WAIT of this role before",
    ),
    ("    MB_WAIT K[i]", "    MB_WAIT K[1+i]", "WGMMA m=64 n=64 k=16 cou", "nothing says that K[0] has arrived"),
    (
        "REPEAT 4\n    MB_WAIT",
        "REPEAT 3\n    MB_WAIT",
        "BAR_WAIT 2 arrivals=1",
        "waits for ever: barrier 2 has 0 of 1 signals",
    ),
    (
        "    BAR_ARRIVE 2\n",
        "",
        "BAR_WAIT 2 arrivals=1",
        "BAR_WAIT of program second waits for ever: barrier 2 has 0 of 1 signals; nobody",
    ),
    (
        "    BAR_ARRIVE 1\n",
        "    BAR_ARRIVE 1\n    BAR_ARRIVE 1\n",
        "BAR_WAIT 1 arrivals=1",
        "barrier 1 receives 4 more signals in a tile than its BAR_WAITs take",
    ),
    (
        "bytes=8192 releases=4",
        "bytes=4096 releases=4",
        "TMA_TENSOR K[i] map=K x=",
        "K[0] receives 8192 bytes so far, its ring holds 4096",
    ),
    (
        "bytes=8192 releases=4",
        "bytes=16384 releases=4",
        "MB_WAIT K[i]",
        "waits for ever: K[0] received 8192 of 16384 bytes",
    ),
    (
        "releases=4 empty",
        "releases=2 empty",
        "WGMMA m=64",
        "K[0] is read after all 2 releases of its fill",
    ),
    ("ACQUIRE_STAGE K[i]", "ACQUIRE_STAGE K[2*i]", "ACQUIRE_STAGE K[2*i]", "K[2] after 1 fills; expected K[1]"),
    (
        "    ACQUIRE_STAGE K[i]\n",
        "",
        "TMA_TENSOR K[i] map=K x=",
        "this role has not acquired K[0]; expected ACQUIRE_STAGE before the copy",
    ),
    (
        "    RELEASE_STAGE K[i] remote\n  END\n  TMA",
        "    RELEASE_STAGE K[0] remote\n  END\n  TMA",
        "RELEASE_STAGE K[0] remot",
        "K[0]",
    ),
    ("y=192-64*i multicast", "y=192-64*i", "MB_WAIT K[i]", "waits for ever: K[0] received 4096 of 8192 bytes"),
]


@pytest.mark.parametrize(("old", "new", "line", "message"), SPOILED, ids=[f"{case[3][:50]}" for case in SPOILED])
def test_a_spoiled_trace_is_refused_with_its_line(old: str, new: str, line: str, message: str) -> None:
    assert old in GOOD
    parsed = parse_trace(GOOD.replace(old, new, 1), "a.satrace")
    with pytest.raises(TraceError) as error:
        verify(parsed.trace, parsed.places)
    assert message in str(error.value)
    lines = GOOD.replace(old, new, 1).splitlines()
    number = next(number for number, text in enumerate(lines, 1) if text.strip().startswith(line))
    assert f"a.satrace:{number}: " in str(error.value), str(error.value)
    with pytest.raises(TraceError):
        verify(parsed.trace)


def test_without_text_the_message_names_program_and_instruction() -> None:
    text = GOOD.replace("WGMMA_WAIT group=i outstanding=0", "WGMMA_WAIT group=i outstanding=1", 1)
    with pytest.raises(TraceError, match=r"^program first, instruction 6 \(RELEASE_STAGE\), i = 0|RELEASE_STAGE\): K"):
        verify(parse_trace(text).trace)


def test_all_waiting_roles_are_named() -> None:
    parsed = parse_trace(GOOD.replace("    BAR_ARRIVE 2\n", "", 1), "a.satrace")
    with pytest.raises(TraceError) as error:
        verify(parsed.trace, parsed.places)
    lines = GOOD.replace("    BAR_ARRIVE 2\n", "", 1).splitlines()
    for line, role in (("ACQUIRE_STAGE", "load"), ("BAR_WAIT 1", "first"), ("BAR_WAIT 2", "second")):
        number = next(number for number, text in enumerate(lines, 1) if text.strip().startswith(line))
        assert f"a.satrace:{number}: {line.split()[0]} of program {role}" in str(error.value)
    assert str(error.value).endswith("(tile kind tile)")


def test_a_tensor_of_rank_0_is_refused() -> None:
    trace = parse_trace(GOOD).trace
    first = msgspec.structs.replace(trace.maps[0], dims=(), strides=(), box=())
    with pytest.raises(TraceError, match="rank 0; expected 1 to 5 dims"):
        verify(msgspec.structs.replace(trace, maps=(first, *trace.maps[1:])))
