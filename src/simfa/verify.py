"""Checks a trace before it is simulated: declarations, schedule, programs, and that no wait can hang.

`verify` is what translation runs before it writes a trace and simulation before it runs one.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from simfa import isa
from simfa.errors import TraceError
from simfa.isa import Instruction, Slot
from simfa.trace import MAX_CLUSTER, Program, Ring, TensorMap, TileBinding, TileKind, Trace
from simfa.trace_operands import affine_operands
from simfa.trace_places import NO_PLACES, FlatInstruction, Places, flat_instructions
from simfa.verify_flow import Flow
from simfa.workload import SIZE_FIELDS

# Tensor maps: limits of cuTensorMapEncodeTiled, CUDA driver API.
MAX_RANK = 5
MAX_BOX = 256
MAX_DIM = 1 << 32
MAX_STRIDE = (1 << 40) - 1
STRIDE_ALIGNMENT = 16
NAMED_BARRIERS = 16  # of a CTA, PTX ISA
MAX_ADDRESS = (1 << 63) - 1
MAX_NUMBER = (1 << 31) - 1  # of all operands but addresses: coordinates are 32 bits in PTX, counts in the engine
_USES_SLOTS = (isa.TmaTensor, isa.TmaBulk, isa.MbWait, isa.AcquireStage, isa.ReleaseStage, isa.Wgmma)


def verify(trace: Trace, places: Places = NO_PLACES) -> None:
    """Raise `TraceError` unless the trace is well formed, balanced and free of waits that cannot end.

    The message names `file:line` when `places` has line numbers, else program and instruction.
    """
    for fault in _faults(trace, places):
        raise TraceError(fault)
    _run_tiles(trace, places)


def _faults(trace: Trace, places: Places) -> Iterator[str]:
    """Yield what can be seen to be wrong without running anything, in the order of the text."""
    declared = _declared(trace)
    for name in ("tile_m", "tile_n", "stages", "consumers", "cluster") if trace.kernel is not None else ():
        if not 1 <= getattr(trace.kernel, name) <= MAX_NUMBER:
            yield f"{places.declaration('KERNEL')}: {name} {getattr(trace.kernel, name)}; expected 1 to {MAX_NUMBER}"
    for name in SIZE_FIELDS if trace.shape is not None else ():
        if getattr(trace.shape, name) > MAX_NUMBER:
            yield f"{places.declaration('SHAPE')}: {name} {getattr(trace.shape, name)}; expected 1 to {MAX_NUMBER}"
    for tensor_map in trace.maps:
        for message in _map_faults(tensor_map, trace):
            yield f"{places.declaration('DEF_TMAP', tensor_map.name)}: {message}"
    for ring in trace.rings:
        for message in _ring_faults(ring):
            yield f"{places.declaration('DEF_RING', ring.name)}: {message}"
    for mnemonic, names in (
        ("DEF_TMAP", [item.name for item in trace.maps]),
        ("DEF_RING", [item.name for item in trace.rings]),
        ("PROGRAM", [item.name for item in trace.programs]),
        ("TILE_KIND", [item.name for item in trace.tile_kinds]),
    ):
        for name in _repeated(names):
            yield f"{places.declaration(mnemonic, name)} is defined twice"
    for program in trace.programs:
        yield from _program_faults(program, declared, places)
    yield from _binding_faults(trace, places)
    yield from _schedule_faults(trace, places)
    yield from _waiter_faults(trace, places)


def _repeated(names: Iterable[str]) -> Iterator[str]:
    seen = set()
    for name in names:
        if name in seen:
            yield name
        seen.add(name)


def _map_faults(tensor_map: TensorMap, trace: Trace) -> Iterator[str]:
    rank = len(tensor_map.dims)
    if not 1 <= rank <= MAX_RANK:
        yield f"rank {rank}; expected 1 to {MAX_RANK} dims"
    if len(tensor_map.box) != rank:
        yield f"{len(tensor_map.box)} box extents; expected one for each of the {rank} dims"
    if len(tensor_map.strides) != rank - 1:
        yield f"{len(tensor_map.strides)} strides; expected {rank - 1}, one for each dim but the first"
    for name, values, most in (("dims", tensor_map.dims, MAX_DIM), ("box", tensor_map.box, MAX_BOX)):
        for extent in values:
            if not 1 <= extent <= most:
                yield f"{name} extent {extent}; expected 1 to {most}"
    for stride in tensor_map.strides:
        if not 1 <= stride <= MAX_STRIDE or stride % STRIDE_ALIGNMENT:
            yield f"stride {stride}; expected a positive multiple of {STRIDE_ALIGNMENT} below 2^40 bytes"
    if tensor_map.element_bytes not in (1, 2, 4, 8):
        yield f"element_bytes {tensor_map.element_bytes}; expected 1, 2, 4 or 8"
    if not 0 <= tensor_map.base <= MAX_ADDRESS:
        yield f"base {tensor_map.base}; expected an address from 0 to {MAX_ADDRESS}"
    if tensor_map.origin not in ("query", "kv", "none"):
        yield f"origin {tensor_map.origin!r}; expected query, kv or none"
    elif tensor_map.origin != "none" and (trace.shape is None or trace.kernel is None):
        yield f"origin {tensor_map.origin} needs the trace's SHAPE and KERNEL; expected none"
    elif tensor_map.origin != "none" and rank != 4:
        yield f"origin {tensor_map.origin} with rank {rank}; expected dims (column, row, head, batch)"


def _ring_faults(ring: Ring) -> Iterator[str]:
    for name, value, least in (("stages", ring.stages, 1), ("bytes", ring.bytes, 0), ("releases", ring.releases, 1)):
        if not least <= value <= MAX_NUMBER:
            yield f"{name} {value}; expected {least} to {MAX_NUMBER}"
    if ring.empty not in ("mbarrier", "named"):
        yield f"empty {ring.empty!r}; expected mbarrier or named"


class _Declared(NamedTuple):
    """What instructions may refer to."""

    rings: dict[str, Ring]
    maps: dict[str, TensorMap]
    multicast: frozenset[str]  # rings that some TMA_TENSOR fills by multicast
    roles: int
    cluster: int


def _declared(trace: Trace) -> _Declared:
    instructions = (flat.instruction for program in trace.programs for flat in flat_instructions(program))
    return _Declared(
        rings={ring.name: ring for ring in trace.rings},
        maps={tensor_map.name: tensor_map for tensor_map in trace.maps},
        multicast=frozenset(
            item.slot.ring for item in instructions if isinstance(item, isa.TmaTensor) and item.multicast
        ),
        roles=trace.roles,
        cluster=trace.schedule.cluster,
    )


def _program_faults(program: Program, declared: _Declared, places: Places) -> Iterator[str]:
    if not 0 <= program.role < declared.roles:
        yield (
            f"{places.declaration('PROGRAM', program.name)}: role {program.role}; PROLOGUE has the roles 0 to "
            f"{declared.roles - 1}"
        )
    index = 0
    for item in program.body:
        if isinstance(item, isa.Repeat):
            nested = any(isinstance(inner, isa.Repeat) for inner in item.body)
            if not 1 <= item.count <= MAX_NUMBER or not item.body or nested:
                yield (
                    f"{places.instruction(program.name, index, item)}: expected a count of 1 to {MAX_NUMBER} and a "
                    "body of instructions without REPEAT"
                )
                return
            index += len(item.body)
        else:
            index += 1
    for flat in flat_instructions(program):
        for message in _instruction_faults(flat, declared):
            yield f"{places.instruction(program.name, flat.position, flat.instruction)}: {message}"


def _slots_of(instruction: Instruction) -> Iterator[Slot]:
    if isinstance(instruction, isa.Wgmma):
        yield from (operand for operand in (instruction.a, instruction.b) if isinstance(operand, Slot))
    elif isinstance(instruction, _USES_SLOTS):
        yield instruction.slot


def _instruction_faults(flat: FlatInstruction, declared: _Declared) -> Iterator[str]:
    instruction = flat.instruction
    rings, maps = declared.rings, declared.maps
    for slot in _slots_of(instruction):
        if slot.ring not in rings:
            yield f"ring {slot.ring!r} is not defined; expected one of {', '.join(rings) or 'none'}"
    for name, operand in affine_operands(instruction):
        last = operand.start + operand.step * ((flat.repeats or 1) - 1)
        most = MAX_ADDRESS if name == "address" else MAX_NUMBER
        if not (0 <= operand.start <= most and 0 <= last <= most):
            yield f"{name} runs from {operand.start} to {last}; expected values from 0 to {most}"
        if operand.step and flat.repeats is None:
            yield f"{name} has step {operand.step} outside a REPEAT; expected 0"
    for name, least in _MINIMA.get(type(instruction), ()):
        if not least <= getattr(instruction, name) <= MAX_NUMBER:
            yield f"{name} {getattr(instruction, name)}; expected {least} to {MAX_NUMBER}"
    if isinstance(instruction, isa.TmaTensor | isa.TmaStore):
        if instruction.map not in maps:
            yield f"tensor map {instruction.map!r} is not defined; expected one of {', '.join(maps) or 'none'}"
        elif len(maps[instruction.map].dims) == 1 and instruction.y != isa.Affine(0):
            yield f"y in the one-dimensional tensor map {instruction.map}; expected 0"
    if isinstance(instruction, isa.TmaTensor) and instruction.multicast and declared.cluster == 1:
        yield f"multicast in clusters of 1; expected a SCHEDULE with cluster={MAX_CLUSTER}"
    if (
        isinstance(instruction, isa.ReleaseStage)
        and not instruction.remote
        and instruction.slot.ring in declared.multicast
    ):
        yield f"ring {instruction.slot.ring} is filled by multicast; expected remote, for the other CTA writes it too"
    if isinstance(instruction, isa.BarArrive | isa.BarWait) and instruction.barrier >= NAMED_BARRIERS:
        yield f"barrier {instruction.barrier}; a CTA has the named barriers 0 to {NAMED_BARRIERS - 1}"
    if isinstance(instruction, isa.Wgmma) and instruction.mode == "RS" and isinstance(instruction.a, Slot):
        yield "mode RS with a in a slot; expected the name of a register tile"


_MINIMA: dict[type, tuple[tuple[str, int], ...]] = {
    isa.TmaTensor: (("x", 0),),
    isa.TmaBulk: (("bytes", 1),),
    isa.TmaStore: (("x", 0),),
    isa.TmaWait: (("outstanding", 0),),
    isa.Wgmma: (("m", 1), ("n", 1), ("k", 1), ("count", 1)),
    isa.WgmmaWait: (("outstanding", 0),),
    isa.BarArrive: (("barrier", 0),),
    isa.BarWait: (("barrier", 0), ("arrivals", 1)),
    isa.Bubbles: (("cycles", 0), ("elements", 0), ("masked", 0), ("rescale", 0)),
}


def _binding_faults(trace: Trace, places: Places) -> Iterator[str]:
    """Yield what is wrong with tile kinds and the prologue."""
    programs = {program.name: program for program in trace.programs}
    rows = [(places.declaration("TILE_KIND", kind.name), kind.programs) for kind in trace.tile_kinds]
    for place, names in [*rows, (places.declaration("PROLOGUE"), trace.prologue)]:
        if len(names) != trace.roles or not names:
            yield f"{place}: {len(names)} programs; expected one for each of the {trace.roles} roles of PROLOGUE"
        for role, name in enumerate(names):
            if name is None:
                continue
            if name not in programs:
                yield f"{place}: program {name!r} is not defined"
            elif programs[name].role != role:
                yield f"{place}: program {name} is of role {programs[name].role}; expected role {role} at this place"
    for name in trace.prologue:
        for flat in flat_instructions(programs[name]) if name is not None else ():
            if isinstance(flat.instruction, _USES_SLOTS):
                place = places.instruction(str(name), flat.position, flat.instruction)
                yield f"{place}: a prologue cannot use ring slots; they belong to tiles"


def _schedule_faults(trace: Trace, places: Places) -> Iterator[str]:
    schedule, place = trace.schedule, places.declaration("SCHEDULE")
    if schedule.cluster not in (1, MAX_CLUSTER):
        yield f"{place}: clusters of {schedule.cluster} are not supported; expected 1 or {MAX_CLUSTER}"
    if schedule.ctas < 1 or schedule.ctas % schedule.cluster:
        yield f"{place}: {schedule.ctas} CTAs; expected a positive multiple of the cluster size {schedule.cluster}"
    if schedule.mode == "dynamic":
        if schedule.cluster != 1:
            yield f"{place}: a dynamic schedule with clusters of {schedule.cluster}; expected cluster=1"
        if len(schedule.tiles) != 1:
            yield f"{place}: {len(schedule.tiles)} lists of tiles; expected one queue"
    elif len(schedule.tiles) != schedule.ctas:
        yield f"{place}: {len(schedule.tiles)} lists of tiles; expected one for each of the {schedule.ctas} CTAs"
    for number, tiles in enumerate(schedule.tiles):
        cta = None if schedule.mode == "dynamic" else number
        for position, tile in enumerate(tiles):
            message = _tile_fault(tile, trace)
            if message:
                yield f"{places.tile(cta, position)}: {message}"
    if schedule.cluster == MAX_CLUSTER:
        yield from _pair_faults(trace, places)


def _tile_fault(tile: TileBinding, trace: Trace) -> str | None:
    if not 0 <= tile.kind < len(trace.tile_kinds):
        return f"tile kind {tile.kind}; expected an index below {len(trace.tile_kinds)}"
    if trace.shape is None or trace.kernel is None:
        limits = (1, 1, 1)
    else:
        limits = (trace.kernel.query_blocks(trace.shape), trace.shape.heads_q, trace.shape.batch)
    for name, value, limit in zip(("m_block", "head", "batch"), tile[1:], limits, strict=True):
        if not 0 <= value < limit:
            return f"{name} {value} is out of range; expected 0 to {limit - 1}"
    return None


def _multicasts_kv(kind: TileKind, trace: Trace) -> bool:
    origins = {tensor_map.name: tensor_map.origin for tensor_map in trace.maps}
    programs = {program.name: program for program in trace.programs}
    return any(
        isinstance(flat.instruction, isa.TmaTensor)
        and flat.instruction.multicast
        and origins.get(flat.instruction.map) == "kv"
        for name in kind.programs
        for flat in flat_instructions(programs[name])
    )


def _pair_faults(trace: Trace, places: Places) -> Iterator[str]:
    """Yield what is wrong between the two CTAs of a cluster."""
    tiles = trace.schedule.tiles
    shares = [_multicasts_kv(kind, trace) for kind in trace.tile_kinds]
    group = trace.shape.group_size if trace.shape is not None else 1
    for even in range(0, len(tiles) - 1, 2):
        first, second = tiles[even], tiles[even + 1]
        if len(first) != len(second):
            yield (
                f"{places.cta(even + 1)} has {len(second)} tiles, CTA {even} of its cluster has {len(first)}; expected "
                "equal numbers"
            )
        for position, (left, right) in enumerate(zip(first, second, strict=False)):
            same = (left.head // group, left.batch) == (right.head // group, right.batch)
            if not same and (shares[left.kind] or shares[right.kind]):
                yield (
                    f"{places.tile(even + 1, position)}: K and V are multicast, but CTA {even} works on another head "
                    "or batch entry at that time; expected the same K/V head"
                )


def _waiter_faults(trace: Trace, places: Places) -> Iterator[str]:
    """Yield named barriers on which more than one role waits."""
    waiters: dict[int, Program] = {}
    for program in trace.programs:
        for flat in flat_instructions(program):
            if isinstance(flat.instruction, isa.BarWait):
                first = waiters.setdefault(flat.instruction.barrier, program)
                if first.role != program.role:
                    place = places.instruction(program.name, flat.position, flat.instruction)
                    yield (
                        f"{place}: role {program.role} waits on barrier {flat.instruction.barrier}, and so does role "
                        f"{first.role} in program {first.name}; expected one waiting role"
                    )


def _run_tiles(trace: Trace, places: Places) -> None:
    """Execute the prologue, then each kind of tile from the quiescent state.

    In clusters of two each pair of kinds that the schedule brings together is executed; a kind that it never uses is
    paired with itself.
    """
    programs = {program.name: program for program in trace.programs}
    rings = {ring.name: ring for ring in trace.rings}
    maps = {tensor_map.name: tensor_map for tensor_map in trace.maps}
    prologue = tuple(None if name is None else programs[name] for name in trace.prologue)
    try:
        signals = Flow(rings, maps, [prologue], {}, places).run()
    except TraceError as error:
        raise TraceError(f"{error} (prologue)") from None
    tiles = trace.schedule.tiles
    groups: set[tuple[int, ...]] = set()
    if trace.schedule.cluster == MAX_CLUSTER:
        for even in range(0, len(tiles), 2):
            groups.update((a.kind, b.kind) for a, b in zip(*tiles[even : even + 2], strict=True))
    used = {kind for group in groups for kind in group}
    alone = (kind for kind in range(len(trace.tile_kinds)) if kind not in used)
    groups.update((kind,) * trace.schedule.cluster for kind in alone)
    for group in sorted(groups):
        kinds = [trace.tile_kinds[kind] for kind in group]
        flow = Flow(rings, maps, [[programs[name] for name in kind.programs] for kind in kinds], signals, places)
        try:
            flow.run()
            flow.check_quiescent()
        except TraceError as error:
            raise TraceError(
                f"{error} (tile kind {' with '.join(dict.fromkeys(kind.name for kind in kinds))})"
            ) from None
