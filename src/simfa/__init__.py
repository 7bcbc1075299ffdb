"""Sim-FA: FlashAttention-3 on Hopper, from kernel logs to cycle-level simulation and accuracy reports."""

from importlib.metadata import version

__version__ = version("simfa")
