"""The attention shape behind a time that `benchmark_attn.py` printed: what its heading says, and what its rate tells.

The script prints head dimension, mask and length, some versions the batch, none the heads. It takes heads = 2048 / D,
as many for K and V, and counts 4 B H L S D operations, half of them under a causal mask; time and rate printed together
therefore give the batch, and check one that is printed.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

import msgspec

from simfa.errors import ShapeError
from simfa.workload import AttentionShape

# Hidden size that all versions of the script divide into heads.
HIDDEN_SIZE = 2048
# Batch x length of its release sweep; decides where a coarsely printed time allows several batches.
TOKENS = 16384

# Names of a heading's values, by what they mean; the first one printed counts.
_NAMES = {
    "head_dim": ("headdim", "head_dim", "hdim", "d"),
    "head_dim_v": ("headdim_v", "head_dim_v", "hdim_v", "dv"),
    "seqlen_q": ("seqlen_q", "seqlen", "seq_len"),
    "seqlen_kv": ("seqlen_k", "seqlen_kv", "seqlen", "seq_len"),
    "batch": ("batch_size", "batch", "bs", "b"),
    "heads_q": ("nheads", "nheads_q", "num_heads", "heads"),
    "heads_kv": ("nheads_kv", "nheads_k", "num_heads_kv"),
}
_MASKS = {"true": True, "1": True, "causal": True, "false": False, "0": False, "full": False, "noncausal": False}
_DTYPES = {"fp16": "fp16", "float16": "fp16", "bf16": "bf16", "bfloat16": "bf16", "fp8": "fp8", "e4m3": "fp8"}


# Flags of a result without a shape, and what they say.
NO_SHAPE = {
    "shape_unstated": "the heading lacks head dimension, mask or length",
    "shape_impossible": "heading and script make no possible shape",
    "shape_contradicts_rate": "time and rate are those of another shape than heading and script say",
    "head_dim_v_differs": "V has another head dimension than Q and K",
    "batch_unknown": "the heading lacks the batch, and time and rate do not tell it",
}


class Interval(NamedTuple):
    """The values that a printed number may have been rounded from."""

    low: Fraction
    high: Fraction


class Found(NamedTuple):
    """A shape, and flags that name what the heading did not say; without a shape, one flag that says why."""

    shape: AttentionShape | None
    flags: tuple[str, ...]


def shape_of(case: Mapping[str, str], flops: Interval | None) -> Found:
    """Return the shape of a forward result under the heading `case`.

    `flops` are the operations behind the printed time and rate. A shape needs head dimension, mask, length, and a batch
    that is printed or that `flops` allows; what contradicts `flops` is no shape.
    """
    said = {name.lower(): value.lower() for name, value in case.items()}
    numbers = {key: _number(said, names) for key, names in _NAMES.items()}
    head_dim, seqlen_q, seqlen_kv = numbers["head_dim"], numbers["seqlen_q"], numbers["seqlen_kv"]
    causal = next((_MASKS[said[name]] for name in ("causal", "mode") if said.get(name) in _MASKS), None)
    if head_dim is None or seqlen_q is None or seqlen_kv is None or causal is None:
        return Found(None, ("shape_unstated",))
    if numbers["head_dim_v"] not in (None, head_dim):
        return Found(None, ("head_dim_v_differs",))
    flags = []
    heads = numbers["heads_q"]
    if heads is None:
        heads = HIDDEN_SIZE // head_dim
        flags.append("heads_by_script")
    dtype = next((_DTYPES[said[name]] for name in ("dtype", "data_type") if said.get(name) in _DTYPES), None)
    if dtype is None:
        dtype = "bf16"
        flags.append("dtype_by_script")
    batch = numbers["batch"]
    try:
        one = AttentionShape(
            batch=1,
            seqlen_q=seqlen_q,
            seqlen_kv=seqlen_kv,
            heads_q=heads,
            heads_kv=numbers["heads_kv"] or heads,
            head_dim=head_dim,
            causal=causal,
            dtype=dtype,
        )
    except ShapeError:
        return Found(None, ("shape_impossible",))
    if flops is not None:
        allowed = range(-(-flops.low // one.flops), flops.high // one.flops + 1)
        usual = TOKENS // seqlen_q
        if batch is None and (len(allowed) == 1 or usual in allowed):
            batch = usual if usual in allowed else allowed[0]
            flags.append("batch_by_rate")
        if batch not in allowed and (batch is not None or not allowed):
            return Found(None, ("shape_contradicts_rate",))
    if not batch:
        return Found(None, ("batch_unknown",))
    return Found(msgspec.structs.replace(one, batch=batch), tuple(flags))


def _number(said: Mapping[str, str], names: Sequence[str]) -> int | None:
    """Return the first of `names` that is a positive whole number."""
    for name in names:
        text = said.get(name, "")
        if text.isdecimal() and text.isascii() and 0 < len(text) < 10 and int(text):
            return int(text)
    return None
