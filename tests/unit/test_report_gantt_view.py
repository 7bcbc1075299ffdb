"""The data behind the page's Gantt chart: nothing lost, sizes bounded, utilisation exact."""

import numpy as np
import pytest

from simfa.report import gantt_view as module
from simfa.report.gantt_view import gantt_view
from simfa.report.timeline import read_timeline
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


@pytest.mark.parametrize(
    ("unit", "main", "kind"),
    [
        ("consumer2", True, "consumer2"),
        ("K stage 0", False, "stage"),
        ("barrier 9", False, "barrier"),
        ("tma", True, "tma"),
    ],
)
def test_units(unit: str, main: bool, kind: str) -> None:
    assert module._kind(unit) == kind
    assert unit.startswith(module.MAIN_UNITS) == main
