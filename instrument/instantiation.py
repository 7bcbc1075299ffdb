"""Which FA3 forward kernels a library holds: one instantiation per head dimension, element type, mask and cluster."""

import re
from typing import Literal

import msgspec

from simfa.errors import InstrumentError
from simfa.kernel import KernelSpec, kernel_for
from simfa.workload import AttentionShape

HEAD_DIMS = (64, 128, 256)
ELEMENTS = {"fp16": "cutlass::half_t", "bf16": "cutlass::bfloat16_t"}
DTYPE_CODES = {"fp16": 0, "bf16": 1}  # of the launcher's C interface

_MANGLED_ELEMENTS = {"6half_t": "fp16", "10bfloat16_t": "bf16"}
# The template arguments of the main loop in an Itanium-mangled kernel name: stages, cluster, tile, head dimension of
# V, element, accumulator, architecture, causal.
_MANGLED = re.compile(
    r"CollectiveMainloopFwdSm90ILi\d+E.*?1CILi(?P<cluster>\d+)E.*?ELi(?P<head_dim>\d+)EN\w*?S_"
    r"(?P<element>6half_t|10bfloat16_t)E\w*?4Sm90ELb(?P<causal>[01])E"
)


class Instantiation(msgspec.Struct, frozen=True, order=True, forbid_unknown_fields=True):
    """One compiled kernel: `cluster` CTAs along query blocks share K and V by multicast."""

    head_dim: int
    dtype: Literal["fp16", "bf16"]
    causal: bool
    cluster: int

    def __post_init__(self) -> None:
        """Refuse kernels that FA3 does not have."""
        if self.head_dim not in HEAD_DIMS or self.dtype not in ELEMENTS:
            raise InstrumentError(
                f"no kernel for head_dim {self.head_dim} and dtype {self.dtype}; expected head_dim "
                f"{', '.join(map(str, HEAD_DIMS))} and dtype {' or '.join(ELEMENTS)}"
            )
        if self.cluster not in clusters_of(self.head_dim, self.causal):
            raise InstrumentError(
                f"FA3 has no head_dim {self.head_dim} {self.mask} kernel for clusters of {self.cluster}; "
                f"expected {' or '.join(map(str, clusters_of(self.head_dim, self.causal)))}"
            )

    @property
    def mask(self) -> str:
        """Return `causal` or `full`."""
        return "causal" if self.causal else "full"

    @property
    def name(self) -> str:
        """Return a short name, e.g. `hdim128-fp16-full-cluster2`."""
        return f"hdim{self.head_dim}-{self.dtype}-{self.mask}-cluster{self.cluster}"

    @property
    def kernel(self) -> KernelSpec:
        """Return what is known about the kernel: tile, stages, consumers, ping-pong."""
        # Clusters of two run where the number of 128-row query blocks is even.
        rows = 128 * self.cluster
        return kernel_for(
            AttentionShape(
                batch=1,
                seqlen_q=rows,
                seqlen_kv=rows,
                heads_q=1,
                heads_kv=1,
                head_dim=self.head_dim,
                causal=self.causal,
                dtype=self.dtype,
            )
        )


def clusters_of(head_dim: int, causal: bool) -> tuple[int, ...]:
    """Return the cluster sizes FA3 uses: pairs need a head dimension of 128 or more and no mask."""
    return (1, 2) if head_dim >= 128 and not causal else (1,)


def instantiation_for(shape: AttentionShape) -> Instantiation:
    """Return the kernel FA3 runs for a shape; raises `ShapeError` or `InstrumentError` when it has none."""
    cluster = kernel_for(shape).cluster
    return msgspec.convert(
        {"head_dim": shape.head_dim, "dtype": shape.dtype, "causal": shape.causal, "cluster": cluster}, Instantiation
    )


def parse_kernel(name: str) -> Instantiation:
    """Return the instantiation of a name such as `hdim128-fp16-full-cluster2`; raises `InstrumentError`."""
    found = re.fullmatch(r"hdim(\d+)-(fp16|bf16)-(causal|full)-cluster(\d+)", name)
    if found is None:
        raise InstrumentError(f"kernel {name!r} is unknown; expected a name such as hdim128-fp16-full-cluster2")
    fields = {
        "head_dim": int(found[1]),
        "dtype": found[2],
        "causal": found[3] == "causal",
        "cluster": int(found[4]),
    }
    return msgspec.convert(fields, Instantiation)


def instantiation_of(symbol: str) -> Instantiation | None:
    """Return the instantiation a mangled kernel name stands for, or None when it is not an FA3 forward kernel."""
    found = _MANGLED.search(symbol)
    if found is None:
        return None
    fields = {
        "head_dim": int(found["head_dim"]),
        "dtype": _MANGLED_ELEMENTS[found["element"]],
        "causal": found["causal"] == "1",
        "cluster": int(found["cluster"]),
    }
    return msgspec.convert(fields, Instantiation)


def kernel_list(kernels: tuple[Instantiation, ...]) -> str:
    """Return the text of `simfa_kernels.inc` for the launcher."""
    return "".join(
        f"SIMFA_KERNEL({kernel.head_dim}, {ELEMENTS[kernel.dtype]}, {str(kernel.causal).lower()}, {kernel.cluster})\n"
        for kernel in kernels
    )
