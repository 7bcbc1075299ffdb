"""Hooks of the documentation site: its order of pages, documents from outside `docs/`, tables made from presets."""

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from simfa.hardware import Preset, load_preset, overlay_names, preset_names
from simfa.hardware_cli import PRESET_COLUMNS, changes_text, facts, overlay_changes, preset_rows, value_text

ROOT = Path(__file__).parents[1]

# Documents that live elsewhere in the repository, and their place in the site.
BORROWED = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "DEVIATIONS.md": "deviations.md",
    "CHANGELOG.md": "changelog.md",
    "config/README.md": "workflow.md",
    "data/logs/README.md": "logs.md",
    "data/measured/README.md": "measured.md",
    "examples/exports/README.md": "exports.md",
}
# Sections and the order in them; what is not named comes last, so a new page needs no line here.
SECTIONS = {
    "Start": ["index", "install", "tour", "gpu-node", "limits", "glossary"],
    "Use": ["api", "workflow", "ingest", "results", "accuracy", "ablations", "timelines", "probing"],
    "Model": ["model", "memory", "isa", "translation", "paper", "analytical", "presets", "deviations"],
    "Files": ["formats", "logs", "measured", "exports"],
    "Contribute": ["contributing", "extending", "changelog"],
}
# The theme takes this name for its own `iframe-worker`, which it would load from the network.
SEARCH_WORKER = "assets/iframe-worker.js"
_LINK = re.compile(r"(!?)\[([^\]\n]*)\]\((?![a-z]+:|#)([^)#\s]+)(#[^)\s]*)?\)")
_FENCED = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Set the order of pages: the sections, unlisted pages, design notes."""
    present = {path.stem for path in Path(config.docs_dir).glob("*.md")} | {
        Path(place).stem for place in BORROWED.values()
    }
    nav: list[dict[str, Any]] = [
        {section: [f"{name}.md" for name in names if name in present]} for section, names in SECTIONS.items()
    ]
    listed = {name for names in SECTIONS.values() for name in names}
    if others := sorted(present - listed):
        nav.append({"More": [f"{name}.md" for name in others]})
    nav.append({"Design": sorted(f"design/{path.name}" for path in Path(config.docs_dir).glob("design/*.md"))})
    config.nav = nav
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the borrowed documents, and what search needs without a server."""
    for source, place in BORROWED.items():
        files.append(File.generated(config, place, content=(ROOT / source).read_text(encoding="utf-8")))
    script = (ROOT / "scripts/search_worker.js").read_text(encoding="utf-8")
    files.append(File.generated(config, SEARCH_WORKER, content=script))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Fill in the generated tables, and point links at where their targets are in the site."""
    for name, make in _GENERATED.items():
        markdown = markdown.replace(f"<!-- generated: {name} -->", make() if name in markdown else "")
    place = page.file.src_uri
    source = next((source for source, borrowed in BORROWED.items() if borrowed == place), f"docs/{place}")
    parts = _FENCED.split(markdown)
    return "".join(part if number % 2 else site_links(part, source, place) for number, part in enumerate(parts))


def site_links(markdown: str, source: str, place: str) -> str:
    """Return `markdown` of repository file `source`, shown at `place`, with links that work in the site.

    A link to a file that is not part of the site becomes its text; one to a file that is not there stays, and the
    strict build refuses it.
    """

    def link(match: re.Match[str]) -> str:
        picture, text, target, anchor = match.groups()
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        if (ROOT / path).is_dir():
            path += "/README.md"
        if not (ROOT / path).exists():
            return match[0]
        found = path.removeprefix("docs/") if path.startswith("docs/") else BORROWED.get(path)
        if found is None:
            return text
        return f"{picture}[{text}]({posixpath.relpath(found, posixpath.dirname(place) or '.')}{anchor or ''})"

    return _LINK.sub(link, markdown)


def markdown_table(headers: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Return a Markdown table."""
    lines = [headers, ("---",) * len(headers), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def _presets() -> str:
    return markdown_table(PRESET_COLUMNS, [(f"`{name}`", *cells) for name, *cells in preset_rows()])


def _overlays() -> str:
    rows = [(f"`{name}`", f"`{changes_text(overlay_changes(name))}`") for name in overlay_names()]
    return markdown_table(("overlay", "sets"), rows)


def _values() -> str:
    base = load_preset("h100-sxm")
    parts = [_value_table(base, list(base.provenance))]
    for preset in map(load_preset, preset_names()):
        own = [path for path in preset.provenance if facts(preset, path) != facts(base, path)]
        if own:
            parts.append(_value_table(preset, own))
    return "\n\n".join(parts)


def _value_table(preset: Preset, paths: list[str]) -> str:
    rows = []
    for path in paths:
        entry = facts(preset, path)
        rows.append((f"`{path}`", value_text(entry["value"]), entry["unit"], entry["status"], entry["source"]))
    return f"### {preset.name}\n\n" + markdown_table(("path", "value", "unit", "status", "source"), rows)


_GENERATED = {"presets": _presets, "overlays": _overlays, "values": _values}
