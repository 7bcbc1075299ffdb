"""Timelines written for viewers and notebooks, and read back: Perfetto, Chrome, Parquet, NPZ, SVG."""

import json

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner

from simfa.cli import simfa
from simfa.errors import ReportError
from simfa.report.gantt import gantt_chart
from simfa.report.selection import of_places, of_tiles
from simfa.report.slice_table import slice_frame
from simfa.simulate import _core, perfetto
from simfa.timeline import Timeline, read_timeline
from simfa.timeline_lanes import laned
from tests.unit import trace_reader
from tests.unit.fake_timeline import write_timeline

COUNTERS = {
    "counter_name": ["chip/l2_hit_rate", "sm1/lines_in_flight"],
    "counter_unit": ["fraction", "lines"],
    "counter_cycle": np.array([0, 3000]),
    "counter_value": np.array([[np.nan, 0.75], [0.0, 384.0]]),
}


@pytest.fixture
def path(tmp_path):
    return write_timeline(tmp_path / "timeline.npz", iterations=12, sms=2, **COUNTERS)


def small(slices, tracks=("sm0/tma",), names=("K", "V"), **fields) -> Timeline:
    """Return a timeline of (track, name, start, end, arg) rows at 1 GHz, so that a cycle is 1 ns."""
    columns = np.array(slices, np.int64).reshape(-1, 5).T
    return Timeline(
        track_name=list(tracks),
        slice_name=list(names),
        track=columns[0].astype(np.int32),
        name=columns[1].astype(np.int32),
        start_cycle=columns[2].copy(),
        end_cycle=columns[3].copy(),
        arg=columns[4].astype(np.int32),
        sm_clock_hz=1e9,
        **fields,
    )


def test_perfetto_trace_reads_back(path) -> None:
    timeline = read_timeline(path)
    slices, samples = trace_reader.read(b"".join(perfetto.perfetto_trace(timeline)))
    assert len(slices) == len(timeline)
    written = {
        (*place_and_unit(timeline.track_name[track]), timeline.slice_name[name], start, end - start, arg)
        for track, name, start, end, arg in zip(
            *(getattr(timeline, column).tolist() for column in ("track", "name", "start_cycle", "end_cycle", "arg")),
            strict=True,
        )
    }
    read = {
        (*found.rows, found.name, found.arguments["start_cycle"], found.arguments["cycles"], found.arguments["ordinal"])
        for found in slices
    }
    assert read == written
    # 3100 cycles at 1.5 GHz are 2066.67 ns, 3300 are 2200 ns.
    (load,) = [s for s in slices if s.rows == ("SM 1", "tma") and s.arguments["start_cycle"] == 3100]
    assert (load.name, load.start_ns, load.end_ns) == ("K", 2067, 2200)
    # The rate that had nothing to count has no sample.
    assert samples == [
        trace_reader.Sample(("chip", "l2_hit_rate"), "fraction", 2000, 0.75),
        trace_reader.Sample(("SM 1", "lines_in_flight"), "lines", 0, 0.0),
        trace_reader.Sample(("SM 1", "lines_in_flight"), "lines", 2000, 384.0),
    ]


def place_and_unit(track: str) -> tuple[str, str]:
    place, _, unit = track.partition("/")
    return f"SM {place.removeprefix('sm')}", unit


def test_perfetto_is_what_perfetto_s_own_classes_read(path) -> None:
    trace = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2", reason="needs perfetto")
    parsed = trace.Trace.FromString(b"".join(perfetto.perfetto_trace(read_timeline(path))))
    events = [packet.track_event for packet in parsed.packet if packet.HasField("track_event")]
    assert [event.type for event in events].count(trace.TrackEvent.TYPE_SLICE_BEGIN) == 2 * 12 * 7
    assert [event.double_counter_value for event in events if event.type == trace.TrackEvent.TYPE_COUNTER] == [
        0.75,
        0,
        384,
    ]
    tracks = {p.track_descriptor.uuid: p.track_descriptor for p in parsed.packet if p.HasField("track_descriptor")}
    assert {event.track_uuid for event in events} <= set(tracks)
    assert [track.name for track in tracks.values() if not track.parent_uuid] == ["chip", "SM 1", "SM 0"]
    assert parsed.packet[0].sequence_flags == trace.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED


def test_perfetto_chunks_do_not_change_a_byte(path, monkeypatch) -> None:
    timeline = read_timeline(path)
    whole = b"".join(perfetto.perfetto_trace(timeline))
    monkeypatch.setattr(perfetto, "CHUNK_SLICES", 5)
    assert b"".join(perfetto.perfetto_trace(timeline)) == whole


def test_perfetto_numbers_of_any_size() -> None:
    timeline = small([(0, 1, 0, 127, -1), (0, 0, 128, 1 << 40, 2**31 - 1)])
    slices, _ = trace_reader.read(b"".join(perfetto.perfetto_trace(timeline)))
    assert [(s.name, s.start_ns, s.end_ns) for s in slices] == [("V", 0, 127), ("K", 128, 1 << 40)]
    assert slices[0].arguments["ordinal"] == 2**64 - 1  # -1, as int64 is encoded
    assert slices[1].arguments == {"start_cycle": 128, "cycles": (1 << 40) - 128, "ordinal": 2**31 - 1}


def test_perfetto_refuses_columns_that_do_not_fit() -> None:
    three, two = np.zeros(3, np.int32), np.zeros(2, np.int32)
    with pytest.raises(ValueError, match="arrays of one length"):
        _core.perfetto_slices(three, two, np.zeros(3, np.int64), np.zeros(3, np.int64), three, 1.0)


def test_overlapping_slices_get_lanes() -> None:
    loads = small([(0, 0, 0, 10, 0), (0, 1, 5, 20, 0), (0, 0, 10, 15, 1), (0, 1, 12, 30, 1), (0, 0, 40, 50, 2)])
    rows = laned(loads)
    assert rows.track_name == ["sm0/tma", "sm0/tma (2)", "sm0/tma (3)"]
    assert rows.track.tolist() == [0, 1, 0, 2, 0]
    apart = small([(0, 0, 0, 10, 0), (0, 1, 10, 20, 0)])
    assert laned(apart).track_name == apart.track_name


def test_npz_keeps_everything(path, tmp_path) -> None:
    timeline = read_timeline(path)
    timeline.save(tmp_path / "again.npz")
    again = read_timeline(tmp_path / "again.npz")
    first, second = msgspec.structs.asdict(timeline), msgspec.structs.asdict(again)
    assert first.keys() == second.keys()
    for name in first:
        np.testing.assert_array_equal(first[name], second[name])


def test_counters_that_do_not_fit(tmp_path) -> None:
    wrong = COUNTERS | {"counter_value": np.zeros((2, 3))}
    with pytest.raises(ReportError, match=r"counter_value has shape \(2, 3\); expected counters x samples"):
        read_timeline(write_timeline(tmp_path / "t.npz", **wrong))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"meta": np.array("{")}, "damaged, record it again: Expecting property name"),
        ({"meta": np.array("[]")}, "meta is no JSON object"),
        ({"sm_clock_hz": np.float64(0)}, r"sm_clock_hz is 0\.0; expected a clock above zero"),
        ({"sm_clock_hz": np.float64("nan")}, "sm_clock_hz is nan; expected a clock above zero"),
        ({"track": np.zeros((2, 2), np.int32)}, "array track has 2 dimensions of int32"),
        ({"arg": np.array(["x"])}, "array arg has 1 dimensions of <U1"),
        ({"name": np.int32(3)}, "array name has 0 dimensions of int32"),
    ],
)
def test_arrays_that_are_no_timeline_s(path, tmp_path, changes, message) -> None:
    with np.load(path) as arrays:
        np.savez(tmp_path / "t.npz", **{**arrays, **changes})
    with pytest.raises(ReportError, match=message):
        read_timeline(tmp_path / "t.npz")


def test_files_that_are_no_archive(path, tmp_path) -> None:
    np.save(tmp_path / "one.npy", np.zeros(3))
    (tmp_path / "empty.npz").write_bytes(b"")
    whole = path.read_bytes()
    (tmp_path / "spoiled.npz").write_bytes(whole[:300] + bytes(200) + whole[500:])
    for name, message in (
        ("one.npy", "not a timeline.npz"),
        ("empty.npz", "not a timeline.npz"),
        ("spoiled.npz", "damaged"),
    ):
        with pytest.raises(ReportError, match=f"{name}: {message}"):
            read_timeline(tmp_path / name)


def test_parquet_reads_back(path, tmp_path) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow", reason="needs pyarrow")
    run(str(path), "-o", str(tmp_path / "t.parquet"), "--sm", "1")
    table = pandas.read_parquet(tmp_path / "t.parquet")
    assert len(table) == 12 * 7 and set(table["place"]) == {"sm1"}
    (load,) = table[(table["unit"] == "tma") & (table["start_cycle"] == 3100)].to_dict("records")
    assert (load["label"], load["end_cycle"], load["ordinal"]) == ("K", 3300, 3)
    assert load["end_us"] == pytest.approx(2.2)
    pandas.testing.assert_frame_equal(table, slice_frame(read_timeline(path).sm(1)), check_dtype=False)


def test_chrome_has_counters(path, tmp_path) -> None:
    run(str(path), "-o", str(tmp_path / "t.json"))
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    samples = [(e["name"], e["ts"], e["args"]) for e in events if e["ph"] == "C"]
    assert samples == [
        ("l2_hit_rate", 2.0, {"fraction": 0.75}),
        ("lines_in_flight", 0.0, {"lines": 0.0}),
        ("lines_in_flight", 2.0, {"lines": 384.0}),
    ]


def test_svg_is_deterministic_and_shows_cycles_and_time(path) -> None:
    timeline = read_timeline(path)
    first = gantt_chart(timeline, "sm0", None, "svg")
    assert first == gantt_chart(timeline, "sm0", None, "svg")
    text = first.decode()
    assert text.startswith("<?xml") and "SM cycle" in text and "µs at 1,500 MHz" in text
    assert all(name in text for name in ("producer", "consumer 1", "consumer 2", "tensor core"))
    assert "TMA sends K" not in text
    names = [name.replace("/tma", "/tma_issue") for name in timeline.track_name]
    assert b"TMA sends K" in gantt_chart(msgspec.structs.replace(timeline, track_name=names), "sm0", None, "svg")


def test_choice_of_places_and_tiles(tmp_path) -> None:
    tiles = {
        "tile_sm": np.array([0, 0, 1]),
        "tile_ordinal": np.array([0, 1, 0]),
        "tile_m_block": np.array([3, 4, 3]),
        "tile_head": np.array([0, 0, 1]),
        "tile_batch": np.array([0, 0, 0]),
        "tile_begin_cycle": np.array([0, 1000, 0]),
    }
    timeline = read_timeline(write_timeline(tmp_path / "t.npz", iterations=12, sms=2, **tiles, **COUNTERS))
    only = of_places(timeline, (1,))
    assert only.counter_name == ["chip/l2_hit_rate", "sm1/lines_in_flight"] and only.tile_sm.tolist() == [1]
    assert of_places(timeline, (0,)).counter_name == ["chip/l2_hit_rate"]
    with pytest.raises(ReportError, match="SM or CTA 9 was not recorded; the timeline holds sm0, sm1"):
        of_places(timeline, (9,))
    # The slices of turn 1 of SM 0 have ordinal 1: three of the roles, and what overlaps their time, 1000 to 2000.
    one = of_tiles(timeline, (4, 0, 0))
    assert len(one) == 7 and set(one.track.tolist()) == {0, 1, 2, 3, 4}
    assert one.start_cycle.min() == 1000
    assert len(of_tiles(timeline, (0, 0))) == 14  # the first tile of either
    with pytest.raises(ReportError, match="tile 5 to 6 was not recorded; the timeline holds 3 tiles"):
        of_tiles(timeline, (5, 6))


def run(*arguments: str, code: int = 0):
    done = CliRunner().invoke(simfa, ["timeline", *arguments], catch_exceptions=False)
    assert done.exit_code == code, done.output
    return done


def test_command_refuses_what_it_cannot_write(path, tmp_path) -> None:
    with pytest.raises(ReportError, match="no slice lies in the chosen"):
        run(str(path), "-o", str(tmp_path / "t.pftrace"), "--window", "90000:90001")
    with pytest.raises(ReportError, match="168 slices are more than --limit 100; choose with --sm"):
        run(str(path), "-o", str(tmp_path / "t.pftrace"), "--limit", "100")
    assert not (tmp_path / "t.pftrace").exists()
    assert "give -o FILE to write, or --log to compare" in run(str(path), code=2).stderr
