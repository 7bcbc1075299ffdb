"""What is computed: the shape of one attention call, and the Llama-3 shapes of the paper's Table 6."""

from typing import Any

import msgspec

from simfa.errors import ShapeError

ELEMENT_BYTES = {"fp16": 2, "bf16": 2, "fp8": 1}

# Heads of Table 6: (heads_q, heads_kv, head_dim).
MODELS = {
    "llama3-8b": (32, 8, 128),
    "llama3-70b": (64, 8, 128),
    "llama3.1-405b": (128, 8, 128),
}

# Fields of a shape that are sizes; mask and element type are the others.
SIZE_FIELDS = ("batch", "seqlen_q", "seqlen_kv", "heads_q", "heads_kv", "head_dim")

# Lengths of the paper's 15 cases (section 5.3).
PAPER_SEQLENS = (512, 1024, 2048, 4096, 6144)


class AttentionShape(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One attention forward call in (batch, seqlen, heads, head_dim) layout.

    Symbols of the paper's Table 1: B `batch`, L `seqlen_q`, S `seqlen_kv`, H_KV `heads_kv`, D `head_dim`;
    G is `group_size`, P is `element_bytes`.
    """

    batch: int
    seqlen_q: int
    seqlen_kv: int
    heads_q: int
    heads_kv: int
    head_dim: int
    causal: bool = False
    dtype: str = "fp16"

    def __post_init__(self) -> None:
        """Refuse sizes that cannot exist, with the field's name."""
        for name in SIZE_FIELDS:
            value = getattr(self, name)
            if value < 1:
                raise ShapeError(f"{name} is {value}; expected a positive whole number")
        if self.heads_q % self.heads_kv:
            raise ShapeError(f"heads_q {self.heads_q} is not a multiple of heads_kv {self.heads_kv}")
        if self.dtype not in ELEMENT_BYTES:
            raise ShapeError(f"dtype {self.dtype!r} is unknown; expected one of {', '.join(ELEMENT_BYTES)}")

    @property
    def group_size(self) -> int:
        """G: query heads per K/V head."""
        return self.heads_q // self.heads_kv

    @property
    def element_bytes(self) -> int:
        """P: bytes of one element."""
        return ELEMENT_BYTES[self.dtype]

    @property
    def flops(self) -> int:
        """Floating-point operations by the benchmark convention: Eq. 1, halved when causal."""
        total = 4 * self.batch * self.heads_q * self.seqlen_q * self.seqlen_kv * self.head_dim
        return total // 2 if self.causal else total

    def describe(self) -> str:
        """Return a short one-line name, e.g. `B1 L512 S512 H32/8 D128 full fp16`."""
        mask = "causal" if self.causal else "full"
        return (
            f"B{self.batch} L{self.seqlen_q} S{self.seqlen_kv} H{self.heads_q}/{self.heads_kv} "
            f"D{self.head_dim} {mask} {self.dtype}"
        )


def model_shape(model: str, seqlen: int, **changes: Any) -> AttentionShape:
    """Return the prefill shape of a Table 6 model: batch 1, full mask unless `changes` say otherwise.

    Raises `ShapeError` for a model that is not in `MODELS`.
    """
    if model not in MODELS:
        raise ShapeError(f"model {model!r} is unknown; expected one of {', '.join(MODELS)}")
    heads_q, heads_kv, head_dim = MODELS[model]
    fields: dict[str, Any] = {
        "batch": 1,
        "seqlen_q": seqlen,
        "seqlen_kv": seqlen,
        "heads_q": heads_q,
        "heads_kv": heads_kv,
        "head_dim": head_dim,
    }
    return AttentionShape(**(fields | changes))


def paper_shapes() -> dict[str, AttentionShape]:
    """Return the 15 cases of arXiv:2605.00555, section 5.3, by name, e.g. `llama3-8b-512`; shortest first.

    The paper states neither batch nor mask: batch 1 and a full mask are assumed.
    """
    return {f"{model}-{seqlen}": model_shape(model, seqlen) for seqlen in PAPER_SEQLENS for model in MODELS}
