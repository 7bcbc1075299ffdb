"""The data behind the page's Gantt chart: nothing lost, sizes bounded, utilisation exact."""

from types import SimpleNamespace

import numpy as np

from simfa.report import gantt_view as module
from simfa.report.gantt_view import gantt_view
from simfa.timeline import read_timeline
from tests.unit.fake_timeline import LABELS, ROLES, write_timeline


def test_slices_come_back_from_their_differences(tmp_path) -> None:
    timeline = read_timeline(write_timeline(tmp_path / "t.npz", sms=2))
    view = gantt_view(timeline)
    assert view["places"] == ["sm0", "sm1"]
    assert [track["unit"] for track in view["tracks"]] == list(ROLES) * 2
    rebuilt = []
    for number, track in enumerate(view["tracks"]):
        starts = np.cumsum(track["start"])
        for start, length, label, arg in zip(starts, track["length"], track["label"], track["arg"], strict=True):
            rebuilt.append((number, label, int(start), int(start) + length, arg))
    columns = (timeline.track, timeline.name, timeline.start_cycle, timeline.end_cycle, timeline.arg)
    assert sorted(rebuilt) == sorted(zip(*(column.tolist() for column in columns), strict=True))
    assert view["labels"][LABELS.index("softmax")]["means"] == "computing softmax"
    assert view["complete"]


def test_overview_is_the_share_of_busy_cycles(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(module, "OVERVIEW_BINS", 24)  # of 500 cycles: S takes 450 of the first, O 450 of the second
    view = gantt_view(read_timeline(write_timeline(tmp_path / "t.npz")))
    assert view["overview"] == {"sm0": [900] * 24}
    monkeypatch.setattr(module, "OVERVIEW_BINS", 48)
    assert gantt_view(read_timeline(write_timeline(tmp_path / "t.npz")))["overview"]["sm0"][:4] == [
        1000,
        800,
        1000,
        800,
    ]


def test_a_drain_is_not_busy(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(module, "OVERVIEW_BINS", 12)
    labels = np.array(["drain" if label == "O" else label for label in LABELS])
    view = gantt_view(read_timeline(write_timeline(tmp_path / "t.npz", slice_name=labels)))
    assert view["overview"]["sm0"] == [450] * 12


def test_too_many_slices_are_cut_around_the_main_loop(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(module, "MAX_SLICES", 40)
    view = gantt_view(read_timeline(write_timeline(tmp_path / "t.npz", iterations=30)))
    assert not view["complete"]
    assert (view["begin"], view["end"]) == (0, 30_000)
    assert sum(len(track["label"]) for track in view["tracks"]) <= 40
    begin, end = view["shown"]
    assert 0 < begin <= view["window"][0] + 1000
    assert view["window"][1] - 1000 <= end < 30_000


def test_stages_and_barriers_are_asked_for_and_explained(tmp_path) -> None:
    units = ("K stage 0", "barrier 9", "tma_issue", "tensor", "consumer1")
    names = np.array([f"sm0/{unit}" for unit in units])
    view = gantt_view(read_timeline(write_timeline(tmp_path / "t.npz", track_name=names)))
    assert [track["main"] for track in view["tracks"]] == [False, False, False, True, True]
    assert [track["counts"] for track in view["tracks"]] == ["fill", "role or signals", "fill", "warpgroup", "tile"]
    assert view["tracks"][0]["means"]["full"] == "the stage is full, until consumers release it"


def test_counters_are_thinned_and_keep_their_gaps(monkeypatch) -> None:
    monkeypatch.setattr(module, "MAX_SAMPLES", 4)
    recording = SimpleNamespace(
        counter_name=["dram bytes"],
        counter_unit=["B/cycle"],
        counter_cycle=np.arange(0, 8000, 1000),
        counter_value=np.array([[0.0, 1.0, np.nan, 3.0, 4.0, 5.0, 6.12345678, 7.0]]),
    )
    assert module._counters(recording) == [
        {"name": "dram bytes", "unit": "B/cycle", "cycle": [0, 2000, 4000, 6000], "value": [0.0, None, 4.0, 6.1235]}
    ]
