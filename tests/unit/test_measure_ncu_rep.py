"""`.ncu-rep` through the ncu-report package: against its documented interface, and against the package where it is."""

import importlib.util
import sys
import types
from pathlib import Path
from typing import Any

import pytest
from measure_exports import FA3_NCU, HOPPER, HOPPER_VALUES, load, one

from simfa.errors import MeasureError
from simfa.measure.ncu_rep import MODULE

MAGIC = b"NVR\x00"
installed = pytest.mark.skipif(
    importlib.util.find_spec(MODULE) is None, reason="needs ncu-report (pip install 'simfa[ncu]')"
)


class Metric:
    """A metric as the package documents it: value, unit, and whether there is a value at all."""

    def __init__(self, value: object, unit: str) -> None:
        self._value, self._unit = value, unit

    def value(self) -> object:
        return self._value

    def has_value(self) -> bool:
        return self._value is not None

    def unit(self) -> str:
        return self._unit


class Action:
    NameBase_FUNCTION, NameBase_DEMANGLED = 0, 1
    WorkloadType_KERNEL, WorkloadType_RANGE = 0, 1

    def __init__(self, metrics: dict[str, Metric], workload: int = 0) -> None:
        self._metrics, self._workload = metrics, workload

    def name(self, base: int = 0) -> str:
        return FA3_NCU if base == self.NameBase_DEMANGLED else "device_kernel"

    def workload_type(self) -> int:
        return self._workload

    def metric_by_name(self, name: str) -> Metric | None:
        return self._metrics.get(name)


class Range:
    def __init__(self, actions: list[Action]) -> None:
        self._actions = actions

    def num_actions(self) -> int:
        return len(self._actions)

    def action_by_idx(self, index: int) -> Action:
        return self._actions[index]


class Context:
    def __init__(self, ranges: list[Range]) -> None:
        self._ranges = ranges

    def num_ranges(self) -> int:
        return len(self._ranges)

    def range_by_idx(self, index: int) -> Range:
        return self._ranges[index]


def package(monkeypatch: pytest.MonkeyPatch, *actions: Action) -> None:
    module: Any = types.ModuleType(MODULE)
    module.IAction = Action
    module.load_report = lambda path: Context([Range(list(actions))] if actions else [])
    monkeypatch.setitem(sys.modules, MODULE, module)


def hopper() -> dict[str, Metric]:
    number = {name: float(value) if "." in value else int(value) for name, _, value in HOPPER}
    metrics = {name: Metric(number[name], unit) for name, unit, _ in HOPPER}
    metrics["device__attribute_display_name"] = Metric("NVIDIA H800", "")
    metrics |= {f"launch__grid_dim_{axis}": Metric(size, "") for axis, size in (("x", 132), ("y", 1), ("z", 1))}
    return metrics


def test_values_are_exact(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package(monkeypatch, Action(hopper()))
    found = load(tmp_path, MAGIC, "fa3.ncu-rep")
    launch = one(found)
    assert {key: getattr(launch, key) for key in HOPPER_VALUES} == HOPPER_VALUES
    assert (launch.grid, launch.gpu, launch.quantisation) == ((132, 1, 1), "NVIDIA H800", {})
    assert found.format == "ncu-rep"


def test_nan_and_valueless_metrics_are_null(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    odd = {"gpu__time_duration.sum": Metric(float("nan"), "ns"), "gpc__cycles_elapsed.max": Metric(None, "cycle")}
    package(monkeypatch, Action(hopper() | odd))
    launch = one(load(tmp_path, MAGIC, "fa3.ncu-rep"))
    assert (launch.duration_ns, launch.elapsed_cycles) == (None, None)
    assert "nan" in launch.missing["duration_ns"]
    assert "without a value" in launch.missing["elapsed_cycles"]


def test_ranges_are_no_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package(monkeypatch, Action(hopper(), Action.WorkloadType_RANGE), Action(hopper()))
    found = load(tmp_path, MAGIC, "fa3.ncu-rep")
    assert one(found).launch_id == "1"
    assert any("ranges" in warning for warning in found.warnings)


def test_unknown_unit_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package(monkeypatch, Action({"gpu__time_duration.sum": Metric(5, "furlong")}))
    with pytest.raises(MeasureError, match="furlong"):
        load(tmp_path, MAGIC, "fa3.ncu-rep")


def test_report_without_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package(monkeypatch)
    with pytest.raises(MeasureError, match="newer Nsight Compute"):
        load(tmp_path, MAGIC, "fa3.ncu-rep")


def test_without_the_package_the_way_out_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, MODULE, None)
    with pytest.raises(MeasureError, match=r"simfa\[ncu\].*--page raw --csv"):
        load(tmp_path, MAGIC, "fa3.ncu-rep")


@installed
def test_the_package_has_every_name_that_is_used() -> None:
    module = importlib.import_module(MODULE)
    assert callable(module.load_report)
    for name in ("name", "workload_type", "metric_by_name", "NameBase_DEMANGLED", "WorkloadType_KERNEL"):
        assert hasattr(module.IAction, name), name
    for owner, names in {
        "IContext": ("num_ranges", "range_by_idx"),
        "IRange": ("num_actions", "action_by_idx"),
        "IMetric": ("value", "has_value", "unit"),
    }.items():
        assert [name for name in names if not hasattr(getattr(module, owner), name)] == [], owner


@installed
def test_the_package_reads_no_launch_out_of_a_damaged_report(tmp_path: Path) -> None:
    with pytest.raises(MeasureError, match=r"fa3.ncu-rep"):
        load(tmp_path, MAGIC + bytes(40), "fa3.ncu-rep")
