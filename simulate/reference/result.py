"""What one run of the reference engine returns."""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec


class Issue(NamedTuple):
    """One issued instruction: its cycle, its program, its index in the program's text (`programs.Step.flat_index`)."""

    cycle: int
    program: str
    flat_index: int


class ReferenceResult(msgspec.Struct, frozen=True, kw_only=True):
    """Cycles of a whole kernel under ideal memory; keys are (cta, role).

    `issues` has one entry for each slot a role took, in order; the single WGMMAs of a count have one each. `ends` is
    the cycle at which a role is done. `lines` counts the requests of all SMs, `bytes` what they move, once for each SM
    that gets it. `paths` counts how often each mechanism
    was taken (`MB_WAIT immediate`, `line waits for an answer`, ...): the coverage of a run.
    """

    cycles: int
    issues: dict[tuple[int, int], list[Issue]]
    ends: dict[tuple[int, int], int]
    lines: int
    bytes: int
    paths: Mapping[str, int]
