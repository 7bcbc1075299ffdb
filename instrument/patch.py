"""Insert the probes into a copy of the FA3 sources, by the rules of `simfa.instrument.rules` and no others."""

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from simfa.errors import InstrumentError
from simfa.instrument.rules import EPILOGUE, KERNEL, MAINLOOP, MARKER, RULES, Region, Rule

PATCHED_FILES = (MAINLOOP, KERNEL, EPILOGUE)
LEVELS = (0, 1, 2)
_COMMENT = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)


class Hit(NamedTuple):
    """How often one rule hit one file."""

    rule: str
    file: str
    hits: int


class Patch(NamedTuple):
    """The files of one level after patching, by name, and what each rule hit."""

    level: int
    texts: dict[str, str]
    hits: list[Hit]


def patch_sources(texts: Mapping[str, str], level: int, rules: Iterable[Rule] = RULES) -> Patch:
    """Return the patched texts of `texts` (file name: content) for event level 0 (nothing), 1 or 2.

    Raises `InstrumentError` for sources that carry probes already, for a rule that does not hit as often as it must,
    and for a probe that would not stand on its own as a statement; nothing is returned half patched.
    """
    if level not in LEVELS:
        raise InstrumentError(f"event level {level} is unknown; expected 0 (plain), 1 (Table 4) or 2 (all events)")
    patched = {name for name, text in texts.items() if MARKER in text}
    if patched:
        names = ", ".join(sorted(patched))
        raise InstrumentError(f"{names}: already patched ({MARKER!r} is there); start from unpatched sources")
    codes = {name: _without_comments(text) for name, text in texts.items()}
    insertions: dict[str, list[tuple[int, str]]] = {name: [] for name in texts}
    hits = []
    for rule in rules:
        if rule.level <= level:
            found = _insertions(codes, rule)
            insertions[rule.file] += found
            hits.append(Hit(rule.name, rule.file, len(found)))
    return Patch(level, {name: _insert(text, insertions[name]) for name, text in texts.items()}, hits)


def unified_diff(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """Return what patching changed, as a unified diff; empty for level 0."""
    lines: list[str] = []
    for name in sorted(before):
        lines += difflib.unified_diff(
            before[name].splitlines(keepends=True),
            after[name].splitlines(keepends=True),
            f"a/hopper/{name}",
            f"b/hopper/{name}",
        )
    return "".join(lines)


def _without_comments(text: str) -> str:
    """Return `text` with comments blanked out and every offset kept."""

    def blank(match: re.Match[str]) -> str:
        found = match.group()
        return found if found.startswith('"') else re.sub(r"[^\n]", " ", found)

    return _COMMENT.sub(blank, text)


def _insertions(codes: Mapping[str, str], rule: Rule) -> list[tuple[int, str]]:
    """Return offset and text of every insertion of `rule`, or raise."""
    if rule.file not in codes:
        raise InstrumentError(f"{rule.file}: not found; rule {rule.name!r} needs it. This is not an FA3 Hopper tree.")
    code = codes[rule.file]
    first, last = _bounds(code, rule)
    matches = list(re.compile(rule.pattern).finditer(code, first, last))
    if len(matches) != rule.hits:
        raise _refusal(rule, f"{len(matches)} call-sites match {rule.pattern!r}, expected {rule.hits}")
    found = []
    for match in matches:
        if rule.statement and not code[: match.start()].rstrip().endswith((";", "{", "}")):
            line = code.count("\n", 0, match.start()) + 1
            raise _refusal(rule, f"line {line}: the call does not begin a statement, so a probe cannot stand beside it")
        found.append((match.start() if rule.where == "before" else match.end(), match.expand(rule.text)))
    return found


def _bounds(text: str, rule: Rule) -> tuple[int, int]:
    """Return the half-open range of offsets that `rule.region` spans."""
    region: Region = rule.region
    edges = []
    for anchor, edge in ((region.start, 0), (region.end, len(text))):
        if anchor is None:
            edges.append(edge)
            continue
        starts = [match.start() for match in re.finditer(anchor, text)]
        if len(starts) != 1:
            raise _refusal(rule, f"{len(starts)} places match the anchor {anchor!r}, expected 1")
        edges += starts
    if None not in region and edges[0] >= edges[1]:
        raise _refusal(rule, f"the anchor {region.end!r} comes before {region.start!r}")
    return edges[0], edges[1]


def _insert(text: str, insertions: list[tuple[int, str]]) -> str:
    """Return `text` with every insertion at its offset; those at one offset keep their order."""
    pieces = []
    position = 0
    for offset, inserted in sorted(insertions, key=lambda insertion: insertion[0]):
        pieces += [text[position:offset], inserted]
        position = offset
    return "".join([*pieces, text[position:]])


def _refusal(rule: Rule, reason: str) -> InstrumentError:
    return InstrumentError(
        f"{rule.file}: rule {rule.name!r}: {reason}. The probes are known to fit FA3 v2.8.0 to v2.8.3 and later trees "
        "with the same main loop; use one of those (`simfa instrument fetch` brings one)."
    )
