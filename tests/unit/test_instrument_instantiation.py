"""Which kernels exist and how they are named."""

import pytest

from simfa.errors import InstrumentError
from simfa.instrument.instantiation import Instantiation, instantiation_for, kernel_list, parse_kernel
from simfa.kernel import kernel_for
from simfa.workload import AttentionShape

ALL = [
    Instantiation(head_dim, dtype, causal, cluster)
    for head_dim in (64, 128, 256)
    for dtype in ("fp16", "bf16")
    for causal in (False, True)
    for cluster in ((1, 2) if head_dim >= 128 and not causal else (1,))
]


@pytest.mark.parametrize("kernel", ALL, ids=lambda kernel: kernel.name)
def test_names_round_trip_and_specs_belong_to_the_kernel(kernel: Instantiation) -> None:
    assert parse_kernel(kernel.name) == kernel
    assert kernel.kernel.cluster == kernel.cluster
    assert (kernel.kernel.schedule == "dynamic") == kernel.causal


def test_a_shape_s_kernel_follows_its_query_blocks() -> None:
    def shape(seqlen: int) -> AttentionShape:
        return AttentionShape(batch=1, seqlen_q=seqlen, seqlen_kv=seqlen, heads_q=2, heads_kv=1, head_dim=128)

    assert instantiation_for(shape(512)).name == "hdim128-fp16-full-cluster2"
    assert instantiation_for(shape(384)).name == "hdim128-fp16-full-cluster1"
    assert kernel_for(shape(384)).cluster == 1


@pytest.mark.parametrize(
    "name", ["hdim96-fp16-full-cluster1", "hdim64-fp16-full-cluster2", "hdim128-fp16-causal-cluster2"]
)
def test_kernels_fa3_does_not_have_are_refused(name: str) -> None:
    with pytest.raises(InstrumentError):
        parse_kernel(name)


def test_a_name_that_is_none_says_what_one_looks_like() -> None:
    with pytest.raises(InstrumentError, match="expected a name such as hdim128-fp16-full-cluster2"):
        parse_kernel("fp16")


def test_kernel_list_is_what_the_launcher_includes() -> None:
    text = kernel_list((parse_kernel("hdim128-fp16-full-cluster2"), parse_kernel("hdim64-bf16-causal-cluster1")))
    assert text == ("SIMFA_KERNEL(128, cutlass::half_t, false, 2)\nSIMFA_KERNEL(64, cutlass::bfloat16_t, true, 1)\n")
