"""The report in headless Chromium: it loads without a complaint, zooms, shows a known slice, and no figure is empty."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from simfa import validate_cli
from simfa.analytical.figure_set import write_figures
from simfa.cli import simfa
from simfa.files import write_json
from simfa.workload import model_shape
from tests.unit.fake_simulator import statistics, ten_percent_slow
from tests.unit.fake_timeline import write_timeline
from tests.unit.headless import browse, probe

# Reached from every probe: the chart, its canvas, a point of it over a track and cycle, and events a user would make.
TOOLS = """
const chart = document.querySelector(".gantt").chart, canvas = chart.canvas, tip = document.getElementById("tip");
const frame = () => new Promise((go) => setTimeout(go, 60));
const row = (unit) => chart.rows.find((r) => r.track.unit === unit);
const point = (unit, cycle) => {
  const box = canvas.getBoundingClientRect(), r = row(unit);
  return { clientX: box.left + chart.x(cycle), clientY: box.top + r.y + r.height / 2, bubbles: true, pointerId: 1 };
};
const pointer = (kind, where) => canvas.dispatchEvent(new PointerEvent(kind, { cancelable: true, ...where }));
const wheel = (deltaY, where) => canvas.dispatchEvent(new WheelEvent("wheel", { deltaY, cancelable: true, ...where }));
const press = (key) => canvas.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
const pixels = () => {
  const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
  copy.drawImage(canvas, 0, 0);
  return copy;
};
const pixel = (unit, cycle) => {
  const r = row(unit), scale = devicePixelRatio, at = [chart.x(cycle) * scale, (r.y + 3) * scale].map(Math.round);
  const [red, green, blue] = pixels().getImageData(...at, 1, 1).data;
  return ((red << 16) | (green << 8) | blue).toString(16).padStart(6, "0");
};
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of a compared set, a run with its timeline of two SMs, and the analytical figures."""
    folder = tmp_path_factory.mktemp("page")
    run = folder / "run"
    run.mkdir()
    stats = statistics(model_shape("llama3-8b", 512), log_source="synthetic")
    stats["stall_cycles"]["tensor_pipe"] = {"busy": 60_000, "drain": 20_000, "softmax": 40_000, "launch": 30_000}
    stats["tensor_utilization"] = 0.4
    write_json(run / "stats.json", stats)
    write_timeline(run / "timeline.npz", sms=2)
    write_figures(folder / "figures")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(validate_cli, "simulator", lambda threads, cases, quiet: ten_percent_slow)
        for arguments in (
            ["validate", "--set", "ncu-1500", "--set", "s13", "-o", str(folder)],
            ["report", "--summary", str(folder / "summary.json"), "--run", str(run), "--timeline", str(run),
             "--figures", str(folder / "figures"), "-o", str(folder)],
        ):  # fmt: skip
            assert CliRunner().invoke(simfa, arguments, catch_exceptions=False).exit_code == 0
    return folder / "report.html"


def test_chart_moves_zooms_and_names_slices(page: Path) -> None:
    found = probe(
        page,
        f"""{TOOLS}
const said = {{}}, width = () => chart.view[1] - chart.view[0];
said.window = [...chart.view];
chart.show(2000, 6000);
await frame();
said.softmax = pixel("consumer1", 3200);
said.s = pixel("tensor", 3200);
said.o = pixel("tensor", 3700);
said.gapIsPlain = pixel("tensor", 3475) !== said.s && pixel("tensor", 3475) !== said.o;
pointer("pointermove", point("consumer1", 3200));
said.tip = [tip.hidden, tip.innerText];
pointer("pointermove", point("tensor", 3475));
said.gap = tip.innerText;
pointer("pointerdown", point("consumer1", 3200));
pointer("pointerup", point("consumer1", 3200));
said.output = chart.output.innerText;
pointer("pointerleave", {{}});
said.tipGone = tip.hidden;
canvas.blur();
wheel(-100, point("tensor", 3000));
said.unfocused = width();
canvas.focus();
wheel(-50, point("tensor", 3000));
said.wheel = [width() < 4000, Math.abs(chart.cycle(chart.x(3000)) - 3000) < 1];
said.anchor = Math.round(1000 * (3000 - chart.view[0]) / width());
chart.show(2000, 6000);
const from = point("tensor", 3000), to = point("tensor", 4000);
pointer("pointerdown", from);
pointer("pointermove", to);
pointer("pointerup", to);
said.dragged = chart.view.map(Math.round);
chart.show(2000, 6000);
pointer("pointerdown", {{ ...point("tensor", 3000), shiftKey: true }});
pointer("pointermove", point("tensor", 4000));
pointer("pointerup", point("tensor", 4000));
said.band = chart.view.map(Math.round);
press("0");
said.whole = [...chart.view];
press("+");
said.plus = Math.round(width());
press("-");
said.minus = Math.round(width());
chart.show(2000, 6000);
press("ArrowRight");
said.right = [...chart.view];
press("Escape");
chart.show(2000, 6000);
for (const key of [".", "ArrowDown", ".", "Enter"]) press(key);
said.stepped = [chart.output.innerText, chart.view.map(Math.round)];
chart.show(2000, 6000);
press("Escape");
for (const i of [9, 15]) row("tensor").track.start[i] += 150;
press("n");
said.gaps = [[...chart.extent(chart.selected)], chart.output.innerText];
press("n");
said.gaps.push([...chart.extent(chart.selected)]);
press("p");
said.gaps.push([...chart.extent(chart.selected)]);
document.querySelector("[data-do=gap]").click();
press("Enter");
said.gaps.push(chart.view.map(Math.round));
document.querySelector("[data-do=all]").click();
said.button = [...chart.view];
const select = document.querySelector(".gantt select");
select.value = "sm1";
select.dispatchEvent(new Event("change"));
said.place = [chart.place, chart.rows.map((r) => r.track.place).join()];
const box = canvas.getBoundingClientRect();
const middle = {{ clientX: box.left + chart.left + chart.plot / 2, clientY: box.top + 20, pointerId: 1 }};
chart.show(2000, 3000);
pointer("pointerdown", middle);
pointer("pointerup", middle);
said.overview = chart.view.map(Math.round);
return said;
""",
    )
    assert found["window"] == [3000, 9000]
    assert found["softmax"] == "ccbb44"
    assert (found["s"], found["o"], found["gapIsPlain"]) == ("228833", "77cc88", True)
    hidden, tip = found["tip"]
    assert not hidden
    assert re.search(r"consumer1: softmax\s+computing softmax\s+400 cycles, 0.267 µs, from cycle 3,000; tile 3", tip)
    assert re.search(r"tensor: idle\s+50 cycles, .*from cycle 3,450", found["gap"])
    assert "meanwhile consumer1: wgmma_wait 100 %" in found["gap"]
    assert "consumer1: softmax: computing softmax; 400 cycles" in found["output"]
    assert found["tipGone"]
    assert found["unfocused"] == 4000
    assert found["wheel"] == [True, True]
    assert found["anchor"] == 250
    assert found["dragged"] == [1000, 5000]
    assert found["band"] == [3000, 4000]
    assert found["whole"] == [0, 12000] == found["button"]
    assert (found["plus"], found["minus"]) == (7200, 12000)
    assert found["right"] == [2800, 6800]
    words = (
        "consumer1: wgmma_wait: waiting for its WGMMA group to complete; 600 cycles, 0.400 µs, from cycle 2,400; tile 2"
    )
    assert found["stepped"] == [words, [2250, 3150]]
    # Of the pipe's gaps those of 200 cycles count, not those of 50.
    first, told, second, back, zoomed = found["gaps"]
    assert (first, second, back, zoomed) == ([4450, 4650], [7450, 7650], [4450, 4650], [7400, 7700])
    assert told.startswith("tensor: idle: 200 cycles, 0.133 µs, from cycle 4,450; meanwhile consumer1: wgmma_wait 100")
    assert found["place"] == ["sm1", "sm1,sm1,sm1,sm1,sm1"]
    assert found["overview"] == [5500, 6500]


FIGURES = """
const colours = new Set(), data = pixels().getImageData(0, 0, canvas.width, canvas.height).data;
for (let n = 0; n < data.length; n += 4) colours.add((data[n] << 16) | (data[n + 1] << 8) | data[n + 2]);
return {
  colours: colours.size,
  images: [...document.images].map((image) => [image.complete, image.naturalWidth > 50]),
  drawings: [...document.querySelectorAll("svg")].map((svg) => {
    const box = svg.getBoundingClientRect();
    return box.width > 200 && box.height > 80 && svg.querySelectorAll("circle, rect").length > 2;
  }),
  stacks: [...document.querySelectorAll(".stack")].map((stack) => {
    const parts = [...stack.children].map((part) => part.getBoundingClientRect().width);
    return Math.abs(parts.reduce((sum, part) => sum + part, 0) / stack.getBoundingClientRect().width - 1) < 0.02;
  }),
  loaded: performance.getEntriesByType("resource").map((e) => e.name).filter((name) => !name.startsWith("data:")),
  overflow: document.documentElement.scrollWidth - innerWidth,
  paper: getComputedStyle(document.body).backgroundColor,
  links: [...document.querySelectorAll("nav a")].filter((link) => !document.querySelector(link.hash)).length,
};
"""


@pytest.mark.parametrize(
    ("width", "dark", "paper"), [(1240, False, "rgb(255, 255, 255)"), (420, True, "rgb(20, 23, 28)")]
)
def test_every_figure_shows_something(page: Path, width: int, dark: bool, paper: str) -> None:
    found = probe(page, TOOLS + FIGURES, width=width, dark=dark)
    assert found["colours"] > 12
    assert found["images"] == [[True, True]] * 3
    assert len(found["drawings"]) == 4
    assert all(found["drawings"])
    assert len(found["stacks"]) == 5  # one of the summary, and the pipe, all, producer and consumer
    assert all(found["stacks"])
    assert found["loaded"] == []
    assert found["overflow"] <= 0
    assert found["paper"] == paper
    assert found["links"] == 0


def test_stages_and_counters_are_drawn_when_asked_for(page: Path) -> None:
    html = page.read_text(encoding="utf-8")
    more = html.replace('"counters":[]', '"counters":[{"cycle":[0,6000],"name":"MSHRs","unit":"","value":[5,null]}]')
    more = more.replace('"main":true', '"main":false', 1)
    assert more != html
    changed = page.with_name("more.html")
    changed.write_text(more, encoding="utf-8")
    found = probe(
        changed,
        f"""{TOOLS}
const box = document.querySelector(".more input"), before = [chart.rows.length, chart.lines.length];
box.click();
chart.show(0, 12000);
await frame();
const line = chart.lines[0], at = (cycle) => [...pixels().getImageData(
  Math.round(chart.x(cycle) * devicePixelRatio), Math.round((line.y + 10) * devicePixelRatio), 1, 1).data].join();
return {{ before, after: [chart.rows.length, chart.lines.length], drawn: at(3000) !== at(9000) }};
""",
    )
    assert found == {"before": [4, 0], "after": [5, 1], "drawn": True}


def test_chart_is_drawn_for_paper_and_for_the_screen_again(page: Path) -> None:
    sizes = "[canvas.width / (canvas.height / 2), canvas.style.height, chart.width]"
    found = probe(
        page,
        f"""{TOOLS}
const screen = {sizes};
dispatchEvent(new Event("beforeprint"));
const box = canvas.getBoundingClientRect(), paper = [chart.width, canvas.width, box.width / box.height];
const drawn = canvas.width / canvas.height;
dispatchEvent(new Event("afterprint"));
return {{ paper, drawn, same: JSON.stringify(screen) === JSON.stringify({sizes}) }};
""",
        width=700,
    )
    width, pixels, shape = found["paper"]
    assert (width, pixels, found["same"]) == (1000, 2000, True)
    assert shape == pytest.approx(found["drawn"], rel=0.01)  # letters keep their shape


def test_page_prints(page: Path) -> None:
    output = page.with_name("report.pdf")
    browse(page.parent, "--no-pdf-header-footer", f"--print-to-pdf={output}", page.as_uri())
    data = output.read_bytes()
    assert data.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", data)) >= 3


def test_a_page_that_complains_fails(tmp_path: Path) -> None:
    broken = tmp_path / "broken.html"
    broken.write_text("<!doctype html><title>t</title><body><script>nowhere();</script></body>")
    with pytest.raises(AssertionError, match="nowhere"):
        probe(broken, "return 1;")
