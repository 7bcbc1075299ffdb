"""What ptxas says about each kernel with `-v`: registers, stack, spills, and the messages that cost WGMMA overlap."""

import re

import msgspec

_ENTRY = re.compile(r"Compiling entry function '(?P<symbol>[^']+)'")
_FRAME = re.compile(
    r"(?P<stack>\d+) bytes stack frame, (?P<stores>\d+) bytes spill stores, (?P<loads>\d+) bytes spill loads"
)
_REGISTERS = re.compile(r"Used (?P<registers>\d+) registers")
# C75xx: ptxas serialised WGMMAs or injected waits around them, or ignored setmaxnreg.
_WGMMA_MESSAGE = re.compile(r"\(C75\d\d\)")


class PtxasEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Resources of one kernel."""

    symbol: str
    registers: int
    stack_bytes: int
    spill_store_bytes: int
    spill_load_bytes: int


class PtxasReport(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All kernels of one compilation, the warnings, and those of them that mean serialised or guarded WGMMAs."""

    entries: tuple[PtxasEntry, ...]
    warnings: tuple[str, ...]
    wgmma_messages: tuple[str, ...]


def parse_ptxas(text: str) -> PtxasReport:
    """Return the report in the output of `nvcc -Xptxas -v`; kernels whose lines are incomplete are left out."""
    entries: list[PtxasEntry] = []
    warnings: list[str] = []
    wgmma_messages: list[str] = []
    symbol = ""
    frame: tuple[int, int, int] | None = None
    for line in text.splitlines():
        if found := _ENTRY.search(line):
            symbol, frame = found["symbol"], None
        elif found := _FRAME.search(line):
            frame = int(found["stack"]), int(found["stores"]), int(found["loads"])
        elif (found := _REGISTERS.search(line)) and symbol and frame:
            entries.append(PtxasEntry(symbol, int(found["registers"]), *frame))
            symbol, frame = "", None
        if _WGMMA_MESSAGE.search(line):
            wgmma_messages.append(line.strip())
        elif re.search(r"\bwarning\b", line, re.IGNORECASE):
            warnings.append(line.strip())
    return PtxasReport(tuple(entries), tuple(warnings), tuple(wgmma_messages))
