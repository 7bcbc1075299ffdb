"""Figures: their data, and that drawing them is repeatable."""

from pathlib import Path

import pytest

from simfa.analytical import figures, traffic
from simfa.errors import AnalyticalError
from simfa.workload import MODELS, model_shape


def test_figure_8_is_eq_2_of_three_models() -> None:
    points = figures.llc_traffic()
    assert {point.curve for point in points} == set(MODELS)
    by_length = {point.seqlen: point.traffic_bytes for point in points if point.curve == "llama3.1-405b"}
    # 128 heads, 64-row tiles, 256 B a row.
    assert by_length[65536] == 128 * 256 * (2 * 65536 + 1024 * 2 * 65536)
    assert by_length[65536] / by_length[16384] == pytest.approx(16, rel=0.01)


def test_figure_9_holds_all_models_on_both_gpus() -> None:
    points = figures.dram_traffic(lengths=(16384, 65536))
    assert {point.panel for point in points} == {"gb10", "h800-sxm"}
    assert {point.curve for point in points} == {"paper", "capacity", "lru", "random", "ideal cache"}
    value = {(point.panel, point.curve, point.seqlen): point.traffic_bytes for point in points}
    assert value["gb10", "paper", 65536] / value["gb10", "ideal cache", 65536] == pytest.approx(21, abs=0.1)
    assert value["h800-sxm", "paper", 16384] == value["h800-sxm", "ideal cache", 16384]
    assert not any(point.measured for point in points)  # none is published for these shapes


def test_published_points_are_marked() -> None:
    points = figures.cutile_traffic(lengths=(65536, 131072))
    measured = {point.curve: point for point in points if point.measured}
    assert measured["measured, cyclic"].traffic_bytes == 370e6 * 32
    assert measured["calibration, sawtooth"].traffic_bytes == 120e6 * 32
    model = next(point for point in points if point.curve == "paper" and point.seqlen == 131072)
    assert model.traffic_bytes == pytest.approx(370e6 * 32, rel=0.01)


def test_roofline_points_stay_under_both_roofs() -> None:
    roofs, points = figures.roofline("h800-sxm")
    assert roofs.tensor_tflops == pytest.approx(989.4, abs=0.1)
    for point in points:
        ceiling = min(
            roofs.tensor_tflops, roofs.l2_tb_per_s * point.l2_intensity, roofs.dram_tb_per_s * point.dram_intensity
        )
        assert 0 < point.tflops <= ceiling
    answer = traffic(model_shape("llama3-8b", 4096), "h800-sxm")
    assert points[0].tflops == pytest.approx(answer.flops / answer.latency_bound_us / 1e6)


@pytest.mark.parametrize("kind", ["png", "svg"])
def test_drawings_are_repeatable(tmp_path: Path, kind: str) -> None:
    points = figures.cutile_traffic(lengths=(65536, 131072))
    contents = []
    for name in ("one", "two"):
        path = tmp_path / f"{name}.{kind}"
        figures.draw_traffic(points, path, "DRAM traffic", "DRAM")
        contents.append(path.read_bytes())
    assert contents[0] == contents[1] and len(contents[0]) > 5000


def test_a_roofline_is_drawn(tmp_path: Path) -> None:
    roofs, points = figures.roofline(lengths=(4096,))
    figures.draw_roofline(roofs, points, tmp_path / "roofline.svg")
    text = (tmp_path / "roofline.svg").read_text(encoding="utf-8")
    assert text.startswith("<?xml") and "h800-sxm: latency bounds" in text


def test_other_formats_are_refused(tmp_path: Path) -> None:
    with pytest.raises(AnalyticalError, match=r"ending in \.png or \.svg"):
        figures.draw_traffic(figures.llc_traffic(lengths=(4096,)), tmp_path / "x.pdf", "x", "L2")
    assert not list(tmp_path.iterdir())
