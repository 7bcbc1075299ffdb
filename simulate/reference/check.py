"""Refuse what the instruction set does not define, before the first cycle."""

from simfa.errors import SimulationError
from simfa.hardware import HardwareSpec
from simfa.isa import Instruction, Repeat, TmaStore, TmaTensor
from simfa.simulate.reference.programs import slots
from simfa.trace import Program, Trace


def check(trace: Trace, hardware: HardwareSpec, latency: int) -> None:
    """Raise `SimulationError` for a latency, schedule or name that the engine cannot run."""
    schedule = trace.schedule
    if latency < 1:
        raise SimulationError(f"memory latency is {latency} cycles; expected at least 1")
    if schedule.ctas > hardware.gpu.sm_count:
        raise SimulationError(f"{schedule.ctas} CTAs do not fit on {hardware.gpu.sm_count} SMs, one on each")
    if schedule.ctas % schedule.cluster:
        raise SimulationError(f"{schedule.ctas} CTAs are not whole clusters of {schedule.cluster}")
    if schedule.mode == "dynamic" and schedule.cluster > 1:
        raise SimulationError("dynamic schedules are not defined for clusters of two; use a static schedule")
    expected = 1 if schedule.mode == "dynamic" else schedule.ctas
    if len(schedule.tiles) != expected:
        raise SimulationError(f"a {schedule.mode} schedule has {len(schedule.tiles)} tile lists; expected {expected}")
    programs = {program.name for program in trace.programs}
    for kind in trace.tile_kinds:
        if len(kind.programs) != trace.roles:
            raise SimulationError(f"tile kind {kind.name} has {len(kind.programs)} programs; expected {trace.roles}")
        _refuse_unknown(f"tile kind {kind.name}", "program", set(kind.programs), programs)
    prologue = {name for name in trace.prologue if name is not None}
    _refuse_unknown("the prologue", "program", prologue, programs)
    for program in trace.programs:
        for instruction in _instructions(program):
            _check_instruction(trace, program, instruction, program.name in prologue)


def _instructions(program: Program) -> list[Instruction]:
    """Return the instructions of a program's text."""
    return [i for item in program.body for i in (item.body if isinstance(item, Repeat) else (item,))]


def _check_instruction(trace: Trace, program: Program, instruction: Instruction, in_prologue: bool) -> None:
    """Raise `SimulationError` for a ring or map that is not declared, or a box that has no place."""
    where = f"program {program.name}"
    _refuse_unknown(where, "ring", {slot.ring for slot in slots(instruction)}, {ring.name for ring in trace.rings})
    if not isinstance(instruction, TmaTensor | TmaStore):
        return
    maps = {tensor.name: tensor for tensor in trace.maps}
    _refuse_unknown(where, "map", {instruction.map}, set(maps))
    tensor = maps[instruction.map]
    if tensor.origin != "none" and (in_prologue or trace.shape is None or trace.kernel is None):
        lack = "a prologue has no tile" if in_prologue else "the trace has no shape and kernel"
        raise SimulationError(f"{where}: map {tensor.name} has origin {tensor.origin}, but {lack}")
    if isinstance(instruction, TmaTensor) and instruction.multicast and len(tensor.box) < 2:
        raise SimulationError(f"{where}: multicast of map {tensor.name} needs rows; its rank is 1")


def _refuse_unknown(where: str, what: str, named: set[str], known: set[str]) -> None:
    """Raise `SimulationError` when a name is not declared."""
    if named - known:
        raise SimulationError(
            f"{where} names {what} {', '.join(sorted(named - known))}, which the trace does not declare"
        )
