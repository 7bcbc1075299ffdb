"""Random cases tell each rule apart: one constant changed, and some case takes other cycles."""

from functools import cache
from typing import Any

import msgspec
import pytest

from simfa.hardware import HardwareSpec
from simfa.simulate.reference import ReferenceResult
from tests.oracle.cases import Case, seeded_case
from tests.oracle.harness import differences, run_reference

CASES = 40
# What a constant becomes; the others are one more.
OTHER: dict[str, Any] = {
    "sm.scheduler": {"gto": "lrr", "lrr": "oldest", "oldest": "gto"},
    "cuda_core.sharing": {"shared": "private", "private": "shared"},
    "cuda_core.order": {"fifo": "round_robin", "round_robin": "fifo"},
    "cuda_core.register_pressure": {0.0: 0.5, 0.1: 1.0, 0.37: 0.0, 1.0: 0.5},
    "tma.level": {0: 1, 1: 0},
    "tma.deduplicate": {True: False, False: True},
    "tma.issue_bytes_per_cycle": {bytes_: 2 * bytes_ for bytes_ in (8, 16, 32, 64, 128, 256, 512)},
    "l2.line_bytes": {32: 64, 64: 32, 128: 64},
    "tma.request_bytes": {8: 16, 16: 32, 32: 16},
    "grid.launch_ns": {0.0: 8.0, 3.5: 8.0, 10.7: 8.0},
}
GROUPS = ("sm", "tensor_core", "cuda_core", "tma", "mbarrier", "named_barrier", "grid")
NOT_IN_THE_INSTRUCTION_SET = ("sm.shared_memory_bytes", "sm.registers")


@cache
def _case(index: int) -> tuple[Case, ReferenceResult]:
    case = seeded_case("constants", index)
    return case, run_reference(case)


def _constants() -> list[str]:
    tree = msgspec.to_builtins(seeded_case("constants", 0).hardware)
    paths = [f"{group}.{name}" for group in GROUPS for name in tree[group]]
    return [path for path in [*paths, "l2.line_bytes"] if path not in NOT_IN_THE_INSTRUCTION_SET]


def _changed(hardware: HardwareSpec, path: str) -> HardwareSpec:
    group, name = path.split(".")
    values = getattr(hardware, group)
    value = getattr(values, name)
    other = OTHER[path][value] if path in OTHER else value + 1
    changed = msgspec.structs.replace(values, **{name: other})
    return msgspec.structs.replace(hardware, **{group: changed})


@pytest.mark.parametrize("path", _constants())
def test_a_changed_constant_is_noticed(path: str):
    for index in range(CASES):
        case, result = _case(index)
        changed = case._replace(hardware=_changed(case.hardware, path))
        if differences(result, run_reference(changed)):
            return
    pytest.fail(f"no case of {CASES} depends on {path}")
