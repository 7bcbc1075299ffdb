"""Slow, clear engine of the instruction set with ideal memory: the oracle for the compiled core.

Written from `docs/isa.md` alone and sharing no code with the core. One module a mechanism: `programs` unrolls,
`requests` says which lines a copy touches, `barriers`, `tensor_core`, `tma` and `cuda_core` are the units of an SM,
`threads` its roles, `sm` issues instructions, `engine` runs the cycles.
"""

from simfa.simulate.reference.engine import simulate
from simfa.simulate.reference.result import ReferenceResult

__all__ = ["ReferenceResult", "simulate"]
