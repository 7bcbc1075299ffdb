"""The simulator beside the closed forms on small shapes, where both price the same traffic."""

import functools
from typing import TYPE_CHECKING, NamedTuple

from simfa.analytical import Traffic, traffic
from simfa.analytical.model import profiled_write_bytes
from simfa.hardware import load_preset
from simfa.pipeline import predict
from simfa.workload import AttentionShape

if TYPE_CHECKING:
    from simfa.simulate.results import RunResult

# The simulated L2 is one copy of every line, so all of it is effective.
WHOLE_L2 = "analytical.effective_l2_fraction=1.0"


def toy(sm_count: int, l2_kib: int) -> tuple[str, ...]:
    """Overrides for a part with 16 slices; a set in each takes 40 KiB of L2."""
    return f"gpu.sm_count={sm_count}", "l2.slices=16", f"l2.capacity_bytes={l2_kib * 1024}"


class Case(NamedTuple):
    """A call on a part; `edge` where the working set is so close to L2 that sets and drift decide."""

    part: str
    heads: tuple[int, int]
    head_dim: int
    seqlen: int
    overlays: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()
    edge: bool = False


def toy_d128(l2_kib: int, edge: bool = False) -> Case:
    """24 tiles a head on 10 SMs: waves straddle the two heads."""
    return Case("10 SMs", (2, 2), 128, 3072, (), toy(10, l2_kib), edge)


def toy_d64(l2_kib: int, edge: bool = False) -> Case:
    """Two heads a K/V head, 24 tiles together, on 8 SMs: waves end with the head."""
    return Case("8 SMs", (4, 2), 64, 2304, ("no-lrc-merge",), toy(8, l2_kib), edge)


MERGING = Case("h100-sxm", (4, 4), 64, 1000)
CASES = (
    Case("h100-sxm", (4, 4), 128, 1000),
    Case("h100-sxm", (4, 4), 64, 1000, ("no-lrc-merge",)),
    toy_d128(6000),
    toy_d128(3600),
    toy_d128(3000),
    toy_d128(2400),
    toy_d128(2000, edge=True),
    toy_d128(1200),
    toy_d64(2000),
    toy_d64(1000, edge=True),
    toy_d64(400),
)


class Opinions(NamedTuple):
    """The simulator's run and the model's answers, with the bytes of both that mean the same."""

    run: "RunResult"
    capacity: Traffic
    lru: Traffic

    @property
    def model_sm_read_bytes(self) -> int:
        """What SMs read: the L2 demand without O, which is written."""
        return self.capacity.l2_bytes - self.capacity.attention.output_bytes

    @property
    def model_l2_read_bytes(self) -> int:
        """What reaches L2 after multicast, without O."""
        return self.capacity.l2_request_bytes - self.capacity.attention.output_bytes

    @property
    def model_write_bytes(self) -> int:
        """O, less what policy `lru` leaves dirty in L2: the simulator stops when the kernel does."""
        assert self.lru.dirty_bytes is not None
        return profiled_write_bytes(self.lru.attention.output_bytes, self.lru.dirty_bytes)


@functools.cache
def opinions(case: Case) -> Opinions:
    """Simulate a case, and price it under `capacity` and `lru`."""
    heads_q, heads_kv = case.heads
    shape = AttentionShape(
        batch=1,
        seqlen_q=case.seqlen,
        seqlen_kv=case.seqlen,
        heads_q=heads_q,
        heads_kv=heads_kv,
        head_dim=case.head_dim,
    )
    preset = load_preset("h100-sxm", case.overlays, [*case.overrides, WHOLE_L2])
    return Opinions(predict(shape, preset), traffic(shape, preset), traffic(shape, preset, "lru"))
