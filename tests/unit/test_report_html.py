"""The HTML report: what it must say, and that it refers to nothing outside itself."""

import math
import re
from html.parser import HTMLParser
from itertools import pairwise

import msgspec
import pytest
from click.testing import CliRunner

from simfa import validate_cli
from simfa.analytical.model import traffic
from simfa.cli import simfa
from simfa.errors import ReportError
from simfa.files import write_json
from simfa.hardware import load_preset
from simfa.report.figures import latency_chart, trend_chart
from simfa.report.html import whole_parts
from simfa.report.inputs import RunStats
from simfa.report.traffic_view import memory_path, traffic_rows
from simfa.summary import Interval, Summary, TrafficComparison
from simfa.workload import model_shape
from tests.unit.fake_simulator import statistics, ten_percent_slow
from tests.unit.fake_timeline import write_timeline

VOID = ("meta", "img", "input", "br", "line", "circle", "rect")


class Page(HTMLParser):
    """Collects text, and every attribute that would make a browser load something."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.loads: list[str] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        if tag in ("link", "iframe", "object"):
            self.loads.append(tag)
        self.loads += [str(value) for name, value in attrs if name in ("src", "srcset", "data", "xlink:href")]

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("script", "style"):
            self.texts.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.texts))


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """A folder with a compared set, a run of a synthetic log with its timeline, and a prediction."""
    monkeypatch.setattr(validate_cli, "simulator", lambda threads, cases, quiet: ten_percent_slow)
    run = tmp_path / "run"
    (tmp_path / "guess").mkdir()
    run.mkdir()
    write_json(run / "stats.json", statistics(model_shape("llama3-8b", 512), log_source="synthetic"))
    write_json(run / "log.json", {"longest_row_ns": 90_000})
    write_timeline(run / "timeline.npz")
    write_json(tmp_path / "guess/stats.json", statistics(model_shape("llama3-70b", 1024), preset="h800-sxm-paper"))
    arguments = ["--set", "ncu-1500", "--set", "s13"]
    validate("--stats", str(tmp_path / "measured"), *arguments)
    validate("--results", str(tmp_path), *arguments, "-o", str(tmp_path / "out"))
    return tmp_path


def validate(*arguments: str) -> None:
    assert CliRunner().invoke(simfa, ["validate", *arguments], catch_exceptions=False).exit_code == 0


def report(folder, *more: str) -> str:
    arguments = ["report", "--summary", str(folder / "out/summary.json"), "-o", str(folder / "out"), *more]
    done = CliRunner().invoke(simfa, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return (folder / "out/report.html").read_text(encoding="utf-8")


def test_report_says_everything_and_loads_nothing(folder) -> None:
    html = report(folder, "--run", str(folder / "run"), "--timeline", str(folder / "run/timeline.npz"))
    page = Page(html)
    assert [load[:22] for load in page.loads] == ["data:image/png;base64,"]
    assert page.open == []
    assert "color-scheme: light dark" in html
    assert "default-src 'none'" in html
    assert len(html) < 3e6
    assert "ncu-1500: MAPE 10.00%, max 10.00% over 12 cases." in page.text
    assert page.text.count("+10.00%") == 2 + 12 + 3 + 15  # tiles, tables, points of error against length
    assert "Not measurements, and no part of any MAPE" in page.text
    assert "head_dim 80 is not supported" in page.text
    assert "producer spends 75.0% of its cycles" in page.text
    assert "B1 L1024 S1024 H64/8 D128 full fp16" in page.text
    assert "logs: synthetic" in page.text
    assert (folder / "out/gantt.png").read_bytes().startswith(b"\x89PNG")
    assert (folder / "out/report.html.manifest.json").is_file()


def test_hardware_values_are_shown_with_provenance(folder) -> None:
    page = Page(report(folder))
    for name in ("h100-sxm", "h800-sxm-paper"):
        preset = load_preset(name)
        for path, provenance in preset.provenance.items():
            flagged = provenance.status in ("assumed", "calibrated")
            assert page.text.count(f" {path} ") >= (2 if flagged else 1)


def test_summary_says_why_the_tensor_core_idles_in_figures_that_add_up(folder) -> None:
    stats = statistics(model_shape("llama3-8b", 512), latency_us=70.0)
    pipe = {"busy": 6, "drain": 1, "launch": 1, "tail": 1, "softmax": 1, "wait_q": 1, "wait_k": 1, "barrier": 1}
    stats["stall_cycles"]["tensor_pipe"] = pipe
    stats["tensor_utilization"] = 6 / 13 / 2  # half of the chip's SMs have a CTA
    write_json(folder / "run/stats.json", stats)
    write_json(folder / "guess/stats.json", stats | {"cycles": 10 * stats["cycles"], "partial": True})
    html = report(folder, "--run", str(folder / "guess"), "--run", str(folder / "run"))
    text = Page(html).text
    assert "The tensor core computes 23.1% of the time and idles 76.9%: 53.85 of 70.00 µs." in text
    assert "cycles from launch to end" in text.split("why the tensor pipe idles")[0]
    (table,) = re.findall(r'<table class="idle">.*?</table>', html.split('id="cycles"')[0], flags=re.DOTALL)
    rows = re.findall(r'<tr><td class="number">([\d.]+)%</td><td class="number">([\d.]+)</td>', table)
    *parts, total = [(round(10 * float(share)), round(100 * float(us))) for share, us in rows]
    assert total == (769, 5385)
    assert tuple(map(sum, zip(*parts, strict=True))) == total
    assert parts[0][0] == 500 and abs(parts[0][1] - 3500) <= 1  # the last digit gives, so that the sum is right
    assert "the SM gets no CTA: the grid is smaller than the chip" in table
    assert "2 other reasons, 3.8% at most each" in table


def test_peak_is_told_where_the_preset_is_known(folder) -> None:
    spec = load_preset("h100-sxm", (), ["gpu.sm_clock_hz=1.5e9"]).spec
    stats = statistics(model_shape("llama3-8b", 512))
    stats["stall_cycles"]["tensor_pipe"] = {"busy": 1, "drain": 1}
    for sha256, told in ((spec.sha256(), True), ("of other values", False)):
        stats["manifest"]["gpu_preset_sha256"] = sha256
        write_json(folder / "run/stats.json", stats)
        found = re.search(r"The TFLOPS are ([\d.]+)% of peak", Page(report(folder, "--run", str(folder / "run"))).text)
        assert bool(found) == told
        if found:
            peak_tflops = 4096 * 132 * 1.5e9 / 1e12
            assert float(found[1]) == pytest.approx(100 * stats["tflops"] / peak_tflops, abs=0.06)


@pytest.mark.parametrize(
    ("shares", "total", "parts"),
    [([1, 1, 1], 100, [34, 33, 33]), ([0.5, 0.25, 0.25], 3, [1, 1, 1]), ([2, 0, 1], 10, [7, 0, 3]), ([1], 7, [7])],
)
def test_whole_parts_add_up(shares, total, parts) -> None:
    assert whole_parts(shares, total) == parts


def test_run_beside_the_timeline_is_explained(folder) -> None:
    page = Page(report(folder, "--timeline", str(folder / "run")))
    assert "producer spends 75.0% of its cycles" in page.text
    assert "B1 L512 S512 H32/8 D128 full fp16 on h100-sxm: SM 0 over 12,000 cycles." in page.text
    assert "turns of the main loop in which the tensor pipe computes 90.0% of the cycles." in page.text
    write_timeline(folder / "run/timeline.npz", sms=6)
    many = Page(report(folder, "--timeline", str(folder / "run")))
    assert "on h100-sxm: SM 0 to SM 5, 6 of them over 12,000 cycles. The chart" in many.text
    twice = Page(report(folder, "--timeline", str(folder / "run"), "--run", str(folder / "run")))
    assert twice.text.count("all reasons of run") == 1


def test_intervals_rounding_and_traffic_are_shown(folder) -> None:
    summary = msgspec.json.decode((folder / "out/summary.json").read_bytes(), type=Summary)
    first, *rest = summary.sets[0].cases
    changed = msgspec.structs.replace(
        first, measured_interval=Interval(99.95, 100.05), error_interval=Interval(0.0875, 0.1125), repeats=5,
        conversion="measured 9 cycles at 3 MHz, simulated 8 at 2 MHz",
    )  # fmt: skip
    common = {"id": first.id, "model": "simulator", "not_compared": ""}
    traffic = [
        TrafficComparison(
            quantity="l2_bytes", definition="sm_side", measured_bytes=2e6, modelled_bytes=2_100_000, error=0.05,
            measured_interval=Interval(1.995e6, 2.005e6), **common,
        ),
        TrafficComparison(
            quantity="l2_bytes", definition="sm_side", measured_bytes=2e6, modelled_bytes=1_000_000, error=-0.5,
            **(common | {"model": "analytical"}),
        ),
        TrafficComparison(
            quantity="dram_read_bytes", definition="dram", measured_bytes=None, modelled_bytes=None, error=None,
            **(common | {"not_compared": "not measured: no counter"}),
        ),
    ]  # fmt: skip
    entry = msgspec.structs.replace(
        summary.sets[0], cases=[changed, *rest], traffic=traffic, interval_method="bootstrap of the median"
    )
    write_json(folder / "out/summary.json", msgspec.structs.replace(summary, sets=[entry, *summary.sets[1:]]))
    page = Page(report(folder))
    for said in (
        "99.95 to 100.05", "+8.75% to +11.25%", ", 5 launches", "Intervals: bootstrap of the median",
        "simulated 8 at 2 MHz.", "L2 bytes at the SMs, before merging (M_L2) 2.000 1.995 to 2.005", "2.100 +5.00% 1.0",
        "dram_read_bytes simulator 1 not measured: no counter",
    ):  # fmt: skip
        assert said in page.text, said


def test_axis_of_traffic_is_a_factor_of_two_each_way() -> None:
    def place(error: float) -> float:
        entry = TrafficComparison(
            id="a", model="simulator", quantity="l2_bytes", definition="sm_side", measured_bytes=100.0,
            modelled_bytes=1, error=error, not_compared="",
        )  # fmt: skip
        return traffic_rows([entry])[0].cells[0].x

    assert [place(error) for error in (-1, -0.75, -0.5, 0, 1, 5)] == [0, 0, 0, 50, 100, 100]


def test_bytes_of_a_run_by_level() -> None:
    stats = msgspec.convert(statistics(model_shape("llama3-8b", 512)), RunStats)
    assert [(level.moved_bytes, level.width) for level in memory_path(stats)] == [
        (1 << 21, 100), (1 << 20, 50), (1 << 19, 25), (1 << 18, 12.5)
    ]  # fmt: skip


def test_predictions_of_the_paper_stand_beside_their_bound_and_no_error(folder) -> None:
    summary = msgspec.json.decode((folder / "out/summary.json").read_bytes(), type=Summary)
    (found,) = summary.predictions
    assert found.bound_us == pytest.approx(traffic(model_shape("llama3-70b", 1024), "h800-sxm-paper").latency_bound_us)
    page = Page(report(folder))
    assert "1 of the 15 cases of arXiv:2605.00555 are among these. No latencies of them are public" in page.text
    assert f"{found.bound_us:.2f} {found.bound_by}" in page.text


def test_same_inputs_same_bytes(folder) -> None:
    assert report(folder, "--run", str(folder / "run")) == report(folder, "--run", str(folder / "run"))


def test_chart_places_measured_and_simulated(folder) -> None:
    summary = msgspec.json.decode((folder / "out/summary.json").read_bytes(), type=Summary)
    chart = latency_chart(summary.sets[0].cases)
    assert len(chart.marks) == 12
    # A fixed ratio is a fixed distance on a logarithmic axis, to the right when the simulation is slower.
    distances = {round(mark.simulated_x - mark.measured_x, 6) for mark in chart.marks}
    assert len(distances) == 1
    assert distances.pop() > 0
    by_latency = sorted(zip(summary.sets[0].cases, chart.marks, strict=True), key=lambda pair: pair[0].measured_us)
    places = [mark.measured_x for _, mark in by_latency]
    assert places == sorted(places)
    assert {mark.error_x for mark in chart.marks} == {chart.error_zero_x}


def test_trend_places_lengths_and_errors(folder) -> None:
    summary = msgspec.json.decode((folder / "out/summary.json").read_bytes(), type=Summary)
    cases = summary.sets[0].cases
    chart = trend_chart(cases)
    assert len({point.y for point in chart.points}) == 1
    assert chart.points[0].y < chart.zero_y  # slower is up
    by_length = {case.seqlen_kv: point.x for case, point in zip(cases, chart.points, strict=True)}
    lengths = sorted(by_length)
    steps = [by_length[b] - by_length[a] for a, b in pairwise(lengths)]
    doublings = [math.log2(b / a) for a, b in pairwise(lengths)]
    assert [step / steps[0] for step in steps] == pytest.approx([d / doublings[0] for d in doublings])


def test_set_without_a_case_is_reported_as_such(folder) -> None:
    validate("--set", "s02", "-o", str(folder / "out"))
    page = Page(report(folder))
    assert "s02: no case compared." in page.text
    assert "36" in page.text


def test_several_comparisons_make_one_report(folder) -> None:
    validate("--set", "s02", "-o", str(folder / "more"))
    page = Page(report(folder, "--summary", str(folder / "more/summary.json")))
    assert "ncu-1500: MAPE 10.00%" in page.text
    assert "s02: no case compared." in page.text
    with pytest.raises(ReportError, match="set 'ncu-1500' stands in two of them"):
        report(folder, "--summary", str(folder / "out/summary.json"))


def test_wrong_summary_is_named(tmp_path) -> None:
    (tmp_path / "summary.json").write_text('{"sets": 3}')
    with pytest.raises(ReportError, match=r"summary\.json: not a summary\.json of this version"):
        CliRunner().invoke(
            simfa,
            ["report", "--summary", str(tmp_path / "summary.json"), "-o", str(tmp_path)],
            catch_exceptions=False,
        )
