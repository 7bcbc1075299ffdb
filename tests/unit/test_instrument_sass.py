"""The machine-code report on small made-up listings."""

from pathlib import Path

import pytest

from simfa.errors import InstrumentError
from simfa.instrument import fidelity
from simfa.instrument.fidelity import (
    KernelReport,
    compare,
    expected_order,
    expected_wgmma,
    report_function,
    wgmma_groups,
)
from simfa.instrument.instantiation import parse_kernel
from simfa.instrument.sass import exponentials, find_main_loops, find_roles, landmarks, parse_listing
from simfa.instrument.toolchain import Disassembler
from tests.unit.sass_listing import ARRIVE, EX2, PV, QK, RELOAD, STORE, WAIT_0, WAIT_1, kernel, listing, turn

KERNEL = parse_kernel("hdim128-fp16-full-cluster2")


def report(code, level: int = 0, allowed_reloads: int = 0) -> KernelReport:
    (function,) = parse_listing(listing(code), "made-up")
    return report_function(function, KERNEL, level, allowed_reloads)


@pytest.mark.parametrize("level", [0, 1, 2])
def test_a_sound_kernel_has_no_problems(level: int) -> None:
    found = report(kernel(turn(level)), level)
    assert found.problems == ()
    assert (found.wgmma, found.wgmma_expected) == (38, 38)
    assert found.loops[0].order == tuple(expected_order(KERNEL.kernel, level))
    assert (found.loops[0].exp2_before_wait_0, found.loops[0].exp2_after_wait_0) == (23, 67)
    assert found.stamps == found.loops[0].stamps == {0: 0, 1: 6, 2: 14}[level]


def test_the_loop_is_the_inner_one_and_retry_blocks_close_none() -> None:
    (function,) = parse_listing(listing(kernel(turn(0))), "made-up")
    code = function.instructions
    (loop,) = find_main_loops(code, find_roles(code).consumer)
    assert code[loop.first].opcode.endswith("TRYWAIT")
    assert code[loop.last].opcode == "BRA"
    assert landmarks(code, loop)[0] == "mbarrier"
    assert exponentials(code, loop) == (23, 67)


def test_spills_are_counted_by_role() -> None:
    found = report(kernel(turn(0), producer=[STORE, STORE, RELOAD]))
    assert found.spills == {"producer": 3, "consumer": 0, "shared": 0}
    assert found.problems == ()


@pytest.mark.parametrize(("spill", "counts"), [(STORE, (1, 0)), (RELOAD, (0, 1))])
def test_a_spill_in_the_main_loop_is_a_problem(spill, counts: tuple[int, int]) -> None:
    found = report(kernel([*turn(0), spill]))
    assert (found.loops[0].spill_stores, found.loops[0].spill_loads) == counts
    assert found.spills["consumer"] == 1
    assert any(f"{counts[0]} stores and {counts[1]} loads a turn" in problem for problem in found.problems)


def test_reloads_may_be_allowed_by_number_and_stores_may_not() -> None:
    assert report(kernel([*turn(2), RELOAD, RELOAD]), 2, allowed_reloads=2).problems == ()
    assert report(kernel([*turn(2), RELOAD, RELOAD, RELOAD]), 2, allowed_reloads=2).problems
    assert report(kernel([*turn(2), STORE]), 2, allowed_reloads=2).problems


def test_reloads_of_the_plain_kernel_are_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    plain_code, probed_code = kernel([*turn(0), RELOAD]), kernel([*turn(2), RELOAD])
    functions = {
        tmp_path / name: parse_listing(listing(code), name) for name, code in (("a", plain_code), ("b", probed_code))
    }
    monkeypatch.setattr(fidelity, "disassemble", lambda library, tools, quiet: functions[library])
    tools = Disassembler(tmp_path, tmp_path, "13.0")
    plain = fidelity.report_plain(tmp_path / "a", tools)
    assert [found.problems for found in plain] == [()]
    assert [found.problems for found in fidelity.report_probed(tmp_path / "b", 2, tools, plain)] == [()]
    functions[tmp_path / "b"] = parse_listing(listing(kernel([*turn(2), RELOAD, RELOAD])), "b")
    (worse,) = fidelity.report_probed(tmp_path / "b", 2, tools, plain)
    assert any("at most 1 loads" in problem for problem in worse.problems)
    assert fidelity.report_probed(tmp_path / "b", 2, tools, plain, 1)[0].problems == ()


def test_a_library_without_fa3_kernels_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    other = parse_listing(listing(kernel(turn(0)), symbol="_Z6vectorPf"), "other")
    monkeypatch.setattr(fidelity, "disassemble", lambda library, tools, quiet: other)
    with pytest.raises(InstrumentError, match="no FA3 forward kernel inside"):
        fidelity.report_plain(tmp_path, Disassembler(tmp_path, tmp_path, "13.0"))


def test_serialised_wgmma_is_a_problem() -> None:
    loop = turn(0)
    loop.insert(loop.index(ARRIVE), WAIT_0)
    assert any("serialised" in problem for problem in report(kernel(loop)).problems)


def test_a_missing_wgmma_is_a_problem() -> None:
    loop = turn(0)
    loop.remove(PV)
    assert any("37 WGMMAs, expected 38" in problem for problem in report(kernel(loop)).problems)


def test_a_stamp_out_of_place_is_a_problem() -> None:
    loop = turn(1)
    place = loop.index(QK)
    loop[place - 1], loop[place] = loop[place], loop[place - 1]  # the QK stamp slides behind the first WGMMA
    assert any("order is" in problem for problem in report(kernel(loop), 1).problems)


def test_a_probed_listing_is_no_plain_one() -> None:
    assert report(kernel(turn(1)), 0).problems


def test_comparison_tells_where_the_softmax_went() -> None:
    plain, probed = report(kernel(turn(0))), report(kernel(turn(1, 90, 0)), 1)
    difference = compare(plain, probed)
    assert (difference.exp2_plain, difference.exp2_probed) == ((23, 67), (90, 0))
    assert difference.code_bytes == 16 * 6
    assert "23 of 90 exp2 run before wait<0> in the plain kernel, 90 of 90" in difference.verdict
    assert "keeps its place" in compare(plain, report(kernel(turn(1)), 1)).verdict


@pytest.mark.parametrize(
    ("name", "groups", "total"),
    [
        ("hdim128-fp16-full-cluster2", (8, 11), 38),
        ("hdim128-fp16-causal-cluster1", (8, 8), 48),
        ("hdim64-bf16-full-cluster1", (4, 12), 32),
        ("hdim256-fp16-full-cluster2", (16, 5), 42),
    ],
)
def test_wgmma_counts_follow_from_the_tile(name: str, groups: tuple[int, int], total: int) -> None:
    kernel = parse_kernel(name)
    assert wgmma_groups(kernel.head_dim, kernel.kernel.tile_n) == groups
    assert expected_wgmma(kernel) == total


def test_without_ping_pong_there_are_no_turns_to_take() -> None:
    order = expected_order(parse_kernel("hdim256-fp16-full-cluster1").kernel, 2)
    assert not {"sync", "arrive"} & set(order)
    assert order.count("clock") == 11


@pytest.mark.parametrize("text", ["", "[]", "{}", '[{}, [{"start": 0}]]', "Fatbin elf code:"])
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(InstrumentError, match=r"made-up: not a listing of `nvdisasm -json`"):
        parse_listing(text, "made-up")


def test_a_kernel_that_does_not_split_registers_is_refused() -> None:
    code = [item for item in kernel(turn(0)) if not item[0].startswith("USETMAXREG.DEALLOC")]
    with pytest.raises(InstrumentError, match=r"0 USETMAXREG.DEALLOC"):
        report(code)


def test_exponentials_outside_the_waits_count_as_after() -> None:
    loop = [EX2, *turn(0, 2, 3)]
    assert WAIT_1 in loop
    found = report(kernel(loop))
    assert (found.loops[0].exp2_before_wait_0, found.loops[0].exp2_after_wait_0) == (2, 4)
