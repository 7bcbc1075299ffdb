"""Shapes with their kernels, traces of them, and ways to look at programs; shared by the tests of lowering."""

from collections import Counter
from collections.abc import Iterable

from hypothesis import strategies as st

from simfa import isa
from simfa.instrument.event_order import begin_events, tile_events
from simfa.isa import Instruction
from simfa.kernel import KERNEL_VERSIONS, KernelSpec, kernel_for
from simfa.trace import Trace
from simfa.trace_operands import INSTRUCTIONS, format_operands
from simfa.translate.compress import expand
from simfa.translate.programs import Rules
from simfa.translate.trace_builder import trace_from_kernel
from simfa.workload import AttentionShape

SHAPE = AttentionShape(batch=1, seqlen_q=256, seqlen_kv=352, heads_q=2, heads_kv=1, head_dim=128)


@st.composite
def launches(draw: st.DrawFn) -> tuple[AttentionShape, KernelSpec]:
    """A shape that some FA3 kernel runs, with that kernel."""
    seqlen_q = draw(st.integers(1, 700))
    heads_kv = draw(st.integers(1, 3))
    shape = AttentionShape(
        batch=draw(st.integers(1, 2)),
        seqlen_q=seqlen_q,
        seqlen_kv=seqlen_q + draw(st.integers(0, 700)),
        heads_q=heads_kv * draw(st.integers(1, 3)),
        heads_kv=heads_kv,
        head_dim=draw(st.sampled_from([64, 128, 256])),
        causal=draw(st.booleans()),
        dtype=draw(st.sampled_from(["fp16", "bf16"])),
    )
    return shape, kernel_for(shape, draw(st.sampled_from(KERNEL_VERSIONS)))


def trace_of(
    shape: AttentionShape, kernel: KernelSpec, rules: Rules = "source", level: int = 2, ctas: int = 4
) -> Trace:
    return trace_from_kernel(
        shape,
        kernel,
        ctas,
        lambda role, blocks: tile_events(kernel, role, blocks, level),
        level=level,
        rules=rules,
        begin_of=lambda role: begin_events(kernel, role, level),
    )


def flat_programs(trace: Trace, kind: int) -> list[tuple[isa.Instruction, ...]]:
    programs = {program.name: program for program in trace.programs}
    return [expand(programs[name].body) for name in trace.tile_kinds[kind].programs]


def text_of(body: Iterable[Instruction]) -> list[str]:
    lines = []
    for instruction in body:
        mnemonic = isa.MNEMONICS[type(instruction)]
        lines.append(f"{mnemonic} {format_operands(INSTRUCTIONS[mnemonic], instruction)}")
    return lines


def mnemonics(body: tuple[isa.Instruction, ...]) -> Counter[str]:
    return Counter(isa.MNEMONICS[type(instruction)] for instruction in body)


def waits_on(body: tuple[isa.Instruction, ...], ring: str) -> int:
    return sum(isinstance(item, isa.MbWait) and item.slot.ring == ring for item in body)


def releases_of(body: tuple[isa.Instruction, ...], ring: str) -> int:
    return sum(isinstance(item, isa.ReleaseStage) and item.slot.ring == ring for item in body)
