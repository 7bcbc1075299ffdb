"""Nsight Compute's text output, and logs that hold no table: each refusal quotes and helps."""

from pathlib import Path

import pytest
from measure_exports import (
    DETAILS_20,
    FA3_NCU,
    HOPPER,
    HOPPER_VALUES,
    PRELUDE,
    TRAILER,
    details,
    load,
    one,
    text_page,
    with_log,
)

from simfa.errors import MeasureError

PERMISSION = (
    "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters on the "
    "target device 0. For instructions see https://developer.nvidia.com/ERR_NVGPUCTRPERM"
)


def test_text_page(tmp_path: Path) -> None:
    found = load(tmp_path, with_log(text_page()), "raw.csv")
    launch = one(found)
    assert found.format == "ncu-text"
    assert {key: getattr(launch, key) for key in HOPPER_VALUES} == HOPPER_VALUES
    assert (launch.kernel_demangled, launch.grid, launch.block) == (FA3_NCU, (132, 1, 1), (384, 1, 1))
    assert (launch.stream, launch.device) == (7, 0)
    assert "secret" not in repr(found)


def test_text_page_of_2021(tmp_path: Path) -> None:
    heading = "  flash_fwd_kernel, 2021-Mar-03 10:11:12, Context 1, Stream 7"
    rows = [
        ("Duration", "usecond", "305.12"),
        ("SM Frequency", "cycle/nsecond", "1.50"),
        ("Block Size", "", "384"),
        *HOPPER[3:],
    ]
    launch = one(load(tmp_path, text_page(rows, heading, titles=False)))
    assert (launch.kernel, launch.duration_ns, launch.sm_clock_hz) == ("flash_fwd_kernel", 305_120, 1_500_000_000)
    assert launch.grid is None


def test_several_launches_are_counted(tmp_path: Path) -> None:
    found = load(
        tmp_path, text_page() + text_page([("Duration", "us", "(!) nan"), ("Elapsed Cycles", "cycle", "5,000")])
    )
    assert [launch.launch_id for launch in found.launches] == ["0", "1"]
    assert [launch.elapsed_cycles for launch in found.launches] == [457_680, 5000]
    assert found.launches[1].duration_ns is None


def test_text_ambiguous_comma_names_the_line(tmp_path: Path) -> None:
    with pytest.raises(MeasureError, match=r"export.txt:7: metric 'Duration'"):
        load(tmp_path, text_page([("Duration", "us", "1,5")]))


def test_permission_failure_is_quoted_with_the_remedy(tmp_path: Path) -> None:
    log = "\n".join(["loading weights"] * 500 + [PRELUDE[1], PERMISSION, "==PROF== Disconnected", "bye"])
    with pytest.raises(MeasureError, match=r"line 502.*ERR_NVGPUCTRPERM") as caught:
        load(tmp_path, log)
    assert "NVreg_RestrictProfilingToAdminUsers" in str(caught.value)
    assert "nsys" in str(caught.value)


def test_permission_failure_under_an_empty_table(tmp_path: Path) -> None:
    with pytest.raises(MeasureError, match="ERR_NVGPUCTRPERM"):
        load(tmp_path, ",".join(f'"{name}"' for name in DETAILS_20) + "\n" + PERMISSION + "\n")


def test_permission_failure_beside_good_rows_is_a_warning(tmp_path: Path) -> None:
    found = load(tmp_path, details() + PERMISSION + "\n")
    assert one(found).duration_ns == 305_120
    assert any("some kernels may be missing" in warning for warning in found.warnings)


def test_no_kernels_profiled(tmp_path: Path) -> None:
    log = "==PROF== Connected to process 1\n==WARNING== No kernels were profiled.\nAvailable Kernels:\n1. foo\n"
    with pytest.raises(MeasureError, match="No kernels were profiled") as caught:
        load(tmp_path, log)
    assert "--target-processes all" in str(caught.value)


def test_other_errors_are_quoted(tmp_path: Path) -> None:
    with pytest.raises(MeasureError, match="Failed to profile"):
        load(tmp_path, '==PROF== Connected\n==ERROR== Failed to profile "foo" in process 1\n')


def test_banner_only_log_names_kernels_and_report(tmp_path: Path) -> None:
    with pytest.raises(MeasureError, match=r"only the banner lines.*device_kernel \(1\)") as caught:
        load(tmp_path, "\n".join([*PRELUDE, *TRAILER]))
    assert "fa3.ncu-rep" in str(caught.value)
    assert "secret" not in str(caught.value)


def test_query_metrics_output_is_refused_by_name(tmp_path: Path) -> None:
    log = "Device NVIDIA H800 (GH100)\n-------\nMetric Name      Metric Type  Metric Unit  Metric Description\n"
    log += "dram__bytes      Counter byte  # of bytes\n"
    with pytest.raises(MeasureError, match="query-metrics"):
        load(tmp_path, log)


def test_source_page_is_refused_by_name(tmp_path: Path) -> None:
    log = '"Kernel Name","foo"\n"#","Address","Source","Warp Stall Sampling (All Samples)","# Samples"\n'
    log += '"0","1","MOV","2","3"\n'
    with pytest.raises(MeasureError, match="source page"):
        load(tmp_path, log)
