"""The GPU as the closed forms see it: concurrency, rates and capacities, in SI units, from a hardware preset."""

import functools
from collections.abc import Mapping
from typing import Any

import msgspec

from simfa.analytical.attention import Attention
from simfa.analytical.kernels import Kernel, cutile_kernel, fa3_kernel
from simfa.errors import AnalyticalError
from simfa.hardware import HardwareSpec, Preset, load_preset


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """Rates and capacities of one GPU.

    `paper_l2_bytes` is the capacity of Eq. 4 as the paper uses it; `effective_l2_bytes` is what holds reusable K/V
    under every other policy. Rates are peaks, so they give bounds: `sm_flop_per_s` and `sm_exp_per_s` of one SM
    (0: exponentials are hidden), the others of the chip.
    """

    name: str
    kernel: str
    sm_count: int
    sm_flop_per_s: float
    sm_exp_per_s: float
    l2_bytes_per_s: float
    dram_bytes_per_s: float
    launch_us: float
    multicast: bool
    paper_l2_bytes: int
    effective_l2_bytes: int

    def capacity(self, policy: str) -> int:
        """Return the L2 bytes that `policy` compares the working set with."""
        return self.paper_l2_bytes if policy == "paper" else self.effective_l2_bytes

    def default_kernel(self, attention: Attention, splits: int = 1, version: str = "latest") -> Kernel:
        """Return the kernel the preset assumes for a call; `version` is FA3's."""
        if self.kernel == "fa3":
            return fa3_kernel(attention, version, splits)
        return cutile_kernel(attention, splits)


def machine_of(spec: HardwareSpec, name: str) -> Machine:
    """Return the machine of a hardware spec; `name` is the preset's."""
    clock = spec.gpu.sm_clock_hz
    return Machine(
        name=name,
        kernel=spec.analytical.kernel,
        sm_count=spec.gpu.sm_count,
        sm_flop_per_s=spec.tensor_core.flop_per_cycle * clock,
        sm_exp_per_s=spec.cuda_core.exp_per_cycle * clock,
        l2_bytes_per_s=spec.l2.slices * spec.l2.bytes_per_cycle_per_slice * clock,
        dram_bytes_per_s=spec.memory.peak_bytes_per_s,
        launch_us=spec.grid.launch_ns / 1e3,
        multicast=spec.lrc.multicast,
        paper_l2_bytes=int(spec.l2.capacity_bytes * spec.analytical.paper_l2_fraction),
        effective_l2_bytes=int(spec.l2.capacity_bytes * spec.analytical.effective_l2_fraction),
    )


@functools.lru_cache(maxsize=64)
def _shipped(name: str) -> Machine:
    return machine_of(load_preset(name).spec, name)


def resolve(gpu: str | Preset | Machine) -> Machine:
    """Return the machine of a preset name, a loaded preset, or a machine itself; raises `HardwareError`."""
    if isinstance(gpu, Machine):
        return gpu
    if isinstance(gpu, Preset):
        return machine_of(gpu.spec, gpu.name)
    if gpu.endswith(".toml"):
        return machine_of(load_preset(gpu).spec, gpu)
    return _shipped(gpu)


def kernel_with(machine: Machine, attention: Attention, changes: Mapping[str, Any]) -> Kernel:
    """Return the machine's kernel for a call with fields changed; with both tile sizes given, one of one's own.

    `version` among the changes is FA3's kernel version. Raises `AnalyticalError` for unknown fields and wrong values.
    """
    own = dict(changes)
    version = str(own.pop("version", "latest"))
    if {"tile_m", "tile_n"} <= own.keys():
        fields: dict[str, Any] = {"name": "custom"}
    else:
        splits = own.get("splits", 1)
        default = machine.default_kernel(attention, splits if isinstance(splits, int) else 1, version)
        fields = msgspec.structs.asdict(default)
        if own.keys() - {"splits"}:
            fields["name"] = f"{fields['name']}, changed"
    try:
        return msgspec.convert(fields | own, Kernel)
    except msgspec.ValidationError as error:
        raise AnalyticalError(f"kernel {str(error).replace('$.', '')}") from error
