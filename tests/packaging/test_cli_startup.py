"""The command line starts fast: help imports neither numpy nor a stage."""

import subprocess
import sys

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


def test_unknown_command_is_a_usage_error_with_a_suggestion() -> None:
    done = subprocess.run([sys.executable, "-m", "simfa", "simulat"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "did you mean 'simulate'" in done.stderr
