"""What a log holds, in one frozen value: the facts behind `simfa log info`."""

import msgspec
import numpy as np

from simfa.errors import InstrumentError
from simfa.instrument.clock import ClockFit, fit_row_clocks
from simfa.salog import Log, LogMetadata, RowHeaders
from simfa.watched_log import WatchedLog

TILES = {
    "logged": "coordinates logged",
    "static": "coordinates follow from the static schedule",
    "lost": "which CTA ran which tile is not in the log: usable with a simulated schedule only",
}


class Timeline(msgspec.Struct, frozen=True, kw_only=True):
    """How well the clocks of a log's SMs fit one timeline (`simfa.instrument.clock`)."""

    sms: int
    frequency_hz: float
    spread_ppm: float
    largest_residual_ns: float
    globaltimer_tick_ns: int


class LogFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A log's metadata and what its rows say; every record was checked."""

    metadata: LogMetadata
    ctas: int
    ctas_with_rows: int
    rows: int
    row_bytes: int
    records: int
    dropped: int
    truncated: bool
    rows_with_clock_going_backwards: int
    longest_row_ns: int
    timeline: Timeline | None
    timeline_problem: str | None

    def lines(self) -> list[tuple[str, str]]:
        """Return (name, value) pairs for people."""
        metadata, kernel = self.metadata, self.metadata.kernel
        seed = "" if metadata.seed is None else f", seed {metadata.seed}"
        modes = [word for word, on in (("ping-pong", kernel.ping_pong), ("overlap", kernel.overlap)) if on]
        lines = [
            ("source", f"{metadata.source}{seed}"),
            ("shape", metadata.shape.describe()),
            ("kernel", f"{metadata.kernel_name}, FA3 {kernel.version}"),
            (
                "tile",
                f"{kernel.tile_m} x {kernel.tile_n}, {kernel.stages} stages, {kernel.consumers} consumers, cluster "
                f"{kernel.cluster}, {', '.join(modes)}",
            ),
            ("schedule", f"{kernel.schedule}; {TILES[metadata.tiles]}"),
            ("gpu", metadata.gpu),
            ("level", f"{metadata.level}, clock {metadata.clock_source}, {metadata.warps} warp(s) a warpgroup"),
            ("rows", f"{self.rows} of {self.row_bytes} bytes, {self.ctas_with_rows} of {self.ctas} CTAs"),
            ("records", f"{self.records}, {self.dropped} dropped"),
            ("time", f"longest row {self.longest_row_ns / 1000:.1f} us of global timer"),
        ]
        if self.timeline is not None:
            fit = self.timeline
            lines.append(
                (
                    "timeline",
                    f"{fit.sms} SMs at {fit.frequency_hz / 1e6:.1f} MHz within {fit.spread_ppm:.0f} ppm, clock pairs "
                    f"at most {fit.largest_residual_ns:.0f} ns off, global timer steps of {fit.globaltimer_tick_ns} ns",
                )
            )
        else:
            lines.append(("timeline", f"none: {self.timeline_problem}"))
        if self.rows_with_clock_going_backwards:
            lines.append(("clock", f"goes backwards in {self.rows_with_clock_going_backwards} rows"))
        if self.truncated:
            lines.append(("warning", "incomplete: records were dropped or the file is cut short"))
        if metadata.perturbations:
            lines.append(("perturbed", ", ".join(metadata.perturbations)))
        return lines


def describe_log(log: Log, *, quiet: bool = True) -> LogFacts:
    """Return the facts of a log after reading and checking every record; raises `LogError` for the first wrong one."""
    rows = log.rows
    backwards = 0
    with WatchedLog(log, "checking rows", quiet=quiet) as watched:
        for row in range(len(rows)):
            times = watched.records(row)["timestamp"]
            backwards += bool((times[1:] < times[:-1]).any())
    fit = _fit(rows)
    elapsed = rows["globaltimer_end"].astype(np.int64) - rows["globaltimer_begin"].astype(np.int64)
    return LogFacts(
        metadata=log.metadata,
        ctas=log.ctas,
        ctas_with_rows=len(np.unique(rows["block"])),
        rows=len(rows),
        row_bytes=log.row_bytes,
        records=int(rows["records"].sum()),
        dropped=int(rows["dropped"].sum()),
        truncated=log.truncated,
        rows_with_clock_going_backwards=backwards,
        longest_row_ns=int(elapsed.max(initial=0)),
        timeline=None if isinstance(fit, str) else _timeline(fit),
        timeline_problem=fit if isinstance(fit, str) else None,
    )


def _fit(rows: RowHeaders) -> ClockFit | str:
    """Return the common timeline of the rows' SMs, or why they have none."""
    try:
        return fit_row_clocks(rows)
    except InstrumentError as error:
        return str(error)


def _timeline(fit: ClockFit) -> Timeline:
    return Timeline(
        sms=len(fit.smids),
        frequency_hz=fit.frequency_hz,
        spread_ppm=fit.spread_ppm,
        largest_residual_ns=float(fit.residual_ns.max()),
        globaltimer_tick_ns=fit.tick_ns,
    )
