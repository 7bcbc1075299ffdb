"""Measurements: profiler exports to tidy tables, and errors of simulator and model against them."""
