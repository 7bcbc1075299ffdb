"""A timeline as a table, one row a slice, for Parquet and notebooks."""

import io
from typing import TYPE_CHECKING

import numpy as np

from simfa.errors import ReportError
from simfa.timeline import Timeline

if TYPE_CHECKING:
    import pandas


def slice_frame(timeline: Timeline) -> "pandas.DataFrame":
    """Return the slices: place, unit, label, start and end in cycles and us, ordinal."""
    import pandas

    places = [name.rpartition("/") for name in timeline.track_name]
    to_us = 1e6 / timeline.sm_clock_hz
    return pandas.DataFrame(
        {
            "place": np.array([place for place, _, _ in places], dtype=object)[timeline.track],
            "unit": np.array([unit for _, _, unit in places], dtype=object)[timeline.track],
            "label": np.array(timeline.slice_name, dtype=object)[timeline.name],
            "start_cycle": timeline.start_cycle,
            "end_cycle": timeline.end_cycle,
            "start_us": timeline.start_cycle * to_us,
            "end_us": timeline.end_cycle * to_us,
            "ordinal": timeline.arg,
        }
    )


def parquet_bytes(timeline: Timeline) -> bytes:
    """Return the table as a Parquet file; raises `ReportError` without pyarrow."""
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise ReportError(f"Parquet needs pyarrow: pip install 'simfa[parquet]' ({error})") from error
    buffer = io.BytesIO()
    slice_frame(timeline).to_parquet(buffer, index=False)
    return buffer.getvalue()
