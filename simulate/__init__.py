"""Stage 3: cycle-level simulation of a trace on a GPU preset."""
