"""What the closed forms can price: one attention call, wider than `AttentionShape`, and the amounts that follow.

`AttentionShape` has one head dimension and one precision; here V and O may differ from Q and K, K and V may be one
latent (MLA), a window may limit what a row sees, and every tensor has its own element size.
"""

from typing import Any

import msgspec

from simfa.errors import AnalyticalError
from simfa.workload import AttentionShape

# Element size of O for each input type: FP8 attention writes bf16.
_OUTPUT_BYTES = {"fp16": 2, "bf16": 2, "fp8": 2}


class Attention(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One attention forward call.

    Q and K have `head_dim` elements a row (D_qk), V and O `value_dim` (D_v). `latent`: K and V are one tensor of
    `head_dim` elements a row, V its first `value_dim` (absorbed MLA). `window`: keys left of the diagonal that a row
    still sees, with the causal mask only. `*_bytes` are element sizes; `scale_bytes` is what block scales add to each
    row of Q, K and V. `lse`: the kernel also writes one 4-byte log-sum-exp a row.
    """

    batch: int
    seqlen_q: int
    seqlen_kv: int
    heads_q: int
    heads_kv: int
    head_dim: int
    value_dim: int
    causal: bool = False
    window: int | None = None
    latent: bool = False
    qk_bytes: int = 2
    v_bytes: int = 2
    o_bytes: int = 2
    scale_bytes: int = 0
    lse: bool = False

    def __post_init__(self) -> None:
        """Refuse sizes that cannot exist, with the field's name."""
        for name in (
            *("batch", "seqlen_q", "seqlen_kv", "heads_q", "heads_kv", "head_dim", "value_dim"),
            *("qk_bytes", "v_bytes", "o_bytes"),
        ):
            _check(name, getattr(self, name), 1)
        _check("scale_bytes", self.scale_bytes, 0)
        if self.heads_q % self.heads_kv:
            raise AnalyticalError(f"heads_q {self.heads_q} is not a multiple of heads_kv {self.heads_kv}")
        if self.causal and self.seqlen_q > self.seqlen_kv:
            raise AnalyticalError(
                f"causal with seqlen_q {self.seqlen_q} > seqlen_kv {self.seqlen_kv}: the first rows would see no key"
            )
        if self.window is not None:
            _check("window", self.window, 0)
            if not self.causal:
                raise AnalyticalError("window needs the causal mask; add --causal")
        if self.latent and (self.heads_kv != 1 or self.value_dim > self.head_dim or self.v_bytes != self.qk_bytes):
            raise AnalyticalError(
                "a latent K/V has one K/V head, value_dim at most head_dim and one element size; "
                f"got heads_kv {self.heads_kv}, value_dim {self.value_dim}, head_dim {self.head_dim}"
            )

    @classmethod
    def of(cls, shape: AttentionShape, **changes: Any) -> "Attention":
        """Return the call that a plain shape describes, with fields of this class changed."""
        fields: dict[str, Any] = {
            "batch": shape.batch,
            "seqlen_q": shape.seqlen_q,
            "seqlen_kv": shape.seqlen_kv,
            "heads_q": shape.heads_q,
            "heads_kv": shape.heads_kv,
            "head_dim": shape.head_dim,
            "value_dim": shape.head_dim,
            "causal": shape.causal,
            "qk_bytes": shape.element_bytes,
            "v_bytes": shape.element_bytes,
            "o_bytes": _OUTPUT_BYTES[shape.dtype],
        }
        unknown = sorted(changes.keys() - set(cls.__struct_fields__))
        if unknown:
            raise AnalyticalError(f"{unknown[0]} is not a field of an attention call")
        return cls(**(fields | changes))

    @property
    def group_size(self) -> int:
        """G: query heads per K/V head."""
        return self.heads_q // self.heads_kv

    @property
    def is_plain(self) -> bool:
        """Whether Eq. 1-12 cover the call: no mask, one head dimension, one element size, nothing else moved."""
        return not (
            self.causal
            or self.latent
            or self.lse
            or self.scale_bytes
            or self.value_dim != self.head_dim
            or not self.qk_bytes == self.v_bytes == self.o_bytes
        )

    @property
    def kv_row_bytes(self) -> int:
        """Bytes of one row of K and one row of V, 2 P D in the plain case; a latent row moves once."""
        keys = self.qk_bytes * self.head_dim + self.scale_bytes
        return keys if self.latent else keys + self.v_bytes * self.value_dim + self.scale_bytes

    @property
    def kv_group_bytes(self) -> int:
        """Bytes of all K and V rows of one K/V head."""
        return self.seqlen_kv * self.kv_row_bytes

    @property
    def visible_rows(self) -> int:
        """Rows of K/V that at least one query row sees."""
        return self.seqlen_kv if self.window is None else min(self.seqlen_kv, self.seqlen_q + self.window)

    @property
    def kv_bytes(self) -> int:
        """Bytes of K and V read once: all heads, visible rows."""
        return self.batch * self.heads_kv * self.visible_rows * self.kv_row_bytes

    @property
    def q_row_bytes(self) -> int:
        """Bytes of one row of Q."""
        return self.qk_bytes * self.head_dim + self.scale_bytes

    @property
    def o_row_bytes(self) -> int:
        """Bytes of one row of O."""
        return self.o_bytes * self.value_dim

    @property
    def q_bytes(self) -> int:
        """Bytes of Q."""
        return self.batch * self.heads_q * self.seqlen_q * self.q_row_bytes

    @property
    def output_bytes(self) -> int:
        """Bytes of O, and of the log-sum-exp where it is written."""
        return self.batch * self.heads_q * self.seqlen_q * (self.o_row_bytes + (4 if self.lse else 0))

    @property
    def score_count(self) -> int:
        """Visible (query row, key) pairs of one head: L S, or the exact triangle or band."""
        if not self.causal:
            return self.seqlen_q * self.seqlen_kv
        shortest = self.seqlen_kv - self.seqlen_q + 1
        limit = self.seqlen_kv if self.window is None else self.window + 1
        # Row lengths run from `shortest` to S; those above `limit` are cut to it.
        full = min(self.seqlen_kv, max(limit, shortest - 1))
        triangle = (full * (full + 1) - shortest * (shortest - 1)) // 2
        return triangle + (self.seqlen_kv - full) * limit

    @property
    def flops(self) -> int:
        """Operations of both products over visible scores, 2 B H_Q scores (D_qk + D_v); Eq. 1 in the plain case."""
        return 2 * self.batch * self.heads_q * self.score_count * (self.head_dim + self.value_dim)

    def describe(self) -> str:
        """Return a short one-line name, e.g. `B1 L512 S512 H32/8 D128 causal`."""
        dims = f"D{self.head_dim}" if self.value_dim == self.head_dim else f"D{self.head_dim}/{self.value_dim}"
        mask = "full" if not self.causal else "causal" if self.window is None else f"window {self.window}"
        return f"B{self.batch} L{self.seqlen_q} S{self.seqlen_kv} H{self.heads_q}/{self.heads_kv} {dims} {mask}"


def _check(name: str, value: object, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise AnalyticalError(f"{name} is {value!r}; expected a whole number, at least {least}")
