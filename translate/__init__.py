"""Stage 2, offline: warps to warpgroups, events to simulator instructions, verified traces."""
