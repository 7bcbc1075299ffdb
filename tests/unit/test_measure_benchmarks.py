"""benchmark_attn.py and nvbench: means, not launches, and useless under a profiler."""

import csv
from pathlib import Path

import pytest
from measure_exports import PRELUDE, csv_text, details, load, one

from simfa.errors import MeasureError
from simfa.measure.write import write

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


def shapes(folder: Path, heading: str, *results: str) -> list[tuple[str | None, set[str]]]:
    """Shape and flags of each result under a heading."""
    found = load(folder, "\n".join([f"### {heading} ###", *results, ""]))
    kept = {"benchmark", "mean_of=unknown"}
    return [
        (None if launch.shape is None else launch.shape.describe(), set(launch.flags) - kept)
        for launch in found.launches
    ]


BY_SCRIPT = {"heads_by_script", "dtype_by_script"}
# 4 B H L S D operations of B2 L8192 H16 D128: 1.0995e12, half of that under a causal mask.
SHAPES = [
    ("headdim = 128, causal = False, seqlen = 8192", "Fav3 fwd: 1.620ms, 678.7 TFLOPS",
     "B2 L8192 S8192 H16/16 D128 full bf16", BY_SCRIPT | {"batch_by_rate"}),
    ("mode = fwd, headdim = 128, causal = True, batch_size = 2, seqlen = 8192", "Fav3 fwd: 0.810ms, 678.7 TFLOPS",
     "B2 L8192 S8192 H16/16 D128 causal bf16", BY_SCRIPT),
    ("causal=True, headdim=64, batch_size=32, seqlen=512", "Fav3 fwd: 0.206ms",
     "B32 L512 S512 H32/32 D64 causal bf16", BY_SCRIPT),
    # A time of two digits allows several batches, of which the script's own is taken.
    ("headdim = 64, causal = False, seqlen = 512", "Fav3 fwd: 0.12ms, 572.6 TFLOPS",
     "B32 L512 S512 H32/32 D64 full bf16", BY_SCRIPT | {"batch_by_rate"}),
    ("headdim = 64, causal = False, seqlen = 1000", "Fav3 fwd: 0.12ms, 2184.5 TFLOPS", None, {"batch_unknown"}),
    ("headdim = 128, mode = causal, seqlen_q = 1, seqlen_k = 4096, batch = 4, nheads = 32, nheads_kv = 8, dtype = fp16",
     "Fav3 fwd: 0.010ms", "B4 L1 S4096 H32/8 D128 causal fp16", set()),
    ("headdim = 128, causal = False, seqlen = 8192", "Fav3 fwd: 1.620ms", None, {"batch_unknown"}),
    ("headdim = 128, causal = False, seqlen = 8192, batch_size = 4", "Fav3 fwd: 1.620ms, 678.7 TFLOPS",
     None, {"shape_contradicts_rate"}),
    ("headdim = 128, headdim_v = 512, causal = False, seqlen = 8192, batch = 1", "Fav3 fwd: 1.620ms",
     None, {"head_dim_v_differs"}),
    ("headdim = 128, seqlen = 8192, batch = 1", "Fav3 fwd: 1.620ms", None, {"shape_unstated"}),
    ("headdim = 128, causal = maybe, seqlen = 8192, batch = 1", "Fav3 fwd: 1.620ms", None, {"shape_unstated"}),
    ("headdim = 4096, causal = False, seqlen = 8192, batch = 1", "Fav3 fwd: 1.620ms", None, {"shape_impossible"}),
]  # fmt: skip


@pytest.mark.parametrize(("heading", "result", "shape", "flags"), SHAPES)
def test_heading_and_rate_give_the_shape(
    tmp_path: Path, heading: str, result: str, shape: str | None, flags: set[str]
) -> None:
    assert shapes(tmp_path, heading, result) == [(shape, flags)]


def test_other_kernels_have_no_shape(tmp_path: Path) -> None:
    results = [f"{name}: 1.620ms, 678.7 TFLOPS" for name in ("Fav2 fwd", "CuDNN fwd", "Fav3 bwd", "Fav3 fwd + bwd")]
    assert shapes(tmp_path, "headdim = 128, causal = False, seqlen = 8192", *results) == [(None, set())] * 4


def test_shape_columns_stand_in_the_table_where_a_shape_is_known(tmp_path: Path) -> None:
    known = load(
        tmp_path, "### headdim = 64, causal = True, batch = 2, seqlen = 512 ###\nFav3 fwd: 1ms\nFav2 fwd: 2ms\n"
    )
    write(tmp_path / "table.csv", known)
    with (tmp_path / "table.csv").open(newline="") as handle:
        rows = list(csv.DictReader(handle))
    names = ("batch", "seqlen_q", "seqlen_kv", "heads_q", "heads_kv", "head_dim", "causal", "dtype")
    assert [[row[name] for name in names] for row in rows] == [
        ["2", "512", "512", "32", "32", "64", "1", "bf16"], [""] * 8
    ]  # fmt: skip
    frame = known.to_frame()
    assert frame["head_dim"].tolist()[0] == 64
    assert frame["head_dim"].isna().tolist() == [False, True]
    write(tmp_path / "other.csv", load(tmp_path, "### seqlen = 512 ###\nFav3 fwd: 1ms\n"))
    assert "head_dim" not in (tmp_path / "other.csv").read_text().splitlines()[0].split(",")
