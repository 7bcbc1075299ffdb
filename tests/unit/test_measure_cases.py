"""Measured tables: which row becomes which case, and which rows are left out, with their reason."""

from collections import Counter
from pathlib import Path

import pytest

from simfa.errors import MeasureError
from simfa.measure.cases import CaseSet, load_set, load_table, preset_for, set_names

HEADER = "id,gpu,batch,seqlen_q,seqlen_kv,heads_q,heads_kv,head_dim,causal,dtype,latency_us,clock_mhz,quality"
ROW = "A1,NVIDIA H100 80GB HBM3,2,1024,1024,16,4,128,1,bf16,123.5,1755,A"


def table(tmp_path: Path, *lines: str) -> CaseSet:
    """Return the cases of a CSV made of `lines`."""
    path = tmp_path / "mine.csv"
    path.write_text("\n".join(lines) + "\n")
    return load_table(path)


def test_ncu_set_is_twelve_single_cold_launches_at_1500_mhz() -> None:
    cases = load_set("ncu-1500").cases
    assert len(cases) == 12
    assert {(case.preset, case.sm_clock_hz, case.kernel_version, case.launches) for case in cases} == {
        ("h100-sxm", 1.5e9, "latest", "single")
    }
    # The published row: B 8, S 4096, H 16, D 128, full mask, 1.61 ms.
    (longest,) = [case for case in cases if case.shape.head_dim == 128 and case.latency_us == 1610.0]
    assert (longest.shape.batch, longest.shape.heads_q, longest.shape.causal) == (8, 16, False)


def test_every_bundled_row_is_used_or_excluded_with_a_reason() -> None:
    everything = load_set("all")
    ids = [case.id for case in everything.cases] + [row.id for row in everything.excluded]
    assert len(ids) == len(set(ids)) == 12 + 238
    assert all(row.reason for row in everything.excluded)
    assert all(case.source_url.startswith("http") for case in everything.cases)


def test_splits_do_not_share_a_source() -> None:
    sources = {name: {case.source_id for case in load_set(name).cases} for name in ("calib", "valid")}
    assert sources["calib"] == {"NCU", "S01", "S03", "S04"}
    assert not sources["calib"] & sources["valid"]


def test_reasons_for_exclusion() -> None:
    reasons = {row.id: row.reason for row in load_set("all").excluded}
    assert "fp8" in reasons["S02-003"]
    assert reasons["S06-001"].endswith("no preset for PCIe parts")
    assert reasons["S05-001"].startswith("quality C")
    assert "head_dim 80" in reasons["S13-005"]


@pytest.mark.parametrize(
    ("source", "version"),
    [("s01", "2024-07"), ("s04", "2024-07"), ("s08", "2024-07"), ("s13", "latest")],
)
def test_kernel_version_follows_the_source(source: str, version: str) -> None:
    assert {case.kernel_version for case in load_set(source).cases} == {version}


def test_h20_set() -> None:
    assert Counter((case.preset, case.shape.head_dim) for case in load_set("h20").cases) == {
        ("h20", 64): 12,
        ("h20", 128): 12,
    }


def test_each_source_is_a_set() -> None:
    assert {"s01", "s08", "s13"} <= set(set_names())
    with pytest.raises(MeasureError, match="'s99' is unknown; expected one of all, ncu-1500"):
        load_set("s99")


@pytest.mark.parametrize(
    ("text", "preset"),
    [
        ("NVIDIA H100 80GB HBM3", "h100-sxm"),
        ("H100 (form factor not stated)", "h100-sxm"),
        ("NVIDIA H100 PCIe", None),
        ("NVIDIA H800", "h800-sxm"),
        ("NVIDIA H200", "h200-sxm"),
        ("NVIDIA H20", "h20"),
        ("NVIDIA A100-SXM4-80GB", None),
    ],
)
def test_gpu_names(text: str, preset: str | None) -> None:
    assert preset_for(text)[0] == preset


def test_own_table(tmp_path: Path) -> None:
    loaded = table(tmp_path, HEADER, ROW, ROW.replace("A1", "A2").replace(",1755,", ",,"))
    first, second = loaded.cases
    assert loaded.name == "mine"
    assert (first.id, first.preset, first.sm_clock_hz, first.kernel_version) == ("A1", "h100-sxm", 1.755e9, "latest")
    assert first.shape.group_size == 4
    assert first.shape.causal
    assert second.sm_clock_hz is None


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("123.5", "-1", r"mine\.csv: line 2: latency_us is -1; expected a positive number"),
        ("123.5", "nan", "expected a positive number"),
        ("123.5", "fast", "latency_us is 'fast'; expected a number"),
        (",2,1024", ",two,1024", "batch is 'two'; expected a whole number"),
        (",1,bf16", ",yes,bf16", "causal is 'yes'; expected 0 or 1"),
        (",A", ",A,extra", "expected 13 fields"),
    ],
)
def test_malformed_row_names_its_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(MeasureError, match=message):
        table(tmp_path, HEADER, ROW.replace(old, new))


def test_missing_column_and_empty_table(tmp_path: Path) -> None:
    with pytest.raises(MeasureError, match="column latency_us is missing"):
        table(tmp_path, HEADER.replace("latency_us", "ms"), ROW)
    with pytest.raises(MeasureError, match="holds no measurement"):
        table(tmp_path, HEADER)
    with pytest.raises(MeasureError, match="cannot be read"):
        load_table(tmp_path / "none.csv")


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (",16,4,", ",16,3,", "heads_q 16 is not a multiple of heads_kv 3"),
        (",128,1,bf16", ",80,1,bf16", "head_dim 80 is not supported"),
        ("1024,1024", "0,1024", "seqlen_q is 0"),
        ("H100", "B200", "no preset for this GPU"),
        (",A", ",C", "quality C"),
    ],
)
def test_unsupported_row_is_listed_not_lost(tmp_path: Path, old: str, new: str, reason: str) -> None:
    (left_out,) = table(tmp_path, HEADER, ROW.replace(old, new)).excluded
    assert left_out.id == "A1"
    assert reason in left_out.reason
