"""The simulator as a backend of `simfa sweep`: each point is one run of `simfa.pipeline.predict`."""

from typing import TYPE_CHECKING

from simfa.errors import AnalyticalError

if TYPE_CHECKING:
    from simfa.analytical.sweep import Scalar, SweepPoint

_OWN_FIELDS = ("gpu", "name", "rules")
# Columns of a point: figures of `stats.json` that the same input gives again; host times are none.
_COLUMNS = (
    "cycles",
    "latency_us",
    "tflops",
    "tensor_utilization",
    "sm_read_bytes",
    "l2_read_bytes",
    "l2_hit_rate",
    "lrc_merge_rate",
    "dram_read_bytes",
    "dram_write_bytes",
)


def evaluate(point: "SweepPoint") -> "dict[str, Scalar]":
    """Return the simulator's figures for a point, and the DRAM bytes of both directions together.

    Fields: `gpu`, `name` (a label), `rules` (source or paper), `workload.*` (SHAPE flags), `kernel.version` (FA3's),
    `hardware.*` (paths of the preset). A rate without anything to count is an empty text. Raises `SimfaError` for
    anything else, and for what cannot run.
    """
    from simfa.analytical.sweep_fields import ShapeFields, check_names, grouped, preset_of, workload_of
    from simfa.pipeline import predict

    fields = grouped(point, _OWN_FIELDS)
    check_names("kernel", fields.kernel, ("version",))
    shape, _ = workload_of(fields.workload, ShapeFields)
    rules = point.fields.get("rules", "source")
    if rules not in ("source", "paper"):
        raise AnalyticalError(f"sweep field rules is {rules!r}; expected source or paper")
    result = predict(
        shape,
        preset_of(point, fields),
        kernel_version=str(fields.kernel.get("version", "latest")),
        rules="paper" if rules == "paper" else "source",
    )
    found = result.to_json()
    columns: dict[str, Scalar] = {name: "" if found[name] is None else found[name] for name in _COLUMNS}
    return columns | {"dram_bytes": result.dram_read_bytes + result.dram_write_bytes}
