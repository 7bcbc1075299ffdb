"""PyTorch profiler traces: microseconds always, streamed, kernels only."""

import gzip
import json
import tracemalloc
from pathlib import Path

import pytest
from measure_exports import API_EVENT, COMBINE, CPU_EVENT, FA3, kernel_event, kineto, load, one, options, said, save

from simfa.errors import MeasureError
from simfa.measure.reader import read

EVENTS = [CPU_EVENT, API_EVENT, kernel_event(), kernel_event(COMBINE, "1712345678901600", "2.5")]


@pytest.mark.parametrize("as_list", [False, True])
def test_kernels_with_exact_ns(tmp_path: Path, as_list: bool) -> None:
    found = load(tmp_path, kineto(EVENTS, as_list), "trace.json", stated=said(gpu="NVIDIA H100"))
    launch = one(found)
    assert (launch.start_ns, launch.duration_ns, launch.quantisation) == (1712345678901234500, 305_120, {})
    assert (launch.grid, launch.block, launch.stream, launch.device) == ((132, 1, 1), (384, 1, 1), 7, 0)
    assert (launch.kernel, launch.kernel_demangled, launch.launch_id) == ("device_kernel", FA3, "55")
    assert launch.gpu == ("NVIDIA H100" if as_list else "NVIDIA H100 80GB HBM3")
    assert found.format == "kineto-json"


@pytest.mark.parametrize("unit", ["ns", "ms"])
def test_display_unit_changes_nothing(tmp_path: Path, unit: str) -> None:
    text = kineto(EVENTS).replace('"displayTimeUnit": "ms"', f'"displayTimeUnit": "{unit}"')
    assert one(load(tmp_path, text)).duration_ns == 305_120


def test_whole_microseconds_are_open_by_one(tmp_path: Path) -> None:
    found = load(tmp_path, kineto([kernel_event(ts="1712345678901234", dur="7"), kernel_event(ts="5", dur="0")]))
    assert [launch.quantisation["duration_ns"] for launch in found.launches] == [(0, 1000), (6000, 8000)]
    assert any("whole µs" in warning for warning in found.warnings)


def test_whole_but_long_durations_need_no_warning(tmp_path: Path) -> None:
    assert load(tmp_path, kineto([kernel_event(dur="900")])).warnings == ()


def test_ns_written_as_microseconds_is_suspected(tmp_path: Path) -> None:
    found = load(tmp_path, kineto([kernel_event(dur="1305120.0")]))
    assert any("ns where µs belong" in warning for warning in found.warnings)


def test_old_capitalised_category(tmp_path: Path) -> None:
    assert one(load(tmp_path, kineto([kernel_event() | {"cat": "Kernel"}]))).duration_ns == 305_120


def test_cpu_and_api_events_are_no_gpu_work(tmp_path: Path) -> None:
    with pytest.raises(MeasureError, match=r"2 events and no GPU kernel.*ProfilerActivity.CUDA"):
        load(tmp_path, kineto([CPU_EVENT, API_EVENT]))


def test_json_that_is_no_trace(tmp_path: Path) -> None:
    with pytest.raises(MeasureError, match="traceEvents"):
        load(tmp_path, '{"a": 1}', "x.json")
    with pytest.raises(MeasureError, match="no known export"):
        load(tmp_path, '{"Type": 80}\n{"Type": 81}\n', "x.jsonl")


def test_bad_events_are_listed(tmp_path: Path) -> None:
    bad = [kernel_event() | {"dur": "305"}, kernel_event() | {"dur": -1}, kernel_event() | {"name": 7}]
    bad += [kernel_event(dur="1e999"), {k: v for k, v in kernel_event().items() if k != "dur"}]
    found = load(tmp_path, kineto([*bad, kernel_event()]))
    assert one(found).source_row == 5
    assert any("5 rows dropped: event 0 (dur is '305'" in warning for warning in found.warnings)


def test_all_events_bad_says_why(tmp_path: Path) -> None:
    with pytest.raises(MeasureError, match=r"1 row dropped: event 0 \(dur is 'x'"):
        load(tmp_path, kineto([kernel_event() | {"dur": "x"}]))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize("text", ['{"traceEvents":' + "[" * 9000, '[{"ph":"X","ts":' + "9" * 5000 + "}]"])
def test_what_would_crash_the_parser_is_refused(tmp_path: Path, text: str, encoding: str) -> None:
    with pytest.raises(MeasureError, match="cannot be read after event 0"):
        load(tmp_path, text.encode(encoding))


def test_odd_arguments_are_missing_not_wrong(tmp_path: Path) -> None:
    launch = one(
        load(tmp_path, kineto([kernel_event(grid=[1, 2], block="x", device=-1, stream=True, correlation="y")]))
    )
    assert (launch.grid, launch.block, launch.device, launch.stream, launch.launch_id) == (None, None, None, None, "0")


def test_a_trace_that_ends_early_keeps_whole_events(tmp_path: Path) -> None:
    text = kineto([kernel_event(ts=str(n)) for n in range(5)])
    found = load(tmp_path, text[: text.rindex('"args"')])
    assert [launch.start_ns for launch in found.launches] == [0, 1000, 2000, 3000]
    assert any("ends early, after event 4" in warning for warning in found.warnings)


def test_malformed_json_says_where(tmp_path: Path) -> None:
    text = kineto([kernel_event(), kernel_event()])
    with pytest.raises(MeasureError, match="malformed JSON after event 1"):
        load(tmp_path, text.replace("},\n{", "},,\n{"))


def test_gzip_whole_and_cut(tmp_path: Path) -> None:
    events = [kernel_event(ts=str(n), correlation=n * 7919 % 997) for n in range(400)]
    packed = gzip.compress(kineto(events).encode())
    assert len(load(tmp_path, packed, "trace.json.gz").launches) == 400
    found = load(tmp_path, packed[: len(packed) * 3 // 4], "cut.json.gz")
    assert 0 < len(found.launches) < 400
    assert any("gzip data ends early" in warning for warning in found.warnings)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_encodings(tmp_path: Path, encoding: str) -> None:
    assert one(load(tmp_path, kineto(EVENTS).encode(encoding))).duration_ns == 305_120


def test_memory_does_not_grow_with_what_is_left_out(tmp_path: Path) -> None:
    def peak(copies: int) -> int:
        filler = [CPU_EVENT | {"args": {"Call stack": "x" * 400}}] * 500
        path = save(tmp_path, kineto([*filler * copies, kernel_event()]), f"{copies}.json")
        tracemalloc.start()
        assert one(read(path, choice=options(kernel="device_kernel"))).duration_ns == 305_120
        highest = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return highest

    peak(1)
    assert peak(16) < peak(4) * 1.5


def test_numbers_keep_their_digits(tmp_path: Path) -> None:
    launch = one(
        load(tmp_path, json.dumps([json.loads(kineto([kernel_event(ts="12.001", dur="0.001")], as_list=True))[0]]))
    )
    assert (launch.start_ns, launch.duration_ns) == (12_001, 1)
