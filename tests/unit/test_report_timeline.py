"""Timelines: reading, cutting, the Gantt chart and Chrome trace events."""

import json

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner

from simfa.cli import simfa
from simfa.errors import ReportError
from simfa.report.chrome import MAX_SLICES, chrome_json
from simfa.report.gantt import gantt_chart, main_loop_window
from simfa.timeline import read_timeline
from tests.unit.fake_timeline import write_timeline


@pytest.fixture
def path(tmp_path):
    return write_timeline(tmp_path / "timeline.npz", iterations=12, sms=2)


def test_read_and_cut(path) -> None:
    timeline = read_timeline(path)
    assert len(timeline) == 2 * 12 * 7
    assert timeline.sm_clock_hz == 1.5e9
    assert timeline.meta == {"cycles": 12000}
    assert len(timeline.sm(1)) == 12 * 7
    # Cycles 1000 to 1400 of each SM: all of turn 1 but consumer 2's softmax and the O group.
    assert len(timeline.window(1000, 1400)) == 2 * 4


def test_unrecorded_sm(path) -> None:
    with pytest.raises(ReportError, match="SM 7 was not recorded; the timeline holds sm0, sm1"):
        read_timeline(path).sm(7)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"track": np.zeros(3, np.int32)}, "differ in length"),
        ({"track": np.full(84, 99, np.int32)}, "names a track or a label that does not exist"),
        ({"end_cycle": np.full(84, -1, np.int64)}, "ends before it starts"),
    ],
)
def test_arrays_that_do_not_fit(tmp_path, changes, message) -> None:
    with pytest.raises(ReportError, match=message):
        read_timeline(write_timeline(tmp_path / "t.npz", **changes))


def test_files_that_are_no_timeline(tmp_path) -> None:
    for content in (b"PK but not a zip", b"some text\n", b""):
        (tmp_path / "t.npz").write_bytes(content)
        with pytest.raises(
            ReportError, match=r"not a timeline\.npz; expected what simulate or predict --timeline wrote"
        ):
            read_timeline(tmp_path / "t.npz")
    np.savez(tmp_path / "u.npz", track=np.zeros(1))
    with pytest.raises(ReportError, match="array track_name, slice_name"):
        read_timeline(tmp_path / "u.npz")
    with pytest.raises(ReportError, match="cannot be read"):
        read_timeline(tmp_path / "none.npz")


@pytest.mark.parametrize("seed", range(20))
def test_a_damaged_file_is_one_message(path, seed) -> None:
    # Written as `save` does; fifty bytes in the packed arrays turned over.
    read_timeline(path).save(path)
    data = bytearray(path.read_bytes())
    for place in np.random.default_rng(seed).integers(100, len(data) // 2, 50).tolist():
        data[place] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(ReportError, match=rf"{path.name}: (damaged, record it again|not a timeline|array )"):
        read_timeline(path)


def test_window_counts_iterations(path, tmp_path) -> None:
    timeline = read_timeline(path)
    assert main_loop_window(timeline, "sm0") == (3000, 9000)
    assert main_loop_window(timeline, "sm0", 20) == (1000, 11000)
    assert main_loop_window(timeline, "sm9") == (0, 12000)
    assert main_loop_window(read_timeline(write_timeline(tmp_path / "short.npz", iterations=3)), "sm0") == (1000, 2000)
    with pytest.raises(ReportError, match="the timeline holds no slice"):
        main_loop_window(timeline.window(90000, 90001), "sm0")


def test_window_goes_by_the_turns_of_the_tensor_pipe(path) -> None:
    timeline = read_timeline(path)
    # The pipe works for the first consumer in both halves of a turn, and begins a little after softmax.
    pipe = timeline.track == timeline.track_name.index("sm0/tensor")
    start = np.where(pipe, timeline.start_cycle + 10, timeline.start_cycle)
    changed = msgspec.structs.replace(timeline, arg=np.where(pipe, 1, timeline.arg), start_cycle=start)
    assert main_loop_window(changed, "sm0", 3) == (5010, 8010)
    # The last three turns take twice as long: five of the eight stretches are as before, and one of them is shown.
    slow = np.where(pipe & (start > 9000), 2 * start, start)
    changed = msgspec.structs.replace(changed, start_cycle=slow)
    assert main_loop_window(changed, "sm0", 3) == (3010, 6010)


def test_gantt_is_a_png_and_deterministic(path) -> None:
    timeline = read_timeline(path)
    first = gantt_chart(timeline, "sm0")
    assert first.startswith(b"\x89PNG")
    assert first == gantt_chart(timeline, "sm0")
    assert first != gantt_chart(timeline, "sm0", (0, 4000))


def test_gantt_of_an_empty_window(path) -> None:
    with pytest.raises(ReportError, match="SM 0 has no slice between cycles 50000 and 60000"):
        gantt_chart(read_timeline(path), "sm0", (50000, 60000))


def test_chrome_events_keep_cycles_and_names(path) -> None:
    events = json.loads(chrome_json(read_timeline(path)))["traceEvents"]
    threads = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert sorted(threads.values()) == sorted(["producer", "consumer1", "consumer2", "tensor", "tma"] * 2)
    slices = [event for event in events if event["ph"] == "X"]
    assert len(slices) == 2 * 12 * 7
    (event,) = [e for e in slices if e["name"] == "K" and e["pid"] == 1 and e["args"]["start_cycle"] == 3100]
    assert threads[event["pid"], event["tid"]] == "tma"
    assert (event["args"]["cycles"], event["args"]["ordinal"]) == (200, 3)
    # 3100 cycles at 1.5 GHz.
    assert event["ts"] == pytest.approx(3100 / 1500)


def test_chrome_refuses_what_viewers_cannot_open(tmp_path) -> None:
    many = MAX_SLICES // 7 + 1
    with pytest.raises(ReportError, match="too many for Chrome JSON"):
        chrome_json(read_timeline(write_timeline(tmp_path / "big.npz", iterations=many)))


def run(*arguments: str, code: int = 0):
    done = CliRunner().invoke(simfa, ["timeline", *arguments], catch_exceptions=False)
    assert done.exit_code == code, done.output
    return done


def test_command_writes_both_formats(path, tmp_path) -> None:
    run(str(tmp_path), "-o", str(tmp_path / "g.png"), "--window", "0:3000")
    assert (tmp_path / "g.png").read_bytes().startswith(b"\x89PNG")
    run(str(path), "-o", str(tmp_path / "g.json"), "--sm", "1", "--window", "0:1000")
    events = json.loads((tmp_path / "g.json").read_text())["traceEvents"]
    assert {event["pid"] for event in events} == {1}
    assert len([event for event in events if event["ph"] == "X"]) == 7
    assert (tmp_path / "g.json.manifest.json").is_file()


def test_command_usage_errors(path, tmp_path) -> None:
    assert "expected BEGIN:END in cycles" in run(str(path), "-o", "x.png", "--window", "9:3", code=2).stderr
    assert "give --format" in run(str(path), "-o", str(tmp_path / "x.txt"), code=2).stderr
