"""Rings of shared-memory stages and named barriers of one CTA."""

from collections import defaultdict

from simfa.errors import SimulationError
from simfa.trace import Ring


class RingState:
    """One ring of one CTA: arrivals of each stage, and credited bytes and expectation of each absolute fill."""

    def __init__(self, ring: Ring) -> None:
        """Start with all stages free and nothing loaded."""
        self.ring = ring
        self.arrivals = [0] * ring.stages
        self.credited: defaultdict[int, int] = defaultdict(int)
        self.expected: set[int] = set()

    def is_free(self, fill: int) -> bool:
        """Return whether all earlier fills of this fill's stage were released by all consumers."""
        return self.arrivals[fill % self.ring.stages] >= fill // self.ring.stages * self.ring.releases

    def is_complete(self, fill: int) -> bool:
        """Return whether the fill is expected and all its bytes have arrived."""
        return fill in self.expected and self.credited[fill] == self.ring.bytes

    def release(self, fill: int) -> None:
        """Count one arrival at the fill's stage."""
        self.arrivals[fill % self.ring.stages] += 1

    def credit(self, fill: int, size: int) -> None:
        """Add arrived bytes to the fill; raises `SimulationError` when they are more than it can hold."""
        self.credited[fill] += size
        if self.credited[fill] > self.ring.bytes:
            raise SimulationError(
                f"ring {self.ring.name} fill {fill} received {self.credited[fill]} bytes; a fill has {self.ring.bytes}"
            )

    def place(self, fill: int) -> str:
        """Return the fill in a reader's words."""
        stages = self.ring.stages
        return f"ring {self.ring.name} stage {fill % stages} round {fill // stages} (fill {fill})"

    def missing_release(self, fill: int) -> str:
        """Return what an ACQUIRE_STAGE of the fill waits for."""
        needed = fill // self.ring.stages * self.ring.releases
        return f"{self.place(fill)} to be released: {self.arrivals[fill % self.ring.stages]} of {needed} arrivals"

    def missing_data(self, fill: int) -> str:
        """Return what an MB_WAIT on the fill waits for."""
        acquired = "acquired" if fill in self.expected else "never acquired"
        return f"{self.place(fill)} to be full: {self.credited[fill]} of {self.ring.bytes} bytes, {acquired}"
