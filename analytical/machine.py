"""The GPU as the closed forms see it: concurrency, rates and capacities, in SI units, from a hardware preset."""

import functools

import msgspec

from simfa.analytical.attention import Attention
from simfa.analytical.kernels import Kernel, cutile_kernel, fa3_kernel
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

    def default_kernel(self, attention: Attention) -> Kernel:
        """Return the kernel the preset assumes for a call."""
        return fa3_kernel(attention) if self.kernel == "fa3" else cutile_kernel(attention)


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
