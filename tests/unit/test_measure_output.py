"""`simfa ingest`: JSON, CSV and Parquet, messages and exit codes, nothing half-written."""

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from measure_exports import (
    COMBINE,
    DETAILS_20,
    FA3,
    HOPPER_VALUES,
    csv_text,
    details,
    details_rows,
    load,
    nsys_sqlite,
    one,
    raw_rows,
    save,
    with_log,
)

from simfa import cli
from simfa.measure.launch import COLUMNS, NULLABLE
from simfa.measure.reader import read
from simfa.measure.write import csv_line

TOP = ["format", "tool", "tool_version", "gpu", "sources", "selection", "kernels", "launches", "warnings"]
LAUNCH = [
    "launch_id",
    "kernel",
    "kernel_demangled",
    "grid",
    "block",
    "cluster",
    "device",
    "stream",
    "start_ns",
    "duration_ns",
    "elapsed_cycles",
    "sm_clock_hz",
    "dram_read_bytes",
    "dram_write_bytes",
    "dram_total_bytes",
    "l2_bytes",
    "l2_definition",
    "l2_hit_pct",
    "tensor_pipe_pct",
    "clock_control",
    "cache_control",
    "quantisation",
    "source_file",
    "source_row",
    "flags",
]


def ingest(monkeypatch: pytest.MonkeyPatch, *arguments: str | Path) -> int:
    """Run the command in this process; returns its exit code."""
    monkeypatch.setattr(sys, "argv", ["simfa", "ingest", *map(str, arguments)])
    with pytest.raises(SystemExit) as caught:
        cli.main()
        sys.exit(0)
    return int(caught.value.code or 0)


def test_json_has_every_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    path = save(tmp_path, with_log(details()))
    assert ingest(monkeypatch, path, "--json", "--gpu", "NVIDIA H800") == 0
    answer = json.loads(capsysbinary.readouterr().out)
    assert list(answer) == TOP
    (launch,) = answer["launches"]
    assert set(LAUNCH) <= set(launch)
    assert {key: launch[key] for key in HOPPER_VALUES} == HOPPER_VALUES
    assert (launch["grid"], launch["source_file"], launch["gpu"]) == ([132, 1, 1], "export.txt", "NVIDIA H800")
    assert launch["quantisation"]["l2_hit_pct"] == [90.65, 90.75]
    assert all((launch[key] is None) == (key in launch["missing"]) for key in NULLABLE)
    assert answer["selection"]["skip"] == 0
    assert answer["sources"][0]["skipped_lines"] == 6


def test_text_says_what_was_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = nsys_sqlite(tmp_path / "a.sqlite", [{"name": FA3}, {"name": COMBINE}], schema="3.99.0")
    assert ingest(monkeypatch, path, "--kernel", "FlashAttnFwd", "--skip", "0") == 0
    out, err = capsys.readouterr()
    for text in (
        "nsys-sqlite",
        "nsys 2025.1.1",
        "NVIDIA H800",
        "helper: combines",
        "--kernel FlashAttnFwd",
        "first 0 launches",
    ):
        assert text in out
    assert "clock control: none (1)" in out
    assert err.startswith("warning: a.sqlite: export schema 3.99.0 is newer")


def test_csv_is_flat_exact_and_repeatable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bad = details_rows(metrics=[("gpu__time_duration.sum", "ns", "nan")], ID="1", Grid_Size="")
    path = save(tmp_path, csv_text([DETAILS_20, *details_rows(), *bad]))
    for name in ("a.csv", "b.csv"):
        assert ingest(monkeypatch, path, "-o", tmp_path / name) == 0
    data = (tmp_path / "a.csv").read_bytes()
    assert data == (tmp_path / "b.csv").read_bytes()
    rows = list(csv.DictReader(data.decode().splitlines()))
    assert list(rows[0]) == list(COLUMNS)
    assert (rows[0]["grid"], rows[0]["duration_ns"], rows[0]["l2_bytes"]) == (
        "132x1x1",
        "305120",
        str(HOPPER_VALUES["l2_bytes"]),
    )
    assert (rows[1]["grid"], rows[1]["duration_ns"], rows[1]["flags"]) == ("", "", "no_values")
    reasons = json.loads(rows[1]["missing"])
    assert "duration_ns" in next(columns for reason, columns in reasons.items() if "nan" in reason)
    manifest = json.loads((tmp_path / "a.csv.manifest.json").read_text())
    assert manifest["inputs"]["file0"]["name"] == "export.txt"
    assert manifest["launches"] == 2


def test_parquet_holds_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs pyarrow (pip install 'simfa[parquet]')")
    path = save(tmp_path, csv_text([*raw_rows(), raw_rows(ID="1")[2]]))
    assert ingest(monkeypatch, path, "-o", tmp_path / "a.parquet") == 0
    rows = parquet.read_table(tmp_path / "a.parquet").to_pylist()
    assert [row["launch_id"] for row in rows] == ["0", "1"]
    assert list(rows[0]) == list(COLUMNS)
    assert (rows[0]["duration_ns"], rows[0]["start_ns"], rows[0]["grid"]) == (305_120, None, "132x1x1")


def test_without_pyarrow_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert ingest(monkeypatch, save(tmp_path, details()), "-o", tmp_path / "a.parquet") == 1
    assert "simfa[parquet]" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["export.txt"]


def test_frame_keeps_missing_apart_from_zero(tmp_path: Path) -> None:
    found = load(tmp_path, details(metrics=[("dram__bytes_write.sum", "byte", "0"), ("Duration", "us", "1.50")]))
    frame = found.to_frame()
    assert list(frame.columns) == list(COLUMNS)
    assert frame.dram_write_bytes[0] == 0
    assert frame.dram_read_bytes.isna()[0]
    assert str(frame.duration_ns.dtype) == "Int64"
    assert frame.start_ns.isna()[0]


def test_large_start_times_survive_the_frame(tmp_path: Path) -> None:
    path = nsys_sqlite(tmp_path / "a.sqlite", [{"start": 2**60 + 1, "end": 2**60 + 4}])
    assert read(path).to_frame().start_ns[0] == 2**60 + 1


BAD = {
    "nothing.csv": None,
    "folder": "folder",
    "empty.csv": b"",
    "prose.txt": b"hello world\n",
    "noise.bin": bytes(range(256)) * 9,
    "header.csv": (details().splitlines()[0] + "\n").encode(),
    "comma.csv": details(metrics=[("Duration", "us", "1,5")]).encode(),
    "unit.csv": details(metrics=[("Duration", "fortnight", "1")]).encode(),
    "cut.sqlite": b"SQLite format 3\x00" + bytes(200),
    "broken.json": b'{"traceEvents": [}',
    "log.txt": b"==ERROR== ERR_NVGPUCTRPERM - no permission\n",
    "report.nsys-rep": b"\x01\x02\x03",
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_message_exit_1_and_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    inputs, outputs = tmp_path / "in", tmp_path / "out"
    inputs.mkdir()
    outputs.mkdir()
    data = BAD[name]
    if isinstance(data, bytes):
        save(inputs, data, name)
    elif data:
        (inputs / name).mkdir()
    good = save(inputs, details(), "good.csv")
    assert ingest(monkeypatch, good, inputs / name, "-o", outputs / "a.csv", "--json") == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("simfa: ")
    assert name in err
    assert "Traceback" not in err
    assert list(outputs.iterdir()) == []


def test_a_missing_output_folder_is_one_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = save(tmp_path, details())
    assert ingest(monkeypatch, path, "-o", tmp_path / "missing" / "a.csv") == 1
    assert "does not exist; make it first" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [("--kernel", "(("), ("-o", "a.xlsx"), ("--format", "excel"), ("--skip", "-1"), ("--cache-control", "some")],
)
def test_wrong_usage_exits_2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, str]) -> None:
    assert ingest(monkeypatch, save(tmp_path, details()), *arguments) == 2


def test_as_a_process_without_numpy_or_pandas(tmp_path: Path) -> None:
    """Reading and writing CSV needs neither; `--json` and messages stay on their own streams."""
    path = nsys_sqlite(tmp_path / "a.sqlite", [{"name": FA3}])
    code = (
        "import sys; from simfa.cli import main\n"
        f"sys.argv = ['simfa', 'ingest', {str(path)!r}, '--json', '-o', {str(tmp_path / 'a.csv')!r}]\n"
        "try: main()\nfinally: assert not {'numpy', 'pandas', 'pyarrow', 'ijson'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["launches"][0]["duration_ns"] == 500


def test_lazy_package_offers_read(tmp_path: Path) -> None:
    import simfa.measure

    assert one(simfa.measure.read(save(tmp_path, details()))).duration_ns == 305_120
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = simfa.measure.nothing


@given(st.lists(st.none() | st.integers() | st.floats(allow_nan=False) | st.text('a ,"\r\n;\u03bc'), min_size=2))
def test_csv_lines_are_those_of_the_csv_module(row: list[object]) -> None:
    expected = io.StringIO()
    csv.writer(expected, lineterminator="\n").writerow(row)
    line = csv_line(row)
    assert line == expected.getvalue() or "\r" in line  # which the module quotes from Python 3.13 on
    assert next(csv.reader(io.StringIO(line, newline=""))) == ["" if cell is None else str(cell) for cell in row]
