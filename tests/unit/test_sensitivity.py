"""Which preset values move, by how much, and the table that follows; around a stand-in simulator."""

import msgspec
import pytest

from simfa.errors import HardwareError, StudyError
from simfa.hardware import HardwareSpec, load_preset, value_at
from simfa.pipeline import predict
from simfa.sensitivity import UNREAD, grain, move, reason_not_to_move, sensitivity, value_paths, with_value
from simfa.sensitivity_text import sensitivity_csv, sensitivity_text
from simfa.studies import Sensitivity
from simfa.workload import AttentionShape

PRESET = load_preset("h100-sxm")
SPEC = PRESET.spec


def can_run(hardware: HardwareSpec) -> None:
    """Accept everything but wide issue, as an engine with a limit would."""
    if hardware.sm.issue_width > 4:
        raise HardwareError("sm.issue_width: expected 1 to 4")


def study(perturbation: float = 0.2, spec: HardwareSpec = SPEC) -> tuple[Sensitivity, list[HardwareSpec]]:
    """A kernel that takes a fixed time, the launch, and FLOP over the tensor rate."""
    asked: list[HardwareSpec] = []

    def run_all(variants):
        asked.extend(variants)
        times = [100 + entry.grid.launch_ns / 1000 + 4096e2 / entry.tensor_core.flop_per_cycle for entry in variants]
        return [(round(1000 * time), time) for time in times]

    preset = msgspec.structs.replace(PRESET, spec=spec)
    return sensitivity(preset, "some shape", "latest", perturbation, run_all, can_run), asked


def moved(path: str, change: float, spec: HardwareSpec = SPEC) -> float | None:
    step = move(spec, path, change, can_run)
    assert (step.hardware is None) == bool(step.reason)
    return None if step.hardware is None else value_at(step.hardware, path)


def test_rows_are_sorted_by_effect_and_name_both_sides() -> None:
    found, _ = study()
    first, second, *rest = found.rows
    assert found.latency_us == pytest.approx(203.67)
    assert (first.path, second.path) == ("tensor_core.flop_per_cycle", "grid.launch_ns")
    assert first.down is not None and first.up is not None
    assert (first.down.value, first.up.value) == (3277, 4915)  # the whole numbers next to 3276.8 and 4915.2
    assert first.down.effect == pytest.approx((4096e2 / 3277 - 100) / 203.67)
    assert first.up.effect == pytest.approx((4096e2 / 4915 - 100) / 203.67)
    assert second.down is not None and second.down.effect == pytest.approx(-0.2 * 3.67 / 203.67)
    assert (second.unit, second.status) == ("ns", "microbenchmark")
    assert all(row.swing == 0 for row in rest)
    assert [row.path for row in rest] == sorted(row.path for row in rest)


def test_each_variant_differs_in_one_value() -> None:
    found, (base, *variants) = study()
    assert base == SPEC
    paths = list(value_paths(SPEC))
    changed = [[path for path in paths if value_at(entry, path) != value_at(SPEC, path)] for entry in variants]
    assert all(len(entry) == 1 for entry in changed)
    sides = sum((row.down is not None) + (row.up is not None) for row in found.rows)
    assert len(variants) == sides


def test_every_value_is_moved_or_has_a_reason() -> None:
    found, _ = study()
    rows, stay = {row.path for row in found.rows}, {entry.path for entry in found.unmoved}
    assert rows | stay == set(value_paths(SPEC)) == set(PRESET.provenance)
    assert rows & stay == set()
    reasons = {entry.path: entry.reason for entry in found.unmoved}
    assert all(reasons.values())
    assert (reasons["gpu.name"], reasons["lrc.enabled"], reasons["lrc.hold_cycles"]) == (
        "a name",
        "a switch",
        "it is 0",
    )


@pytest.mark.parametrize(
    ("path", "down", "up"),
    [
        ("named_barrier.arrive_cycles", 6, 8),
        ("tensor_core.group_drain_cycles", 36, 54),
        ("gpu.sm_count", 106, 158),  # pairs of SMs
        ("l2.capacity_bytes", 41984000, 62873600),  # whole sets: 205 and 307 of 204,800 bytes
        ("l2.slices", 64, None),  # 90 to 102 slices do not divide the capacity
        ("memory.efficiency", 0.826 * 0.8, 0.826 * 1.2),
        ("sm.issue_width", None, None),
        ("tma.issue_bytes_per_cycle", None, None),
        ("l2.bytes_per_cycle_per_slice", None, None),  # a line takes whole cycles
        ("crossbar.far_latency_cycles", 331, 497),
    ],
)
def test_whole_numbers_stay_whole_and_valid(path: str, down: float | None, up: float | None) -> None:
    assert moved(path, -0.2) == (down if down is None else pytest.approx(down))
    assert moved(path, 0.2) == (up if up is None else pytest.approx(up))


def test_larger_steps_reach_what_small_ones_cannot() -> None:
    assert moved("sm.issue_width", 0.9) == 2
    assert moved("sm.issue_width", -0.9) is None  # 0 warpgroups a cycle
    assert moved("l2.bytes_per_cycle_per_slice", -0.5) == 32
    assert moved("tma.issue_bytes_per_cycle", 0.9) == 256


def test_values_stay_where_the_engine_or_a_neighbour_forbids_more() -> None:
    wide = with_value(SPEC, "sm.issue_width", 4)
    step = move(wide, "sm.issue_width", 0.25, can_run)
    assert step.hardware is None
    assert step.reason == "5 is refused: sm.issue_width: expected 1 to 4"
    assert moved("sm.issue_width", -0.25, wide) == 3
    level = with_value(SPEC, "crossbar.far_latency_cycles", 260)
    assert moved("crossbar.near_latency_cycles", 0.2, level) is None  # 310 would be above the far latency
    full = with_value(SPEC, "memory.efficiency", 1.0)
    assert moved("memory.efficiency", 0.2, full) is None


def test_grain_keeps_pairs_and_sets() -> None:
    assert (grain(SPEC, "gpu.sm_count"), grain(SPEC, "l2.slices"), grain(SPEC, "sm.registers")) == (2, 2, 1)
    assert grain(SPEC, "l2.capacity_bytes") == 80 * 20 * 128


@pytest.mark.parametrize("perturbation", [0, -0.2, 0.95, float("nan")])
def test_perturbations_that_move_nothing_or_too_much_are_refused(perturbation: float) -> None:
    with pytest.raises(StudyError, match="expected above 0 and at most 0"):
        study(perturbation)


# For a rule of `UNREAD`: a value it covers, the preset value that makes it read after all, and one to start from.
READ_AFTER_ALL = {
    "tma.level_0_latency_cycles": ("tma.level_0_latency_cycles", "tma.level=0"),
    "tma.request_bytes": ("tma.request_bytes", "tma.deduplicate=false"),
    "l2.remote_copy.": ("l2.remote_copy.max_insertion_probability", "l2.remote_copy.enabled=true"),
    "memory.dram.": ("memory.dram.path_latency_ns", "memory.model=hbm3"),
    # In an L2 of one line a set writes reach memory.
    **{
        path: (path, "memory.model=channel", "memory.model=hbm3", "l2.capacity_bytes=10240", "l2.ways=1")
        for path in ("memory.efficiency", "memory.latency_ns", "memory.write_queue_entries")
    },
    "memory.write_cost": ("memory.write_cost", "", "memory.model=hbm3"),  # a kernel this short ends before it matters
    "clock.": ("clock.sustained_tensor_ns", ""),
    "analytical.": ("analytical.effective_l2_fraction", ""),
    "sm.shared_memory_bytes": ("sm.shared_memory_bytes", ""),
    "sm.registers": ("sm.registers", ""),
}


@pytest.mark.parametrize("prefix", [rule[0] for rule in UNREAD])
def test_values_said_to_be_unread_change_nothing_until_they_are_read(prefix: str) -> None:
    shape = AttentionShape(batch=1, seqlen_q=256, seqlen_kv=352, heads_q=8, heads_kv=2, head_dim=128)
    path, switch, *start = READ_AFTER_ALL[prefix]
    assert reason_not_to_move(load_preset("h100-sxm", overrides=start).spec, path)

    def counted(*overrides: str) -> tuple[int, dict[str, int]]:
        result = predict(shape, load_preset("h100-sxm", overrides=[*start, *overrides]))
        return result.cycles, result.counters

    value = value_at(SPEC, path)
    half = f"{path}={value / 2 if isinstance(value, float) else value // 2}"
    assert counted(half) == counted()
    if switch:
        assert counted(switch, half) != counted(switch)
        assert not reason_not_to_move(load_preset("h100-sxm", overrides=[switch]).spec, path)


def test_table_shows_the_largest_and_csv_everything() -> None:
    found, _ = study()
    text = sensitivity_text(found, 2)
    assert text.startswith("some shape on h100-sxm: 203.67 us; each value moved by 20%, one at a time\n")
    assert f"{len(found.rows) - 2} more values, none of them with an effect above 0.00%" in text
    assert "+12.27% at 3277" in text
    assert "lrc.enabled" in text
    header, *lines = sensitivity_csv(found).splitlines()
    assert len(lines) == len(found.rows) + len(found.unmoved)
    assert header.split(",")[:6] == ["path", "value", "unit", "status", "down_value", "down_change"]
