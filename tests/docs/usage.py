"""Whether a command line could run: program, subcommand, flags, choices, presets, make targets and extras exist."""

import importlib.util
import re
import shlex
import subprocess
import sys
import tomllib
from functools import lru_cache

import click

from simfa.cli import simfa
from simfa.errors import SimfaError
from simfa.hardware import load_preset
from tests.docs.pages import ROOT

# Programs of others, whose flags are not ours to check.
_FOREIGN = {"cat", "git", "grep", "ncu", "nsys", "nvidia-smi", "sh"}
_SEPARATORS = {"|", "||", "&&", ";"}
_REDIRECTIONS = {">", ">>", "<"}


def complaint(text: str) -> str | None:
    """Return what is wrong with a command line, or None."""
    lexer = shlex.shlex(text.replace("\\\n", " "), posix=True, punctuation_chars=True)
    lexer.commenters = "#"
    part: list[str] = []
    words = [*lexer, ";"]
    for before, word in zip(["", *words], words, strict=False):
        if word in _REDIRECTIONS or before in _REDIRECTIONS:
            continue
        if word not in _SEPARATORS:
            part.append(word)
            continue
        if part and (problem := _one(part)):
            return problem
        part = []
    return None


def _one(words: list[str]) -> str | None:
    """Check one program with its arguments."""
    while words and (words[0] == "sudo" or re.fullmatch(r"[A-Z_]+=\S*", words[0])):
        words = words[1:]
    program, *arguments = words
    if program == "simfa":
        return simfa_complaint(arguments)
    if program == "make":
        targets = set(re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
        unknown = {word for word in arguments if "=" not in word} - targets
        return f"no make target {sorted(unknown)}" if unknown else None
    if program == "pip" and arguments[:1] == ["install"]:
        extras = {extra for word in arguments for found in re.findall(r"\[(.*)\]", word) for extra in found.split(",")}
        return f"no extra {sorted(extras - _extras())}" if extras - _extras() else None
    if program == "snakemake":
        files = [word for word in arguments if word.endswith((".yaml", "/default", "/slurm"))]
        missing = [word for word in files if not (ROOT / word).exists()]
        return f"no file {missing}" if missing else None
    if program == "python" and arguments[0] == "-m":
        return _module_complaint(arguments[1], [word for word in arguments[2:] if word.startswith("-")])
    if program == "python":
        return None if (ROOT / arguments[0]).is_file() else f"no file {arguments[0]}"
    return None if program in _FOREIGN else f"no program {program}"


def _extras() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return set(project["optional-dependencies"])


def _module_complaint(module: str, flags: list[str]) -> str | None:
    if importlib.util.find_spec(module) is None:
        return f"no module {module}"
    helped = subprocess.run([sys.executable, "-m", module, "--help"], capture_output=True, text=True, check=False)
    unknown = [flag for flag in flags if not re.search(rf"(?<![\w-]){flag}\b", helped.stdout)]
    return f"{module} --help does not know {unknown}" if helped.returncode or unknown else None


def simfa_complaint(arguments: list[str]) -> str | None:
    """Check a whole command line of simfa without running it."""
    command, context, rest = resolve(arguments)
    if isinstance(command, click.Group):
        return f"no command {' '.join(arguments)!r}" if rest and rest[0] not in ("--help", "--version") else None
    try:
        given, _, order = command.make_parser(context).parse_args(list(rest))
        for parameter in order:
            if isinstance(parameter.type, click.Choice) and parameter.name in given:
                parameter.type_cast_value(context, given[parameter.name])
    except click.UsageError as error:
        return error.format_message()
    if {"gpu", "overlays", "overrides"} <= {parameter.name for parameter in command.params}:
        try:
            load_preset(given.get("gpu") or "h100-sxm", given.get("overlays") or (), given.get("overrides") or ())
        except SimfaError as error:
            return str(error)
    return None


def resolve(arguments: list[str]) -> tuple[click.Command, click.Context, list[str]]:
    """Return the command that the first words name, its context, and the words left."""
    command: click.Command = simfa
    context = click.Context(simfa, info_name="simfa")
    rest = list(arguments)
    while isinstance(command, click.Group) and rest and (found := _subcommand(command, context, rest[0])):
        context = click.Context(found, parent=context, info_name=rest.pop(0))
        command = found
    return command, context, rest


def _subcommand(group: click.Group, context: click.Context, name: str) -> click.Command | None:
    return group.get_command(context, name) if name in group.list_commands(context) else None


@lru_cache(maxsize=1)
def all_flags() -> dict[str, set[str]]:
    """Return the long flags of every command, by the words that name it."""
    found: dict[str, set[str]] = {}

    def visit(command: click.Command, words: tuple[str, ...], context: click.Context) -> None:
        options = [parameter for parameter in command.params if isinstance(parameter, click.Option)]
        found[" ".join(words)] = {flag for option in options for flag in (*option.opts, *option.secondary_opts)}
        found[" ".join(words)] |= {"-h", "--help"}
        if isinstance(command, click.Group):
            for name in command.list_commands(context):
                inner = command.get_command(context, name)
                assert inner is not None
                visit(inner, (*words, name), click.Context(inner, parent=context))

    visit(simfa, (), click.Context(simfa))
    return found
