"""Reading simulated runs back, and pairing them with measured cases."""

import msgspec
import pytest

from simfa.errors import MeasureError
from simfa.files import write_json
from simfa.measure.cases import load_set
from simfa.measure.results import find_stats, pair, read_run, run_from
from simfa.workload import model_shape
from tests.unit.fake_simulator import statistics, ten_percent_slow

SHAPE = model_shape("llama3-8b", 512)


def test_read_run(tmp_path) -> None:
    write_json(tmp_path / "stats.json", statistics(SHAPE, latency_us=40.0))
    run = read_run(tmp_path / "stats.json")
    assert (run.shape, run.preset, run.latency_us, run.cycles) == (SHAPE, "h100-sxm", 40.0, 60_000)


@pytest.mark.parametrize("key", ["cycles", "tensor_utilization", "manifest"])
def test_missing_key_names_file_and_key(tmp_path, key: str) -> None:
    stats = statistics(SHAPE)
    del stats[key]
    write_json(tmp_path / "stats.json", stats)
    with pytest.raises(MeasureError, match=rf"stats\.json: key '{key}' is missing"):
        read_run(tmp_path / "stats.json")


def test_wrong_type_and_wrong_file(tmp_path) -> None:
    with pytest.raises(MeasureError, match=r"Expected `int`, got `str` - at `\$\.cycles`"):
        run_from(statistics(SHAPE) | {"cycles": "many"}, "x")
    (tmp_path / "stats.json").write_text("{not json")
    with pytest.raises(MeasureError, match=r"stats\.json: not the JSON of a run"):
        read_run(tmp_path / "stats.json")
    with pytest.raises(MeasureError, match="cannot be read"):
        read_run(tmp_path / "absent.json")


def test_stopped_run_is_refused() -> None:
    with pytest.raises(MeasureError, match="stopped before its end"):
        run_from(statistics(SHAPE) | {"partial": True}, "x")


def test_log_facts_beside_the_run(tmp_path) -> None:
    write_json(tmp_path / "stats.json", statistics(SHAPE, log_source="synthetic"))
    write_json(tmp_path / "log.json", {"longest_row_ns": 25_000})
    assert read_run(tmp_path / "stats.json").log_us == 25.0
    write_json(tmp_path / "log.json", {})
    with pytest.raises(MeasureError, match=r"log\.json: longest_row_ns is missing"):
        read_run(tmp_path / "stats.json")


def test_files_and_folders_hold_runs(tmp_path) -> None:
    for name in ("b", "a"):
        (tmp_path / "all" / name).mkdir(parents=True)
        write_json(tmp_path / "all" / name / "stats.json", statistics(SHAPE))
    one = tmp_path / "all/b/stats.json"
    assert find_stats([one]) == [one]
    assert find_stats([tmp_path]) == [tmp_path / "all/a/stats.json", one]


def test_folder_without_runs(tmp_path) -> None:
    with pytest.raises(MeasureError, match=r"holds no stats\.json"):
        find_stats([tmp_path])


def test_pairing_needs_shape_preset_version_and_clock() -> None:
    case = load_set("ncu-1500").cases[0]
    right = run_from(ten_percent_slow(case), "right")
    assert pair([case], [right]) == ([(case, right)], [])
    for change in ({"preset": "h20"}, {"kernel_version": "2024-07"}, {"sm_clock_hz": 1.83e9}, {"shape": SHAPE}):
        assert pair([case], [msgspec.structs.replace(right, **change)]) == ([], [case])


def test_unstated_clock_means_the_nominal_one() -> None:
    (case, *_) = load_set("s03").cases
    run = run_from(ten_percent_slow(case), "nominal")
    assert case.sm_clock_hz is None
    assert run.sm_clock_hz == 1.83e9
    assert pair([case], [run])[0] == [(case, run)]
