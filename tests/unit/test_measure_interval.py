"""Bootstrap intervals of errors: what they must contain, and when there are none."""

import numpy
import pytest

from simfa.measure.interval import RESAMPLES, _medians, error_intervals


def test_no_repeats_no_interval() -> None:
    assert error_intervals([(), (100.0,)], [110.0, 90.0]) == ([None, None], None)


def test_mape_needs_repeats_of_every_case() -> None:
    each, mape = error_intervals([(100.0, 101.0), (100.0,)], [110.0, 90.0])
    assert each[0] is not None
    assert (each[1], mape) == (None, None)


def test_equal_repeats_give_a_point() -> None:
    each, mape = error_intervals([(100.0,) * 5, (100.0,) * 3], [110.0, 80.0])
    assert [tuple(found) for found in each if found] == [pytest.approx((0.1, 0.1)), pytest.approx((-0.2, -0.2))]
    assert mape == pytest.approx((0.15, 0.15))


def test_interval_of_two_values_is_their_errors() -> None:
    # A quarter of the resamples holds each value alone, so both tails of 2.5 % lie on the values themselves.
    (found,), _ = error_intervals([(100.0, 200.0)], [100.0])
    assert found == pytest.approx((-0.5, 0.0))


def test_interval_narrows_with_launches_and_repeats_exactly() -> None:
    values = [100 + (37 * step) % 11 for step in range(200)]
    few, many = (error_intervals([values[:count]], [100.0])[0][0] for count in (10, 200))
    assert few is not None and many is not None
    assert many.high - many.low < few.high - few.low
    assert error_intervals([values], [100.0]) == error_intervals([values], [100.0])


def test_blocks_of_resamples_are_complete() -> None:
    values = numpy.array([100.0, 102.0] * 1000)
    blocks = list(_medians(values, 0))
    assert len(blocks) > 1
    assert sum(len(block) for block in blocks) == RESAMPLES
