"""One timeline for all SMs: each SM's clock counter against the global timer, from the pairs in the row headers.

`clock64` counts cycles of one SM from an arbitrary start, so raw clocks of two SMs compare to nothing. The probes read
both clocks at a warp's begin and end, right after a tick of the global timer (32 ns on Hopper). A line through an SM's
pairs turns its clock into common nanoseconds, good to about a tick anywhere between the pairs.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from simfa.errors import InstrumentError
from simfa.salog import RowHeaders

Integers = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float64]


class ClockFit(NamedTuple):
    """A line for each SM: common time in ns = `zero_ns` + (clock - `clock_origin`) * `ns_per_cycle` + `offset_ns`.

    Arrays have one entry for each of `smids`, sorted. `residual_ns` is the largest distance of an SM's pairs from its
    line. `frequency_hz` is the median clock, `spread_ppm` the largest deviation of an SM from it, and `tick_ns` the
    greatest common divisor of all global timer steps seen: its tick, or a multiple when few were seen.
    """

    zero_ns: int
    smids: Integers
    clock_origin: Integers
    ns_per_cycle: Floats
    offset_ns: Floats
    residual_ns: Floats
    frequency_hz: float
    spread_ppm: float
    tick_ns: int

    def to_ns(self, smid: int, clock: npt.ArrayLike) -> Floats:
        """Return common time in ns since `zero_ns` of clock values of SM `smid`, any shape.

        Raises `InstrumentError` for an SM that the fit does not know.
        """
        index = int(np.searchsorted(self.smids, smid))
        if index == len(self.smids) or self.smids[index] != smid:
            raise InstrumentError(f"SM {smid} has no clock pairs; the log holds no row of it")
        cycles = _signed_difference(np.asarray(clock, np.uint64), self.clock_origin[index])
        times: Floats = cycles * self.ns_per_cycle[index] + self.offset_ns[index]
        return times


def fit_clocks(
    smid: npt.ArrayLike,
    globaltimer_begin: npt.ArrayLike,
    clock_begin: npt.ArrayLike,
    globaltimer_end: npt.ArrayLike,
    clock_end: npt.ArrayLike,
) -> ClockFit:
    """Fit every SM's clock to the global timer; the arguments are columns of the row headers, shape (rows,).

    Least squares over all pairs of an SM. An SM whose pairs span no time takes the median rate of the others. Raises
    `InstrumentError` when there is no row, a clock runs backwards, or no SM's pairs span any time.
    """
    sms = np.asarray(smid, np.uint64)
    timers = np.stack([np.asarray(globaltimer_begin, np.uint64), np.asarray(globaltimer_end, np.uint64)])
    clocks = np.stack([np.asarray(clock_begin, np.uint64), np.asarray(clock_end, np.uint64)])
    if not sms.size:
        raise InstrumentError("no rows, so there are no clocks to fit")
    backwards = (timers[1] < timers[0]) | (clocks[1] < clocks[0])
    if backwards.any():
        row = int(np.argmax(backwards))
        raise InstrumentError(f"row {row}: a clock runs backwards from begin to end; was the row overwritten?")
    zero_ns = int(timers.min())
    # Whole numbers of this size do not fit a float: differences first, floats after.
    elapsed = (timers - np.uint64(zero_ns)).astype(np.float64)
    smids = np.unique(sms)
    origins = np.array([clocks[:, sms == sm].min() for sm in smids], np.uint64)
    lines = [_line(_signed_difference(clocks[:, sms == sm], origin), elapsed[:, sms == sm])
             for sm, origin in zip(smids, origins, strict=True)]  # fmt: skip
    slopes = np.array([line.ns_per_cycle for line in lines])
    if not np.isfinite(slopes).any():
        raise InstrumentError("the clock pairs of every SM span less than a tick of the global timer; trace more work")
    median = float(np.nanmedian(slopes))
    slopes = np.where(np.isfinite(slopes), slopes, median)
    offsets = np.array([line.mean_ns - line.mean_cycles * slope for line, slope in zip(lines, slopes, strict=True)])
    residuals = np.array(
        [
            np.abs(_signed_difference(clocks[:, sms == sm], origin) * slope + offset - elapsed[:, sms == sm]).max()
            for sm, origin, slope, offset in zip(smids, origins, slopes, offsets, strict=True)
        ]
    )
    steps = np.unique(timers - np.uint64(zero_ns))
    return ClockFit(
        zero_ns=zero_ns,
        smids=smids,
        clock_origin=origins,
        ns_per_cycle=slopes,
        offset_ns=offsets,
        residual_ns=residuals,
        frequency_hz=1e9 / median,
        spread_ppm=float(np.abs(slopes / median - 1).max() * 1e6),
        tick_ns=int(np.gcd.reduce(steps)),
    )


def fit_row_clocks(rows: RowHeaders) -> ClockFit:
    """Return the common timeline of the SMs that wrote `rows`; raises as `fit_clocks`."""
    return fit_clocks(
        rows["smid"], rows["globaltimer_begin"], rows["clock_begin"], rows["globaltimer_end"], rows["clock_end"]
    )


class _Line(NamedTuple):
    """A least-squares slope (NaN without a span) and the centre of its points."""

    ns_per_cycle: float
    mean_cycles: float
    mean_ns: float


def _line(cycles: Floats, times: Floats) -> _Line:
    mean_cycles, mean_ns = float(cycles.mean()), float(times.mean())
    spread = float(((cycles - mean_cycles) ** 2).sum())
    covariance = float(((cycles - mean_cycles) * (times - mean_ns)).sum())
    slope = covariance / spread if spread > 0 and covariance > 0 else float("nan")
    return _Line(slope, mean_cycles, mean_ns)


def _signed_difference(values: Integers, origin: np.uint64) -> Floats:
    """Return `values - origin` as floats; differences wrap like the counters do."""
    return (values - origin).view(np.int64).astype(np.float64)
