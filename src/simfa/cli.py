"""The `simfa` command: a lazy group whose subcommands live in the stage that does the work.

`simfa --help` imports no stage. A command's module is imported when the command runs or shows its own help.
"""

import difflib
import importlib
import os
import sys
from typing import NoReturn

import click

from simfa.errors import SimfaError

# Command name: module with the click command of that name (dashes as underscores), one-line help.
COMMANDS: dict[str, tuple[str, str]] = {
    "doctor": ("simfa.doctor", "What this machine can do: compiled core, GPU, compilers, extras."),
    "hardware": ("simfa.hardware_cli", "Presets: list, show and explain every value with its source."),
    "instrument": ("simfa.instrument.commands", "FA3 sources: fetch, patch, build and verify the probed kernel."),
    "capture": ("simfa.instrument.commands", "Run plain and probed kernels on a Hopper GPU and write a .salog."),
    "synth": ("simfa.instrument.log_commands", "Write a synthetic .salog from the kernel's schedule."),
    "log": ("simfa.instrument.log_commands", "Look into a .salog: info, stats, dump."),
    "translate": ("simfa.translate.commands", "Turn a .salog into a .satrace and verify it."),
    "simulate": ("simfa.simulate.commands", "Run a .satrace cycle by cycle on a GPU preset."),
    "predict": ("simfa.predict_cli", "Simulate one attention shape in memory: synth, translate, simulate."),
    "microbench": ("simfa.simulate.microbench_commands", "Small programs on the engine against known curves."),
    "analytical": ("simfa.analytical.commands", "Traffic, intensity and latency bounds in closed form."),
    "figures": ("simfa.analytical.commands", "Draw the analytical model's traffic and roofline figures as SVG."),
    "sweep": ("simfa.analytical.commands", "Grids over hardware, kernel and workload, with a Pareto front."),
    "ingest": ("simfa.measure.commands", "Read Nsight and PyTorch profiler exports into one table."),
    "validate": ("simfa.validate_cli", "Compare simulation and model with measurements, case by case."),
    "calibrate": ("simfa.calibrate_cli", "Fit a few preset values on half of a measured set."),
    "ablate": ("simfa.ablate_cli", "One mechanism changed at a time: slowdown, errors, and the counter that says why."),
    "sensitivity": ("simfa.sensitivity_cli", "Every preset value moved a little: which ones a latency depends on."),
    "explain": ("simfa.report.commands", "Where every cycle of a run went."),
    "timeline": ("simfa.timeline_cli", "A run, a log, or both on one axis, for Perfetto, as a chart or a table."),
    "memory-figures": ("simfa.report.memory_commands", "Draw microbenchmark curves beside the measured ones as SVG."),
    "report": ("simfa.report.commands", "Write the accuracy report as one HTML file."),
}


class LazyGroup(click.Group):
    """A group that imports a command's module only when that command is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return all command names in pipeline order."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return one command, or suggest the nearest name."""
        if cmd_name not in COMMANDS:
            close = difflib.get_close_matches(cmd_name, COMMANDS, 1)
            if close:
                ctx.fail(f"No such command {cmd_name!r}; did you mean {close[0]!r}?")
            return None
        module = importlib.import_module(COMMANDS[cmd_name][0])
        command = getattr(module, cmd_name.replace("-", "_"))
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List commands with the one-line helps above, importing nothing."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="simfa")
def simfa() -> None:
    """FlashAttention-3 on Hopper: logs, cycle-level simulation, analytical model, accuracy."""


def main() -> None:
    """Run the command line; a `SimfaError` prints its message alone and sets the exit code.

    So does what the machine refuses where no command has words for it: a file, memory, room for what is printed. A
    reader of the output that has gone, such as `head`, ends the program without a word. Raises `KeyboardInterrupt` on
    Ctrl-C, also where it answers a question.
    """
    _open_closed_streams()
    try:
        try:
            # Outside its standalone mode click leaves Ctrl-C and its own errors to us; a number is an exit code.
            code = simfa.main(prog_name="simfa", standalone_mode=False)
        finally:
            sys.stdout.flush()
        sys.exit(code if isinstance(code, int) else 0)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except SimfaError as error:
        _fail(str(error), error.exit_code)
    except BrokenPipeError:
        _drop_output()
        sys.exit(1)
    except OSError as error:
        _drop_output()
        place = f"{error.filename}: " if error.filename is not None else ""
        _fail(f"{place}{error.strerror or error}")
    except MemoryError:
        _fail(
            "this machine has not enough memory for that; ask for something smaller, or for fewer --threads or --jobs"
        )
    except click.Abort:
        raise KeyboardInterrupt from None


def _fail(message: str, code: int = 1) -> NoReturn:
    """Print the one line that a failed command leaves, and exit."""
    click.echo(f"simfa: {message}", err=True)
    sys.exit(code)


def _open_closed_streams() -> None:
    """Let standard streams that the caller has closed be the null device, before files get their numbers."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            null = os.open(os.devnull, os.O_RDWR)
            if null != number:
                os.dup2(null, number)
                os.close(null)
            setattr(sys, name, os.fdopen(number, "r" if number == 0 else "w", closefd=False))


def _drop_output() -> None:
    """Send what standard output still holds nowhere, or the interpreter's last flush would fail as well."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.close(null)
