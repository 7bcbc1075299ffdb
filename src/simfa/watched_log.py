"""A log that tells a progress line how many of its rows were read."""

from simfa.progress import Meter
from simfa.salog import LogMetadata, LogSource, Records, RowHeaders


class WatchedLog:
    """A `LogSource` that passes on another one; its rows are counted as they are read."""

    def __init__(self, log: LogSource, what: str, *, reads: int | None = None, quiet: bool = False) -> None:
        """Count the rows of `log` under the name `what`, `reads` of them or all; nothing is drawn when `quiet`."""
        self._log = log
        self._meter = Meter(what, len(log.rows) if reads is None else reads, unit="rows", quiet=quiet)
        self._read = 0

    @property
    def metadata(self) -> LogMetadata:
        """What the log says about itself."""
        return self._log.metadata

    @property
    def ctas(self) -> int:
        """CTAs of the grid, logged or not."""
        return self._log.ctas

    @property
    def row_bytes(self) -> int:
        """Bytes of one row, header included."""
        return self._log.row_bytes

    @property
    def rows(self) -> RowHeaders:
        """Row headers."""
        return self._log.rows

    def records(self, row: int) -> Records:
        """Return the records of one row, and count it."""
        self._read += 1
        self._meter.update(self._read)
        return self._log.records(row)

    def __enter__(self) -> "WatchedLog":
        """Start."""
        return self

    def __exit__(self, *error: object) -> None:
        """Wipe the line."""
        self._meter.close()
