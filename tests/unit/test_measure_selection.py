"""Choosing kernels: explicit, helpers left out, candidates listed, warm-up and median said."""

from pathlib import Path

import pytest
from measure_exports import (
    COMBINE,
    DETAILS_20,
    FA3,
    FA3_NCU,
    GEMM,
    csv_text,
    details,
    details_rows,
    kernel_event,
    kineto,
    load,
    nsys_sqlite,
    one,
    options,
)

from simfa.errors import MeasureError
from simfa.measure.reader import read
from simfa.measure.selection import middle

BACKWARD = FA3.replace("FlashAttnFwdSm90", "FlashAttnBwdSm90")
FA3_64 = FA3.replace("(int)128", "(int)64")


def trace(folder: Path, *names: str, name: str = "trace.json", durations: list[str] | None = None) -> Path:
    times = durations or [f"{10 + n}.000" for n in range(len(names))]
    events = [kernel_event(text, str(1000 * n), times[n], correlation=n) for n, text in enumerate(names)]
    path = folder / name
    path.write_text(kineto(events))
    return path


def test_helpers_are_left_out_and_listed(tmp_path: Path) -> None:
    found = read(trace(tmp_path, FA3, COMBINE))
    assert one(found).kernel_demangled == FA3
    assert {kernel.full_name: kernel.state for kernel in found.kernels} == {
        FA3: "chosen",
        COMBINE: "helper: combines the partial results of split KV",
    }
    assert len(read(trace(tmp_path, FA3, COMBINE), choice=options(helpers=True)).launches) == 2


@pytest.mark.parametrize("pattern", ["FlashAttnFwd", "^FlashAttnFwdSm90$", "FlashAttnFwdSm"])
def test_pattern_over_the_functor(tmp_path: Path, pattern: str) -> None:
    found = read(trace(tmp_path, FA3, GEMM, COMBINE), choice=options(kernel=pattern))
    assert one(found).kernel_demangled == FA3


def test_pattern_does_not_see_template_arguments(tmp_path: Path) -> None:
    with pytest.raises(MeasureError, match=r"trace.json: no kernel matches --kernel 'SingleTileScheduler'") as caught:
        read(trace(tmp_path, FA3, GEMM), choice=options(kernel="SingleTileScheduler"))
    assert "FlashAttnFwdSm90" in str(caught.value)
    assert "GemmUniversal" in str(caught.value)
    assert (
        one(read(trace(tmp_path, FA3, GEMM), choice=options(kernel_full="SingleTileScheduler"))).kernel_demangled == FA3
    )


def test_several_matches_list_the_candidates(tmp_path: Path) -> None:
    path = trace(tmp_path, FA3, FA3, BACKWARD, GEMM)
    with pytest.raises(MeasureError, match="matches 2 kernels") as caught:
        read(path, choice=options(kernel="FlashAttn"))
    assert "FlashAttnBwdSm90]: 1 rows" in str(caught.value)
    assert "FlashAttnFwdSm90]: 2 rows" in str(caught.value)
    assert "GemmUniversal" not in str(caught.value)
    assert len(read(path, choice=options(kernel="FlashAttn", several=True)).launches) == 3


def test_instantiations_are_several_kernels(tmp_path: Path) -> None:
    path = trace(tmp_path, FA3, FA3_64)
    with pytest.raises(MeasureError, match="matches 2 kernels"):
        read(path, choice=options(kernel="FlashAttnFwd"))
    full = options(kernel="FlashAttnFwd", kernel_full=r"Fwd<\(int\)64>")
    assert one(read(path, choice=full)).kernel_demangled == FA3_64


def test_one_kernel_under_two_tools_is_one(tmp_path: Path) -> None:
    (tmp_path / "ncu.csv").write_text(details())
    found = read(trace(tmp_path, FA3), tmp_path / "ncu.csv", choice=options(kernel="FlashAttnFwd"))
    assert [launch.tool for launch in found.launches] == ["pytorch", "ncu"]
    assert (found.format, found.tool) == (None, None)
    assert any("2 different ways" in warning for warning in found.warnings)


def test_only_helpers_matched_says_so(tmp_path: Path) -> None:
    with pytest.raises(MeasureError, match="--helpers keeps them"):
        read(trace(tmp_path, FA3, COMBINE), choice=options(kernel="Combine"))


def test_skip_leaves_out_the_first_launches_of_each_configuration(tmp_path: Path) -> None:
    path = nsys_sqlite(tmp_path / "a.sqlite", [{"name": FA3}, {"name": FA3, "gridX": 7}] * 3)
    found = read(path, choice=options(skip=2))
    assert [(launch.grid, launch.start_ns) for launch in found.launches] == [((132, 1, 1), 4000), ((7, 1, 1), 5000)]
    assert found.selection.skip == 2
    with pytest.raises(MeasureError, match="--skip 3 leaves nothing"):
        read(path, choice=options(skip=3))


def test_median_over_repeats(tmp_path: Path) -> None:
    found = read(
        trace(tmp_path, *[FA3] * 5, durations=["90", "10.5", "11.5", "12", "13"]), choice=options(skip=1, median=True)
    )
    launch = one(found)
    assert launch.duration_ns == 11_750
    assert launch.quantisation["duration_ns"] == ((11_500 + 11_000) / 2, (11_500 + 13_000) / 2)
    assert "median_of=4" in launch.flags
    assert found.selection.median


def test_median_never_averages_over_missing(tmp_path: Path) -> None:
    rows = [
        *details_rows(),
        *details_rows(
            metrics=[("gpu__time_duration.sum", "ns", "nan"), ("gpc__cycles_elapsed.max", "cycle", "5")], ID="1"
        ),
    ]
    launch = one(load(tmp_path, csv_text([DETAILS_20, *rows]), choice=options(median=True)))
    assert launch.duration_ns is None
    assert "1 of 2 launches" in launch.missing["duration_ns"]
    assert launch.elapsed_cycles == (457_680 + 5) / 2
    assert launch.l2_definition is None


def test_median_of_two_l2_definitions_is_none(tmp_path: Path) -> None:
    other = details_rows(metrics=[("lts__t_sectors.sum", "sector", "9")], ID="1")
    launch = one(load(tmp_path, csv_text([DETAILS_20, *details_rows(), *other]), choice=options(median=True)))
    assert launch.l2_bytes is None
    assert "differently" in launch.missing["l2_bytes"]


def test_skip_needs_launches(tmp_path: Path) -> None:
    text = "### headdim = 128, causal = False, seqlen = 8192 ###\nFav3 fwd: 0.520ms, 660.1 TFLOPS\n"
    with pytest.raises(MeasureError, match="--skip 1 needs launches"):
        load(tmp_path, text, choice=options(skip=1))
    assert "median_of=1" not in one(load(tmp_path, text, choice=options(median=True))).flags


def test_bare_wrapper_names_are_pointed_out(tmp_path: Path) -> None:
    found = load(tmp_path, details(Kernel_Name="device_kernel"))
    assert any("names every CUTLASS kernel alike" in warning for warning in found.warnings)
    assert not load(tmp_path, details(Kernel_Name=FA3_NCU)).warnings


def test_wrong_pattern_is_said(tmp_path: Path) -> None:
    with pytest.raises(MeasureError, match="no regular expression"):
        read(trace(tmp_path, FA3), choice=options(kernel="(("))


def test_middle_is_exact() -> None:
    assert middle([3, 1, 2]) == 2
    assert middle([10**18 + 1, 10**18 + 3]) == 10**18 + 2
    assert middle([1, 2]) == 1.5
