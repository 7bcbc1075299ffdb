"""Stage 1: logs of the FA3 kernel, captured on a GPU or made synthetically."""
