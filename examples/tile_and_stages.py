"""Which K/V tile and how many stages would FA3 like best? Every kernel that fits an SM, simulated; 1024 tokens."""

import itertools

import msgspec
import pandas as pd

from simfa.hardware import load_preset
from simfa.kernel import KernelSpec, kernel_for
from simfa.pipeline import predict
from simfa.workload import AttentionShape, model_shape

TILES = (64, 128, 176, 208)
STAGES = (1, 2, 3)
CONSUMER_REGISTERS = 240  # of a thread, where two consumer warpgroups share an SM with a producer


def fits(shape: AttentionShape, kernel: KernelSpec, shared_memory_bytes: int) -> bool:
    """Tell whether Q and the K and V stages fit shared memory, and scores, P and O of a warpgroup its registers."""
    rows = kernel.tile_m + 2 * kernel.stages * kernel.tile_n
    registers = kernel.tile_n // 2 + kernel.tile_n // 4 + shape.head_dim // 2
    return rows * shape.head_dim * shape.element_bytes <= shared_memory_bytes and registers <= CONSUMER_REGISTERS


def compare() -> pd.DataFrame:
    """Return one row a kernel, the fastest first."""
    shape = model_shape("llama3-8b", 1024)
    preset = load_preset("h100-sxm")
    shipped = kernel_for(shape)
    rows = []
    for tile_n, stages in itertools.product(TILES, STAGES):
        kernel = msgspec.structs.replace(shipped, tile_n=tile_n, stages=stages)
        if fits(shape, kernel, preset.spec.sm.shared_memory_bytes):
            result = predict(shape, preset, kernel=kernel)
            rows.append(result.to_frame().assign(tile_n=tile_n, stages=stages, shipped=kernel == shipped))
    columns = ["tile_n", "stages", "latency_us", "tensor_utilization", "shipped"]
    return pd.concat(rows).sort_values("latency_us")[columns].reset_index(drop=True)


if __name__ == "__main__":
    print(compare().round(3).to_string())
