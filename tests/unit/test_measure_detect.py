"""Recognising formats by content, and refusing by name what cannot be read."""

import gzip
from pathlib import Path

import pytest
from measure_exports import (
    CPU_EVENT,
    FA3,
    NSYS_SUMMARY,
    NSYS_TRACE,
    console,
    csv_text,
    details,
    kernel_event,
    kineto,
    load,
    nsys_sqlite,
    raw_rows,
    save,
    text_page,
    trace_row,
    with_log,
)
from test_measure_benchmarks import ATTN, MARKDOWN

from simfa.errors import MeasureError
from simfa.measure.detect import FORMATS, detect
from simfa.measure.reader import read

TEXTS = {
    "ncu-csv": with_log(details()),
    "ncu-text": with_log(text_page()),
    "nsys-stats": console(NSYS_SUMMARY, [["100.0", "9", "3", "3.0", "3.0", "1", "2", "0.5", FA3]]),
    "kineto": kineto([CPU_EVENT, kernel_event()]),
    "benchmark-attn": ATTN,
    "nvbench": MARKDOWN,
}


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("wrap", ["plain", "misnamed", "gzip", "bom", "utf-16", "crlf"])
def test_format_by_content(tmp_path: Path, name: str, wrap: str) -> None:
    data = TEXTS[name].encode("utf-16" if wrap == "utf-16" else "utf-8-sig" if wrap == "bom" else "utf-8")
    data = gzip.compress(data, mtime=0) if wrap == "gzip" else data.replace(b"\n", b"\r\n") if wrap == "crlf" else data
    path = save(tmp_path, data, "x.sqlite" if wrap == "misnamed" else "x")
    assert detect(path) == name
    assert read(path).launches


def test_binary_formats_by_magic(tmp_path: Path) -> None:
    assert detect(nsys_sqlite(tmp_path / "x.csv", [{"name": FA3}])) == "nsys-sqlite"
    assert detect(save(tmp_path, b"NVR\x00\x05", "x.txt")) == "ncu-rep"


@pytest.mark.parametrize(
    ("name", "data", "text"),
    [
        ("x.h5", b"\x89HDF\r\n\x1a\n123", "HDF5.*--type sqlite"),
        ("x.parquet", b"PAR1123", "Parquet.*--type sqlite"),
        ("x.arrow", b"ARROW1\x00\x00", "Arrow.*--type sqlite"),
        ("x.zip", b"PK\x03\x04123", "zip archive"),
        ("x.nsys-rep", b"whatever", "only nsys can open.*--type sqlite"),
        ("x.qdrep", b"\x00\x01what", "only nsys can open"),
        ("x.bin", bytes(range(256)), "binary data"),
        ("x.txt", b"hello\n", "no known export.*known are ncu-csv"),
        ("x.txt", b"", "is empty"),
        ("x.gz", gzip.compress(b"", mtime=0), "holds nothing once unpacked"),
        ("x.gz", b"\x1f\x8b\x08\x00broken", "holds nothing once unpacked|gzip"),
    ],
)
def test_refusals_name_what_it_is_and_the_way_out(tmp_path: Path, name: str, data: bytes, text: str) -> None:
    with pytest.raises(MeasureError, match=text) as caught:
        load(tmp_path, data, name)
    assert name in str(caught.value)


def test_folders_and_missing_files(tmp_path: Path) -> None:
    with pytest.raises(MeasureError, match=r"is a folder.*--type sqlite"):
        read(tmp_path)
    with pytest.raises(MeasureError, match="no such file"):
        read(tmp_path / "nothing")
    with pytest.raises(MeasureError, match="no file to read"):
        read()


def test_the_same_file_twice_would_count_double(tmp_path: Path) -> None:
    path = save(tmp_path, details())
    with pytest.raises(MeasureError, match="given twice"):
        read(path, path)


@pytest.mark.parametrize("name", FORMATS)
def test_forcing_a_format_reads_as_that_or_says_why_not(tmp_path: Path, name: str) -> None:
    path = save(tmp_path, TEXTS["ncu-csv"])
    if name == "ncu-csv":
        assert read(path, format=name).launches
    else:
        with pytest.raises(MeasureError, match=r"export.txt"):
            read(path, format=name)


def test_unknown_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MeasureError, match="there are ncu-csv"):
        read(save(tmp_path, details()), format="excel")


def test_header_found_behind_much_output(tmp_path: Path) -> None:
    noise = "iteration 1, loss 0.25, ID 7\n" * 3000
    assert len(load(tmp_path, noise + csv_text(raw_rows())).launches) == 1
    assert len(load(tmp_path, noise + csv_text([NSYS_TRACE, trace_row()])).launches) == 1
