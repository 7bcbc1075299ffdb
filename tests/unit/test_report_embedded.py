"""The analytical model's figures inside the report: drawn, checked, embedded, and nothing else let in."""

import base64
import hashlib
import re
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest
from click.testing import CliRunner

from simfa.analytical.figure_set import write_figures
from simfa.cli import simfa
from simfa.errors import ReportError
from simfa.figure_files import FigureFile, FigureIndex, FigureTable, index_path
from simfa.files import write_json
from simfa.report.embedded import MAX_FIGURE_BYTES, read_figures, read_sections
from simfa.summary import Summary

SVG = '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">{}</svg>'


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("drawn") / "figures"
    write_figures(folder)
    return folder


def folder_with(folder: Path, content: str, name: str = "a.svg") -> Path:
    (folder / "a.svg").write_text(content)
    digest = hashlib.sha256(content.encode()).hexdigest()
    entry = FigureFile(file=name, sha256=digest, title="t", caption="c")
    write_json(index_path(folder), FigureIndex(tool_version="0", figures=[entry]))
    return folder


def report(folder: Path, figures: Path) -> str:
    write_json(folder / "summary.json", Summary(tool_version="0", sets=[]))
    arguments = ["report", "--summary", str(folder / "summary.json"), "--figures", str(figures), "-o", str(folder)]
    done = CliRunner().invoke(simfa, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return (folder / "report.html").read_text(encoding="utf-8")


def test_every_figure_is_in_the_page_with_its_caption(drawn: Path, tmp_path: Path) -> None:
    page = report(tmp_path, drawn)
    index = msgspec.json.decode(index_path(drawn).read_bytes(), type=FigureIndex)
    names = ["llc_traffic.svg", "dram_traffic.svg", "roofline.svg"]
    assert [entry.file for entry in index.figures] == names
    images = re.findall(r'<img alt="(.*?)" src="data:image/svg\+xml;base64,(.*?)"><figcaption>(.*?)</figcaption>', page)
    assert [title for title, _, _ in images] == [entry.title for entry in index.figures]
    for name, (_, data, caption) in zip(names, images, strict=True):
        content = base64.b64decode(data, validate=True)
        assert content == (drawn / name).read_bytes()
        strokes = [path for path in ElementTree.fromstring(content).iter() if path.tag.endswith("}path")]
        assert len(strokes) > 50 and len(caption) > 80
    assert len(page.encode()) <= 3_000_000
    assert "figures" in (tmp_path / "report.html.manifest.json").read_text()


def test_figures_hold_every_curve(drawn: Path) -> None:
    # Matplotlib writes each text as a comment beside its glyphs.
    texts = {path.stem: path.read_text(encoding="utf-8") for path in drawn.glob("*.svg")}
    for model in ("llama3-8b", "llama3-70b", "llama3.1-405b"):
        assert texts["llc_traffic"].count(f"<!-- {model} -->") == 2
    for gpu in ("gb10", "h800-sxm"):
        assert f"<!-- {gpu} -->" in texts["llc_traffic"] and f"<!-- {gpu} -->" in texts["dram_traffic"]
    for curve in ("paper", "capacity", "lru", "random", "ideal cache", "measured, cyclic", "calibration, sawtooth"):
        assert f"<!-- {curve} -->" in texts["dram_traffic"]
    assert "<!-- L2 roof -->" in texts["roofline"] and "<!-- DRAM roof -->" in texts["roofline"]


def test_the_command_writes_the_same_bytes_again(drawn: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(simfa, ["figures", "-o", str(tmp_path)], catch_exceptions=False)
    assert done.exit_code == 0 and len(done.output.splitlines()) == 4
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        path.name: path.read_bytes() for path in drawn.iterdir()
    }


@pytest.mark.parametrize(
    "inside",
    [
        "<script>1</script>",
        "<foreignObject/>",
        '<image xlink:href="#a"/>',
        '<use xlink:href="http://example.org/a.svg#b"/>',
        '<use href="file.svg"/>',
        '<g onload="1"/>',
        '<path style="fill: url(http://example.org/)"/>',
        "<style>@import 'a.css';</style>",
        "<style>path { fill: url(a.svg) }</style>",
        '<a xmlns="http://www.w3.org/1999/xhtml"/>',
    ],
)
def test_anything_that_loads_or_runs_is_refused(tmp_path: Path, inside: str) -> None:
    assert len(read_figures(folder_with(tmp_path, SVG.format("<g/>")))) == 1
    with pytest.raises(ReportError, match=r"a\.svg: .*(has no place|loads something)"):
        read_figures(folder_with(tmp_path, SVG.format(inside)))


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        ("<svg", "a.svg", "not an SVG file"),
        ("<html/>", "a.svg", "its root is html"),
        (SVG.format("<g/>"), "../a.svg", "expected the name of a file"),
        (SVG.format("<g/>"), "b.svg", "cannot be read"),
        (SVG.format("<!--" + " " * MAX_FIGURE_BYTES + "-->"), "a.svg", "expected at most"),
    ],
)
def test_foreign_files_are_named(tmp_path: Path, content: str, name: str, message: str) -> None:
    with pytest.raises(ReportError, match=message):
        read_figures(folder_with(tmp_path, content, name))


def test_a_changed_file_and_a_missing_index_are_named(tmp_path: Path) -> None:
    with pytest.raises(ReportError, match=r"figures\.json: cannot be read: .*simfa figures"):
        read_figures(tmp_path)
    folder_with(tmp_path, SVG.format("<g/>"))
    (tmp_path / "a.svg").write_text(SVG.format("<g></g>"))
    with pytest.raises(ReportError, match=r"a\.svg: not the file that figures\.json names"):
        read_figures(tmp_path)
    index_path(tmp_path).write_text('{"figures": 1}')
    with pytest.raises(ReportError, match=r"not a figures\.json of this version"):
        read_figures(tmp_path)


def test_folders_fill_the_parts_of_the_report(tmp_path: Path) -> None:
    table = FigureTable("Slowdown", "Against the whole model.", ["variant", "slowdown"], [["no-lrc", "1.25"]], [1])
    for name, section in (("s", "sensitivity"), ("a", "ablation"), ("b", "ablation")):
        (tmp_path / name).mkdir()
        folder_with(tmp_path / name, SVG.format("<g/>"))
        index = msgspec.json.decode(index_path(tmp_path / name).read_bytes(), type=FigureIndex)
        write_json(index_path(tmp_path / name), msgspec.structs.replace(index, section=section, tables=[table]))
    sections = read_sections([tmp_path / name for name in "sab"])
    assert [(part.anchor, len(part.figures), len(part.tables)) for part in sections] == [
        ("ablation", 2, 2), ("sensitivity", 1, 1)
    ]  # fmt: skip
    write_json(tmp_path / "summary.json", Summary(tool_version="0", sets=[]))
    arguments = ["report", "--summary", str(tmp_path / "summary.json"), "-o", str(tmp_path)]
    for name in "sab":
        arguments += ["--figures", str(tmp_path / name)]
    assert CliRunner().invoke(simfa, arguments, catch_exceptions=False).exit_code == 0
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.index('id="ablation"') < page.index('id="sensitivity"')
    assert page.count('<td class="number">1.25</td>') == 3
    assert '<a href="#ablation">Ablation</a>' in page


def test_a_ragged_table_is_refused(tmp_path: Path) -> None:
    folder_with(tmp_path, SVG.format("<g/>"))
    index = msgspec.json.decode(index_path(tmp_path).read_bytes(), type=FigureIndex)
    ragged = FigureTable("T", "", ["a", "b"], [["1", "2"], ["3"]])
    write_json(index_path(tmp_path), msgspec.structs.replace(index, tables=[ragged]))
    with pytest.raises(ReportError, match="table 'T': expected 2 cells in every row"):
        read_figures(tmp_path)
