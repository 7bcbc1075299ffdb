"""Clocks of a synthetic GPU: a counter per SM with an arbitrary start, and a global timer that ticks every 32 ns."""

from simfa.instrument.seeded import draw

GLOBALTIMER_TICK_NS = 32  # on GH100, NVIDIA forum; other tools may see 1 us
LAUNCH_SPREAD_CYCLES = 400  # clusters start within so many cycles of each other
SETUP_CYCLES = 256  # from a warp's begin stamp to its first tile


class RowClock:
    """Converts cycles after a CTA's first tile start into what the probes of its SM would read."""

    def __init__(self, clock_hz: int, seed: int, cluster: int) -> None:
        """Draw the clocks' starts from the seed; `cluster` CTAs begin together."""
        self._clock_hz = clock_hz
        self._seed = seed
        self._cluster = cluster
        self._epoch_ns = GLOBALTIMER_TICK_NS * draw(1 << 50, seed, "globaltimer")

    def origin(self, cta: int) -> int:
        """Return the SM's clock when the CTA's first tile starts."""
        return self._start(cta) + self._launch(cta) + SETUP_CYCLES

    def begin(self, cta: int) -> tuple[int, int]:
        """Return the pair (global timer in ns, SM clock) that a warp stamps when it begins."""
        return self._pair(cta, self._launch(cta))

    def end(self, cta: int, cycles: int) -> tuple[int, int]:
        """Return the pair that a warp stamps `cycles` after the CTA's first tile start."""
        return self._pair(cta, self._launch(cta) + SETUP_CYCLES + cycles)

    def _start(self, cta: int) -> int:
        """Return the SM's clock at the kernel's launch."""
        return draw(1 << 44, self._seed, "SM clock", cta)

    def _launch(self, cta: int) -> int:
        """Return the cycles from the kernel's launch to the CTA's start."""
        return draw(LAUNCH_SPREAD_CYCLES, self._seed, "launch", cta // self._cluster)

    def _pair(self, cta: int, cycles: int) -> tuple[int, int]:
        """Return the clocks at the first tick of the global timer at or after `cycles` from the launch."""
        ticks = -(-cycles * 10**9 // (self._clock_hz * GLOBALTIMER_TICK_NS))
        elapsed_ns = ticks * GLOBALTIMER_TICK_NS
        return self._epoch_ns + elapsed_ns, self._start(cta) - (-elapsed_ns * self._clock_hz // 10**9)
