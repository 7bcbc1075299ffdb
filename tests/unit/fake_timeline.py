"""A timeline with the regular pattern of a ping-pong pipeline, written as `timeline.npz`."""

import json
from pathlib import Path

import numpy as np

ROLES = ("producer", "consumer1", "consumer2", "tensor", "tma")
LABELS = ("acquire_stage", "softmax", "wgmma_wait", "S", "O", "K", "V")


def write_timeline(path: Path, *, iterations: int = 12, sms: int = 1, **changes: object) -> Path:
    """Write `iterations` turns of 1000 cycles for each of `sms` SMs and return the path."""
    slices = []
    for sm in range(sms):
        first = sm * len(ROLES)
        for turn in range(iterations):
            at = 1000 * turn
            slices += [
                (first, LABELS.index("acquire_stage"), at, at + 900, turn),
                (first + 1, LABELS.index("softmax"), at, at + 400, turn),
                (first + 1, LABELS.index("wgmma_wait"), at + 400, at + 1000, turn),
                (first + 2, LABELS.index("softmax"), at + 500, at + 900, turn),
                (first + 3, LABELS.index("S"), at, at + 450, 1),
                (first + 3, LABELS.index("O"), at + 500, at + 950, 2),
                (first + 4, LABELS.index("K"), at + 100, at + 300, turn),
            ]
    track, name, start, end, arg = (np.array(column) for column in zip(*slices, strict=True))
    arrays: dict[str, object] = {
        "track_name": np.array([f"sm{sm}/{role}" for sm in range(sms) for role in ROLES]),
        "slice_name": np.array(LABELS),
        "track": track.astype(np.int32),
        "name": name.astype(np.int32),
        "start_cycle": start.astype(np.int64),
        "end_cycle": end.astype(np.int64),
        "arg": arg.astype(np.int32),
        "sm_clock_hz": np.float64(1.5e9),
        "meta": np.array(json.dumps({"cycles": 1000 * iterations})),
    }
    np.savez(path, **(arrays | changes))
    return path
