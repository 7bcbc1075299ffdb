"""The errors users see: one type a stage, each message naming place, expectation and next step.

`simfa.cli` prints the message alone and exits with `exit_code`; anything else that escapes is a bug and shows a
traceback.
"""

import difflib
from collections.abc import Iterable


class SimfaError(Exception):
    """Bad input or a failed check; the message is complete and needs no traceback."""

    exit_code = 1


class ShapeError(SimfaError):
    """An attention shape or kernel configuration that cannot exist or is not supported."""


class HardwareError(SimfaError):
    """A hardware preset, overlay or override that is wrong; the message names the value's path."""


class LogError(SimfaError):
    """A `.salog` file that cannot be read as what it claims to be."""


class TraceError(SimfaError):
    """A `.satrace` file or program that is malformed or would hang; the message names the line."""


class SimulationError(SimfaError):
    """A simulation that cannot start or cannot finish."""


class InstrumentError(SimfaError):
    """FA3 sources, compilers or GPUs that instrumentation needs and does not find."""


class AnalyticalError(SimfaError):
    """Input the analytical model cannot price."""


class MeasureError(SimfaError):
    """A profiler export or table of measurements that cannot be read or joined."""


class ReportError(SimfaError):
    """A report or timeline that cannot be made from what is there."""


class StudyError(SimfaError):
    """An ablation or sensitivity study that asks for something that is not there."""


def did_you_mean(name: str, known: Iterable[str], otherwise: str) -> str:
    """Return the end of a message about an unknown name: the known one nearest to it, or `otherwise`."""
    close = difflib.get_close_matches(name, known, 1)
    return f"did you mean {close[0]}?" if close else otherwise
