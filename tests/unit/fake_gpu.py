"""A GPU that is not there: host memory with made-up addresses, and kernels that write synthetic rows and outputs."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from simfa.errors import InstrumentError
from simfa.hardware import load_preset
from simfa.instrument.attention import from_bits, reference, to_bits
from simfa.instrument.instantiation import Instantiation, instantiation_for
from simfa.instrument.launcher import Tensors, TraceTarget
from simfa.instrument.synthetic import synthesize
from simfa.kernel import kernel_for
from simfa.salog import ROW_HEADER_DTYPE
from simfa.workload import AttentionShape

PRESET = load_preset("h100-sxm", [], ["gpu.sm_count=12"])
SMS = PRESET.spec.gpu.sm_count


# Outputs are the same in every test that runs a shape; the reference takes longer than the rest.
_OUTPUTS: dict[tuple[AttentionShape, bytes], np.ndarray] = {}


class FakeBuffer:
    """Bytes with an address."""

    def __init__(self, data: np.ndarray, address: int) -> None:
        self.data, self.address = data, address

    def to_host(self) -> np.ndarray:
        return self.data.copy()


class FakeGpu:
    """Device memory and timings of `latencies_us`, in the order they are asked for."""

    name = "fake"

    def __init__(self, latencies_us: tuple[float, ...] = (50.0, 50.0, 51.0, 51.0, 55.0)) -> None:
        self._memory: list[FakeBuffer] = []
        self._next = 0x1000
        self._latencies: Iterator[float] = iter(latencies_us)

    def upload(self, array: np.ndarray) -> FakeBuffer:
        buffer = FakeBuffer(np.ascontiguousarray(array).view(np.uint8).reshape(-1).copy(), self._next)
        self._next += buffer.data.size + 256
        self._memory.append(buffer)
        return buffer

    def zeros(self, size_bytes: int) -> FakeBuffer:
        return self.upload(np.zeros(size_bytes, np.uint8))

    def synchronize(self) -> None: ...

    def time_us(self, work: Callable[[], None], repeats: int) -> list[float]:
        if repeats:
            work()
        return [next(self._latencies)] * repeats

    def device_name(self) -> str:
        return "Fake H100"

    def at(self, address: int) -> np.ndarray:
        """Return the memory at an address."""
        return next(buffer.data for buffer in self._memory if buffer.address == address)


class FakeLauncher:
    """A library whose kernels compute with the reference and log what the schedule says; `spoil` changes the rows."""

    def __init__(
        self,
        gpu: FakeGpu,
        level: int,
        kernels: list[Instantiation],
        *,
        path: Path = Path("libsimfa_fa3.so"),
        wrong_by: float = 0.0,
        spoil: Callable[[np.ndarray, int], Any] | None = None,
    ) -> None:
        self.path, self.level, self.kernels = path, level, kernels
        self._gpu, self._wrong_by, self._spoil = gpu, wrong_by, spoil
        self._target: TraceTarget | None = None

    def sm_count(self) -> int:
        return SMS

    def set_trace(self, target: TraceTarget | None, stream: int = 0) -> None:
        assert self.level
        self._target = target

    def run(self, shape: AttentionShape, tensors: Tensors, sm_count: int, stream: int = 0) -> None:
        if instantiation_for(shape) not in self.kernels:
            raise InstrumentError("the library was built without this kernel")
        if shape.seqlen_q * shape.seqlen_kv * shape.heads_q <= 1 << 18:
            self._compute(shape, tensors)
        if self._target is not None:
            self._log(shape, self._target)

    def _compute(self, shape: AttentionShape, tensors: Tensors) -> None:
        def read(address: int, seqlen: int, heads: int) -> np.ndarray:
            bits = self._gpu.at(address).view(np.uint16)
            return from_bits(bits, shape.dtype).reshape(shape.batch, seqlen, heads, shape.head_dim)

        q = read(tensors.q, shape.seqlen_q, shape.heads_q)
        k, v = (read(address, shape.seqlen_kv, shape.heads_kv) for address in (tensors.k, tensors.v))
        key = shape, q.tobytes()
        if key not in _OUTPUTS:
            _OUTPUTS[key] = reference(shape, q, k, v)
        output = _OUTPUTS[key] + self._wrong_by
        self._gpu.at(tensors.o)[:] = to_bits(output.astype(np.float32), shape.dtype).view(np.uint8).reshape(-1)

    def _log(self, shape: AttentionShape, target: TraceTarget) -> None:
        """Write what the probes would: every logging warp of every CTA has a row, with or without tiles."""
        log = synthesize(shape, kernel_for(shape), PRESET, level=self.level, one_warp=False)
        row_bytes = 16 * target.row_records
        rows = self._gpu.at(target.rows).reshape(-1, row_bytes)
        slots = self._gpu.at(target.cta_slots).view(np.int32)
        for block, slot in enumerate(slots.tolist()):
            for warp, place in target.row_of_warp.items():
                if slot >= 0:
                    self._write_idle(rows[slot * target.rows_per_cta + place], block, warp)
        for index, header in enumerate(log.rows):
            slot, place = int(slots[header["block"]]), target.row_of_warp.get(int(header["warp"]))
            if slot < 0 or place is None:
                continue
            row = rows[slot * target.rows_per_cta + place]
            records = log.records(index)
            kept = records[: (row_bytes - ROW_HEADER_DTYPE.itemsize) // records.itemsize]
            written = header.copy()
            written["records"], written["dropped"] = len(kept), len(records) - len(kept)
            row[: written.nbytes] = np.frombuffer(written.tobytes(), np.uint8)
            row[written.nbytes : written.nbytes + kept.nbytes] = np.frombuffer(kept.tobytes(), np.uint8)
        if self._spoil is not None:
            self._spoil(rows, row_bytes)

    @staticmethod
    def _write_idle(row: np.ndarray, block: int, warp: int) -> None:
        header = np.zeros(1, ROW_HEADER_DTYPE)
        header["magic"], header["version"] = 0x57524653, 1
        header["role"], header["block"], header["warp"], header["smid"] = warp // 4, block, warp, block
        header["globaltimer_end"], header["clock_end"] = 64, 128
        row[: header.nbytes] = np.frombuffer(header.tobytes(), np.uint8)
