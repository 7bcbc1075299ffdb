"""Kernel names in the spellings of each tool."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from measure_exports import COMBINE, FA3, FA3_NCU, GEMM

from simfa.measure.kernel_names import parse


@pytest.mark.parametrize(
    ("name", "function", "functor"),
    [
        (FA3, "device_kernel", "FlashAttnFwdSm90"),
        (FA3_NCU, "device_kernel", "FlashAttnFwdSm90"),
        (COMBINE, "device_kernel", "FlashAttnFwdCombine"),
        (GEMM, "device_kernel", "GemmUniversal"),
        ("flash_fwd_kernel", "flash_fwd_kernel", None),
        ("void flash_fwd_kernel<Traits<64>, true>(Flash_fwd_params)", "flash_fwd_kernel", None),
        ("void (anonymous namespace)::softmax<int>(int*)", "softmax", None),
        ("void <unnamed>::softmax<1>()", "softmax", None),
        ("std::enable_if<(3>2), void>::type ns::run<4>(float)", "run", None),
        ("void ns::Tile<8>::operator()<int>(int)", "operator()", None),
        ("void at::native::k<4, at::F<float>(at::I&)::{lambda(int)#1}>(int)", "k", None),
        ("_ZN7cutlass13device_kernelIN5flash11enable_sm90INS1_7Fwd_x90IEEEEEvT_", "device_kernel", "Fwd_x90"),
        ("_Z10vector_addPf", "vector_add", None),
        ("_ZN12_GLOBAL__N_13fooEv", "foo", None),
    ],
)  # fmt: skip
def test_function_without_template_arguments(name: str, function: str, functor: str | None) -> None:
    parsed = parse(name)
    assert (parsed.function, parsed.functor) == (function, functor)
    assert parsed.full == name


def test_both_nsight_spellings_are_one_kernel() -> None:
    assert parse(FA3).identity == parse(FA3_NCU).identity
    assert parse(FA3).identity != parse(COMBINE).identity != parse(GEMM).identity


def test_different_template_arguments_are_different_kernels() -> None:
    assert parse("void k<64>(int)").identity != parse("void k<128>(int)").identity


@pytest.mark.parametrize(
    "name",
    [
        COMBINE,
        "void flash::flash_fwd_splitkv_combine_kernel<Traits>(Params)",
        "flash::prepare_varlen_num_blocks_kernel(int)",
        "void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16>(int)",
        "_ZN7cutlass13device_kernelIN5flash19FlashAttnFwdCombineIEEEEvT_",
    ],
)
def test_helpers_are_known(name: str) -> None:
    assert parse(name).helper()


@pytest.mark.parametrize("name", [FA3, FA3_NCU, GEMM, "void main_kernel<Combine<4>>(int)"])
def test_a_helper_word_in_template_arguments_makes_no_helper(name: str) -> None:
    assert parse(name).helper() is None


def test_cut_names_are_marked() -> None:
    assert parse("void cutlass::device_ker...").cut
    assert parse("void cutlass::device_ker\u2026").cut
    assert not parse(FA3).cut


@given(st.text(alphabet="ab:<>()[]{}, _Z19N~*&.\u2026-", max_size=60))
def test_any_text_has_parts(name: str) -> None:
    parsed = parse(name)
    assert parsed.full == name
    assert bool(parsed.function) == bool(name.strip())
