"""`simfa analytical` and `simfa sweep` on the command line."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from simfa.analytical import commands
from simfa.cli import simfa
from simfa.errors import SimfaError
from tests.unit.analytical_cases import ROOT

EXAMPLE = ROOT / "config/sweeps/tensor_or_cache.toml"
POINT = ["analytical", "--model", "llama3.1-405b", "--seqlen", "65536", "--gpu", "gb10"]


def run(*arguments: object) -> Result:
    return CliRunner().invoke(simfa, [str(argument) for argument in arguments])


def test_one_point_as_a_table() -> None:
    result = run(*POINT, "--policy", "paper", "--baseline", "ideal")
    assert result.exit_code == 0, result.output
    for text in (
        "B1 L65536 S65536 H128/8 D128 full",
        "gb10, cutile tile 64 x 32, 1 CTA/SM, static, cyclic; policy paper",
        "DRAM, Eq. 6       96.100 GB",
        "Eq. 5; 342.00 passes",
        "uncertainty 53.701 GB to 96.100 GB (1.79x)",
        "ideal cache  4.563 GB",
        "analytical.effective_l2_fraction (calibrated)",
    ):
        assert text in result.output


def test_json_holds_every_intermediate_and_the_span() -> None:
    result = run(*POINT, "--json")
    facts = json.loads(result.output)
    assert facts["dram_bytes"] == facts["dram_realistic_bytes"] == 96_099_893_248
    assert facts["dram_ideal_bytes"] == 4_563_402_752
    assert set(facts["dram_bytes_by_policy"]) == {"paper", "capacity", "lru", "random"}
    assert facts["dram_bytes_low"] == facts["dram_bytes_by_policy"]["random"]
    assert facts["bounds"]["launch_us"] == 3.67
    assert result.output == run(*POINT, "--json").output


def test_flags_reach_kernel_call_and_gpu() -> None:
    flags = [
        "--tile-m",
        128,
        "--ctas-per-sm",
        2,
        "--kv-order",
        "sawtooth",
        "--policy",
        "lru",
        "--set",
        "gpu.sm_count=24",
    ]
    facts = json.loads(run(*POINT, *flags, "--lse", "--json").output)
    assert (facts["kernel"]["tile_m"], facts["kernel"]["ctas_per_sm"]) == (128, 2)
    assert facts["waves"] == -(-16 * 512 // 48)
    assert facts["attention"]["lse"] is True and facts["dirty_bytes"] > 0
    causal = json.loads(run("analytical", "--model", "llama3-8b", "--seqlen", 8192, "--causal", "--json").output)
    assert causal["kernel"]["schedule"] == "lpt_l2_sections" and causal["dram_realistic_bytes"] is None
    mla = ["--heads-q", 128, "--heads-kv", 1, "--head-dim", 576, "--value-dim", 512, "--latent", "--seqlen-q", 1]
    tile = ["--seqlen-kv", 4096, "--tile-m", 64, "--tile-n", 64, "--pack-gqa"]
    assert json.loads(run("analytical", *mla, *tile, "--json").output)["kv_head_bytes"] == 4096 * 1152


def test_kernel_versions_have_their_tiles() -> None:
    shape = ["--heads-q", 32, "--head-dim", 64, "--seqlen", 4096, "--json"]
    tiles = [
        json.loads(run("analytical", *shape, "--kernel-version", version).output)["kernel"]["tile_n"]
        for version in ("2024-07", "latest")
    ]
    assert tiles == [128, 192]
    causal = ["analytical", *shape, "--causal", "--kernel-version"]
    orders = [json.loads(run(*causal, version).output)["kernel"]["schedule"] for version in ("2024-07", "2025-01")]
    assert orders == ["single_tile", "lpt_l2_sections"]


def test_the_package_and_its_commands_import_nothing_heavy() -> None:
    probe = "import sys, simfa.analytical, simfa.analytical.commands; print([n for n in HEAVY if n in sys.modules])"
    heavy = "HEAVY = ('numpy', 'pandas', 'matplotlib', 'pyarrow', 'GenZ');"
    done = subprocess.run([sys.executable, "-c", heavy + probe], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_masked_and_decode_tables_print() -> None:
    window = run("analytical", "--model", "llama3-8b", "--seqlen", 8192, "--causal", "--window", 1023)
    assert window.exit_code == 0 and "window 1023" in window.output and "no spread" in window.output
    decode = run("analytical", "--model", "llama3-8b", "--seqlen-q", 1, "--seqlen-kv", 8192, "--splits", 8)
    assert decode.exit_code == 0 and "packed heads, 8 splits" in decode.output
    lru = run("analytical", "--model", "llama3-8b", "--seqlen", 4096, "--policy", "lru")
    assert "still in L2 at the end" in lru.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model", "llama3-8b", "--seqlen", "64", "--policy", "belady"], "belady"),
        ([], "give a SHAPE"),
        (["--table", "x.csv"], "--table needs -o"),
        (["--table", "x.csv", "-o", "y.csv", "--seqlen", "5", "--heads-q", "1"], "give no SHAPE"),
        (["--table", "x.csv", "-o", "y.csv", "--tile-m", "64"], "give no SHAPE"),
        (["--seqlen", "64", "--heads-q", "1", "-o", "y.csv"], "belong to --table"),
    ],
)
def test_wrong_usage_exits_2(arguments: list[str], message: str) -> None:
    result = run("analytical", *arguments)
    assert result.exit_code == 2 and message in result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--heads-q", "9", "--heads-kv", "4"], "heads_q 9 is not a multiple of heads_kv 4"),
        (["--heads-q", "8", "--head-dim", "96"], "give --tile-m and --tile-n"),
        (["--heads-q", "8", "--causal", "--policy", "paper"], "as printed: no mask"),
        (["--heads-q", "8", "--gpu", "gb12"], "preset 'gb12' is unknown"),
        (["--heads-q", "8", "--set", "analytical.effective_l2_fraction=2"], "effective_l2_fraction"),
        (["--heads-q", "0"], "heads_q is 0"),
    ],
)
def test_bad_input_is_one_message(arguments: list[str], message: str) -> None:
    result = run("analytical", "--seqlen", "4096", *arguments)
    assert isinstance(result.exception, SimfaError) and message in str(result.exception)
    assert result.exception.exit_code == 1


def test_a_preset_without_the_models_values_is_named(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text('[gpu]\nname = { value = "x", status = "assumed", source = "test" }\n')
    result = run("analytical", "--seqlen", 64, "--heads-q", 1, "--gpu", own)
    assert isinstance(result.exception, SimfaError) and "missing required field" in str(result.exception)


def test_tables_on_the_command_line(tmp_path: Path) -> None:
    source, target = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_text("batch,seqlen_q,seqlen_kv,heads_q,heads_kv,head_dim\n1,64,64,8,8,128\n1,64,64,8,0,128\n")
    stopped = run("analytical", "--table", source, "-o", target)
    assert isinstance(stopped.exception, SimfaError) and not target.exists()
    assert "in.csv line 3, column heads_kv: is 0" in str(stopped.exception)
    result = run("analytical", "--table", source, "-o", target, "--keep-going", "--policy", "paper")
    assert result.exit_code == 0
    assert result.stdout == f"1 rows -> {target}\n"
    assert result.stderr == f"1 rows could not be priced -> {target}.rejects.csv\n"
    manifest = json.loads((tmp_path / "out.csv.manifest.json").read_text())
    assert (manifest["rows"], manifest["rejected"], manifest["policy"]) == (1, 1, "paper")
    assert manifest["inputs"]["table"]["name"] == "in.csv" and len(manifest["gpu_sha256"]) == 64


def test_a_sweep_in_parts_and_whole(tmp_path: Path) -> None:
    assert run("sweep", EXAMPLE, "--count").output == "6 points, 1 parts\n"
    assert run("sweep", EXAMPLE, "--count", "--parts", 3).output == "6 points, 3 parts\n"
    first = run("sweep", EXAMPLE, "-o", tmp_path, "--parts", 3, "--part", 2)
    assert first.exit_code == 0 and "part 2 of 3 ->" in first.output
    assert "is up to date" in run("sweep", EXAMPLE, "-o", tmp_path, "--parts", 3, "--part", 2).output
    whole = run("sweep", EXAMPLE, "-o", tmp_path, "--parts", 3)
    assert whole.exit_code == 0 and "6 points ->" in whole.output and "3 on the Pareto front" in whole.output
    assert whole.output.splitlines()[-1].split()[0] == "cache"
    front = json.loads(run("sweep", EXAMPLE, "-o", tmp_path, "--parts", 3, "--json").output)
    assert [row["name"] for row in front["pareto"]] == ["tensor", "tensor", "cache"]


def test_sweep_usage_and_backends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("sweep", EXAMPLE).exit_code == 2
    assert "part 9 does not exist" in str(run("sweep", EXAMPLE, "-o", tmp_path, "--part", 9).exception)
    other = tmp_path / "other.toml"
    other.write_text(EXAMPLE.read_text().replace('backend = "analytical"', 'backend = "oracle"'))
    assert "backend 'oracle' is unknown" in str(run("sweep", other, "-o", tmp_path).exception)
    monkeypatch.setitem(commands.BACKENDS, "oracle", f"{__name__}:guess")
    monkeypatch.setattr(commands.importlib, "import_module", lambda name: __import__("sys").modules[name])
    result = run("sweep", other, "-o", tmp_path / "out")
    assert result.exit_code == 0 and "6 points" in result.output


def guess(point: object) -> dict[str, float]:
    return {"latency_bound_us": 1.0}
