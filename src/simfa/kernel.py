"""Which FA3 forward kernel runs for a shape: tile, stages, warpgroups, cluster, schedule.

Facts are those of the FA3 Hopper sources of three times (`KERNEL_VERSIONS`): July 2024 up to v2.7.2 of December, the
rewrite of January 2025, and the current tree (v2.8 and later).
"""

import msgspec

from simfa.errors import ShapeError
from simfa.workload import AttentionShape

KERNEL_VERSIONS = ("2024-07", "2025-01", "latest")
SCHEDULES = ("static", "dynamic", "dynamic-in-order")


def ceil_div(dividend: int, divisor: int) -> int:
    """Return the quotient rounded up."""
    return -(-dividend // divisor)


class KernelSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One instantiation of the FA3 forward kernel.

    `tile_m` and `tile_n` are rows of Q and of K/V per CTA tile; each of `consumers` warpgroups owns 64 of the
    `tile_m` rows. `overlap` issues the next QK product before the present softmax (IntraWGOverlap); `ping_pong`
    orders the consumers' WGMMA turns with named barriers; `p_in_registers` makes PV an RS WGMMA;
    `rescale_before_pv` rescales O before the PV product instead of after it. `schedule`: `static` (CTA b runs tiles b,
    b + grid, ...), or a counter that free CTAs draw from: `dynamic` (longest tile first inside sections of heads, since
    January 2025) or `dynamic-in-order` (the static order, as before).
    """

    version: str
    tile_m: int
    tile_n: int
    stages: int
    consumers: int
    cluster: int
    schedule: str
    ping_pong: bool
    overlap: bool
    p_in_registers: bool
    rescale_before_pv: bool

    @property
    def draws_tiles(self) -> bool:
        """Whether CTAs draw tiles from a counter in device memory, which each launch needs at zero."""
        return self.schedule != "static"

    def largest_grid(self, sms: int) -> int:
        """Return how many CTAs run at once on `sms` SMs, one an SM in whole clusters: a persistent kernel's grid."""
        return sms // self.cluster * self.cluster

    def query_blocks(self, shape: AttentionShape) -> int:
        """Return the number of `tile_m`-row blocks of one head."""
        return ceil_div(shape.seqlen_q, self.tile_m)

    def key_blocks(self, shape: AttentionShape, m_block: int) -> int:
        """Return how many `tile_n`-row blocks of K/V query block `m_block` visits, at least 1."""
        blocks = ceil_div(shape.seqlen_kv, self.tile_n)
        if shape.causal:
            last_row = (m_block + 1) * self.tile_m + shape.seqlen_kv - shape.seqlen_q
            blocks = min(blocks, max(1, ceil_div(last_row, self.tile_n)))
        return blocks

    def masked_blocks(self, shape: AttentionShape, m_block: int) -> int:
        """Return how many of these blocks compare each score with a mask: the last always, and the causal diagonal."""
        blocks = self.key_blocks(shape, m_block)
        if not shape.causal:
            return 1
        first_masked = (m_block * self.tile_m + shape.seqlen_kv - shape.seqlen_q) // self.tile_n
        return min(blocks, max(1, blocks - max(0, first_masked)))


def check_kernel_spec(kernel: KernelSpec) -> None:
    """Raise `ShapeError` for a kernel whose sizes or schedule cannot be."""
    for name in ("tile_m", "tile_n", "stages", "consumers", "cluster"):
        if getattr(kernel, name) < 1:
            raise ShapeError(f"{name} of the kernel is {getattr(kernel, name)}; expected a positive whole number")
    if kernel.schedule not in SCHEDULES:
        raise ShapeError(f"schedule {kernel.schedule!r} is unknown; expected one of {', '.join(SCHEDULES)}")


def kernel_for(shape: AttentionShape, version: str = "latest") -> KernelSpec:
    """Return the kernel FA3 picks for a fixed-length, unsplit call of `shape`.

    Raises `ShapeError` for a version, dtype or head dimension that is not built.
    """
    if version not in KERNEL_VERSIONS:
        raise ShapeError(f"kernel version {version!r} is unknown; expected one of {', '.join(KERNEL_VERSIONS)}")
    if shape.dtype == "fp8":
        raise ShapeError("fp8 kernels are not supported yet; use --dtype fp16 or bf16")
    if shape.head_dim not in (64, 128, 256):
        raise ShapeError(f"head_dim {shape.head_dim} is not supported; expected 64, 128 or 256")
    if shape.causal and shape.seqlen_q > shape.seqlen_kv:
        raise ShapeError(f"causal with seqlen_q {shape.seqlen_q} > seqlen_kv {shape.seqlen_kv} is not supported")
    p_in_registers = True
    if shape.head_dim == 64:
        tile_m, tile_n = 192, 128
        if version == "latest" and not shape.causal:
            tile_n, p_in_registers = 192, False
    elif shape.head_dim == 128:
        tile_m, tile_n = 128, 128 if shape.causal else 176
    else:
        tile_m, tile_n = 128, 80
    counter = "dynamic-in-order" if version == "2024-07" else "dynamic"
    query_blocks = ceil_div(shape.seqlen_q, tile_m)
    paired = shape.head_dim >= 128 and not shape.causal and query_blocks % 2 == 0
    return KernelSpec(
        version=version,
        tile_m=tile_m,
        tile_n=tile_n,
        stages=2,
        consumers=tile_m // 64,
        cluster=2 if paired else 1,
        schedule=counter if shape.causal else "static",
        ping_pong=shape.head_dim <= 128,
        overlap=True,
        p_in_registers=p_in_registers,
        rescale_before_pv=shape.head_dim > 128,
    )
