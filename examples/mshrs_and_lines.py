"""What if an L2 slice had fewer MSHRs, or an SM fewer lines in flight? Llama-3 8B attention, 512 tokens, in seconds."""

import itertools

import pandas as pd

from simfa.hardware import load_preset
from simfa.pipeline import predict
from simfa.workload import model_shape

MSHRS = (16, 32, 256)
LINES = (32, 64, 384)


def what_if() -> pd.DataFrame:
    """Return the latency in us by MSHRs of a slice (rows) and lines in flight of an SM (columns)."""
    shape = model_shape("llama3-8b", 512)
    points = []
    for mshrs, lines in itertools.product(MSHRS, LINES):
        changes = [f"l2.mshr_entries={mshrs}", f"tma.max_lines_in_flight={lines}"]
        result = predict(shape, load_preset("h100-sxm", overrides=changes))
        points.append(result.to_frame().assign(mshr_entries=mshrs, max_lines_in_flight=lines))
    table = pd.concat(points)
    return table.pivot(index="mshr_entries", columns="max_lines_in_flight", values="latency_us")


if __name__ == "__main__":
    print(what_if().round(2))
