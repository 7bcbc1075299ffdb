"""Sim-FA: FlashAttention-3 on Hopper, from kernel logs to cycle-level simulation and accuracy reports."""

import importlib
from importlib.metadata import version
from types import ModuleType

__version__ = version("simfa")

# Modules of the Python interface, imported when first used: `import simfa` alone costs nothing.
_MODULES = ("analytical", "hardware", "kernel", "measure", "pipeline", "workload")


def __getattr__(name: str) -> ModuleType:
    """Import a module of the Python interface on first use."""
    if name not in _MODULES:
        raise AttributeError(f"module 'simfa' has no attribute {name!r}")
    return importlib.import_module(f"simfa.{name}")


def __dir__() -> list[str]:
    """Name the modules of the Python interface, imported or not."""
    return sorted({*globals(), *_MODULES})
