"""Error figures against values worked out by hand."""

import math

import pytest

from simfa.errors import MeasureError
from simfa.measure.accuracy import Comparison, summarize


def comparison(measured_us: float, simulated_us: float, seqlen: int = 1024, **changes) -> Comparison:
    return Comparison(id="c", measured_us=measured_us, simulated_us=simulated_us, seqlen=seqlen, **changes)


def test_error_is_signed_and_relative_to_the_measurement() -> None:
    assert comparison(100, 110).error == pytest.approx(0.10)
    assert comparison(100, 90).error == pytest.approx(-0.10)
    assert comparison(100, 90).ape == pytest.approx(0.10)


def test_summary_of_three_cases() -> None:
    # Errors +10 %, -10 %, +30 %.
    accuracy = summarize([comparison(100, 110), comparison(50, 45), comparison(10, 13)], excluded=2)
    assert (accuracy.used, accuracy.excluded) == (3, 2)
    assert accuracy.mape == pytest.approx(0.5 / 3)
    assert accuracy.max_ape == pytest.approx(0.3)
    assert accuracy.bias == pytest.approx(0.1)
    assert accuracy.length_trend is None


def test_one_factor_explains_a_wrong_clock() -> None:
    # The simulated clock is 20 % too fast for every case: one factor of 1.25 leaves nothing.
    accuracy = summarize([comparison(length, 0.8 * length, seqlen=length) for length in (512, 1024, 4096)])
    assert accuracy.scale == pytest.approx(1.25)
    assert accuracy.mape_scaled == pytest.approx(0.0, abs=1e-12)
    assert accuracy.length_trend == pytest.approx(0.0, abs=1e-12)
    assert accuracy.mape == pytest.approx(0.2)


def test_trend_is_the_slope_of_the_log_ratio() -> None:
    # simulated / measured grows as length ** 0.1.
    lengths = (512, 1024, 2048, 8192)
    accuracy = summarize([comparison(7.0, 7.0 * length**0.1, seqlen=length) for length in lengths])
    assert accuracy.length_trend == pytest.approx(0.1)
    assert accuracy.scale == pytest.approx(math.prod(length**-0.1 for length in lengths) ** 0.25)


def test_nothing_compared_gives_no_figure() -> None:
    accuracy = summarize([], excluded=3)
    assert (accuracy.used, accuracy.excluded) == (0, 3)
    assert accuracy.mape is accuracy.max_ape is accuracy.bias is accuracy.scale is accuracy.mape_scaled is None


def test_synthetic_references_never_enter_mape() -> None:
    with pytest.raises(MeasureError, match="its reference is synthetic"):
        summarize([comparison(100, 110), comparison(100, 101, reference="synthetic")])


def test_latencies_must_be_positive() -> None:
    with pytest.raises(MeasureError, match="must be positive"):
        summarize([comparison(100, 0)])
