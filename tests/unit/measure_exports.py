"""Exports in the shapes the profilers write, with invented values: builders for the measurement tests."""

import csv
import io
import json
import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from simfa.measure.launch import NULLABLE, Launch
from simfa.measure.reader import Choice, Measurements, Stated, read

FA3 = (
    "void cutlass::device_kernel<flash::enable_sm90<flash::FlashAttnFwdSm90<flash::CollectiveMainloopFwdSm90<(int)2, "
    "cute::tuple<cute::C<(int)2>, cute::C<(int)1>, cute::C<(int)1> >, (bool)0>, "
    "flash::CollectiveEpilogueFwd<(int)128>, flash::SingleTileScheduler<(bool)0> > > >(T1::Params)"
)
FA3_NCU = (
    "void device_kernel<enable_sm90<FlashAttnFwdSm90<CollectiveMainloopFwdSm90<2, tuple<C<2>, C<1>, C<1>>, 0>, "
    "CollectiveEpilogueFwd<128>, SingleTileScheduler<0>>>>(T1::Params)"
)
COMBINE = "void cutlass::device_kernel<flash::FlashAttnFwdCombine<cute::tuple<cute::C<8> >, (int)128> >(T1::Params)"
GEMM = "void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cute::tuple<int> > >(T1::Params)"

IDENTITY = {
    "ID": "0",
    "Process ID": "4242",
    "Process Name": "python3.12",
    "Host Name": "secret-host",
    "Kernel Name": FA3_NCU,
    "Context": "1",
    "Stream": "7",
    "Block Size": "(384, 1, 1)",
    "Grid Size": "(132, 1, 1)",
    "Device": "0",
    "CC": "9.0",
}
DETAILS_20 = (
    *IDENTITY, "Section Name", "Metric Name", "Metric Unit", "Metric Value",
    "Rule Name", "Rule Type", "Rule Description", "Estimated Speedup Type", "Estimated Speedup",
)  # fmt: skip
DETAILS_21 = (*DETAILS_20[:12], "Body Item Label", *DETAILS_20[12:])
DETAILS_15 = (
    "ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Kernel Time", "Context", "Stream",
    "Section Name", "Metric Name", "Metric Unit", "Metric Value", "Rule Name", "Rule Type", "Rule Description",
)  # fmt: skip
DETAILS_12 = DETAILS_15[:12]
SUMMARY = (
    "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size", "Grid Size",
    "Device", "CC", "Invocations", "Section Name", "Metric Name", "Metric Unit", "Minimum", "Maximum", "Average",
)  # fmt: skip

PRELUDE = (
    "step 0 loss 1.25",
    "==PROF== Connected to process 4242 (/home/secret-user/bin/python3.12)",
    '==PROF== Profiling "device_kernel" - 0 (1/1): 0%....50%....100% - 42 passes',
)
TRAILER = ("==PROF== Disconnected from process 4242", 'he said "done', "==PROF== Report: /home/secret-user/fa3.ncu-rep")

# Counter, unit and value of one launch in base units; what a full Hopper capture holds of interest.
HOPPER = (
    ("gpu__time_duration.sum", "ns", "305120"),
    ("gpc__cycles_elapsed.max", "cycle", "457680"),
    ("sm__cycles_elapsed.avg.per_second", "hz", "1500000000"),
    ("dram__bytes_read.sum", "byte", "50331648"),
    ("dram__bytes_write.sum", "byte", "20971520"),
    ("l1tex__m_xbar2l1tex_read_bytes.sum", "byte", "612368384"),
    ("l1tex__m_l1tex2xbar_write_bytes.sum", "byte", "33554432"),
    ("l1tex__m_xbar2l1tex_read_bytes_mem_dshared.sum", "byte", "1024"),
    ("l1tex__m_l1tex2xbar_write_bytes_mem_dshared.sum", "byte", "2048"),
    ("lts__t_sectors_srcunit_tex.sum", "sector", "11534336"),
    ("lts__t_sectors.sum", "sector", "19000000"),
    ("lts__t_sector_hit_rate.pct", "%", "90.7"),
    ("sm__inst_executed_pipe_tensor_op_gmma.avg.pct_of_peak_sustained_active", "%", "71.25"),
)
HOPPER_VALUES = {
    "duration_ns": 305120,
    "elapsed_cycles": 457680,
    "sm_clock_hz": 1500000000,
    "dram_read_bytes": 50331648,
    "dram_write_bytes": 20971520,
    "dram_total_bytes": 50331648 + 20971520,
    "l2_bytes": 612368384 + 33554432 - 1024 - 2048,
    "l2_definition": "sm_side",
    "l2_hit_pct": 90.7,
    "tensor_pipe_pct": 71.25,
}


def save(folder: Path, text: str | bytes, name: str = "export.txt") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def load(folder: Path, text: str | bytes, name: str = "export.txt", **options: Any) -> Measurements:
    """Write an export and read it; every null must come with a reason."""
    found = read(save(folder, text, name), **options)
    for launch in found.launches:
        complain_of_unexplained(launch)
    return found


def one(found: Measurements) -> Launch:
    assert len(found.launches) == 1, found
    return found.launches[0]


def complain_of_unexplained(launch: Launch) -> None:
    for column in NULLABLE:
        value = getattr(launch, column)
        assert (value is None) == bool(launch.missing.get(column)), (column, value, launch.missing)


def csv_text(rows: Iterable[Sequence[str]], quoting: Any = csv.QUOTE_ALL, end: str = "\n") -> str:
    handle = io.StringIO()
    csv.writer(handle, quoting=quoting, lineterminator=end).writerows(rows)
    return handle.getvalue()


def details_rows(
    columns: Sequence[str] = DETAILS_20, metrics: Iterable[tuple[str, str, str]] = HOPPER, **identity: str
) -> list[list[str]]:
    """Rows of a details page without its header: metric rows as ragged as ncu writes them, and a rule row."""
    known = (
        IDENTITY
        | {"Kernel Time": "2021-Mar-03 10:11:12"}
        | {key.replace("_", " "): text for key, text in identity.items()}
    )
    rule_at = columns.index("Rule Name") if "Rule Name" in columns else len(columns)
    rows = []
    for name, unit, value in metrics:
        cells = known | {"Section Name": "Command line profiler metrics"}
        cells |= {"Metric Name": name, "Metric Unit": unit, "Metric Value": value}
        row = [cells.get(column, "") for column in columns[:rule_at]]
        rows.append([*row, ""] if rule_at < len(columns) else row)
    if rule_at < len(columns):
        cells = known | {"Section Name": "SpeedOfLight", "Rule Name": "SOLBottleneck", "Rule Type": "OPT"}
        cells |= {"Rule Description": 'Use "more", smaller tiles', "Estimated Speedup": "3.5"}
        rows.append([cells.get(column, "") for column in columns])
    return rows


def details(
    columns: Sequence[str] = DETAILS_20, metrics: Iterable[tuple[str, str, str]] = HOPPER, **identity: str
) -> str:
    return csv_text([columns, *details_rows(columns, metrics, **identity)])


def raw_rows(
    metrics: Iterable[tuple[str, str, str]] = HOPPER, extra: Sequence[str] = (), **identity: str
) -> list[list[str]]:
    """Header, units and one launch of a raw page; `extra` columns (NVTX) stand before the kernel's name."""
    known = IDENTITY | {key.replace("_", " "): text for key, text in identity.items()}
    names = [*list(IDENTITY)[:4], *extra, *list(IDENTITY)[4:]]
    metrics = list(metrics)
    return [
        [*names, *(name for name, _, _ in metrics)],
        ["" for _ in names] + [unit for _, unit, _ in metrics],
        [known.get(name, "range") for name in names] + [value for _, _, value in metrics],
    ]


def with_log(text: str) -> str:
    return "\n".join(PRELUDE) + "\n" + text + "\n".join(TRAILER) + "\n"


def text_page(metrics: Iterable[tuple[str, str, str]] = HOPPER, heading: str = "", titles: bool = True) -> str:
    """One launch as ncu prints it without --csv."""
    metrics = list(metrics)
    names = ("Metric Name", "Metric Unit", "Metric Value")
    widths = [max(len(row[column]) for row in [*metrics, names]) for column in range(3)]
    dashes = "    " + " ".join("-" * width for width in widths)
    lines = ["[4242] python3.12@127.0.0.1"]
    lines.append(heading or f"  {FA3_NCU} (132, 1, 1)x(384, 1, 1), Context 1, Stream 7, Device 0, CC 9.0")
    lines += ["    Section: Command line profiler metrics", dashes]
    if titles:
        lines += ["    " + " ".join(name.ljust(width) for name, width in zip(names, widths, strict=True)), dashes]
    for name, unit, value in metrics:
        lines.append(f"    {name.ljust(widths[0])} {unit.rjust(widths[1])} {value.rjust(widths[2])}")
    return "\n".join([*lines, dashes, "", "    OPT   Use more, smaller tiles.", ""]) + "\n"


NSYS_BASE = (
    "start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid", "demangledName", "shortName",
    "mangledName", "launchType", "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ", "staticSharedMemory",
    "dynamicSharedMemory", "registersPerThread", "graphNodeId",
)  # fmt: skip
CLUSTER_COLUMNS = ("graphId", "clusterX", "clusterY", "clusterZ", "clusterSchedulingPolicy", "maxPotentialClusterSize")


def nsys_sqlite(
    path: Path,
    launches: Sequence[dict[str, Any]],
    *,
    schema: str | None = "3.17.0",
    meta: str = "META_DATA_EXPORT",
    columns: Sequence[str] = NSYS_BASE,
    table: str = "CUPTI_ACTIVITY_KIND_KERNEL",
    gpu: str | None = "NVIDIA H800",
    graphs: int = 0,
    api: bool = True,
) -> Path:
    """Write an Nsight Systems export; a launch gives `name` and any of the columns."""
    path.unlink(missing_ok=True)
    database = sqlite3.connect(path)
    strings: dict[str, int] = {}

    def identifier(text: str) -> int:
        return strings.setdefault(text, len(strings) + 10)

    if launches or table != "CUPTI_ACTIVITY_KIND_KERNEL":
        database.execute(f"CREATE TABLE {table} ({', '.join(f'{column} INTEGER' for column in columns)})")
    rows = []
    for index, launch in enumerate(launches):
        short = launch.get("name", "flash_fwd_kernel").split("<")[0].split("::")[-1].split(" ")[-1]
        row = {
            "start": 1000 * index, "end": 1000 * index + 500, "deviceId": 0, "contextId": 1, "streamId": 7,
            "correlationId": 100 + index, "globalPid": 7, "gridX": 132, "gridY": 1, "gridZ": 1, "blockX": 384,
            "blockY": 1, "blockZ": 1, "clusterX": 2, "clusterY": 1, "clusterZ": 1,
            "demangledName": identifier(launch.get("name", "flash_fwd_kernel")), "shortName": identifier(short),
        }  # fmt: skip
        row |= {key: value for key, value in launch.items() if key != "name"}
        rows.append([row.get(column) for column in columns])
    if rows:
        database.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(columns))})", rows)
    if api:
        database.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, nameId INTEGER)")
        database.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (0, 900000000, 10)")
    if graphs:
        database.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER, end INTEGER, graphId INTEGER)")
        database.executemany(
            "INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (?, ?, 1)", [(i, i + 1) for i in range(graphs)]
        )
    database.execute("CREATE TABLE StringIds (id INTEGER, value TEXT)")
    database.executemany("INSERT INTO StringIds VALUES (?, ?)", [(number, text) for text, number in strings.items()])
    database.execute("CREATE TABLE ENUM_CUDA_KRENEL_LAUNCH_TYPE (id INTEGER, name TEXT)")
    if schema:
        facts = [
            ("EXPORT_SCHEMA_VERSION", schema),
            ("EXPORT_PRODUCT_VERSION", "2025.1.1"),
            ("EXPORT_PARAM_OUTUPT", "x"),
        ]
        database.execute(f"CREATE TABLE {meta} (name TEXT, value TEXT)")
        database.executemany(f"INSERT INTO {meta} VALUES (?, ?)", facts)
    database.execute("CREATE TABLE META_DATA_CAPTURE (name TEXT, value TEXT)")
    database.execute("INSERT INTO META_DATA_CAPTURE VALUES ('ENV_HOME', '/home/secret-user')")
    database.execute("CREATE TABLE TARGET_INFO_SYSTEM_ENV (name TEXT, value TEXT)")
    database.execute("INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES ('Hostname', 'secret-host')")
    if gpu:
        database.execute("CREATE TABLE TARGET_INFO_GPU (id INTEGER, cuDevice INTEGER, name TEXT, totalMemory INTEGER)")
        database.execute("INSERT INTO TARGET_INFO_GPU VALUES (0, 0, ?, NULL)", (gpu,))
    database.commit()
    database.close()
    return path


NSYS_SUMMARY = (
    "Time (%)",
    "Total Time (ns)",
    "Instances",
    "Avg (ns)",
    "Med (ns)",
    "Min (ns)",
    "Max (ns)",
    "StdDev (ns)",
    "Name",
)
NSYS_TRACE = (
    "Start (ns)", "Duration (ns)", "CorrId", "GrdX", "GrdY", "GrdZ", "BlkX", "BlkY", "BlkZ", "Reg/Trd", "StcSMem (MB)",
    "DymSMem (MB)", "Bytes (MB)", "Throughput (MB/s)", "SrcMemKd", "DstMemKd", "Device", "Ctx", "GreenCtx", "Strm",
    "Name",
)  # fmt: skip


def trace_row(start: str = "1000", duration: str = "305120", name: str = FA3, corr: str = "55") -> list[str]:
    return [start, duration, corr, "132", "1", "1", "384", "1", "1", "168", "0.001", "0.2", "", "", "", "",
            "NVIDIA H800 (0)", "1", "", "7", name]  # fmt: skip


COPY_ROW = [
    "900",
    "80",
    "54",
    *[""] * 9,
    "8.389",
    "25000.0",
    "Device",
    "Pageable",
    "NVIDIA H800 (0)",
    "1",
    "",
    "7",
    "[CUDA memcpy Device-to-Host]",
]


def console(
    titles: Sequence[str], rows: Sequence[Sequence[str]], title: str = "CUDA GPU Kernel Summary (cuda_gpu_kern_sum)"
) -> str:
    """A table as `nsys stats` prints it: right-aligned columns under dashes, names last."""
    widths = [max(len(row[column]) for row in [titles, *rows]) for column in range(len(titles))]
    lines = [
        f" ** {title}:",
        "",
        " " + "  ".join(text.center(width) for text, width in zip(titles, widths, strict=True)).rstrip(),
    ]
    lines.append(" " + "  ".join("-" * width for width in widths))
    for row in rows:
        cells = [text.rjust(width) for text, width in zip(row[:-1], widths[:-1], strict=True)]
        lines.append(" " + "  ".join([*cells, row[-1]]))
    return "\n".join(lines) + "\n\n"


def kernel_event(
    name: str = FA3, ts: str = "1712345678901234.500", dur: str = "305.120", **args: Any
) -> dict[str, Any]:
    """A Kineto kernel event; `ts` and `dur` go into the JSON as they are written."""
    known = {"External id": 5, "device": 0, "context": 1, "stream": 7, "correlation": 55, "registers per thread": 168}
    known |= {"grid": [132, 1, 1], "block": [384, 1, 1]} | args
    return {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": Raw(ts), "dur": Raw(dur), "args": known}


class Raw(str):
    """Digits that go into JSON unquoted and unchanged."""


CPU_EVENT = {
    "ph": "X",
    "cat": "cpu_op",
    "name": "aten::scaled_dot_product_attention",
    "pid": 9,
    "tid": 9,
    "ts": 1,
    "dur": 900000,
}
API_EVENT = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 9, "ts": 2, "dur": 500000}


def kineto(events: Sequence[Any], as_list: bool = False, gpu: str | None = "NVIDIA H100 80GB HBM3") -> str:
    def encode(event: Any) -> str:
        marks: dict[str, str] = {}

        def mark(value: Any) -> Any:
            if isinstance(value, Raw):
                key = f"@{len(marks)}@"
                marks[key] = str(value)
                return key
            return {k: mark(v) for k, v in value.items()} if isinstance(value, dict) else value

        text = json.dumps(mark(event))
        for key, digits in marks.items():
            text = text.replace(f'"{key}"', digits)
        return text

    listed = "[\n" + ",\n".join(encode(event) for event in events) + "\n]"
    if as_list:
        return listed + "\n"
    devices = f'"deviceProperties": [{json.dumps({"id": 0, "name": gpu, "totalGlobalMem": 1})}],\n' if gpu else ""
    return (
        '{\n"schemaVersion": 1,\n'
        + devices
        + '"displayTimeUnit": "ms",\n"traceEvents": '
        + listed
        + ',\n"traceName": "/home/secret-user/t.json"\n}\n'
    )


def options(**choice: Any) -> Choice:
    return Choice(**choice)


def said(**facts: Any) -> Stated:
    return Stated(**facts)
