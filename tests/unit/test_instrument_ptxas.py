"""The parser of ptxas reports, on made-up compiler output."""

from simfa.instrument.instantiation import Instantiation, instantiation_of
from simfa.instrument.ptxas_report import PtxasEntry, parse_ptxas

# Shape of an FA3 kernel's mangled name: stages 2, cluster 2, tile 128 x 176 x 128, head_dim 128, half, full mask.
SYMBOL = (
    "_ZN7cutlass13device_kernelIN5flash16FlashAttnFwdSm90INS1_25CollectiveMainloopFwdSm90ILi2EN4cute5tupleIJNS5_1CILi2E"
    "EENS7_ILi1EEES9_EEENS6_IJNS7_ILi128EEENS7_ILi176EEESB_EEELi128ENS_6half_tEfNS_4arch4Sm90ELb0ELb0EEEEEEvNT_6ParamsE"
)
CLEAN = f"""\
ptxas info    : 11 bytes gmem
ptxas info    : Compiling entry function '{SYMBOL}' for 'sm_90a'
ptxas info    : Function properties for {SYMBOL}
    16 bytes stack frame, 20 bytes spill stores, 24 bytes spill loads
ptxas info    : Used 168 registers, used 16 barriers, 16 bytes cumulative stack size
ptxas info    : Compile time = 477.068 ms
"""


def test_resources_of_a_kernel() -> None:
    report = parse_ptxas(CLEAN)
    assert report.entries == (PtxasEntry(SYMBOL, 168, 16, 20, 24),)
    assert report.warnings == report.wgmma_messages == ()


def test_two_kernels_keep_their_own_lines() -> None:
    second = CLEAN.replace(SYMBOL, "_Z5other").replace("Used 168", "Used 90").replace("20 bytes spill", "0 bytes spill")
    entries = parse_ptxas(CLEAN + second).entries
    assert [(entry.symbol, entry.registers, entry.spill_store_bytes) for entry in entries] == [
        (SYMBOL, 168, 20),
        ("_Z5other", 90, 0),
    ]


def test_serialised_wgmma_is_found_and_is_no_plain_warning() -> None:
    line = (
        "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due to ... in "
        "function 'k'"
    )
    injected = "ptxas info    : (C7519) warpgroup.arrive is injected in around line 7 by compiler"
    report = parse_ptxas(f"{CLEAN}{line}\n{injected}\n")
    assert report.wgmma_messages == (line, injected)
    assert report.warnings == ()


def test_warnings_are_kept() -> None:
    line = "x.h(12): warning #177-D: variable was declared but never referenced"
    assert parse_ptxas(f"{line}\n{CLEAN}").warnings == (line,)


def test_a_cut_off_report_has_no_half_kernel() -> None:
    assert parse_ptxas(CLEAN[: CLEAN.index("Used")]).entries == ()


def test_kernel_is_named_from_its_symbol() -> None:
    assert instantiation_of(SYMBOL) == Instantiation(128, "fp16", False, 2)
    other = SYMBOL.replace("1CILi2E", "1CILi1E").replace("6half_t", "10bfloat16_t").replace("4Sm90ELb0E", "4Sm90ELb1E")
    assert instantiation_of(other) == Instantiation(128, "bf16", True, 1)
    assert instantiation_of("_Z6vectorPf") is None
