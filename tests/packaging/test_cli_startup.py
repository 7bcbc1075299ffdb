"""The command line starts fast: help imports neither numpy nor a stage."""

import os
import subprocess
import sys
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from simfa.cli import COMMANDS, simfa

HEAVY = ("numpy", "pandas", "matplotlib", "jinja2", "snakemake")

PROBE = """
import sys
from simfa.cli import simfa
try:
    simfa.main({arguments!r}, prog_name="simfa")
except SystemExit as stop:
    code = stop.code
heavy = [name for name in {heavy!r} if name in sys.modules]
stages = [name for name in sys.modules if name.startswith("simfa.") and name.count(".") > 1]
print("probe", code, heavy, stages)
"""


def probe(arguments: list[str]) -> tuple[str, str]:
    """Run the command line in a fresh interpreter; return its output and the probe's last line."""
    script = PROBE.format(arguments=arguments, heavy=HEAVY)
    done = subprocess.run([sys.executable, "-P", "-c", script], capture_output=True, text=True, check=True)
    *text, last = done.stdout.rstrip().splitlines()
    return "\n".join(text), last


def test_help_imports_nothing_heavy_and_no_stage() -> None:
    text, last = probe(["--help"])
    assert last == "probe 0 [] []"
    for name in COMMANDS:
        assert f"  {name} " in text


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_exists_and_helps(command: str) -> None:
    done = CliRunner().invoke(simfa, [command, "--help"], prog_name="simfa")
    assert done.exit_code == 0, done.output
    assert done.output.startswith(f"Usage: simfa {command} ")


@pytest.mark.parametrize("command", ["doctor", "hardware", "validate", "predict", "report"])
def test_command_help_loads_nothing_heavy(command: str) -> None:
    assert probe([command, "--help"])[1].startswith("probe 0 [] ")


# Commands that never take two seconds; all others have a progress line, and a flag against it.
INSTANT = {"doctor", "explain", "hardware explain", "hardware list", "hardware show", "instrument patch"}


def leaves(command: click.Command, name: str = "") -> Iterator[tuple[str, click.Command]]:
    """Yield every command below a group, with its full name."""
    if not isinstance(command, click.Group):
        yield name, command
        return
    context = click.Context(command)
    for below in command.list_commands(context):
        found = command.get_command(context, below)
        assert found is not None
        yield from leaves(found, f"{name} {below}".strip())


def test_every_long_command_can_be_quiet() -> None:
    loud = {name for name, command in leaves(simfa) if not any("--quiet" in entry.opts for entry in command.params)}
    assert loud == INSTANT


def test_unknown_command_is_a_usage_error_with_a_suggestion() -> None:
    done = subprocess.run([sys.executable, "-m", "simfa", "simulat"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "did you mean 'simulate'" in done.stderr


def complete(*words: str) -> list[str]:
    """What the shell would offer for the last of the words, as `_SIMFA_COMPLETE=bash_source simfa` sets it up."""
    environment = os.environ | {
        "_SIMFA_COMPLETE": "bash_complete", "COMP_WORDS": " ".join(("simfa", *words)), "COMP_CWORD": str(len(words)),
    }  # fmt: skip
    command = [sys.executable, "-P", "-c", "from simfa.cli import simfa; simfa.main(prog_name='simfa')"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return [line.partition(",")[2] for line in done.stdout.splitlines()]


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("pre",), ["predict"]),
        (("predict", "--over"), ["--overlay"]),
        (("predict", "--gpu", "h100"), ["h100-sxm"]),
        (("simulate", "--overlay", "modulo"), ["modulo-hash"]),
        (("predict", "--model", "llama3."), ["llama3.1-405b"]),
        (("ingest", "--format", "nsys"), ["nsys-sqlite", "nsys-stats"]),
    ],
)
def test_shell_completion(words: tuple[str, ...], offered: list[str]) -> None:
    assert complete(*words) == offered


def test_help_costs_little_more_than_the_interpreter() -> None:
    """CPU time of `simfa --help` beyond that of an empty interpreter with click: the 150 ms leave room for both."""

    def cost(code: str) -> float:
        script = f"import time; begin = time.process_time(); {code}; print(time.process_time() - begin)"
        runs = [subprocess.run([sys.executable, "-P", "-c", script], capture_output=True, text=True) for _ in range(5)]
        return min(float(run.stdout.split()[-1]) for run in runs)

    helped = cost("from simfa.cli import simfa; simfa.main(['--help'], prog_name='simfa', standalone_mode=False)")
    assert helped < 2.5 * cost("import click")


@pytest.mark.parametrize(
    ("arguments", "suggestion"),
    [
        (["predict", "--gpu", "h100-smx", "--seqlen", "64", "--heads-q", "1"], "did you mean h100-sxm?"),
        (["predict", "--overlay", "no-lcr", "--seqlen", "64", "--heads-q", "1"], "did you mean no-lrc?"),
        (["predict", "--set", "gpu.sm_cnt=3", "--seqlen", "64", "--heads-q", "1"], "did you mean gpu.sm_count?"),
        (["predict", "--seqln", "64"], "Did you mean"),
        (["hardware", "shwo"], "Did you mean 'show'?"),
        (["validate", "--set", "ncu1500"], "did you mean ncu-1500?"),
    ],
)
def test_mistyped_names_get_a_suggestion(arguments: list[str], suggestion: str) -> None:
    done = subprocess.run([sys.executable, "-m", "simfa", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode in (1, 2)
    assert suggestion in done.stderr
    assert "Traceback" not in done.stderr
