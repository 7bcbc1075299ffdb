"""Console blocks and code spans of the pages that users read.

A `console` block shows commands behind `$ ` and what they print. A block titled `title="needs ..."` (a GPU, the
network) or `title="takes ..."` (long) is checked without running it; every other one is run.
"""

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for pattern in ("*.md", "docs/*.md", "docs/design/*.md", "config/*.md", "data/*/*.md", "examples/**/*.md")
    for path in ROOT.glob(pattern)
)
_FENCE = re.compile(r"^```(?P<language>\S*)(?P<attributes>.*)$")
_TITLE = re.compile(r'title="([^"]*)"')


class Block(NamedTuple):
    """A fenced block: its language, its title, its lines, and the line of the page before them."""

    page: str
    language: str
    title: str
    lines: tuple[str, ...]
    line: int


class Command(NamedTuple):
    """One command as typed, with the output shown under it; `not_run` says why it is only checked."""

    page: str
    line: int
    text: str
    output: str
    not_run: str

    @property
    def place(self) -> str:
        """Where the command stands."""
        return f"{self.page}:{self.line}"


def read(page: str) -> str:
    """Return a page's text."""
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(page: str, text: str) -> list[Block]:
    """Return the fenced blocks of a page in order."""
    found: list[Block] = []
    opened: re.Match[str] | None = None
    lines: list[str] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if opened is None:
            opened, lines = _FENCE.match(line), []
        elif line == "```":
            title = _TITLE.search(opened["attributes"])
            start = number - len(lines) - 1
            found.append(Block(page, opened["language"], title[1] if title else "", tuple(lines), start))
            opened = None
        else:
            lines.append(line)
    if opened is not None:
        raise ValueError(f"{page}: a fenced block does not end")
    return found


def commands(block: Block) -> list[Command]:
    """Return the commands of a console block; a line ending in a backslash goes on in the next."""
    not_run = block.title if block.title.startswith(("needs ", "takes ")) else ""
    found: list[Command] = []
    typed = False
    for offset, line in enumerate(block.lines, start=1):
        if line.startswith("$ "):
            found.append(Command(block.page, block.line + offset, line[2:], "", not_run))
        elif not found:
            raise ValueError(f"{block.page}:{block.line + offset}: output before the first `$ ` of a console block")
        elif typed:
            found[-1] = found[-1]._replace(text=f"{found[-1].text}\n{line}")
        else:
            found[-1] = found[-1]._replace(output=f"{found[-1].output}{line}\n")
        typed = line.endswith("\\") and (line.startswith("$ ") or typed)
    if not found:
        raise ValueError(f"{block.page}:{block.line}: a console block without a command")
    return found


def console_commands(page: str) -> list[Command]:
    """Return all commands of a page in order."""
    return [found for block in blocks(page, read(page)) if block.language == "console" for found in commands(block)]


def code_spans(text: str) -> list[str]:
    """Return the inline code of a page."""
    outside = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"(?<!`)`([^`\n]+)`(?!`)", outside)
