"""Every command that README and docs show runs and prints what is shown; those that cannot run here would parse."""

import doctest
import re
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT, Command, blocks, code_spans, commands, console_commands, read
from tests.docs.refresh import renewed
from tests.docs.running import Sandbox, same
from tests.docs.usage import all_flags, complaint, resolve

CONSOLE = {page: found for page in PAGES if (found := console_commands(page))}
SLOW = {"docs/api.md": pytest.mark.slow}  # runs the example scripts; tests/packaging/test_examples.py calls them
DOCTEST = [page for page in PAGES if ">>> " in read(page)]
# Flags of other programs that the pages name alone.
_FOREIGN_FLAGS = {
    "--cuda-graph-trace", "--metrics", "--print-kernel-base", "--print-units", "--query-metrics", "--target-processes",
    "--config", "--configfile", "--unlock",
}  # fmt: skip


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    return Sandbox(tmp_path)


@pytest.mark.parametrize("page", [pytest.param(page, marks=SLOW.get(page, ())) for page in CONSOLE])
def test_commands_print_what_is_shown(page: str, sandbox: Sandbox) -> None:
    for command in CONSOLE[page]:
        if command.not_run:
            continue
        found = sandbox.run(command)
        if command.output:
            assert same(command.output, found), f"{command.place}: `{command.text}` prints\n{found}"


@pytest.mark.parametrize("page", CONSOLE)
def test_commands_could_run(page: str) -> None:
    problems = {command.place: problem for command in CONSOLE[page] if (problem := complaint(command.text))}
    assert problems == {}


@pytest.mark.parametrize("page", DOCTEST)
def test_python_examples(page: str, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(sandbox.work)
    failed, tried = doctest.testfile(str(ROOT / page), module_relative=False)
    assert failed == 0
    assert tried


@pytest.mark.parametrize("page", PAGES)
def test_no_command_escapes(page: str) -> None:
    for block in blocks(page, read(page)):
        if block.language != "console":
            typed = [line for line in block.lines if re.match(r"(\$ |simfa |make |snakemake )", line)]
            assert not typed, f"{page}:{block.line}: commands belong in a console block: {typed}"
        if block.language == "python":
            assert any(line.startswith(">>> ") for line in block.lines), f"{page}:{block.line}: is not run"
        if block.title:
            assert block.title.startswith(("needs ", "takes ")), f"{page}:{block.line}: title {block.title!r}"


@pytest.mark.parametrize("page", PAGES)
def test_named_commands_and_flags_exist(page: str) -> None:
    flags = all_flags()
    known = _FOREIGN_FLAGS.union(*flags.values())
    for span in code_spans(read(page)):
        words = span.split()
        if words[0] == "simfa" and len(words) > 1 and words[1] != "|":
            command, context, _ = resolve(words[1:])
            path = " ".join(context.command_path.split()[1:])
            assert path or words[1].startswith(("-", "<")), f"{page}: `{span}` names no command"
            wrong = set(re.findall(r"(?<!\S)--[a-z][a-z0-9-]*", span)) - flags[path]
            assert not wrong, f"{page}: `{span}`: {command.name} has no {sorted(wrong)}"
        elif re.fullmatch(r"--[a-z][a-z0-9-]*", words[0]):
            assert words[0] in known, f"{page}: no command has `{words[0]}`"


def test_the_reader_of_pages_finds_what_is_there() -> None:
    page = (
        'intro `simfa predict`\n```console title="needs a GPU"\n$ simfa capture \\\n    -o x\n```\n'
        "```console\n$ a\none\ntwo\n$ b\n```\n"
    )
    first, second = blocks("page.md", page)
    assert (first.title, first.line) == ("needs a GPU", 2)
    assert commands(first) == [Command("page.md", 3, "simfa capture \\\n    -o x", "", "needs a GPU")]
    assert [(found.text, found.output) for found in commands(second)] == [("a", "one\ntwo\n"), ("b", "")]
    assert code_spans(page) == ["simfa predict"]


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("simfa predct --model llama3-8b", "predct"),
        ("simfa predict --modle llama3-8b", "--modle"),
        ("simfa predict --model llama3-9b", "llama3-9b"),
        ("simfa predict --model llama3-8b --seqlen 512 --set l2.mshrs=3", "l2.mshr"),
        ("simfa predict --model llama3-8b --seqlen 512 --gpu h100", "h100"),
        ("simfa log inf run.salog", "inf"),
        ("make al", "al"),
        ("pip install 'simfa[reports]'", "reports"),
        ("python examples/nothing.py", "nothing.py"),
        ("python -m simfa.instrument.gpu_check --libary x", "--libary"),
        ("simfa doctor | grpe x", "grpe"),
        ("snakemake all --configfile config/none.yaml", "none.yaml"),
    ],
)  # fmt: skip
def test_wrong_commands_are_seen(line: str, word: str) -> None:
    problem = complaint(line)
    assert problem is not None
    assert word in problem


def test_comparison_of_output_can_fail() -> None:
    assert same("a ... z\n...\n", "a b z  \nmore\nlines\n")
    assert not same("a\n", "a\nb\n")
    assert not same("cycles 1\n", "cycles 2\n")


def test_renewing_keeps_what_is_left_out() -> None:
    now = "head\ncycles   9\nother 1\nL2 reads 5 MB\ntail\n"
    assert renewed("...\ncycles   7\n...\nL2 reads 4 MB\n...\n", now) == "...\ncycles   9\n...\nL2 reads 5 MB\n...\n"
    assert renewed("head\ncycles ... s\n...\n", now) == "head\ncycles   9\n...\n"
    assert renewed("head\ncycles ...\n...\n", now) == "head\ncycles ...\n...\n"
    assert renewed("old\n", now) == now
