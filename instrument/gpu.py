"""Device memory, events and profiler ranges through whichever GPU library is installed: CuPy, PyCUDA or PyTorch.

The only module of the project that imports a GPU library, and only inside functions. All of them share the device's
primary context, which the kernel library's own CUDA run-time uses too.
"""

import atexit
import contextlib
import importlib.util
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from simfa.errors import InstrumentError
from simfa.workload import AttentionShape

BACKENDS = ("cupy", "pycuda", "torch")


class Buffer(Protocol):
    """Device memory that lives as long as the object."""

    @property
    def address(self) -> int:
        """Device address of the first byte."""

    def to_host(self) -> npt.NDArray[np.uint8]:
        """Return a copy of all bytes, shape (bytes,)."""


class Gpu(Protocol):
    """What capture needs of a GPU library. All work goes to the default stream."""

    name: str

    def upload(self, array: npt.NDArray[Any]) -> Buffer:
        """Return device memory with the bytes of `array`."""

    def zeros(self, size_bytes: int) -> Buffer:
        """Return zeroed device memory."""

    def synchronize(self) -> None:
        """Wait until the device is idle; raises `InstrumentError` when a kernel failed."""

    def time_us(self, work: Callable[[], None], repeats: int) -> list[float]:
        """Return the time of each of `repeats` calls of `work` between two CUDA events, in microseconds."""

    def device_name(self) -> str:
        """Return the name of the device."""


def open_gpu(backend: str | None = None) -> Gpu:
    """Return the GPU through `backend`, or through the first one that is installed.

    Raises `InstrumentError` when none is installed or the library finds no usable device.
    """
    if backend is not None and backend not in BACKENDS:
        raise InstrumentError(f"GPU library {backend!r} is unknown; expected one of {', '.join(BACKENDS)}")
    chosen = backend or next((name for name in BACKENDS if importlib.util.find_spec(name)), None)
    if chosen is None or not importlib.util.find_spec(chosen):
        raise InstrumentError(
            f"no GPU library installed ({chosen or ', '.join(BACKENDS)}); `pip install simfa[gpu]` brings CuPy"
        )
    makers: dict[str, Callable[[], Gpu]] = {"cupy": _Cupy, "pycuda": _Pycuda, "torch": _Torch}
    try:
        return makers[chosen]()
    except InstrumentError:
        raise
    except Exception as error:  # each library has its own types for a missing driver, device or context
        raise InstrumentError(f"{chosen} cannot use a GPU here: {error}") from error


@contextlib.contextmanager
def profiler_range(name: str) -> Iterator[None]:
    """Mark an NVTX range for Nsight, when the `nvtx` package is installed."""
    if importlib.util.find_spec("nvtx") is None:
        yield
        return
    import nvtx

    with nvtx.annotate(name, domain="simfa"):
        yield


class _Cupy:
    """CuPy: its memory pool and events."""

    name = "cupy"

    def __init__(self) -> None:
        import cupy

        self._cupy = cupy
        cupy.cuda.Device(0).use()
        cupy.zeros(1)

    def upload(self, array: npt.NDArray[Any]) -> Buffer:
        return _CupyBuffer(self._cupy.asarray(np.ascontiguousarray(array).view(np.uint8).reshape(-1)))

    def zeros(self, size_bytes: int) -> Buffer:
        return _CupyBuffer(self._cupy.zeros(size_bytes, np.uint8))

    def synchronize(self) -> None:
        with _kernel_errors():
            self._cupy.cuda.runtime.deviceSynchronize()

    def time_us(self, work: Callable[[], None], repeats: int) -> list[float]:
        events = [(self._cupy.cuda.Event(), self._cupy.cuda.Event()) for _ in range(repeats)]
        stream = self._cupy.cuda.Stream.null
        for begin, end in events:
            begin.record(stream)
            work()
            end.record(stream)
        self.synchronize()
        return [self._cupy.cuda.get_elapsed_time(begin, end) * 1e3 for begin, end in events]

    def device_name(self) -> str:
        return str(self._cupy.cuda.runtime.getDeviceProperties(0)["name"].decode())


class _CupyBuffer:
    def __init__(self, array: Any) -> None:
        self._array = array

    @property
    def address(self) -> int:
        return int(self._array.data.ptr)

    def to_host(self) -> npt.NDArray[np.uint8]:
        host: npt.NDArray[np.uint8] = self._array.get()
        return host


class _Pycuda:
    """PyCUDA: the primary context, so that the run-time inside the kernel library sees the same memory."""

    name = "pycuda"

    def __init__(self) -> None:
        import pycuda.driver

        self._driver = pycuda.driver
        self._driver.init()
        self._device = self._driver.Device(0)
        self._context = self._device.retain_primary_context()
        self._context.push()
        atexit.register(self._context.pop)  # PyCUDA aborts when its context stack is not empty at exit

    def upload(self, array: npt.NDArray[Any]) -> Buffer:
        return _PycudaBuffer(self._driver, np.ascontiguousarray(array).view(np.uint8).reshape(-1))

    def zeros(self, size_bytes: int) -> Buffer:
        return self.upload(np.zeros(size_bytes, np.uint8))

    def synchronize(self) -> None:
        with _kernel_errors():
            self._context.synchronize()

    def time_us(self, work: Callable[[], None], repeats: int) -> list[float]:
        events = [(self._driver.Event(), self._driver.Event()) for _ in range(repeats)]
        for begin, end in events:
            begin.record()
            work()
            end.record()
        self.synchronize()
        return [begin.time_till(end) * 1e3 for begin, end in events]

    def device_name(self) -> str:
        return str(self._device.name())


class _PycudaBuffer:
    def __init__(self, driver: Any, host: npt.NDArray[np.uint8]) -> None:
        self._driver = driver
        self._size = host.size
        self._memory = driver.mem_alloc(max(1, host.size))
        driver.memcpy_htod(self._memory, host)

    @property
    def address(self) -> int:
        return int(self._memory)

    def to_host(self) -> npt.NDArray[np.uint8]:
        host = np.empty(self._size, np.uint8)
        self._driver.memcpy_dtoh(host, self._memory)
        return host


class _Torch:
    """PyTorch: its caching allocator and events."""

    name = "torch"

    def __init__(self) -> None:
        import torch

        if not torch.cuda.is_available():
            raise InstrumentError("torch sees no CUDA device; check the driver and that this is not a CPU-only build")
        self._torch = torch
        torch.cuda.init()

    def upload(self, array: npt.NDArray[Any]) -> Buffer:
        flat = np.ascontiguousarray(array).view(np.uint8).reshape(-1)
        return _TorchBuffer(self._torch.from_numpy(flat.copy()).cuda())

    def zeros(self, size_bytes: int) -> Buffer:
        return _TorchBuffer(self._torch.zeros(size_bytes, dtype=self._torch.uint8, device="cuda"))

    def synchronize(self) -> None:
        with _kernel_errors():
            self._torch.cuda.synchronize()

    def time_us(self, work: Callable[[], None], repeats: int) -> list[float]:
        make = self._torch.cuda.Event
        events = [(make(enable_timing=True), make(enable_timing=True)) for _ in range(repeats)]
        for begin, end in events:
            begin.record()
            work()
            end.record()
        self.synchronize()
        return [begin.elapsed_time(end) * 1e3 for begin, end in events]

    def device_name(self) -> str:
        return str(self._torch.cuda.get_device_name(0))


class _TorchBuffer:
    def __init__(self, tensor: Any) -> None:
        self._tensor = tensor

    @property
    def address(self) -> int:
        return int(self._tensor.data_ptr())

    def to_host(self) -> npt.NDArray[np.uint8]:
        host: npt.NDArray[np.uint8] = self._tensor.cpu().numpy()
        return host


@contextlib.contextmanager
def _kernel_errors() -> Iterator[None]:
    """Turn any library's error for a failed kernel into ours."""
    try:
        yield
    except Exception as error:  # each library has its own exception type for an asynchronous failure
        raise InstrumentError(f"the kernel failed on the device: {error}") from error


def packaged_latency_us(shape: AttentionShape, *, warm_up: int, repeats: int) -> float:
    """Return the median time of the fa3-fwd package's kernel for `shape` in bf16, between two CUDA events.

    Needs torch and the fa3-fwd package.
    """
    import torch
    from fa3_fwd_interface import flash_attn_func

    def random(seqlen: int, heads: int) -> Any:
        return torch.randn(shape.batch, seqlen, heads, shape.head_dim, device="cuda", dtype=torch.bfloat16)

    q, k, v = (
        random(shape.seqlen_q, shape.heads_q),
        random(shape.seqlen_kv, shape.heads_kv),
        random(shape.seqlen_kv, shape.heads_kv),
    )
    gpu = _Torch()

    def launch() -> None:
        flash_attn_func(q, k, v, causal=shape.causal)

    gpu.time_us(launch, warm_up)
    return float(np.median(gpu.time_us(launch, repeats)))
