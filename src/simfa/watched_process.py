"""Another program run to its end while a progress line shows how long that has taken and may still take."""

import subprocess
import time
from collections.abc import Mapping, Sequence

from simfa.progress import REDRAW_SECONDS, Meter


def watched_run(
    command: Sequence[str],
    what: str,
    *,
    expected_seconds: float = 0.0,
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    quiet: bool = False,
) -> "subprocess.CompletedProcess[str]":
    """Return what `subprocess.run` with captured text returns; `what` names the work in the progress line.

    Without `expected_seconds` nobody knows when it ends. The program is stopped where this one is. Raises `OSError`
    when it cannot be started.
    """
    begin = time.monotonic()
    with (
        Meter(what, expected_seconds, quiet=quiet) as meter,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env, cwd=cwd
        ) as process,
    ):
        try:
            while True:
                try:
                    out, err = process.communicate(timeout=REDRAW_SECONDS)
                    break
                except subprocess.TimeoutExpired:
                    # A job that takes longer than expected is not done yet.
                    meter.update(min(time.monotonic() - begin, 0.99 * expected_seconds))
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(command, process.returncode, out, err)
