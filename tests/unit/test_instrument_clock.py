"""The common timeline of all SMs, from clocks with injected offsets, ticks and drifts."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simfa.errors import InstrumentError
from simfa.instrument.clock import ClockFit, fit_clocks

EPOCH_NS = 1_700_000_000_000_000_000  # beyond what a float64 counts in single ns
SM_CLOCK_HZ = 1.83e9


class Machine:
    """SMs whose clocks have their own start and drift; the global timer ticks every `tick_ns`."""

    def __init__(self, sms: int, *, tick_ns: int, drift_ppm: float, seed: int) -> None:
        random = np.random.default_rng(seed)
        self.tick_ns, self.epoch_ns = tick_ns, EPOCH_NS  # an int: floats of this size step by 256
        self.starts = random.integers(1 << 20, 1 << 50, sms)
        self.rates = SM_CLOCK_HZ * 1e-9 * (1 + 1e-6 * random.uniform(-drift_ppm, drift_ppm, sms))

    def clock(self, sm: int, elapsed_ns: np.ndarray) -> np.ndarray:
        return (self.starts[sm] + np.round(np.asarray(elapsed_ns) * self.rates[sm])).astype(np.uint64)

    def timer(self, elapsed_ns: np.ndarray) -> np.ndarray:
        ticks = np.floor(np.asarray(elapsed_ns) / self.tick_ns).astype(np.int64)
        return (self.epoch_ns + ticks * self.tick_ns).astype(np.uint64)

    def fit(self, begins_ns: np.ndarray, ends_ns: np.ndarray) -> ClockFit:
        """Fit rows that begin and end at true times of shape (SMs, rows), read at any moment between ticks."""
        sms, rows = begins_ns.shape
        smid = np.repeat(np.arange(sms), rows)
        columns = []
        for times in (begins_ns, ends_ns):
            columns += [self.timer(times).ravel(), np.concatenate([self.clock(sm, times[sm]) for sm in range(sms)])]
        return fit_clocks(smid, *columns)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 1 << 16),
    tick_ns=st.sampled_from([1, 32, 1024]),
    drift_ppm=st.sampled_from([0.0, 20.0, 200.0]),
    duration_ns=st.integers(20_000, 5_000_000),
)
def test_true_times_come_back_within_a_tick(seed: int, tick_ns: int, drift_ppm: float, duration_ns: int) -> None:
    machine = Machine(8, tick_ns=tick_ns, drift_ppm=drift_ppm, seed=seed)
    random = np.random.default_rng(seed + 1)
    begins = random.uniform(0, 2000, (8, 9))
    fit = machine.fit(begins, duration_ns + random.uniform(0, 2000, (8, 9)))
    moments = np.linspace(2000, duration_ns, 50)
    found = np.array([fit.to_ns(sm, machine.clock(sm, moments)) for sm in range(8)]) + (fit.zero_ns - machine.epoch_ns)
    # Reading a timer that ticks is late by half a tick on average, on every SM alike.
    assert np.abs(found - moments).max() <= tick_ns + 1
    assert fit.residual_ns.max() <= tick_ns + 1


def test_pairs_read_at_a_tick_are_good_to_a_cycle() -> None:
    machine = Machine(4, tick_ns=32, drift_ppm=50, seed=3)
    begins = np.array([[64.0, 96.0]] * 4)
    ends = np.array([[320_000.0, 320_032.0]] * 4)
    fit = machine.fit(begins, ends)
    assert fit.residual_ns.max() < 1
    assert fit.tick_ns == 32
    assert fit.frequency_hz == pytest.approx(SM_CLOCK_HZ, rel=100e-6)
    moments = np.array([1_000.0, 200_000.0])
    for sm in range(4):
        found = fit.to_ns(sm, machine.clock(sm, moments)) + (fit.zero_ns - machine.epoch_ns)
        assert found == pytest.approx(moments, abs=1.0)


def test_an_sm_without_a_span_takes_the_others_rate() -> None:
    machine = Machine(3, tick_ns=32, drift_ppm=0, seed=5)
    begins = np.full((3, 1), 320.0)
    ends = np.array([[32_000.0], [64_000.0], [320.0]])
    fit = machine.fit(begins, ends)
    assert fit.to_ns(2, machine.clock(2, np.array([32_320.0]))) == pytest.approx([32_000.0], abs=33)


def test_frequency_is_found_not_assumed() -> None:
    fit = fit_clocks([7], [EPOCH_NS], [1_000_000], [EPOCH_NS + 100_000], [1_000_000 + 198_000])
    assert fit.frequency_hz == pytest.approx(1.98e9)


def test_clocks_before_the_first_pair_are_negative_times() -> None:
    fit = fit_clocks([0], [EPOCH_NS], [10_000], [EPOCH_NS + 1000], [12_000])
    assert fit.to_ns(0, 9_000) == pytest.approx(-500.0)


def test_unknown_sm_is_refused() -> None:
    fit = fit_clocks([4, 9], [0, 0], [0, 0], [64, 64], [128, 128])
    with pytest.raises(InstrumentError, match="SM 5 has no clock pairs"):
        fit.to_ns(5, 0)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (([], [], [], [], []), "no rows"),
        (([0, 1], [64, 96], [5, 5], [128, 32], [9, 9]), "row 1: a clock runs backwards"),
        (([0, 1], [64, 64], [5, 5], [64, 64], [5, 9]), "span less than a tick"),
    ],
)
def test_rows_that_cannot_be_fitted_are_refused(rows, message: str) -> None:
    with pytest.raises(InstrumentError, match=message):
        fit_clocks(*rows)
