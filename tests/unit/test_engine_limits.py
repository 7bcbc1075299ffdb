"""Numbers that a valid trace or preset leads to and that the engine's integers cannot hold: refused by name."""

import numpy as np
import pytest

from simfa.errors import SimulationError, TraceError
from simfa.hardware import load_preset
from simfa.simulate import _core
from simfa.simulate.engine import check, run
from simfa.trace import Trace
from simfa.trace_text import parse_trace
from simfa.verify import verify
from tests.unit.trace_texts import GOOD

TWO = """\
SATRACE 1
ORIGIN log_source=none
DEF_TMAP T base=0x0 dims=64,64 strides=128 box=64,64 element_bytes=2 origin=none
DEF_RING K stages=2 bytes=8192 releases=1 empty=mbarrier
PROGRAM load role=0
  REPEAT 4
    ACQUIRE_STAGE K[i]
    TMA_TENSOR K[i] map=T x=0 y=0
  END
END
PROGRAM use role=1
  REPEAT 4
    MB_WAIT K[i]
    WORK
    RELEASE_STAGE K[i]
  END
END
TILE_KIND tile load use
PROLOGUE - -
SCHEDULE static ctas=1 cluster=1
  CTA 0
    TILES tile 0,0,0
END
"""


def two(work: str = "BUBBLES cycles cycles=10", *changes: tuple[str, str]) -> Trace:
    """Return a verified trace of two roles; `work` is what the consumer does with each fill."""
    text = TWO.replace("WORK", work)
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    trace = parse_trace(text).trace
    verify(trace)
    return trace


@pytest.mark.parametrize(
    ("work", "overrides", "message"),
    [
        # 2^31 scores at 16 a cycle by seven operations fit; at one a cycle they do not.
        (
            f"BUBBLES softmax elements={2**31 - 1}",
            ("cuda_core.exp_per_cycle=1", "cuda_core.max_per_cycle=1"),
            r"program use, instruction 1 \(BUBBLES\) takes \d{10} cycles by its counts and the preset's cuda_core; "
            "expected at most 2147483647",
        ),
        (
            f"WGMMA m={2**20} n={2**20} k={2**20} count=1 mode=SS d=S a=K[i] b=K[i] group=i\n    WGMMA_COMMIT group=i\n"
            "    WGMMA_WAIT group=i outstanding=0",
            (),
            r"program use, instruction 1 \(WGMMA\) takes \d+ cycles by m, n, k and the preset's tensor_core",
        ),
        # The preset alone: 2^32 + 128 would wrap to 128.
        (
            "WGMMA m=64 n=64 k=16 count=1 mode=SS d=S a=K[i] b=K[i] group=i\n    WGMMA_COMMIT group=i\n"
            "    WGMMA_WAIT group=i outstanding=0",
            (f"tensor_core.wgmma_min_cycles={2**32 + 128}",),
            f"WGMMA.* takes {2**32 + 128} cycles",
        ),
    ],
)
def test_cycles_of_an_instruction_do_not_wrap(work: str, overrides: tuple[str, ...], message: str) -> None:
    with pytest.raises(SimulationError, match=message):
        check(two(work), load_preset("h100-sxm", overrides=overrides).spec)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        # (2^31) rows of 2^33 bytes: their product is 2^64, and 0 in 64 bits.
        (
            "dims=64,64 strides=128",
            f"dims=64,{2**31 + 1} strides={2**33}",
            r"tensor map T ends at byte address 2\^62 or later, which is out of reach; expected addresses below",
        ),
        ("base=0x0", f"base={2**40}", f"tensor map T ends at byte address {2**40 + 128 + 63 * 128}, which is out of"),
        (
            "TMA_TENSOR K[i] map=T x=0 y=0",
            f"TMA_BULK K[i] address={2**40} bytes=8192",
            rf"the copy of program load, instruction 1 \(TMA_BULK\) ends at byte address {2**40 + 8192}, which is out",
        ),
        (
            "TMA_TENSOR K[i] map=T x=0 y=0",
            f"TMA_BULK K[i] address=0+{2**35}*i bytes=8192",
            rf"instruction 1 \(TMA_BULK\) ends at byte address {3 * 2**35 + 8192}, which is out of reach",
        ),
    ],
)
def test_addresses_do_not_wrap(old: str, new: str, message: str) -> None:
    with pytest.raises(SimulationError, match=message):
        check(two("BUBBLES cycles cycles=10", (old, new)), load_preset("h100-sxm").spec)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("  REPEAT 4\n    BAR_WAIT 2", f"  REPEAT {2**32 + 4}\n    BAR_WAIT 2", r"expected a count of 1 to 2147483647"),
        ("releases=4", f"releases={2**32 + 4}", "DEF_RING K: releases 4294967300; expected 1 to 2147483647"),
        ("bytes=8192", f"bytes={2**40}", "DEF_RING K: bytes 1099511627776; expected 0 to 2147483647"),
        ("tile_m=64", f"tile_m={2**32 + 64}", "KERNEL: tile_m 4294967360; expected 1 to 2147483647"),
        ("heads_q=4", f"heads_q={2**33}", "SHAPE: heads_q 8589934592; expected 1 to 2147483647"),
    ],
)
def test_declarations_beyond_the_engine_are_refused(old: str, new: str, message: str) -> None:
    assert old in GOOD
    with pytest.raises(TraceError, match=message):
        verify(parse_trace(GOOD.replace(old, new)).trace)


def test_more_accumulators_than_labels_are_refused() -> None:
    lines = "".join(
        f"    WGMMA m=64 n=64 k=16 count=1 mode=SS d=S{number} a=K[i] b=K[i] group=i\n" for number in range(257)
    )
    commit = "    WGMMA_COMMIT group=i\n    WGMMA_WAIT group=i outstanding=0\n"
    fits, beyond = (text.strip() + "\n" + commit for text in (lines.replace("S256", "S255"), lines))
    check(two(fits), load_preset("h100-sxm").spec)
    with pytest.raises(SimulationError, match="accumulator S256: the trace names more than the 256 that the engine"):
        check(two(beyond), load_preset("h100-sxm").spec)


def test_the_core_refuses_what_it_would_have_to_cut() -> None:
    """What reaches the core without the verifier is refused by the column's name too."""
    row = np.zeros((1, 17), np.int64)
    row[0, 13] = 2**32 + 10
    none = np.zeros((0, 19), np.int64)
    column = np.array([0, 1], np.int64)
    with pytest.raises(ValueError, match="cycles of an instruction is 4294967306; expected -2147483648 to 2147483647"):
        _core.Kernel.build(
            roles=1,
            ctas=1,
            cluster=1,
            dynamic=False,
            tile_m=1,
            group_size=1,
            code=row,
            program_starts=column,
            rings=none[:, :4],
            maps=none,
            kinds=none[:, :12],
            prologue=none[:, :12],
            tiles=none[:, :4],
            first_tile=column,
        )


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("grid.launch_ns=1e12", "grid.launch_ns 1000000000000.0, gpu.sm_clock_hz 1830000000.0: expected launch_cycles"),
        ("memory.latency_ns=1e300", "memory.latency_ns 1e+300, gpu.sm_clock_hz 1830000000.0: expected channel_lat"),
        (
            "gpu.sm_clock_hz=1e300",
            "gpu.sm_clock_hz 1e+300: expected channel_line_cycles_numerator to be a number of 64",
        ),
        ("memory.write_cost=1e300", "memory.write_cost 1e+300: expected channel_write_cost_ppm to be a number of 32"),
        ("lrc.hold_cycles=5000000000", "lrc.hold_cycles is 5000000000; expected a number of 32 bits"),
    ],
)
def test_values_of_a_preset_are_named_as_the_preset_does(override: str, words: str) -> None:
    with pytest.raises(SimulationError) as caught:
        check(two(), load_preset("h100-sxm", overrides=[override]).spec)
    assert words in str(caught.value)


def test_a_run_ends_before_its_cycles_overflow_the_channels() -> None:
    """512 fills and 2^31 - 1 cycles of work after each: 2^40 cycles, in a moment as nothing else happens."""
    long = two(f"BUBBLES cycles cycles={2**31 - 1}", ("REPEAT 4", "REPEAT 512"))
    with pytest.raises(SimulationError, match=f"come to cycle 5497558.*; the engine counts no further than {2**39}"):
        run(long, load_preset("h100-sxm").spec)
    assert run(long, load_preset("h100-sxm").spec, max_cycles=2**38).cycles == 2**38
