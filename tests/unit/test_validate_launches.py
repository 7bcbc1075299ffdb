"""`simfa validate --measured` on tables of launches: joining, policies, clocks, intervals, and what is refused."""

import csv
import json
import statistics as stats
from pathlib import Path

import pytest
from click.testing import CliRunner
from launch_tables import LONG, SHAPE, entry, launch, mapping, ncu_table, nsys_table, with_columns

from simfa import validate_cli
from simfa.cli import simfa
from simfa.errors import MeasureError
from simfa.files import write_json
from simfa.measure.reader import Stated, read
from simfa.measure.write import write
from simfa.workload import AttentionShape, model_shape
from tests.unit.fake_simulator import statistics, ten_percent_slow

COLUMNS = {
    "batch": "1", "seqlen_q": "512", "seqlen_kv": "512", "heads_q": "32", "heads_kv": "8", "head_dim": "128",
    "causal": "0", "dtype": "bf16",
}  # fmt: skip


@pytest.fixture(autouse=True)
def simulated(monkeypatch) -> list:
    """Replace the simulator and return the list of cases it is asked for."""
    asked: list = []

    def predictor(case):
        asked.append(case)
        return ten_percent_slow(case)

    monkeypatch.setattr(validate_cli, "simulator", lambda threads, cases, quiet: predictor)
    return asked


def run(*arguments: str, code: int = 0) -> str:
    done = CliRunner().invoke(simfa, ["validate", *arguments], catch_exceptions=False)
    assert done.exit_code == code, done.output
    return done.output


def sets(*arguments: str) -> list[dict]:
    return json.loads(run(*arguments, "--json"))["sets"]


def refused(*arguments: str) -> str:
    with pytest.raises(MeasureError) as caught:
        run(*arguments)
    return str(caught.value)


def test_mapping_joins_launches_with_shape_kernel_and_preset(tmp_path, simulated) -> None:
    table = ncu_table(tmp_path, [launch(0), launch(1, grid="(64, 1, 1)", time="610240", cycles="915360")])
    cases = mapping(
        tmp_path,
        entry(extra="kernel_version = '2025-01'\ngpu = 'h200-sxm'"),
        entry("long", "{ kernel = 'FlashAttnFwd', launch_id = 1 }", LONG),
    )
    (found,) = sets("--measured", table, "--mapping", cases)
    assert found["name"] == "measured (ncu, clock control none, cache control all)"
    short, long = simulated
    assert (short.shape, short.kernel_version, short.preset) == (model_shape("llama3-8b", 512), "2025-01", "h200-sxm")
    assert (long.shape, long.kernel_version, long.preset) == (model_shape("llama3-8b", 1024), "latest", "h100-sxm")
    assert (short.sm_clock_hz, short.latency_us, long.latency_us) == (1.5e9, 305.12, 610.24)
    assert [case["error"] for case in found["cases"]] == [pytest.approx(0.1)] * 2
    assert (found["accuracy"]["used"], found["accuracy"]["excluded"]) == (2, 0)
    assert found["accuracy"]["mape_scaled"] == pytest.approx(0)


def test_columns_join_without_a_mapping(tmp_path, simulated) -> None:
    table = with_columns(ncu_table(tmp_path, [launch()]), **COLUMNS, kernel_version="2025-01", case_id="mine")
    (found,) = sets("--measured", table)
    assert [case["id"] for case in found["cases"]] == ["mine"]
    (case,) = simulated
    expected = AttentionShape(batch=1, seqlen_q=512, seqlen_kv=512, heads_q=32, heads_kv=8, head_dim=128, dtype="bf16")
    assert (case.shape, case.kernel_version) == (expected, "2025-01")


def test_order_and_source_file_choose_launches(tmp_path, simulated) -> None:
    table = ncu_table(tmp_path, [launch(number, time=str(1000 * (number + 1)), cycles="1500") for number in range(4)])
    here = "{ source_file = 'ncu-measured.csv', order = [1, 3] }"
    (found,) = sets("--measured", table, "--mapping", mapping(tmp_path, entry(match=here)))
    assert simulated[0].repeats_us == (2.0, 4.0)
    assert found["cases"][0]["repeats"] == 2
    assert [row["id"] for row in found["excluded"]] == ["ncu-measured.csv:0", "ncu-measured.csv:2"]
    assert {row["reason"] for row in found["excluded"]} == {"no mapping entry matches and the table names no shape"}
    assert found["accuracy"]["excluded"] == 2


def test_each_policy_has_a_table_of_its_own(tmp_path) -> None:
    tables = [ncu_table(tmp_path, [launch()], cache=cache, name=f"{cache}.csv") for cache in ("all", "none")]
    tables.append(nsys_table(tmp_path, [290_000]))
    cases = mapping(
        tmp_path,
        entry("cold", "{ cache_control = 'all' }"),
        entry("warm", "{ tool = 'ncu', cache_control = 'none' }"),
        entry("nsys", "{ tool = 'nsys' }"),
    )
    found = sets(*(word for table in tables for word in ("--measured", table)), "--mapping", cases)
    assert [entry["name"].split("(")[1] for entry in found] == [
        "ncu, clock control none, cache control all)",
        "ncu, clock control none, cache control none)",
        "nsys, clock control none, cache control none)",
    ]
    assert [entry["accuracy"]["used"] for entry in found] == [1, 1, 1]


def test_one_entry_over_two_policies_needs_allow_mixed(tmp_path) -> None:
    tables = [ncu_table(tmp_path, [launch()], clock=clock, name=f"{clock}.csv") for clock in ("base", "none")]
    arguments = [word for table in tables for word in ("--measured", table)] + ["--mapping", mapping(tmp_path)]
    message = refused(*arguments)
    assert "case short: matches launches under 2 policies (ncu, clock control base, cache control all; " in message
    assert "--allow-mixed" in message
    (found,) = sets(*arguments, "--allow-mixed")
    assert "(mixed: ncu, clock control base, cache control all; ncu, clock control none" in found["name"]
    assert (found["accuracy"]["used"], found["cases"][0]["repeats"]) == (1, 2)


def test_cycles_are_compared_when_the_run_has_another_clock(tmp_path) -> None:
    table = ncu_table(tmp_path, [launch()])
    shape = model_shape("llama3-8b", 512)
    write_json(tmp_path / "stats.json", statistics(shape, sm_clock_hz=1.8e9, latency_us=280.0))
    arguments = ("--measured", table, "--mapping", mapping(tmp_path), "--results", str(tmp_path))
    (found,) = sets(*arguments)
    (case,) = found["cases"]
    assert case["compared"] == "cycles"
    assert case["error"] == pytest.approx(280.0 * 1800 / 457_680 - 1)
    assert case["measured_us"] == pytest.approx(457_680 / 1500)
    assert "short: measured 457680 cycles at 1500 MHz, simulated 504000 at 1800 MHz: cycles are compared" in run(
        *arguments
    )


def test_repeats_at_several_clocks_are_averaged_in_cycles(tmp_path, simulated) -> None:
    rows = [
        launch(0, time="100000", cycles="150000", clock="1500000000"),
        launch(1, time="93750", cycles="150000", clock="1600000000"),
        launch(2, time="88235", cycles="150000", clock="1700000000"),
    ]
    text = run("--measured", ncu_table(tmp_path, rows), "--mapping", mapping(tmp_path))
    assert simulated[0].sm_clock_hz == 1.6e9
    assert simulated[0].repeats_us == (93.75, 93.75, 93.75)
    assert "launches ran at 1500 to 1700 MHz: their cycles are compared, as time at 1600 MHz" in text


def test_clock_of_the_mapping_holds_where_the_export_has_none(tmp_path, simulated) -> None:
    cases = mapping(tmp_path, entry(extra="sm_clock_mhz = 1830"))
    (found,) = sets("--measured", nsys_table(tmp_path, [290_000]), "--mapping", cases)
    assert (simulated[0].sm_clock_hz, found["cases"][0]["clock_stated"]) == (1.83e9, True)
    run("--measured", nsys_table(tmp_path, [290_000]), "--mapping", mapping(tmp_path))
    assert simulated[1].sm_clock_hz is None


def test_repeats_give_medians_and_intervals(tmp_path) -> None:
    times = [100_000, 102_000, 101_000, 150_000, 100_500, 101_500, 99_000]
    table, cases = nsys_table(tmp_path, times), mapping(tmp_path)
    (found,) = sets("--measured", table, "--mapping", cases)
    (case,) = found["cases"]
    assert (case["measured_us"], case["repeats"]) == (stats.median(times) / 1000, 7)
    low, high = case["error_interval"]
    assert case["simulated_us"] / 150 - 1 <= low < case["error"] < high <= case["simulated_us"] / 99 - 1
    assert found["accuracy"]["mape_interval"] == [pytest.approx(low), pytest.approx(high)]
    assert "bootstrap of the median" in found["interval_method"]
    assert run("--measured", table, "--mapping", cases) == run("--measured", table, "--mapping", cases)


def test_one_launch_has_no_interval(tmp_path) -> None:
    (found,) = sets("--measured", ncu_table(tmp_path, [launch()]), "--mapping", mapping(tmp_path))
    assert found["cases"][0]["error_interval"] is None
    assert (found["accuracy"]["mape_interval"], found["interval_method"]) == (None, "")


def test_outputs_of_launches(tmp_path) -> None:
    table, cases = ncu_table(tmp_path, [launch()]), mapping(tmp_path)
    run("--measured", table, "--mapping", cases, "-o", str(tmp_path / "out"))
    (row,) = csv.DictReader((tmp_path / "out/summary.csv").read_text().splitlines())
    assert (row["id"], row["compared"], row["repeats"], row["error_interval"]) == ("short", "latency", "1", "")
    traffic = list(csv.DictReader((tmp_path / "out/traffic.csv").read_text().splitlines()))
    assert {(row["quantity"], row["model"]) for row in traffic} == {
        (quantity, model)
        for quantity in ("l2_bytes", "dram_read_bytes", "dram_write_bytes", "dram_total_bytes")
        for model in ("simulator", "analytical")
    }
    manifest = json.loads((tmp_path / "out/summary.json.manifest.json").read_text())
    assert set(manifest["inputs"]) == {"measured.csv", "cases.toml"}


def test_gpu_without_a_preset_is_excluded_with_its_reason(tmp_path) -> None:
    table = ncu_table(tmp_path, [launch()])
    Path(table).write_text(Path(table).read_text().replace("NVIDIA H100 80GB HBM3", "NVIDIA L40S"))
    (found,) = sets("--measured", table, "--mapping", mapping(tmp_path))
    assert found["excluded"] == [{"id": "ncu-measured.csv:0", "reason": "NVIDIA L40S: no preset for this GPU"}]
    (found,) = sets("--measured", table, "--mapping", mapping(tmp_path), "--gpu", "h20")
    assert found["cases"][0]["preset"] == "h20"


BAD_MAPPINGS = {
    "unknown field": (entry(extra="kernels = 'x'"), "case 1: Object contains unknown field `kernels`"),
    "unknown match": (entry(match="{ griid = '1x1x1' }"), "unknown field `griid` - at `$.match`"),
    "unknown table": ("[cases]\nx = 1\n" + entry(), "cases: unknown; expected [[case]] entries only"),
    "no entry": ("# nothing\n", "holds no [[case]] entry"),
    "no toml": ("[[case]\n", "cannot be read as TOML"),
    "shape": (entry(shape=SHAPE.replace("heads_kv = 8", "heads_kv = 5")), "heads_q 32 is not a multiple of heads_kv 5"),
    "preset": (entry(extra="gpu = 'h1000'"), "h1000"),
    "version": (entry(extra="kernel_version = '2023'"), "kernel_version '2023'; expected one of"),
    "clock": (entry(extra="sm_clock_mhz = 0"), "sm_clock_mhz is 0"),
    "regex": (entry(match="{ kernel = '(' }"), "'(' is no regular expression"),
    "id": (entry(ident="a/b"), "id 'a/b'; expected letters"),
    "same id": (entry() + entry(), "case 2: id 'short' is taken"),
    "matches nothing": (entry(match="{ grid = '1x1x1' }"), "case short: matches no launch"),
    "order beyond": (entry(match="{ order = 9 }"), "case short: matches no launch"),
    "two shapes": (entry(match="{ kernel = 'FlashAttnFwd' }"), "launches of 2 kernels or grids, which one shape does"),
    "claimed twice": (
        entry() + entry("other", "{ launch_id = '0' }", LONG),
        "case other: {table}: line 2 (launch 0) is also matched by case short",
    ),
}


@pytest.mark.parametrize("name", BAD_MAPPINGS)
def test_bad_mapping_is_one_message(tmp_path, name) -> None:
    text, expected = BAD_MAPPINGS[name]
    table = ncu_table(tmp_path, [launch(0), launch(1, grid="(64, 1, 1)")])
    message = refused("--measured", table, "--mapping", mapping(tmp_path, text), "-o", str(tmp_path / "out"))
    assert message.startswith(f"{tmp_path}/cases.toml: ")
    assert expected.format(table=table) in message
    assert not (tmp_path / "out").exists()


def test_launch_without_duration_is_named_with_its_reason(tmp_path) -> None:
    table = ncu_table(tmp_path, [launch(7, lacks="time_duration")], lacks="time_duration")
    message = refused("--measured", table, "--mapping", mapping(tmp_path))
    assert f"{table}: line 2 (launch 7): has no duration_ns: " in message
    assert "capture gpu__time_duration.sum" in message


def test_launches_without_any_shape_are_refused(tmp_path) -> None:
    message = refused("--measured", ncu_table(tmp_path, [launch()]))
    assert "launches carry no attention shape; say what they computed with --mapping cases.toml" in message


BAD_TABLES = {
    "half a shape": ({**COLUMNS, "heads_kv": ""}, "line 2: heads_kv is empty"),
    "no number": ({**COLUMNS, "batch": "one"}, "line 2: batch is 'one'; expected a positive number"),
    "mask": ({**COLUMNS, "causal": "maybe"}, "line 2: causal is 'maybe'; expected 0 or 1"),
    "version": ({**COLUMNS, "kernel_version": "2023"}, "line 2: kernel_version '2023'"),
}


@pytest.mark.parametrize("name", BAD_TABLES)
def test_bad_columns_are_one_message(tmp_path, name) -> None:
    columns, expected = BAD_TABLES[name]
    assert expected in refused("--measured", with_columns(ncu_table(tmp_path, [launch()]), **columns))


def test_one_id_for_two_cases_is_refused(tmp_path, simulated) -> None:
    tables = [
        with_columns(ncu_table(tmp_path, [launch()], name=f"{size}.csv"), **COLUMNS | {"batch": size}, case_id="mine")
        for size in ("1", "2")
    ]
    arguments = [word for table in tables for word in ("--measured", table)]
    assert "case mine is two: B1 L512 S512 H32/8 D128 full bf16, latest, h100-sxm" in refused(*arguments)
    for size in ("1", "2"):
        table = with_columns(ncu_table(tmp_path, [launch()], name=f"{size}.csv"), **COLUMNS | {"batch": size})
        assert table in tables
    (found,) = sets(*arguments)
    assert [case["id"] for case in found["cases"]] == [
        f"B{size}_L512_S512_H32-8_D128_full_bf16_latest_h100-sxm" for size in (1, 2)
    ]


def test_columns_and_mapping_must_agree(tmp_path) -> None:
    table = with_columns(ncu_table(tmp_path, [launch()]), **COLUMNS)
    message = refused("--measured", table, "--mapping", mapping(tmp_path))
    assert "D128 full bf16, case short of the mapping B1 L512 S512 H32/8 D128 full fp16" in message


def test_damaged_tables_are_one_message(tmp_path) -> None:
    table = Path(ncu_table(tmp_path, [launch()]))
    whole = table.read_text()
    for old, new, expected in (
        (",305120,", ",0,", "line 2: duration_ns is '0'; expected a positive number"),
        (",305120,", ",fast,", "line 2: duration_ns is 'fast'"),
        ("l2_definition", "l2_definitely", "line 1: column l2_definition is missing"),
        (",ncu-csv-raw,", ",", "line 2: expected 33 fields as in the header"),
    ):
        assert old in whole
        table.write_text(whole.replace(old, new, 1))
        assert expected in refused("--measured", str(table), "--mapping", mapping(tmp_path))
    table.write_text(whole.splitlines()[0] + "\n")
    assert "holds no launch" in refused("--measured", str(table), "--mapping", mapping(tmp_path))


def test_mapping_without_launches_is_a_usage_error(tmp_path) -> None:
    assert "are for launches" in run("--set", "s13", "--mapping", mapping(tmp_path), code=2)


def test_benchmark_output_needs_no_mapping(tmp_path) -> None:
    text = (
        "### headdim = 128, causal = False, seqlen = 8192 ###\nFav2 fwd: 3.2ms, 343.6 TFLOPS\n"
        "Fav3 fwd: 1.620ms, 678.7 TFLOPS\n### headdim = 128, causal = True, seqlen = 8192 ###\n"
        "Fav3 fwd: 1.000ms, 549.8 TFLOPS\n### headdim = 128, seqlen = 8192 ###\nFav3 fwd: 1.000ms, 549.8 TFLOPS\n"
    )
    (tmp_path / "bench.txt").write_text(text)
    write(tmp_path / "bench.csv", read(tmp_path / "bench.txt", stated=Stated("NVIDIA H100 80GB HBM3")))
    [found] = sets("--measured", str(tmp_path / "bench.csv"))
    assert [(case["measured_us"], case["causal"], case["batch"], case["launches"]) for case in found["cases"]] == [
        (1620.0, False, 2, "looped"),
        (1000.0, True, 2, "looped"),
    ]
    assert [case["measured_interval"] for case in found["cases"]] == [[1619.5, 1620.5], [999.5, 1000.5]]
    reasons = [entry["reason"].rpartition(": ")[2] for entry in found["excluded"]]
    assert reasons == ["not FA3's forward kernel", "the heading lacks head dimension, mask or length"]
    text = run("--measured", str(tmp_path / "bench.csv"))
    assert text.count("not compared with simulator and analytical: not measured") == 1
    assert "the export rounded 2 of 2 measured times, which leaves up to 0.06% of error open" in text


def test_rounding_of_repeats_is_that_of_their_median(tmp_path) -> None:
    table = with_columns(
        ncu_table(tmp_path, [launch(0), launch(1, time="305200"), launch(2, time="305300")]), **COLUMNS
    )
    rows = list(csv.DictReader(Path(table).read_text().splitlines()))
    for row, low, high in zip(rows, (305115, 305195, 305295), (305125, 305205, 305305), strict=True):
        row["quantisation"] = json.dumps({"duration_ns": [low, high], "dram_read_bytes": [low, high]})
    with Path(table).open("w", newline="") as handle:
        writer = csv.DictWriter(handle, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    [found] = sets("--measured", table)
    [case] = found["cases"]
    assert (case["measured_us"], case["measured_interval"]) == (305.2, [305.195, 305.205])
    read_bytes = [entry for entry in found["traffic"] if entry["quantity"] == "dram_read_bytes"]
    assert [entry["measured_interval"] for entry in read_bytes] == [[305195, 305205]] * 2
    assert [entry["measured_interval"] for entry in found["traffic"] if entry["quantity"] == "l2_bytes"] == [None] * 2
    run("--measured", table, "-o", str(tmp_path / "out"))
    assert "305.195;305.205" in (tmp_path / "out/summary.csv").read_text()
    assert "305195.0;305205.0" in (tmp_path / "out/traffic.csv").read_text()
