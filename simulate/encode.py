"""From a trace to the engine's tables of integers, with the times that a preset gives its instructions."""

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from simfa import isa
from simfa.errors import SimulationError
from simfa.hardware import CudaCore, HardwareSpec
from simfa.isa import Affine, Bubbles, Instruction, Repeat, Slot, Wgmma
from simfa.simulate import _core
from simfa.trace import Program, Trace
from simfa.trace_places import NO_PLACES

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
_MOST_CYCLES = (1 << 31) - 1  # of one instruction, in the engine's tables

_RING_ORDER = ("K", "V", "Q", "O")
_WORK = {"cycles": 0, "softmax": 1, "epilogue": 2}
_ORIGIN = {"none": 0, "query": 1, "kv": 2}


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

    def work(self, instruction: Wgmma | Bubbles, program: Program, flat: int) -> int:
        """Return the cycles of a WGMMA or of BUBBLES; raises `SimulationError` where the engine cannot hold them."""
        if isinstance(instruction, Wgmma):
            cycles, cause = wgmma_cycles(instruction, self.hardware), "m, n, k and the preset's tensor_core"
        else:
            cycles, cause = work_cycles(instruction, self.hardware.cuda_core), "its counts and the preset's cuda_core"
        if cycles > _MOST_CYCLES:
            raise SimulationError(
                f"{NO_PLACES.instruction(program.name, flat, instruction)} takes {cycles} cycles by {cause}; "
                f"expected at most {_MOST_CYCLES}"
            )
        return cycles

    def label(self, accumulator: str) -> int:
        """Return the number of an accumulator; raises `SimulationError` where the engine has no more."""
        label = self.labels.setdefault(accumulator, len(self.labels))
        if label >= _core.MAX_ACCUMULATORS:
            raise SimulationError(
                f"accumulator {accumulator}: the trace names more than the {_core.MAX_ACCUMULATORS} that the engine has"
            )
        return label

    def row(self, instruction: Instruction, program: Program, flat: int) -> list[int]:
        """Return the columns of one instruction, number `flat` of its program."""
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
                put(flags=int(instruction.mode == "RS"), count=instruction.count, label=self.label(instruction.d))
                put(work_cycles=self.work(instruction, program, flat))
            case isa.WgmmaWait():
                put(count=instruction.outstanding)
            case isa.BarArrive():
                put(ring=instruction.barrier)
            case isa.BarWait():
                put(ring=instruction.barrier, count=instruction.arrivals)
            case isa.Bubbles():
                put(label=_WORK[instruction.kind], work_cycles=self.work(instruction, program, flat))
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
                rows.append(self.row(instruction, program, flat))
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
