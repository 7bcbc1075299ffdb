"""The built library from Python: ctypes over the C interface of `cuda/simfa_launcher.cu`.

Loading needs no GPU and no CUDA installation; what the machine lacks is told by `device_problem`.
"""

import ctypes
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from simfa.errors import InstrumentError
from simfa.instrument.instantiation import DTYPE_CODES, Instantiation, instantiation_for
from simfa.workload import AttentionShape

ABI_VERSION = 1
MAX_WARPS = 16  # of the probe's row table


class _Call(ctypes.Structure):
    """`simfa_call` of the launcher."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("q", "k", "v", "o", "lse", "tile_counter")),
        *(
            (name, ctypes.c_int)
            for name in (
                "batch",
                "seqlen_q",
                "seqlen_kv",
                "heads_q",
                "heads_kv",
                "head_dim",
                "dtype",
                "causal",
                "cluster",
                "sm_count",
            )
        ),
        ("softmax_scale", ctypes.c_float),
    )


class _TraceConfig(ctypes.Structure):
    """`simfa::TraceConfig` of the probe header."""

    _fields_ = (
        ("rows", ctypes.c_uint64),
        ("cta_slots", ctypes.c_uint64),
        ("row_records", ctypes.c_uint32),
        ("rows_per_cta", ctypes.c_uint32),
        ("row_of_warp", ctypes.c_int8 * MAX_WARPS),
    )


class TraceTarget(NamedTuple):
    """Where the probes write: device addresses, 16-byte units per row, rows of a CTA, and each warp's row."""

    rows: int
    cta_slots: int
    row_records: int
    rows_per_cta: int
    row_of_warp: Mapping[int, int]


class Tensors(NamedTuple):
    """Device addresses of one call's tensors, contiguous in (batch, seqlen, heads, head_dim) order."""

    q: int
    k: int
    v: int
    o: int
    lse: int
    tile_counter: int


class Launcher:
    """One built library. Errors of its functions are `InstrumentError` with the text of the code they return."""

    def __init__(self, path: Path) -> None:
        """Load the library at `path`; raises `InstrumentError` when it is not one of ours."""
        self.path = path
        try:
            self._library = ctypes.CDLL(str(path.resolve()))
            self._library.simfa_error_text.restype = ctypes.c_char_p
            version = self._library.simfa_abi_version()
        except (OSError, AttributeError) as error:
            raise InstrumentError(
                f"{path}: cannot be loaded: {error}; build it with `simfa instrument build`"
            ) from error
        if version != ABI_VERSION:
            raise InstrumentError(f"{path}: interface version {version}, expected {ABI_VERSION}; build it again")
        self.level: int = self._library.simfa_level()

    @property
    def kernels(self) -> list[Instantiation]:
        """Return the kernels inside."""
        names = {code: name for name, code in DTYPE_CODES.items()}
        found = []
        for index in range(self._library.simfa_kernel_count()):
            fields = (ctypes.c_int * 4)()
            self._check(self._library.simfa_kernel(index, fields), "simfa_kernel")
            head_dim, dtype, causal, cluster = fields
            found.append(Instantiation(head_dim, names[dtype], bool(causal), cluster))  # type: ignore[arg-type]
        return found

    def device_problem(self) -> str | None:
        """Return why the current device cannot run the kernels, or None when it can."""
        code = self._library.simfa_device(ctypes.byref(ctypes.c_int()))
        return None if code == 0 else self._text(code)

    def sm_count(self) -> int:
        """Return the SMs of the current device; raises `InstrumentError` when it is no Hopper GPU."""
        count = ctypes.c_int()
        self._check(self._library.simfa_device(ctypes.byref(count)), "no usable GPU")
        return count.value

    def set_trace(self, target: TraceTarget | None, stream: int = 0) -> None:
        """Point the probes at rows on the device, or turn them off; ordered on `stream`."""
        config = _TraceConfig()
        if target is not None:
            config.rows, config.cta_slots = target.rows, target.cta_slots
            config.row_records, config.rows_per_cta = target.row_records, target.rows_per_cta
            config.row_of_warp = (ctypes.c_int8 * MAX_WARPS)(
                *(target.row_of_warp.get(warp, -1) for warp in range(MAX_WARPS))
            )
        code = self._library.simfa_set_trace(
            ctypes.byref(config), ctypes.c_size_t(ctypes.sizeof(config)), ctypes.c_void_p(stream)
        )
        self._check(code, "tracing cannot be set up")

    def run(self, shape: AttentionShape, tensors: Tensors, sm_count: int, stream: int = 0) -> None:
        """Launch the kernel FA3 picks for `shape` on `stream`; returns before it has ended."""
        call = _Call(
            *tensors,
            shape.batch,
            shape.seqlen_q,
            shape.seqlen_kv,
            shape.heads_q,
            shape.heads_kv,
            shape.head_dim,
            DTYPE_CODES[shape.dtype],
            int(shape.causal),
            instantiation_for(shape).cluster,
            sm_count,
            shape.head_dim**-0.5,
        )
        code = self._library.simfa_run(ctypes.byref(call), ctypes.c_void_p(stream))
        self._check(code, f"{shape.describe()} cannot be launched")

    def _check(self, code: int, what: str) -> None:
        if code:
            raise InstrumentError(f"{self.path.name}: {what}: {self._text(code)} (code {code})")

    def _text(self, code: int) -> str:
        text: bytes = self._library.simfa_error_text(code)
        return text.decode()
