"""Nsight Systems SQLite exports over the schema's years."""

import gzip
import os
import sqlite3
from pathlib import Path

import pytest
from measure_exports import (
    CLUSTER_COLUMNS,
    COMBINE,
    FA3,
    GEMM,
    NSYS_BASE,
    complain_of_unexplained,
    load,
    nsys_sqlite,
    one,
)

from simfa.errors import MeasureError
from simfa.measure.reader import read

SCHEMAS = {
    "2.7.1": ("EXPORT_META_DATA", NSYS_BASE),
    "3.0.2": ("EXPORT_META_DATA", NSYS_BASE),
    "3.1.6": ("EXPORT_META_DATA", NSYS_BASE),
    "3.4.0": ("META_DATA_EXPORT", NSYS_BASE),
    "3.17.0": ("META_DATA_EXPORT", NSYS_BASE),
    "3.20.1": ("META_DATA_EXPORT", (*NSYS_BASE, "greenContextId")),
    "3.24.0": ("META_DATA_EXPORT", (*NSYS_BASE, "greenContextId", *CLUSTER_COLUMNS)),
    "3.25.0": ("META_DATA_EXPORT", (*NSYS_BASE, *CLUSTER_COLUMNS, "sharedMemoryRequestedPercentage")),
}
LAUNCHES = [
    {"name": FA3, "start": 5000, "end": 310_120},
    {"name": COMBINE},
    {"name": FA3, "start": 400_000, "end": 705_000},
]


@pytest.mark.parametrize("schema", SCHEMAS)
def test_every_schema(tmp_path: Path, schema: str) -> None:
    meta, columns = SCHEMAS[schema]
    found = read(nsys_sqlite(tmp_path / "a.sqlite", LAUNCHES, schema=schema, meta=meta, columns=columns))
    for launch in found.launches:
        complain_of_unexplained(launch)
    assert [launch.duration_ns for launch in found.launches] == [305_120, 305_000]
    first = found.launches[0]
    assert (first.kernel, first.kernel_demangled, first.grid, first.block) == (
        "device_kernel",
        FA3,
        (132, 1, 1),
        (384, 1, 1),
    )
    assert first.cluster == ((2, 1, 1) if "clusterX" in columns else None)
    assert (first.device, first.stream, first.start_ns, first.launch_id) == (0, 7, 5000, "100")
    assert (found.format, found.tool, found.tool_version, found.gpu) == (
        "nsys-sqlite",
        "nsys",
        "2025.1.1",
        "NVIDIA H800",
    )
    assert found.warnings == ()
    assert [kernel.state.split(":")[0] for kernel in found.kernels] == ["chosen", "helper"]


def test_newer_schema_warns_and_reads(tmp_path: Path) -> None:
    found = read(nsys_sqlite(tmp_path / "a.sqlite", LAUNCHES, schema="3.26.0"))
    assert len(found.launches) == 2
    assert any("3.26.0 is newer" in warning for warning in found.warnings)
    assert not read(nsys_sqlite(tmp_path / "b.sqlite", LAUNCHES, schema="3.25.9")).warnings


@pytest.mark.parametrize(("schema", "text"), [(None, "does not name"), ("2.5.0", "older"), ("soon", "does not name")])
def test_unknown_schema_warns(tmp_path: Path, schema: str | None, text: str) -> None:
    found = read(nsys_sqlite(tmp_path / "a.sqlite", LAUNCHES, schema=schema))
    assert any(text in warning for warning in found.warnings)


def test_no_gpu_table_and_few_columns(tmp_path: Path) -> None:
    found = read(nsys_sqlite(tmp_path / "a.sqlite", LAUNCHES[:1], gpu=None, columns=("start", "end", "shortName")))
    launch = one(found)
    complain_of_unexplained(launch)
    assert (launch.duration_ns, launch.kernel, launch.gpu, launch.grid, launch.device) == (
        305_120,
        "device_kernel",
        None,
        None,
        None,
    )
    assert launch.launch_id == "1"


def test_a_trace_claims_no_counter(tmp_path: Path) -> None:
    launch = read(nsys_sqlite(tmp_path / "a.sqlite", LAUNCHES)).launches[0]
    assert launch.dram_read_bytes is None
    assert "no counters" in launch.missing["dram_read_bytes"]
    assert (launch.clock_control, launch.cache_control) == ("none", "none")


def test_nothing_private_is_copied(tmp_path: Path) -> None:
    assert "secret" not in repr(read(nsys_sqlite(tmp_path / "a.sqlite", LAUNCHES)))


def test_no_kernels_lists_tables_and_causes(tmp_path: Path) -> None:
    with pytest.raises(MeasureError, match="CUPTI_ACTIVITY_KIND_RUNTIME") as caught:
        read(nsys_sqlite(tmp_path / "a.sqlite", []))
    assert "no kernel table" in str(caught.value)
    assert "WSL" in str(caught.value)


def test_kernels_inside_graphs_are_named(tmp_path: Path) -> None:
    with pytest.raises(MeasureError, match="--cuda-graph-trace=node"):
        read(nsys_sqlite(tmp_path / "a.sqlite", [], graphs=3))
    found = read(nsys_sqlite(tmp_path / "b.sqlite", LAUNCHES, graphs=3))
    assert any("3 CUDA graph launches" in warning for warning in found.warnings)


def test_graph_nodes_are_flagged(tmp_path: Path) -> None:
    found = read(nsys_sqlite(tmp_path / "a.sqlite", [{"name": FA3, "graphNodeId": 9}, {"name": FA3}]))
    assert [launch.flags for launch in found.launches] == [("graph_node",), ()]


def test_empty_kernel_table_is_empty_not_zero(tmp_path: Path) -> None:
    path = nsys_sqlite(tmp_path / "a.sqlite", [], table="CUPTI_ACTIVITY_KIND_KERNEL_V2")
    with pytest.raises(MeasureError, match="no whole kernel record"):
        read(path)


def test_suffixed_table_of_community_exports(tmp_path: Path) -> None:
    found = read(nsys_sqlite(tmp_path / "a.sqlite", LAUNCHES, table="CUPTI_ACTIVITY_KIND_KERNEL_V3"))
    assert len(found.launches) == 2


def test_missing_column_is_named_with_those_that_are_there(tmp_path: Path) -> None:
    with pytest.raises(MeasureError, match="lacks end; it has deviceId, shortName, start"):
        read(nsys_sqlite(tmp_path / "a.sqlite", LAUNCHES, columns=("start", "deviceId", "shortName")))


def test_bad_records_are_dropped_and_listed(tmp_path: Path) -> None:
    rows = [
        {"end": None},
        {"start": 9, "end": 5},
        {"start": "text"},
        {"demangledName": 999, "shortName": 999},
        {"name": GEMM},
    ]
    found = read(nsys_sqlite(tmp_path / "a.sqlite", rows))
    assert one(found).kernel_demangled == GEMM
    assert any("4 rows dropped: row 1 of the kernel table" in warning for warning in found.warnings)


def test_mangled_names_only(tmp_path: Path) -> None:
    path = nsys_sqlite(tmp_path / "a.sqlite", [{"name": "_ZN5flash16flash_fwd_kernelIiEEvv"}])
    launch = one(read(path))
    complain_of_unexplained(launch)
    assert (launch.kernel, launch.kernel_demangled) == ("flash_fwd_kernel", None)
    assert launch.kernel_mangled == "_ZN5flash16flash_fwd_kernelIiEEvv"


def test_foreign_and_damaged_databases(tmp_path: Path) -> None:
    foreign = tmp_path / "foreign.sqlite"
    with sqlite3.connect(foreign) as database:
        database.execute("CREATE TABLE people (name TEXT)")
    database.close()
    with pytest.raises(MeasureError, match="no Nsight Systems export; its tables: people"):
        read(foreign)
    whole = nsys_sqlite(tmp_path / "a.sqlite", LAUNCHES).read_bytes()
    with pytest.raises(MeasureError, match="damaged"):
        load(tmp_path, whole[:100] + b"\xff" * (len(whole) - 100))


def test_cut_at_any_byte_is_refused(tmp_path: Path) -> None:
    whole = nsys_sqlite(tmp_path / "a.sqlite", LAUNCHES).read_bytes()
    for size in [*range(16, 130), *range(130, len(whole), 509), len(whole) - 1]:
        with pytest.raises(MeasureError, match=r"cut short|damaged"):
            load(tmp_path, whole[:size], "cut.sqlite")


def test_gzip(tmp_path: Path) -> None:
    whole = nsys_sqlite(tmp_path / "a.sqlite", LAUNCHES).read_bytes()
    assert len(load(tmp_path, gzip.compress(whole), "a.sqlite.gz").launches) == 2
    with pytest.raises(MeasureError, match="gzip"):
        load(tmp_path, gzip.compress(whole)[:-20], "b.sqlite.gz")


def test_an_export_in_progress_is_refused(tmp_path: Path) -> None:
    path = nsys_sqlite(tmp_path / "a.sqlite", LAUNCHES)
    (tmp_path / "a.sqlite-journal").write_bytes(b"x")
    with pytest.raises(MeasureError, match=r"a.sqlite-journal"):
        read(path)


def test_a_newer_report_beside_it_is_said(tmp_path: Path) -> None:
    path = nsys_sqlite(tmp_path / "a.sqlite", LAUNCHES)
    report = tmp_path / "a.nsys-rep"
    report.write_bytes(b"x")
    os.utime(report, (path.stat().st_mtime + 60,) * 2)
    assert any("a.nsys-rep beside it is newer" in warning for warning in read(path).warnings)
    os.utime(report, (path.stat().st_mtime - 60,) * 2)
    assert read(path).warnings == ()


def test_two_gpus_by_cuda_device(tmp_path: Path) -> None:
    path = nsys_sqlite(tmp_path / "a.sqlite", [{"name": FA3}, {"name": FA3, "deviceId": 1}])
    with sqlite3.connect(path) as database:
        database.execute("INSERT INTO TARGET_INFO_GPU VALUES (1, 1, 'NVIDIA H20', NULL)")
    database.close()
    found = read(path)
    assert [launch.gpu for launch in found.launches] == ["NVIDIA H800", "NVIDIA H20"]
    assert found.gpu is None
