"""SimFA-python: compute, L2 and DRAM traffic, intensity and latency bounds in closed form.

`traffic` prices one call, `policy_span` under every cache policy, `batch_traffic` a ragged batch. Names are imported
when first used, so that `import simfa.analytical` costs nothing.
"""

import importlib
from typing import Any

_EXPORTS = {
    "Attention": "simfa.analytical.attention",
    "Kernel": "simfa.analytical.kernels",
    "Machine": "simfa.analytical.machine",
    "Traffic": "simfa.analytical.model",
    "batch_traffic": "simfa.analytical.model",
    "policy_span": "simfa.analytical.model",
    "traffic": "simfa.analytical.model",
}
__all__ = list(_EXPORTS)


def __getattr__(name: str) -> Any:
    """Import an exported name on first use."""
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_EXPORTS[name]), name)
