"""From frozen values to the engine's integers: preset to `Config`, trace to tables.

Everything that belongs to another clock than the SM's is converted here, once.
"""

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simfa import isa
from simfa.errors import SimulationError
from simfa.hardware import CudaCore, HardwareSpec
from simfa.isa import Affine, Bubbles, Instruction, Repeat, Slot, Wgmma
from simfa.simulate import _core
from simfa.simulate.dram_device import preset_channel
from simfa.trace import Program, Trace
from simfa.units import ns_to_cycles

# Numbers of `Op` in program.hpp.
OPS: dict[type, int] = {
    isa.TmaTensor: 0,
    isa.TmaBulk: 1,
    isa.MbWait: 2,
    isa.AcquireStage: 3,
    isa.ReleaseStage: 4,
    isa.TmaStore: 5,
    isa.TmaCommit: 6,
    isa.TmaWait: 7,
    isa.Wgmma: 8,
    isa.WgmmaCommit: 9,
    isa.WgmmaWait: 10,
    isa.BarArrive: 11,
    isa.BarWait: 12,
    isa.Bubbles: 13,
}
_REPEAT, _END, _FINISH = 14, 15, 16
_COLUMNS = (
    *("op", "flags", "ring", "label", "map", "index", "index_step", "x", "y", "y_step", "group", "group_step"),
    *("count", "work_cycles", "flat", "address", "address_step"),
)
_COLUMN = {name: number for number, name in enumerate(_COLUMNS)}

_RING_ORDER = ("K", "V", "Q", "O")
_WORK = {"cycles": 0, "softmax": 1, "epilogue": 2}
_ORIGIN = {"none": 0, "query": 1, "kv": 2}
_HASH = {"xor": 0, "modulo": 1, "strong": 2, "side": 3}
_SCHEDULER = {"gto": 0, "lrr": 1, "oldest": 2}
_PPM = 1_000_000


def work_cycles(bubbles: Bubbles, cuda_core: CudaCore) -> int:
    """Return the cycles of CUDA-core work that BUBBLES stands for (`docs/isa.md` section 6), rounded up once."""
    if bubbles.kind == "cycles":
        return bubbles.cycles
    if bubbles.kind == "epilogue":
        terms = [(bubbles.elements, cuda_core.epilogue_per_cycle)]
    else:
        elements = bubbles.elements
        terms = [
            (elements, cuda_core.exp_per_cycle),
            (elements, cuda_core.max_per_cycle),
            (elements, cuda_core.scale_per_cycle),
            (elements, cuda_core.sum_per_cycle),
            (elements, cuda_core.convert_per_cycle),
            (bubbles.masked, cuda_core.mask_per_cycle),
            (bubbles.rescale, cuda_core.rescale_per_cycle),
        ]
    return math.ceil(sum((Fraction(count, rate) for count, rate in terms if rate), Fraction(0)))


def wgmma_cycles(wgmma: Wgmma, hardware: HardwareSpec) -> int:
    """Return the cycles one WGMMA occupies the tensor pipe (`docs/isa.md` section 4)."""
    flop = 2 * wgmma.m * wgmma.n * wgmma.k
    tensor_core = hardware.tensor_core
    busy = math.ceil(Fraction(flop, tensor_core.flop_per_cycle)) + tensor_core.wgmma_overhead_cycles
    return max(tensor_core.wgmma_min_cycles, busy)


def engine_config(hardware: HardwareSpec, **run: Any) -> _core.Config:
    """Return the engine's configuration for a preset; `run` sets run-time fields (threads, timeline, ...).

    Raises `SimulationError` for a GPU that is not Hopper: its preset serves the analytical model alone.
    """
    if not hardware.gpu.compute_capability.startswith("9."):
        raise SimulationError(
            f"{hardware.gpu.name} (compute capability {hardware.gpu.compute_capability}) is not a Hopper GPU; "
            "FA3 and the simulator need one, `simfa analytical` does not"
        )
    clock = hardware.gpu.sm_clock_hz
    line = hardware.l2.line_bytes
    sustained = hardware.memory.peak_bytes_per_s * hardware.memory.efficiency / hardware.l2.slices
    line_cycles = Fraction(line * clock / sustained).limit_denominator(1 << 16)
    # Half of the slices are near, half far: a line's mean round trip when it hits and meets no queue.
    ideal = (hardware.crossbar.near_latency_cycles + hardware.crossbar.far_latency_cycles) // 2
    values: dict[str, Any] = {
        "sms": hardware.gpu.sm_count,
        "issue_width": hardware.sm.issue_width,
        "scheduler": _SCHEDULER[hardware.sm.scheduler],
        "wgmma_issue_cycles": hardware.tensor_core.wgmma_issue_cycles,
        "wgmma_tail_ss_cycles": hardware.tensor_core.wgmma_tail_ss_cycles,
        "wgmma_tail_rs_cycles": hardware.tensor_core.wgmma_tail_rs_cycles,
        "wgmma_window_ss": hardware.tensor_core.wgmma_window_ss,
        "wgmma_window_rs": hardware.tensor_core.wgmma_window_rs,
        "group_drain_cycles": hardware.tensor_core.group_drain_cycles,
        "cuda_shared": hardware.cuda_core.sharing == "shared",
        "cuda_round_robin": hardware.cuda_core.order == "round_robin",
        "quantum_cycles": hardware.cuda_core.quantum_cycles,
        "register_pressure_ppm": round(hardware.cuda_core.register_pressure * _PPM),
        "tma_level": hardware.tma.level,
        "level_0_latency_cycles": hardware.tma.level_0_latency_cycles,
        "tma_launch_cycles": hardware.tma.launch_cycles,
        "tensor_map_cycles": hardware.tma.tensor_map_cycles,
        "descriptor_cache_entries": hardware.tma.descriptor_cache_entries,
        "descriptor_miss_cycles": hardware.tma.descriptor_miss_cycles,
        "issue_gap_cycles": hardware.tma.issue_gap_cycles,
        "lines_per_cycle": max(1, hardware.tma.issue_bytes_per_cycle // line),
        "cycles_per_line": max(1, line // hardware.tma.issue_bytes_per_cycle),
        "max_lines_in_flight": hardware.tma.max_lines_in_flight,
        "deduplicate": hardware.tma.deduplicate,
        "request_bytes": hardware.tma.request_bytes,
        "store_read_cycles": hardware.tma.store_read_cycles,
        "mbarrier_arrive_cycles": hardware.mbarrier.arrive_cycles,
        "mbarrier_remote_arrive_cycles": hardware.mbarrier.remote_arrive_cycles,
        "mbarrier_wait_cycles": hardware.mbarrier.wait_cycles,
        "mbarrier_wake_cycles": hardware.mbarrier.wake_cycles,
        "named_arrive_cycles": hardware.named_barrier.arrive_cycles,
        "named_wait_cycles": hardware.named_barrier.wait_cycles,
        "named_wake_cycles": hardware.named_barrier.wake_cycles,
        "lrc_enabled": hardware.lrc.enabled,
        "lrc_multicast": hardware.lrc.multicast,
        "lrc_entries": hardware.lrc.entries,
        "lrc_max_merges": hardware.lrc.max_merges,
        "lrc_hold_cycles": hardware.lrc.hold_cycles,
        "near_latency_cycles": hardware.crossbar.near_latency_cycles,
        "far_latency_cycles": hardware.crossbar.far_latency_cycles,
        "port_lines_per_cycle": max(1, hardware.crossbar.sm_port_bytes_per_cycle // line),
        "port_cycles_per_line": max(1, line // hardware.crossbar.sm_port_bytes_per_cycle),
        "line_bytes": line,
        "sector_bytes": hardware.l2.sector_bytes,
        "fetch_bytes": hardware.l2.fetch_bytes,
        "slices": hardware.l2.slices,
        "sets": hardware.l2.capacity_bytes // (hardware.l2.slices * hardware.l2.ways * line),
        "ways": hardware.l2.ways,
        "hash": _HASH[hardware.l2.hash],
        "slice_service_cycles": max(1, line // hardware.l2.bytes_per_cycle_per_slice),
        "request_queue_entries": hardware.l2.request_queue_entries,
        "response_queue_entries": hardware.l2.response_queue_entries,
        "mshr_entries": hardware.l2.mshr_entries,
        "mshr_merges": hardware.l2.mshr_merges,
        "remote_copy": hardware.l2.remote_copy.enabled,
        "remote_copy_probability_ppm": round(hardware.l2.remote_copy.max_insertion_probability * _PPM),
        "remote_copy_threshold_ppm": round(hardware.l2.remote_copy.occupancy_threshold * _PPM),
        "channel_line_cycles_numerator": line_cycles.numerator,
        "channel_line_cycles_denominator": line_cycles.denominator,
        "channel_latency_cycles": ns_to_cycles(hardware.memory.latency_ns, clock),
        "channel_write_cost_ppm": round(hardware.memory.write_cost * _PPM),
        "channel_write_queue_entries": hardware.memory.write_queue_entries,
        "dram": preset_channel(hardware) if hardware.memory.model == "hbm3" else None,
        "ideal_latency_cycles": ideal if hardware.memory.model == "ideal" else 0,
        "launch_cycles": ns_to_cycles(hardware.grid.launch_ns, clock),
        "tile_fetch_cycles": hardware.grid.tile_fetch_cycles,
        "tile_edge_cycles": hardware.grid.tile_edge_cycles,
        **run,
    }
    config = _core.Config()
    for name, value in values.items():
        try:
            setattr(config, name, value)
        except TypeError as error:
            raise SimulationError(f"{name} is {value}; expected a number of 32 bits") from error
    return config


def ring_numbers(trace: Trace) -> dict[str, int]:
    """Return the engine's number of each ring: 0-3 are kept for K, V, Q and O, whose waits have their own reasons."""
    others = [ring.name for ring in trace.rings if ring.name not in _RING_ORDER]
    numbers = {name: number for number, name in enumerate([*_RING_ORDER, *others])}
    return {ring.name: numbers[ring.name] for ring in trace.rings}


class _Encoder:
    """Numbers of a trace's rings, maps and accumulators, and the rows of its programs."""

    def __init__(self, trace: Trace, hardware: HardwareSpec) -> None:
        self.rings = ring_numbers(trace)
        self.ring_count = max(self.rings.values(), default=-1) + 1
        if self.ring_count > _core.MAX_RINGS:
            raise SimulationError(
                f"the trace's rings need {self.ring_count} numbers; the engine has {_core.MAX_RINGS}, "
                "0 to 3 of them for K, V, Q and O"
            )
        self.maps = {tensor_map.name: number for number, tensor_map in enumerate(trace.maps)}
        self.labels: dict[str, int] = {}
        self.hardware = hardware

    def row(self, instruction: Instruction, flat: int) -> list[int]:
        """Return the columns of one instruction."""
        values = [0] * len(_COLUMNS)

        def put(**columns: int) -> None:
            for name, value in columns.items():
                values[_COLUMN[name]] = value

        def put_affine(name: str, operand: Affine) -> None:
            put(**{name: operand.start, f"{name}_step": operand.step})

        put(op=OPS[type(instruction)], flat=flat)
        slot = getattr(instruction, "slot", None)
        if isinstance(slot, Slot):
            put(ring=self.rings[slot.ring])
            put_affine("index", slot.index)
        group = getattr(instruction, "group", None)
        if isinstance(group, Affine):
            put_affine("group", group)
        match instruction:
            case isa.TmaTensor():
                put(map=self.maps[instruction.map], x=instruction.x, flags=int(instruction.multicast))
                put_affine("y", instruction.y)
            case isa.TmaStore():
                put(map=self.maps[instruction.map], x=instruction.x)
                put_affine("y", instruction.y)
            case isa.TmaBulk():
                put(count=instruction.bytes)
                put_affine("address", instruction.address)
            case isa.ReleaseStage():
                put(flags=int(instruction.remote))
            case isa.TmaWait():
                put(flags=int(instruction.read), count=instruction.outstanding)
            case isa.Wgmma():
                label = self.labels.setdefault(instruction.d, len(self.labels))
                put(flags=int(instruction.mode == "RS"), count=instruction.count, label=label)
                put(work_cycles=wgmma_cycles(instruction, self.hardware))
            case isa.WgmmaWait():
                put(count=instruction.outstanding)
            case isa.BarArrive():
                put(ring=instruction.barrier)
            case isa.BarWait():
                put(ring=instruction.barrier, count=instruction.arrivals)
            case isa.Bubbles():
                cycles = work_cycles(instruction, self.hardware.cuda_core)
                put(label=_WORK[instruction.kind], work_cycles=cycles)
            case _:
                pass
        return values

    def program(self, program: Program) -> list[list[int]]:
        """Return all rows of a program, with REPEAT, END and the final mark."""
        rows: list[list[int]] = []
        flat = 0
        mark = [0] * len(_COLUMNS)
        for item in program.body:
            body = item.body if isinstance(item, Repeat) else (item,)
            if isinstance(item, Repeat):
                rows.append(mark.copy())
                rows[-1][_COLUMN["op"]], rows[-1][_COLUMN["count"]] = _REPEAT, item.count
            for instruction in body:
                rows.append(self.row(instruction, flat))
                flat += 1
            if isinstance(item, Repeat):
                rows.append(mark.copy())
                rows[-1][_COLUMN["op"]] = _END
        rows.append(mark.copy())
        rows[-1][_COLUMN["op"]], rows[-1][_COLUMN["flat"]] = _FINISH, max(0, flat - 1)
        return rows


def program_fills(program: Program) -> dict[str, int]:
    """Return how many fills of each ring a program names: the highest ordinal plus one."""
    fills: dict[str, int] = {}
    for item in program.body:
        count = item.count if isinstance(item, Repeat) else 1
        for instruction in item.body if isinstance(item, Repeat) else (item,):
            slots = [
                getattr(instruction, "slot", None),
                getattr(instruction, "a", None),
                getattr(instruction, "b", None),
            ]
            for slot in slots:
                if isinstance(slot, Slot):
                    last = max(slot.index.start, slot.index.start + slot.index.step * (count - 1))
                    fills[slot.ring] = max(fills.get(slot.ring, 0), last + 1)
    return fills


def _kind_row(programs: list[int], trace: Trace, encoder: _Encoder) -> list[int]:
    """Return the engine's row of a tile kind: programs by role (-1: none), fills by ring."""
    fills = [0] * _core.MAX_RINGS
    for number in programs:
        if number >= 0:
            for ring, count in program_fills(trace.programs[number]).items():
                fills[encoder.rings[ring]] = max(fills[encoder.rings[ring]], count)
    return programs + [-1] * (_core.MAX_ROLES - len(programs)) + fills


def encode_kernel(trace: Trace, hardware: HardwareSpec) -> tuple[_core.Kernel, list[str], list[str]]:
    """Return the engine's kernel of a trace, the ring names by number, and the accumulator names by label."""
    if trace.roles > _core.MAX_ROLES:
        raise SimulationError(f"the trace has {trace.roles} roles; the engine has room for {_core.MAX_ROLES}")
    encoder = _Encoder(trace, hardware)
    code: list[list[int]] = []
    starts = [0]
    for program in trace.programs:
        code += encoder.program(program)
        starts.append(len(code))
    numbers = {program.name: number for number, program in enumerate(trace.programs)}
    rings = [[1, 1, 0, 0] for _ in range(encoder.ring_count)]
    for ring in trace.rings:
        rings[encoder.rings[ring.name]] = [ring.stages, ring.releases, ring.bytes, int(ring.empty == "named")]
    maps = []
    for tensor_map in trace.maps:
        rank = len(tensor_map.dims)
        pad = 5 - rank
        maps.append(
            [
                *(tensor_map.base, rank, tensor_map.element_bytes, _ORIGIN[tensor_map.origin]),
                *(*tensor_map.dims, *[1] * pad),
                *(tensor_map.element_bytes, *tensor_map.strides, *[0] * pad),
                *(*tensor_map.box, *[1] * pad),
            ]
        )
    kinds = [_kind_row([numbers[name] for name in kind.programs], trace, encoder) for kind in trace.tile_kinds]
    prologue = []
    if any(name is not None for name in trace.prologue):
        programs = [-1 if name is None else numbers[name] for name in trace.prologue]
        # Fills count from the first tile on, whatever a prologue names.
        prologue.append([*_kind_row(programs, trace, encoder)[: _core.MAX_ROLES], *[0] * _core.MAX_RINGS])
    schedule = trace.schedule
    tiles = np.array([tile for tiles in schedule.tiles for tile in tiles], dtype=np.int64).reshape(-1, 4)
    first_tile = np.cumsum([0] + [len(tiles) for tiles in schedule.tiles], dtype=np.int64)
    kernel = _core.Kernel.build(
        roles=trace.roles,
        ctas=schedule.ctas,
        cluster=schedule.cluster,
        dynamic=schedule.mode == "dynamic",
        tile_m=trace.kernel.tile_m if trace.kernel else 1,
        group_size=trace.shape.group_size if trace.shape else 1,
        code=_table(code, len(_COLUMNS)),
        program_starts=np.array(starts, dtype=np.int64),
        rings=_table(rings, 4),
        maps=_table(maps, 19),
        kinds=_table(kinds, _core.MAX_ROLES + _core.MAX_RINGS),
        prologue=_table(prologue, _core.MAX_ROLES + _core.MAX_RINGS),
        tiles=tiles,
        first_tile=first_tile,
    )
    ring_names = [""] * encoder.ring_count
    for name, number in encoder.rings.items():
        ring_names[number] = name
    return kernel, ring_names, list(encoder.labels)


def _table(rows: list[list[int]], columns: int) -> NDArray[np.int64]:
    """Return rows as a contiguous int64 table, also when there are none."""
    return np.array(rows, dtype=np.int64).reshape(-1, columns)
