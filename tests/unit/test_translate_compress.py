"""REPEATs stand for exactly the instructions they replace, and loops are found."""

from hypothesis import given, settings
from hypothesis import strategies as st

from simfa import isa
from simfa.isa import Affine, Instruction, Repeat, Slot
from simfa.translate.compress import compress, expand
from simfa.translate.runs import MAX_PERIOD

WAITS = st.builds(
    lambda ring, index: isa.MbWait(slot=Slot(ring, Affine(index))), st.sampled_from("AB"), st.integers(0, 3)
)
PLAIN = st.one_of(
    WAITS,
    st.builds(isa.BarArrive, barrier=st.integers(0, 2)),
    st.builds(lambda group: isa.WgmmaCommit(group=Affine(group)), st.integers(0, 3)),
)


def growing(period: int, copies: int, start: int = 0) -> list[Instruction]:
    """`copies` copies of `period` instructions whose slots and groups advance."""
    return [
        isa.MbWait(slot=Slot(f"R{place}", Affine(start + (place + 1) * copy)))
        for copy in range(copies)
        for place in range(period)
    ]


@settings(max_examples=80, deadline=None)
@given(body=st.lists(PLAIN, max_size=30))
def test_a_compressed_program_runs_the_same(body: list[Instruction]) -> None:
    assert expand(compress(body)) == tuple(body)


@settings(max_examples=100, deadline=None)
@given(
    before=st.lists(PLAIN, max_size=5),
    after=st.lists(PLAIN, max_size=5),
    period=st.integers(2, 7),
    copies=st.integers(4, 9),
)
def test_a_loop_is_found_wherever_it_stands(
    before: list[Instruction], after: list[Instruction], period: int, copies: int
) -> None:
    body = [*before, *growing(period, copies), *after]
    result = compress(body)
    assert expand(result) == tuple(body)
    written = sum(len(item.body) + 2 if isinstance(item, Repeat) else 1 for item in result)
    assert written <= len(before) + len(after) + period + 2


def test_operands_advance_by_their_own_steps() -> None:
    (repeat,) = compress(growing(3, 5, start=7))
    assert isinstance(repeat, Repeat)
    assert repeat.count == 5
    assert [item.slot.index for item in repeat.body if isinstance(item, isa.MbWait)] == [
        Affine(7, 1),
        Affine(7, 2),
        Affine(7, 3),
    ]


def test_all_operands_of_a_wgmma_advance() -> None:
    def product(copy: int) -> Instruction:
        a, b = Slot("A", Affine(9 - copy)), Slot("B", Affine(2 * copy))
        return isa.Wgmma(d="D", a=a, b=b, m=64, n=8, k=16, count=1, mode="SS", group=Affine(5 + 3 * copy))

    (repeat,) = compress([product(copy) for copy in range(6)])
    assert isinstance(repeat, Repeat)
    (item,) = repeat.body
    assert isinstance(item, isa.Wgmma)
    assert (item.a, item.b, item.group) == (Slot("A", Affine(9, -1)), Slot("B", Affine(0, 2)), Affine(5, 3))


def test_a_change_of_step_ends_the_loop() -> None:
    body = [isa.WgmmaCommit(group=Affine(group)) for group in (0, 1, 2, 3, 4, 6, 8, 10, 12, 14)]
    result = compress(body)
    assert expand(result) == tuple(body)
    assert [item.count for item in result if isinstance(item, Repeat)] == [4, 6]


def test_a_masked_block_does_not_hide_the_loop_behind_it() -> None:
    def block(number: int) -> list[Instruction]:
        masked = 8 if number < 2 else 0
        return [
            isa.MbWait(slot=Slot("K", Affine(number))),
            isa.BarArrive(barrier=1),
            isa.Bubbles(kind="softmax", elements=8, masked=masked),
        ]

    body = [instruction for number in range(10) for instruction in block(number)]
    result = compress(body)
    assert expand(result) == tuple(body)
    assert [item.count for item in result if isinstance(item, Repeat)] == [2, 8]


def test_what_would_not_become_shorter_stays_flat() -> None:
    assert compress([]) == ()
    for body in (growing(1, 3), growing(2, 2)):
        assert compress(body) == tuple(body)
    assert len(compress(growing(3, 2))) == 1


def test_a_long_loop_body_stays_flat() -> None:
    body = growing(MAX_PERIOD + 1, 3)
    assert expand(compress(body)) == tuple(body)
    assert len(compress(growing(MAX_PERIOD, 3))) == 1
