"""Sim-FA: FlashAttention-3 on Hopper, from kernel logs to cycle-level simulation and accuracy reports."""

TYPE_CHECKING = False  # as typing has it, without importing that
if TYPE_CHECKING:
    from typing import Any

    __version__: str

# Modules of the Python interface, imported when first used: `import simfa` alone costs nothing.
_MODULES = ("analytical", "hardware", "kernel", "measure", "pipeline", "workload")


def __getattr__(name: str) -> "Any":
    """Return the version, or import a module of the Python interface, on first use."""
    if name == "__version__":
        from importlib.metadata import version

        return globals().setdefault("__version__", version("simfa"))
    if name not in _MODULES:
        raise AttributeError(f"module 'simfa' has no attribute {name!r}")
    import importlib

    return importlib.import_module(f"simfa.{name}")


def __dir__() -> list[str]:
    """Name the modules of the Python interface, imported or not."""
    return sorted({*globals(), *_MODULES, "__version__"})
