"""Attention on the CPU in float64, and the seeded inputs of a capture, as the kernels read them."""

import numpy as np
import numpy.typing as npt

from simfa.workload import AttentionShape

# Largest absolute error of an output element that the kernels' own rounding explains: P and O are rounded to the
# element type, whose significand has 11 bits (fp16) or 8 (bf16), on inputs of unit variance.
TOLERANCES = {"fp16": 4e-3, "bf16": 3e-2}

# Random values are drawn once and repeated: drawing hundreds of millions takes longer than the kernels.
_DRAWN = 1 << 22

Floats = npt.NDArray[np.float64]
Bits = npt.NDArray[np.uint16]


def random_bits(count: int, dtype: str, seed: int) -> Bits:
    """Return `count` normally distributed values as the 16-bit patterns of `dtype` (fp16 or bf16).

    Random data matter for timing too: tensor cores draw less power, and clock higher, on zeros.
    """
    values = np.random.default_rng(seed).standard_normal(min(count, _DRAWN), np.float32)
    return np.resize(to_bits(values, dtype), count)


def to_bits(values: npt.NDArray[np.float32], dtype: str) -> Bits:
    """Return float32 values rounded to nearest even in `dtype`, as 16-bit patterns."""
    if dtype == "fp16":
        return values.astype(np.float16).view(np.uint16)
    words = np.ascontiguousarray(values).view(np.uint32)
    # Add half of the discarded part, and one less where the kept part is even: round to nearest even.
    rounded: Bits = ((words + 0x7FFF + ((words >> 16) & 1)) >> 16).astype(np.uint16)
    return rounded


def from_bits(bits: Bits, dtype: str) -> Floats:
    """Return the float64 values of 16-bit patterns of `dtype`."""
    if dtype == "fp16":
        return bits.view(np.float16).astype(np.float64)
    return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def reference(shape: AttentionShape, q: Floats, k: Floats, v: Floats) -> Floats:
    """Return softmax(Q K^T / sqrt(D)) V in float64.

    `q` has shape (batch, seqlen_q, heads_q, head_dim), `k` and `v` (batch, seqlen_kv, heads_kv, head_dim); the result
    has the shape of `q`. A causal mask is aligned to the end: the last query sees every key.
    """
    q, k, v = (tensor.transpose(0, 2, 1, 3) for tensor in (q, k, v))  # heads outside: matmul reaches the BLAS
    k, v = (np.repeat(tensor, shape.group_size, axis=1) for tensor in (k, v))
    scores = q @ k.transpose(0, 1, 3, 2) / np.sqrt(shape.head_dim)
    if shape.causal:
        last_key = np.arange(shape.seqlen_q)[:, None] + shape.seqlen_kv - shape.seqlen_q
        scores = np.where(np.arange(shape.seqlen_kv)[None, :] <= last_key, scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    result: Floats = (weights @ v).transpose(0, 2, 1, 3)
    return result
