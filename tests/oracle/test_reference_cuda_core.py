"""docs/isa.md section 6 by hand: prices of CUDA-core work, private and shared cores, quanta, pressure."""

import pytest

from simfa.isa import Bubbles
from tests.oracle.hand import bare, issued, nothing, run, trace_of, wgmma, work

SHARED = {"cuda_core__sharing": "shared"}
ROUND_ROBIN = {**SHARED, "cuda_core__order": "round_robin"}


def _price(bubbles, **rates):
    """Return the cycles between BUBBLES and the instruction behind it."""
    hardware = bare(**{f"cuda_core__{name}_per_cycle": rate for name, rate in rates.items()})
    result = run(trace_of([bubbles, nothing()]), hardware)
    return issued(result)[1]


def test_fixed_cycles():
    assert _price(Bubbles(kind="cycles", cycles=7)) == 7
    assert _price(Bubbles(kind="cycles", cycles=0)) == 1


def test_softmax_adds_its_terms_and_rounds_once():
    softmax = Bubbles(kind="softmax", elements=10, masked=4, rescale=3)
    # 10/16 + 10/8 = 1.875 -> 2; rounding each term would give 3.
    assert _price(softmax, exp=16, max=8) == 2
    # One term each: 10/3, 10/4, 10/6, 10/7, 10/20, 4/3, 3/2.
    prices = {"max": 3, "exp": 4, "scale": 6, "sum": 7, "convert": 20, "mask": 3, "rescale": 2}
    expected = {"max": 4, "exp": 3, "scale": 2, "sum": 2, "convert": 1, "mask": 2, "rescale": 2}
    for name, rate in prices.items():
        assert _price(softmax, **{name: rate}) == expected[name], name
    # All of them: 3.333 + 2.5 + 1.667 + 1.429 + 0.5 + 1.333 + 1.5 = 12.262.
    assert _price(softmax, **prices) == 13


def test_the_sum_is_exact():
    # 10/3 + 10/5 + 10/6 = 7 exactly; the same sum in double precision is 7.000000000000001.
    assert _price(Bubbles(kind="softmax", elements=10), exp=3, max=5, scale=6) == 7


def test_a_rate_of_zero_hides_its_term():
    assert _price(Bubbles(kind="softmax", elements=100, masked=100, rescale=100), exp=50) == 2
    # Nothing left to pay: one cycle for the slot.
    assert _price(Bubbles(kind="softmax", elements=100)) == 1


def test_epilogue():
    assert _price(Bubbles(kind="epilogue", elements=65), epilogue=32) == 3


def test_private_cores_work_side_by_side():
    result = run(trace_of([work(20), nothing()], [work(20), nothing()]))
    assert issued(result, 0) == [0, 20]
    assert issued(result, 1) == [1, 21]


def test_a_shared_server_takes_one_job_after_the_other():
    result = run(trace_of([work(8), nothing()], [work(8), nothing()]), bare(**SHARED))
    # Role 0 in service 0-8; role 1, issued at 1, 8-16. A finished thread issues in the cycle its quantum ends.
    assert issued(result, 0) == [0, 8]
    assert issued(result, 1) == [1, 16]


def test_fifo_keeps_an_unfinished_job_in_front():
    result = run(trace_of([work(25), nothing()], [work(5), nothing()]), bare(**SHARED))
    # Quanta of 10: role 0 has 0-10, 10-20, 20-25; role 1 25-30.
    assert issued(result, 0) == [0, 25]
    assert issued(result, 1) == [1, 30]


def test_round_robin_puts_an_unfinished_job_behind_those_that_queue():
    result = run(trace_of([work(25), nothing()], [work(5), nothing()]), bare(**ROUND_ROBIN))
    # Role 0 0-10, role 1 10-15, role 0 15-25, 25-30.
    assert issued(result, 0) == [0, 30]
    assert issued(result, 1) == [1, 15]


def test_round_robin_puts_a_job_of_the_same_cycle_behind():
    # Role 1 issues a WGMMA at 1 that holds it for 9 cycles, so it submits its job at 10: in phase 4, when the quantum
    # of 0-10 has ended (phase 3) and role 0's next has begun.
    hardware = bare(**ROUND_ROBIN, tensor_core__wgmma_issue_cycles=9)
    result = run(trace_of([work(25), nothing()], [wgmma(), work(5), nothing()]), hardware)
    # Role 0 0-10, 10-20; then role 1, waiting since 10, 20-25; role 0 25-30.
    assert issued(result, 1) == [1, 10, 25]
    assert issued(result, 0) == [0, 30]


def test_an_idle_server_starts_a_job_in_the_cycle_of_its_issue():
    result = run(trace_of([nothing(), work(3), work(3), nothing()]), bare(**SHARED))
    assert issued(result) == [0, 1, 4, 7]


def test_work_of_no_cycles_does_not_queue():
    result = run(trace_of([work(50)], [nothing(), nothing()]), bare(**SHARED))
    assert issued(result, 1) == [1, 2]


@pytest.mark.parametrize(("pressure", "end"), [(0.0, 11), (0.25, 14), (1.0, 21)])
def test_a_quantum_is_longer_while_the_tensor_pipe_is_busy(pressure, end):
    # WGMMA at 0 keeps the pipe busy until 20. The quantum of 10 starts at 1 and takes 10 + ceil(10 x pressure).
    result = run(trace_of([wgmma(n=40), work(10), nothing()]), bare(**SHARED, cuda_core__register_pressure=pressure))
    assert issued(result) == [0, 1, end]


def test_pressure_is_judged_when_a_quantum_starts():
    # Pipe busy until 12. Quanta: 1-16 (10 + 5, though the pipe is free from 12), then 16-26.
    result = run(trace_of([wgmma(n=24), work(20), nothing()]), bare(**SHARED, cuda_core__register_pressure=0.5))
    assert issued(result) == [0, 1, 26]


def test_pressure_needs_the_pipe_busy_beyond_the_start():
    # The pipe is busy until 4, and work(3) ends at 4 with pressure 0: the job of cycle 4 starts when pipe_free = 4.
    hardware = bare(**SHARED, cuda_core__register_pressure=1.0)
    result = run(trace_of([wgmma(), nothing(), nothing(), nothing(), work(10), nothing()]), hardware)
    assert issued(result) == [0, 1, 2, 3, 4, 14]


def test_pressure_lengthens_the_last_quantum_by_its_own_length():
    # Work 13: 10 + ceil(10 x 0.25) = 13 from 1 to 14, then 3 + ceil(3 x 0.25) = 4 from 14 to 18.
    result = run(trace_of([wgmma(n=80), work(13), nothing()]), bare(**SHARED, cuda_core__register_pressure=0.25))
    assert issued(result) == [0, 1, 18]


def test_private_cores_know_no_pressure():
    result = run(trace_of([wgmma(n=80), work(10), nothing()]), bare(cuda_core__register_pressure=1.0))
    assert issued(result) == [0, 1, 11]


def test_each_sm_has_its_own_server():
    result = run(trace_of([work(8)], [work(8)], ctas=2), bare(**SHARED))
    assert result.ends == {(0, 0): 8, (0, 1): 16, (1, 0): 8, (1, 1): 16}
