"""benchmark_attn.py and nvbench: means, not launches, and useless under a profiler."""

from pathlib import Path

import pytest
from measure_exports import PRELUDE, csv_text, details, load, one

from simfa.errors import MeasureError

ATTN = """Running on NVIDIA H100
### headdim = 128, causal = False, seqlen = 8192 ###
Fav2 fwd: 1.234ms, 445.5 TFLOPS
Fav3 fwd: 0.520 ms, 1057.2 TFLOPS
Fav3 bwd: 1.5ms, 900.0 TFLOPS
### headdim = 64, causal = True, seqlen = 512 ###
CuDNN fwd: 0.012ms, 88.0 TFLOPS
"""

MARKDOWN = """# Devices
## attention
### [0] NVIDIA H100 80GB HBM3
| seqlen | Samples |  CPU Time  | Noise | GPU Time  | Noise | Elem/s | Samples | Batch GPU |
|--------|---------|------------|-------|-----------|-------|--------|---------|-----------|
|   1024 |   1000x |  12.345 us | 1.20% | 10.100 us | 0.50% |   1.0G |   1234x |  9.800 us |
|   2048 |    100x |   1.345 ms | 1.20% |  1.100 ms | 0.50% |   1.0G |    234x |           |
"""
CSV_TITLES = ["Benchmark", "Device", "Device Name", "seqlen", "Skipped", "Samples", "CPU Time (sec)", "Noise",
              "GPU Time (sec)", "Noise", "Samples", "Batch GPU (sec)"]  # fmt: skip
CSV_ROW = [
    "attention",
    "0",
    "NVIDIA H100",
    "1024",
    "No",
    "1000",
    "1.2345e-05",
    "0.01",
    "1.01e-05",
    "0.005",
    "1234",
    "9.8e-06",
]


def test_benchmark_attn(tmp_path: Path) -> None:
    found = load(tmp_path, ATTN)
    assert [(launch.kernel, launch.duration_ns) for launch in found.launches] == [
        ("Fav2 fwd", 1_234_000), ("Fav3 fwd", 520_000), ("Fav3 bwd", 1_500_000), ("CuDNN fwd", 12_000),
    ]  # fmt: skip
    assert found.launches[1].case == {"headdim": "128", "causal": "False", "seqlen": "8192"}
    assert found.launches[3].case == {"headdim": "64", "causal": "True", "seqlen": "512"}
    assert found.launches[1].quantisation == {"duration_ns": (519_500, 520_500)}
    assert "benchmark" in found.launches[0].flags
    assert (found.format, found.tool) == ("benchmark-attn", "benchmark_attn")


def test_rates_alone_are_no_times(tmp_path: Path) -> None:
    text = (
        "### causal=False, headdim=64, batch_size=32, seqlen=512 ###\nFlash2 fwd: 123.45 TFLOPs/s, bwd: 1.2 TFLOPs/s\n"
    )
    with pytest.raises(MeasureError, match="no whole line"):
        load(tmp_path, text)
    found = load(tmp_path, text + ATTN)
    assert len(found.launches) == 4
    assert any("a rate without a time" in warning for warning in found.warnings)


@pytest.mark.parametrize("text", [ATTN, MARKDOWN])
def test_under_ncu_the_times_are_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(MeasureError, match="ran under Nsight Compute"):
        load(tmp_path, "\n".join(PRELUDE) + "\n" + text)


def test_a_profile_of_the_benchmark_is_a_profile(tmp_path: Path) -> None:
    assert load(tmp_path, ATTN + "\n".join(PRELUDE) + "\n" + details()).format == "ncu-csv-details"


def test_nvbench_markdown_scales_each_cell(tmp_path: Path) -> None:
    found = load(tmp_path, MARKDOWN)
    assert [(launch.duration_ns, launch.cache_control, launch.case["seqlen"]) for launch in found.launches] == [
        (10_100, "all", "1024"), (9_800, "none", "1024"), (1_100_000, "all", "2048"),
    ]  # fmt: skip
    first = found.launches[0]
    assert (first.kernel, first.gpu, first.device) == ("attention", "NVIDIA H100 80GB HBM3", 0)
    assert first.flags == ("benchmark", "cold", "mean_of=1000")
    assert first.quantisation == {"duration_ns": (10_099.5, 10_100.5)}
    assert any("2 different ways" in warning for warning in found.warnings)


def test_nvbench_csv_is_in_seconds(tmp_path: Path) -> None:
    skipped = [*CSV_ROW[:4], "Yes", *[""] * 7]
    found = load(tmp_path, csv_text([CSV_TITLES, CSV_ROW, skipped]))
    assert [launch.duration_ns for launch in found.launches] == [10_100, 9_800]
    assert found.launches[0].gpu == "NVIDIA H100"
    assert any("skipped by the benchmark" in warning for warning in found.warnings)


def test_nvbench_seconds_are_suspicious(tmp_path: Path) -> None:
    found = load(tmp_path, MARKDOWN.replace("10.100 us", "10.100 s"))
    assert any("profiler that replays" in warning for warning in found.warnings)


def test_nvbench_unknown_unit_stops(tmp_path: Path) -> None:
    with pytest.raises(MeasureError, match=r"export.txt:6: column 'GPU Time'.*'fn'"):
        load(tmp_path, MARKDOWN.replace("10.100 us", "10.100 fn"))


def test_cut_rows_are_dropped(tmp_path: Path) -> None:
    assert len(load(tmp_path, ATTN[: ATTN.rindex("TFLOPS")]).launches) == 3
    assert len(load(tmp_path, MARKDOWN[: MARKDOWN.rindex("|  1.0G") if "|  1.0G" in MARKDOWN else -30]).launches) == 2
    assert one(load(tmp_path, ATTN[: ATTN.index("Fav3 fwd") + 12])).kernel == "Fav2 fwd"
