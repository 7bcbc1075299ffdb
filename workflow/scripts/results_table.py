"""Write the accuracy tables of a summary.json between the markers of a Markdown file.

Usage: results_table.py SUMMARY MARKDOWN. The text between `<!-- results -->` and `<!-- /results -->` is replaced.
"""

import sys
from pathlib import Path

import msgspec

from simfa.errors import ReportError, SimfaError
from simfa.files import atomic_write
from simfa.summary import Accuracy, CaseResult, SetResult, Summary

BEGIN, END = "<!-- results -->", "<!-- /results -->"


def table(result: SetResult) -> str:
    """Return one set as a Markdown table with its summary line."""
    lines = [
        "| GPU, SM clock | batch | length | heads | D | mask | measured us | simulated us | error |",
        "| --- | ---: | ---: | ---: | ---: | --- | ---: | ---: | ---: |",
        *(row(case) for case in result.cases),
        "",
        summary_line(result.name, result.accuracy),
    ]
    return "\n".join(lines)


def row(case: CaseResult) -> str:
    """Return one case as a table row."""
    heads = str(case.heads_q) if case.heads_q == case.heads_kv else f"{case.heads_q}/{case.heads_kv}"
    mask = "causal" if case.causal else "full"
    clock = f"{case.sm_clock_mhz:.0f} MHz{'' if case.clock_stated else ' (nominal)'}"
    if case.effective_clock_mhz is not None:
        clock += f", sustained {case.effective_clock_mhz:.0f}"
    return (
        f"| {case.gpu}, {clock} | {case.batch} | {case.seqlen_q} | {heads} | {case.head_dim} | {mask} | "
        f"{case.measured_us:.2f} | {case.simulated_us:.2f} | {case.error:+.1%} |"
    )


def summary_line(name: str, accuracy: Accuracy) -> str:
    """Return a set's figures in one sentence."""
    if accuracy.mape is None or accuracy.max_ape is None or accuracy.bias is None:
        return f"`{name}`: no case compared, {accuracy.excluded} excluded."
    return (
        f"`{name}`: **MAPE {accuracy.mape:.1%}**, largest error {accuracy.max_ape:.1%}, bias {accuracy.bias:+.1%}, "
        f"{accuracy.used} cases, {accuracy.excluded} excluded."
    )


def insert(text: str, block: str, name: str) -> str:
    """Return `text` with `block` between the markers; raises `ReportError` when they are not there once, in order."""
    before, found_begin, rest = text.partition(BEGIN)
    _, found_end, after = rest.partition(END)
    if not found_begin or not found_end or BEGIN in rest:
        raise ReportError(f"{name}: expected {BEGIN} and then {END}, once each")
    return f"{before}{BEGIN}\n{block}\n{END}{after}"


def main(summary_path: str, markdown_path: str) -> None:
    """Replace the tables of a Markdown file."""
    try:
        summary = msgspec.json.decode(Path(summary_path).read_bytes(), type=Summary)
    except (OSError, msgspec.DecodeError) as error:
        raise ReportError(f"{summary_path}: not a summary.json: {error}") from error
    markdown = Path(markdown_path)
    block = "\n\n".join(table(result) for result in summary.sets)
    try:
        before = markdown.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ReportError(f"{markdown_path}: cannot be read: {error}") from error
    text = insert(before, block, markdown_path)
    with atomic_write(markdown) as handle:
        handle.write(text)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except SimfaError as error:
        sys.exit(f"results_table: {error}")
