"""Made-up machine code in the shape of nvdisasm's JSON: a producer, a consumer with one main loop, an exit."""

import json
from typing import Any

from tests.unit.test_instrument_ptxas import SYMBOL

CLOCK = ("CS2R", "R4,SR_CLOCKLO")
EX2 = ("MUFU.EX2", "R9,R9")
QK = ("HGMMA.64x176x16.F32", "R24,gdesc[UR8],R24")
PV = ("HGMMA.64x128x16.F32", "R112,R176,gdesc[UR8].tnspB,R112")
TRY = ("SYNCS.PHASECHK.TRANS64.TRYWAIT", "P0,[UR10+0x34830],R15")
SYNC = ("BAR.SYNC.DEFER_BLOCKING", "R14,0x100")
ARRIVE = ("BAR.ARV", "R14,0x100")
WAIT_1 = ("WARPGROUP.DEPBAR.LE", "gsb0,0x1")
WAIT_0 = ("WARPGROUP.DEPBAR.LE", "gsb0,0x0")
RELOAD = ("LDL", "R3,[R1+0x4]")
STORE = ("STL", "[R1+0x4],R3")

Code = list[tuple[str, ...]]


def turn(level: int, before: int = 23, after: int = 67) -> Code:
    """Return one turn of the main loop at an event level, with exp2 before and after wait<0>."""
    stamp_1 = [CLOCK] if level >= 1 else []
    stamp_2 = [CLOCK] if level >= 2 else []
    wait = [*stamp_1, TRY, TRY, *stamp_2]
    code = [*wait, *stamp_2, SYNC, *stamp_2, *stamp_1, *[QK] * 8, *wait, *stamp_1, *[PV] * 11, *stamp_2, ARRIVE]
    return [*code, *stamp_1, WAIT_1, *stamp_2, *[EX2] * before, *stamp_2, *stamp_1, WAIT_0, *stamp_2, *[EX2] * after]


def kernel(loop: Code, producer: Code = [STORE, RELOAD]) -> Code:  # noqa: B006
    """Return a kernel: entry, consumer with a prologue, `loop` and a tail, producer, and retry blocks behind."""
    entry: Code = [("S2R", "R0,SR_TID.X"), ("BRA", "producer", "@!P2"), ("USETMAXREG.TRY_ALLOC.CTAPOOL", "UP0,0xf0")]
    head: Code = [TRY, ("BRA", "retry", "@!P0"), *[QK] * 8, WAIT_0]
    body: Code = [*loop, ("BRA", "loop", "@P0")]
    tail: Code = [*[PV] * 11, WAIT_0, ("EXIT", "")]
    load: Code = [("USETMAXREG.DEALLOC.CTAPOOL", "0x18"), *producer, ("UTMALDG.4D", "[UR8],[UR14]"), ("EXIT", "")]
    retry: Code = [TRY, ("BRA", "retry", "@!P0"), ("BRA", "loop")]
    places = {"loop": len(entry) + len(head)}
    places["producer"] = places["loop"] + len(body) + len(tail)
    places["retry"] = places["producer"] + len(load)
    code = [*entry, *head, *body, *tail, *load, *retry]
    return [
        (opcode, hex(16 * places[operands]) if operands in places else operands, *guard)
        for opcode, operands, *guard in code
    ]


def listing(code: Code, symbol: str = SYMBOL) -> str:
    """Return the JSON that nvdisasm prints for one function."""
    instructions: list[dict[str, Any]] = []
    for opcode, operands, *guard in code:
        item: dict[str, Any] = {"opcode": opcode}
        if operands:
            item["operands"] = operands
        if guard:
            item["predicate"] = guard[0]
        instructions.append(item)
    function = {"function-name": symbol, "start": 0, "length": 16 * len(code), "sass-instructions": instructions}
    return json.dumps([{"SM": {"version": {"major": 9, "minor": 0}}}, [function]])
