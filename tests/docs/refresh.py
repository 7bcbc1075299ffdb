"""`python -m tests.docs.refresh`: write what commands print now into the pages, with the same lines left out."""

import difflib
import tempfile
from pathlib import Path

from tests.docs.pages import PAGES, ROOT, console_commands, read
from tests.docs.running import Sandbox, same


def renewed(shown: str, found: str) -> str:
    """Return `shown` with the lines of `found` that are most like its own; lines of `...` stay where they are."""
    lines, at, result = [line.rstrip() for line in found.splitlines()], 0, []
    parts: list[list[str]] = [[]]
    for line in shown.splitlines():
        parts[-1].append(line) if line.strip() != "..." else parts.extend([[line], []])
    for part in parts:
        if not part or part[0].strip() == "...":
            result += part
            continue
        starts = [at] if len(parts) == 1 or part is parts[0] else range(at, max(at + 1, len(lines) - len(part) + 1))
        at = max(starts, key=lambda start: _likeness(part, lines[start : start + len(part)]))
        end = len(lines) if len(parts) == 1 else at + len(part)
        # A line that leaves something out stays, wherever it moved.
        result += [next((old for old in part if "..." in old and same(old, new)), new) for new in lines[at:end]]
        at = end
    return "".join(f"{line}\n" for line in result)


def _likeness(part: list[str], lines: list[str]) -> float:
    return sum(difflib.SequenceMatcher(None, old, new).ratio() for old, new in zip(part, lines, strict=False))


def refresh(page: str) -> int:
    """Renew one page; return how many outputs changed."""
    text, changed = read(page), 0
    with tempfile.TemporaryDirectory() as folder:
        sandbox = Sandbox(Path(folder))
        for command in console_commands(page):
            found = "" if command.not_run else sandbox.run(command)
            if command.not_run or not command.output or same(command.output, found):
                continue
            before = f"$ {command.text}\n{command.output}"
            text = text.replace(before, f"$ {command.text}\n{renewed(command.output, found)}")
            changed += 1
    if changed:
        (ROOT / page).write_text(text, encoding="utf-8")
    return changed


if __name__ == "__main__":
    for name in PAGES:
        if count := refresh(name):
            print(f"{name}: {count} outputs")
