"""The site that `make docs` builds: whole, strict, and readable from disk without a network."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from simfa.hardware import load_preset, overlay_names, preset_names
from tests.docs.pages import PAGES, ROOT

pytest.importorskip("material", reason="needs mkdocs-material")

# Attributes that make a browser fetch something when the page is opened; links are followed by people only.
_FETCHED = re.compile(r"<(?:script|img|iframe|source)[^>]*\ssrc=\"?([^\"\s>]+)|<link[^>]*\shref=\"?([^\"\s>]+)")


def build(folder: Path, *options: str, config: Path = ROOT / "mkdocs.yml") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mkdocs", "build", "-f", str(config), "-d", str(folder), *options]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = build(folder)
    assert done.returncode == 0, done.stderr
    return folder


def page(site: Path, name: str) -> str:
    return (site / name).read_text(encoding="utf-8")


def test_every_page_is_there_and_reachable(site: Path) -> None:
    home = page(site, "index.html")
    for source in PAGES:
        if source.startswith("docs/"):
            target = source.removeprefix("docs/").replace(".md", ".html")
            assert (site / target).is_file(), source
            assert f'href="{target}"' in home, f"{source} is not in the navigation"


def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    fetched = {
        first or second
        for file in site.rglob("*.html")
        for first, second in _FETCHED.findall(file.read_text(encoding="utf-8"))
    }
    assert len(fetched) > 5
    assert [target for target in fetched if re.match(r"(https?:)?//", target)] == []
    for file in site.rglob("*.css"):
        assert not re.search(r"url\([\"']?(https?:)?//", file.read_text(encoding="utf-8")), file


def test_presets_page_is_made_from_the_presets(site: Path) -> None:
    text = page(site, "presets.html")
    for name in preset_names():
        assert f"<td><code>{name}</code></td>" in text
    for name in overlay_names():
        assert f"<td><code>{name}</code></td>" in text
    base = load_preset("h100-sxm")
    rows = text.split('id="h100-sxm"')[1].split("</table>")[0]
    assert re.findall(r"<tr>\s*<td><code>([a-z0-9_.]+)</code></td>", rows) == list(base.provenance)
    assert "generated:" not in text


def test_links_out_of_docs_lead_into_the_site(site: Path) -> None:
    text = page(site, "model.html")
    assert 'href="deviations.html"' in text
    assert 'href="isa.html"' in text
    assert 'href="model.html' in page(site, "limits.html")


@pytest.mark.slow
def test_a_broken_link_stops_the_build(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("mkdocs.yml", "README.md", "CONTRIBUTING.md", "DEVIATIONS.md", "CHANGELOG.md"):
        shutil.copy(ROOT / name, tmp_path)
    for name in ("config", "data", "examples"):
        (tmp_path / name).symlink_to(ROOT / name)
    glossary = tmp_path / "docs/glossary.md"
    glossary.write_text(glossary.read_text(encoding="utf-8") + "\n[gone](nothing.md)\n", encoding="utf-8")
    done = build(tmp_path / "site", config=tmp_path / "mkdocs.yml")
    assert done.returncode == 1
    assert "nothing.md" in done.stderr


def test_search_works_from_disk(site: Path, tmp_path: Path) -> None:
    browser = shutil.which("chromium")
    if browser is None:
        pytest.skip("needs chromium")
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}"]
    command += ["--virtual-time-budget=8000", "--enable-logging=stderr", "--dump-dom"]
    done = subprocess.run(
        [*command, f"file://{site}/design/0003-engine.html?q=mshr"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    found = re.search(r"md-search-result__meta\">\s*(\d+) matching documents", done.stdout)
    assert found, done.stderr[-2000:]
    assert int(found[1]) > 1
    assert "Uncaught" not in done.stderr
