"""The float64 reference and the seeded 16-bit inputs."""

import numpy as np
import pytest

from simfa.instrument.attention import from_bits, random_bits, reference, to_bits
from simfa.workload import AttentionShape


def shape(**changes) -> AttentionShape:
    sizes = {"batch": 1, "seqlen_q": 3, "seqlen_kv": 3, "heads_q": 2, "heads_kv": 1, "head_dim": 4}
    return AttentionShape(**(sizes | changes))


def tensors(wanted: AttentionShape, seed: int = 0) -> list[np.ndarray]:
    random = np.random.default_rng(seed)
    q = random.standard_normal((wanted.batch, wanted.seqlen_q, wanted.heads_q, wanted.head_dim))
    kv = (wanted.batch, wanted.seqlen_kv, wanted.heads_kv, wanted.head_dim)
    return [q, random.standard_normal(kv), random.standard_normal(kv)]


def test_equal_keys_average_the_values() -> None:
    wanted = shape()
    q, k, v = tensors(wanted)
    k[:] = k[:, :1]
    expected = np.broadcast_to(v.mean(axis=1, keepdims=True), q.shape)
    assert reference(wanted, q, k, v) == pytest.approx(expected)


def test_one_large_score_picks_its_value() -> None:
    wanted = shape()
    q, k, v = tensors(wanted)
    k[:, 1] = 1000 * np.sign(q[0, 0, 0])
    assert reference(wanted, q, k, v)[0, 0, 0] == pytest.approx(v[0, 1, 0])


@pytest.mark.parametrize("longer", [0, 5])
def test_causal_rows_see_the_keys_up_to_their_own(longer: int) -> None:
    wanted = shape(seqlen_kv=3 + longer, causal=True)
    q, k, v = tensors(wanted)
    got = reference(wanted, q, k, v)
    for row in range(3):
        seen = row + 1 + longer
        part = shape(seqlen_q=1, seqlen_kv=seen)
        assert got[:, row : row + 1] == pytest.approx(reference(part, q[:, row : row + 1], k[:, :seen], v[:, :seen]))


def test_groups_of_query_heads_share_a_key_head() -> None:
    wanted = shape(heads_q=4, heads_kv=2)
    q, k, v = tensors(wanted)
    got = reference(wanted, q, k, v)
    single = shape(heads_q=1)
    for head in range(4):
        kv = slice(head // 2, head // 2 + 1)
        assert got[:, :, head : head + 1] == pytest.approx(
            reference(single, q[:, :, head : head + 1], k[:, :, kv], v[:, :, kv])
        )


def test_bf16_rounds_to_nearest_even() -> None:
    step = 2.0**-7  # of bf16 between 1 and 2
    values = np.array([1.0, 1 + step / 2, 1 + 3 * step / 2, 1 + 0.6 * step, -1 - step / 2, 0.0], np.float32)
    assert from_bits(to_bits(values, "bf16"), "bf16").tolist() == [1.0, 1.0, 1 + 2 * step, 1 + step, -1.0, 0.0]


@pytest.mark.parametrize("dtype", ["fp16", "bf16"])
def test_inputs_are_seeded_normal_values(dtype: str) -> None:
    bits = random_bits(200_000, dtype, seed=4)
    values = from_bits(bits, dtype)
    assert abs(values.mean()) < 0.02 and values.std() == pytest.approx(1, abs=0.02)
    assert (bits == random_bits(200_000, dtype, seed=4)).all()
    assert (bits != random_bits(200_000, dtype, seed=5)).any()


def test_more_values_than_are_drawn_repeat() -> None:
    bits = random_bits((1 << 22) + 5, "fp16", seed=0)
    assert (bits[:5] == bits[1 << 22 :]).all()
