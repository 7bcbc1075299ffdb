"""Traces for Perfetto keep the rules of its importer: those of real recordings, of logs, and of odd slices."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner

from simfa.cli import simfa
from simfa.simulate.perfetto import perfetto_trace
from simfa.timeline import Timeline, read_timeline
from tests.unit.perfetto_rules import check

protos = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2", reason="needs perfetto")
LOG = Path(__file__).parents[2] / "data/logs/synthetic-d128-full.salog"


def run(*arguments: object) -> None:
    done = CliRunner().invoke(simfa, list(map(str, arguments)), catch_exceptions=False)
    assert done.exit_code == 0, done.output


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundled log's simulation with all its SMs recorded."""
    made = tmp_path_factory.mktemp("rules")
    run("translate", LOG, "-o", made / "run.satrace", "--quiet")
    run("simulate", made / "run.satrace", "--timeline", 16, "--timeline-period", 100, "--quiet", "-o", made / "run")
    return made


def test_a_recorded_run_keeps_the_rules(folder: Path) -> None:
    run("timeline", folder / "run", "-o", folder / "run.pftrace")
    timeline = read_timeline(folder / "run/timeline.npz")
    seen = check((folder / "run.pftrace").read_bytes())
    assert seen.slices == len(timeline) > 5000
    assert seen.samples == np.isfinite(timeline.counter_value).sum() > 500
    assert {"lines_in_flight", "mshr_entries", "dram_bytes_per_cycle"} <= {
        name.partition("/")[2] for name in timeline.counter_name
    }
    longest = int((timeline.end_cycle - timeline.start_cycle).max())
    assert abs(seen.longest_ns - longest * 1e9 / timeline.sm_clock_hz) <= 1


def test_a_log_keeps_the_rules_alone_and_beside_its_run(folder: Path) -> None:
    run("timeline", LOG, "-o", folder / "log.pftrace", "--quiet")
    run("timeline", folder / "run", "--log", LOG, "-o", folder / "both.pftrace", "--quiet")
    alone, both = (check((folder / f"{name}.pftrace").read_bytes()) for name in ("log", "both"))
    assert both.slices > alone.slices > 1000
    assert alone.samples == 0


def test_slices_of_no_length_and_equal_starts_keep_the_rules() -> None:
    starts, ends = [0, 5, 5, 5, 9, 9], [5, 5, 9, 7, 9, 12]
    odd = Timeline(
        track_name=["sm0/tma"],
        slice_name=["K"],
        track=np.zeros(6, np.int32),
        name=np.zeros(6, np.int32),
        start_cycle=np.array(starts, np.int64),
        end_cycle=np.array(ends, np.int64),
        arg=np.arange(6, dtype=np.int32),
        sm_clock_hz=1.83e9,
    )
    assert check(b"".join(perfetto_trace(odd))).slices == 6
    # At 5 GHz several cycles fall on one ns.
    assert check(b"".join(perfetto_trace(msgspec.structs.replace(odd, sm_clock_hz=5e9)))).slices == 6


def break_rule(change: Callable[[Any, Any], None]) -> bytes:
    """Return a small trace with one packet changed: `change` gets the trace and its packets by what they hold."""
    timeline = Timeline(
        track_name=["sm0/tensor"],
        slice_name=["S"],
        track=np.zeros(2, np.int32),
        name=np.zeros(2, np.int32),
        start_cycle=np.array([0, 10], np.int64),
        end_cycle=np.array([10, 30], np.int64),
        arg=np.ones(2, np.int32),
        sm_clock_hz=1e9,
        counter_name=["sm0/lines_in_flight"],
        counter_unit=["lines"],
        counter_cycle=np.array([0], np.int64),
        counter_value=np.array([[4.0]]),
    )
    trace = protos.Trace.FromString(b"".join(perfetto_trace(timeline)))
    kinds = {"names": 0, "group": 1, "counter": 2, "track": 3, "sample": 4, "begin": 5, "end": 6, "next": 7}
    change(trace, {kind: trace.packet[number] for kind, number in kinds.items()})
    return trace.SerializeToString()


def test_a_whole_small_trace_keeps_the_rules() -> None:
    assert check(break_rule(lambda trace, packets: None)) == (3, 2, 1, 20)


BROKEN: list[tuple[str, Callable[[Any, Any], Any]]] = [
    ("belongs to no sequence", lambda t, p: p["end"].ClearField("trusted_packet_sequence_id")),
    ("before the state was cleared", lambda t, p: p["names"].ClearField("sequence_flags")),
    ("does not say that it needs them", lambda t, p: p["begin"].ClearField("sequence_flags")),
    ("cleared again", lambda t, p: setattr(p["end"], "sequence_flags", 1)),
    ("has no time", lambda t, p: p["sample"].ClearField("timestamp")),
    ("clock of its own", lambda t, p: setattr(p["sample"], "timestamp_clock_id", 64)),
    ("not declared", lambda t, p: setattr(p["begin"].track_event, "track_uuid", 9)),
    ("parent is not declared", lambda t, p: setattr(p["track"].track_descriptor, "parent_uuid", 9)),
    ("declared twice", lambda t, p: setattr(p["track"].track_descriptor, "uuid", 2)),
    ("have one name", lambda t, p: setattr(p["track"].track_descriptor, "name", "lines_in_flight")),
    ("has no unit", lambda t, p: p["counter"].track_descriptor.counter.ClearField("unit_name")),
    ("sample is on a track of slices", lambda t, p: setattr(p["sample"].track_event, "track_uuid", 3)),
    ("sample has no value", lambda t, p: p["sample"].track_event.ClearField("double_counter_value")),
    ("slice is on a counter", lambda t, p: setattr(p["begin"].track_event, "track_uuid", 2)),
    ("slice's name is not interned", lambda t, p: setattr(p["begin"].track_event, "name_iid", 7)),
    ("argument's name is not", lambda t, p: setattr(p["begin"].track_event.debug_annotations[0], "name_iid", 7)),
    ("number is given twice", lambda t, p: p["names"].interned_data.event_names.add(iid=1, name="T")),
    ("overlap", lambda t, p: setattr(p["end"], "timestamp", 11)),
    ("has not begun", lambda t, p: t.packet.remove(p["begin"])),
    ("does not end", lambda t, p: t.packet.remove(t.packet[-1])),
    ("unknown field", lambda t, p: p["end"].MergeFromString(b"\x98\xf4\x03\x01")),
]


@pytest.mark.parametrize(("rule", "change"), BROKEN, ids=[rule for rule, _ in BROKEN])
def test_a_broken_rule_is_noticed(rule: str, change: Callable[[Any, Any], Any]) -> None:
    with pytest.raises(AssertionError, match=rule):
        check(break_rule(change))
