"""Packages that only some commands need, asked for before these run: what takes minutes must not end without one."""

import importlib.util

from simfa.errors import SimfaError


def need(module: str, what: str, extra: str) -> None:
    """Raise `SimfaError` if `module`, which `what` needs, is not installed; `extra` is what pip brings it with."""
    if importlib.util.find_spec(module) is None:
        raise SimfaError(f"{what} needs {module}; pip install 'simfa[{extra}]'")
