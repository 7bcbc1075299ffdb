"""One attention call on the GPU: its tensors, launches of the plain and the probed kernel, timings, traced rows."""

import contextlib
import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from simfa.errors import InstrumentError
from simfa.instrument.attention import TOLERANCES, from_bits, random_bits, reference
from simfa.instrument.gpu import Buffer, Gpu, profiler_range
from simfa.instrument.instantiation import instantiation_for
from simfa.instrument.launcher import Launcher, Tensors, TraceTarget
from simfa.instrument.pair import PLAIN, PROBED, pair_paths
from simfa.instrument.row_plan import RowPlan
from simfa.kernel import kernel_for
from simfa.workload import AttentionShape


class Latencies(NamedTuple):
    """Median time of a launch between two CUDA events, in microseconds: without probes, probes off, probes on."""

    plain_us: float
    probe_idle_us: float
    probe_active_us: float


class Call:
    """The device tensors of one call, filled with seeded normal values."""

    def __init__(self, gpu: Gpu, shape: AttentionShape, seed: int) -> None:
        """Allocate and fill; O and LSE start as zeros."""
        self.shape = shape
        q_values = shape.batch * shape.seqlen_q * shape.heads_q * shape.head_dim
        kv_values = shape.batch * shape.seqlen_kv * shape.heads_kv * shape.head_dim
        self._bits = [
            random_bits(count, shape.dtype, seed + index)
            for index, count in enumerate((q_values, kv_values, kv_values))
        ]
        self._inputs = [gpu.upload(bits) for bits in self._bits]
        self.o = gpu.zeros(2 * q_values)
        self._lse = gpu.zeros(4 * shape.batch * shape.heads_q * shape.seqlen_q)
        self._counter = gpu.zeros(4)
        self.tensors = Tensors(
            *(buffer.address for buffer in (*self._inputs, self.o, self._lse, self._counter)),
        )

    @functools.cached_property
    def expected(self) -> npt.NDArray[np.float64]:
        """Return the float64 reference of the output, in its shape."""
        shape = self.shape
        q, k, v = (from_bits(bits, shape.dtype) for bits in self._bits)
        q = q.reshape(shape.batch, shape.seqlen_q, shape.heads_q, shape.head_dim)
        k, v = (t.reshape(shape.batch, shape.seqlen_kv, shape.heads_kv, shape.head_dim) for t in (k, v))
        return reference(shape, q, k, v)

    def error(self, output: npt.NDArray[np.uint8]) -> float:
        """Return the largest absolute difference of an output, as bytes, from the reference."""
        got = from_bits(output.view(np.uint16), self.shape.dtype).reshape(self.expected.shape)
        return float(np.abs(got - self.expected).max())


class Rows:
    """Device memory for the rows of a traced launch, and where the probes find it."""

    def __init__(self, gpu: Gpu, plan: RowPlan) -> None:
        """Allocate zeroed rows and the table of slots."""
        self.plan = plan
        self._rows: Buffer = gpu.zeros(plan.size_bytes)
        self._slots: Buffer = gpu.upload(np.array(plan.slots(), np.int32))
        self.target = TraceTarget(
            rows=self._rows.address,
            cta_slots=self._slots.address,
            row_records=plan.row_units,
            rows_per_cta=len(plan.warps),
            row_of_warp={warp: row for row, warp in enumerate(plan.warps)},
        )

    def to_host(self) -> npt.NDArray[np.uint8]:
        """Return the bytes of all rows, in the order of (block, warp)."""
        return self._rows.to_host()


def open_libraries(folder: Path) -> tuple[Launcher, Launcher]:
    """Return the plain and the probed library below `folder`, as `simfa instrument build -o` writes them.

    Raises `InstrumentError` when one is missing or the two do not hold the same kernels.
    """
    plain_path, probed_path, _ = pair_paths(folder)
    plain, probed = Launcher(plain_path), Launcher(probed_path)
    if sorted(plain.kernels) != sorted(probed.kernels):
        raise InstrumentError(f"{folder}: the plain and the probed library hold different kernels; build both again")
    return plain, probed


def require_kernel(launcher: Launcher, shape: AttentionShape) -> None:
    """Raise `InstrumentError` with the build command when a library lacks the kernel of `shape`."""
    wanted = instantiation_for(shape)
    if wanted not in launcher.kernels:
        have = ", ".join(kernel.name for kernel in launcher.kernels)
        raise InstrumentError(
            f"{launcher.path}: no kernel {wanted.name} inside (it holds {have}); run "
            f"`simfa instrument build --kernel {wanted.name} -o DIR`"
        )


def check_outputs(gpu: Gpu, launchers: list[Launcher], shape: AttentionShape, sms: int) -> dict[str, float]:
    """Return the largest error of each library's kernel on a small shape of the same kind.

    Raises `InstrumentError` when one exceeds what the element type's rounding explains.
    """
    small = small_shape(shape)
    call = Call(gpu, small, seed=1)
    errors = {}
    for launcher in launchers:
        if launcher.level:
            launcher.set_trace(None)
        launcher.run(small, call.tensors, sms)
        gpu.synchronize()
        error = call.error(call.o.to_host())
        name = PROBED if launcher.level else PLAIN
        if not error <= TOLERANCES[shape.dtype]:
            raise InstrumentError(
                f"{launcher.path}: the {name} kernel is wrong on {small.describe()}: largest error {error:.3g}, "
                f"expected at most {TOLERANCES[shape.dtype]:.3g}"
            )
        errors[name] = error
    return errors


def small_shape(shape: AttentionShape) -> AttentionShape:
    """Return a shape that runs the same kernel, small enough for the reference, with a ragged last block."""
    kernel = kernel_for(shape)
    # An even number of query blocks would make a full kernel run in clusters; one block does not.
    rows = kernel.tile_m * (2 if shape.causal else kernel.cluster)
    return AttentionShape(
        batch=2,
        seqlen_q=rows,
        seqlen_kv=max(rows, 2 * kernel.tile_n) + 40,
        heads_q=2,
        heads_kv=1,
        head_dim=shape.head_dim,
        causal=shape.causal,
        dtype=shape.dtype,
    )


def measure(
    gpu: Gpu, plain: Launcher, probed: Launcher, call: Call, rows: Rows, sms: int, *, warm_up: int, repeats: int
) -> Latencies:
    """Return the medians of `repeats` launches each of the plain kernel, the probed one idle, and active."""
    probed.set_trace(None)
    _time(gpu, "warm-up", _launch(plain, call, sms), warm_up)
    plain_us = _time(gpu, "plain", _launch(plain, call, sms), repeats)
    _time(gpu, "warm-up", _launch(probed, call, sms), warm_up)
    idle_us = _time(gpu, "probe idle", _launch(probed, call, sms), repeats)
    with tracing(probed, rows):
        active_us = _time(gpu, "probe active", _launch(probed, call, sms), repeats)
    return Latencies(plain_us, idle_us, active_us)


@contextlib.contextmanager
def tracing(probed: Launcher, rows: Rows) -> Iterator[None]:
    """Turn the probes on for the launches inside."""
    probed.set_trace(rows.target)
    try:
        yield
    finally:
        probed.set_trace(None)


def _launch(launcher: Launcher, call: Call, sms: int) -> Callable[[], None]:
    return lambda: launcher.run(call.shape, call.tensors, sms)


def _time(gpu: Gpu, name: str, work: Callable[[], None], repeats: int) -> float:
    with profiler_range(name):
        return float(np.median(gpu.time_us(work, repeats)))
