"""Measurements: profiler exports to tidy tables, and errors of simulator and model against them."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simfa.measure.reader import Choice, Launch, Measurements, Stated, read

__all__ = ["Choice", "Launch", "Measurements", "Stated", "read"]


def __getattr__(name: str) -> Any:
    """Import the reader when one of its names is first used."""
    if name in __all__:
        return getattr(importlib.import_module("simfa.measure.reader"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
