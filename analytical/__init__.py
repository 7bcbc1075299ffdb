"""SimFA-python: compute, L2 and DRAM traffic, intensity and latency bounds in closed form."""
