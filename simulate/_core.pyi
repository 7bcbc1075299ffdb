"""Cycle-level engine of Sim-FA."""
