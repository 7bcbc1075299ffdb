"""Sweeps: which points a file describes, the Pareto front, parts that are kept, the analytical backend."""

import csv
import itertools
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simfa.analytical.sweep import Scalar, SweepPoint, load_sweep, pareto_front
from simfa.analytical.sweep_backend import evaluate
from simfa.analytical.sweep_run import finish, part_file, run_part
from simfa.errors import AnalyticalError, HardwareError, SimfaError
from tests.unit.analytical_cases import ROOT, repeatable

EXAMPLE = ROOT / "config/sweeps/tensor_or_cache.toml"

SMALL = """
points_per_part = 4
[[objectives]]
column = "latency_bound_us"
[[objectives]]
column = "dram_bytes"
[fixed]
gpu = "gb10"
workload.heads_q = 8
[grid]
kernel.tile_m = [64, 128]
workload.seqlen = [1024, 2048, 4096]
[[designs]]
name = "a"
hardware.gpu.sm_count = 48
[[designs]]
name = "b"
hardware.gpu.sm_count = 96
"""


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    return path


class Counting:
    """A backend that counts its calls, and fails at chosen points."""

    def __init__(self, *broken: int) -> None:
        self.calls: list[int] = []
        self.broken = broken

    def __call__(self, point: SweepPoint) -> dict[str, Scalar]:
        self.calls.append(point.number)
        if point.number in self.broken:
            raise HardwareError("no such part")
        return {"latency_bound_us": float(100 - point.number), "dram_bytes": point.number % 5}


def table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as handle:
        return list(csv.DictReader(handle))


def test_points_are_designs_times_the_grid(small: Path) -> None:
    sweep = load_sweep(small)
    assert (sweep.size, sweep.part_count(), sweep.part_count(5)) == (12, 3, 5)
    found = list(sweep.points(range(sweep.size)))
    expected = itertools.product(("a", "b"), (64, 128), (1024, 2048, 4096))
    assert [
        (point.fields["name"], point.fields["kernel.tile_m"], point.fields["workload.seqlen"]) for point in found
    ] == list(expected)
    assert found[7].number == 7 and found[7].fields["gpu"] == "gb10"
    assert found[7].fields["hardware.gpu.sm_count"] == 96
    assert list(sweep.points(range(5, 8))) == found[5:8]


@repeatable
@given(st.integers(1, 50))
def test_parts_cover_every_point_once(parts: int) -> None:
    sweep = load_sweep(EXAMPLE)
    ranges = [sweep.part_range(part, parts) for part in range(parts)]
    assert [number for numbers in ranges for number in numbers] == list(range(sweep.size))


@repeatable
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6), st.integers(0, 6)), max_size=30))
def test_the_front_holds_exactly_what_nothing_beats(values: list[tuple[int, ...]]) -> None:
    goals = ["min", "max", "min"]
    signed = [(a, -b, c) for a, b, c in values]

    def beats(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
        return one != other and all(mine <= its for mine, its in zip(one, other, strict=True))

    expected = [index for index, mine in enumerate(signed) if not any(beats(other, mine) for other in signed)]
    assert pareto_front(values, goals) == expected


def test_parts_are_kept_and_put_together(small: Path, tmp_path: Path) -> None:
    sweep, folder, backend = load_sweep(small), tmp_path / "out", Counting()
    assert run_part(small, sweep, folder, 1, 3, backend) is True
    assert backend.calls == [4, 5, 6, 7]
    assert run_part(small, sweep, folder, 1, 3, backend) is False
    result = finish(small, sweep, folder, 3, backend)
    assert sorted(backend.calls) == list(range(12))
    assert finish(small, sweep, folder, 3, backend) == result and len(backend.calls) == 12
    rows = table(result.points_file)
    assert [int(row["point"]) for row in rows] == list(range(12))
    assert list(rows[0])[:5] == ["point", "gpu", "workload.heads_q", "name", "hardware.gpu.sm_count"]
    # Point 11 is fastest; 10 has no DRAM traffic; nothing else is as good in either.
    assert [int(row["point"]) for row in result.front] == [10, 11]
    assert table(result.pareto_file) == result.front


def test_a_changed_file_or_damaged_part_is_computed_again(small: Path, tmp_path: Path) -> None:
    folder, backend = tmp_path / "out", Counting()
    finish(small, load_sweep(small), folder, 3, backend)
    part_file(folder, 0, 3).write_text("point\n")
    finish(small, load_sweep(small), folder, 3, backend)
    assert len(backend.calls) == 12 + 4
    small.write_text(SMALL + "# a remark\n")
    finish(small, load_sweep(small), folder, 3, backend)
    assert len(backend.calls) == 12 + 4 + 12


def test_the_same_sweep_gives_the_same_bytes(small: Path, tmp_path: Path) -> None:
    sweep = load_sweep(small)
    results = [finish(small, sweep, tmp_path / name, parts, evaluate) for name, parts in (("x", 1), ("y", 5))]
    assert results[0].points_file.read_bytes() == results[1].points_file.read_bytes()
    assert results[0].pareto_file.read_bytes() == results[1].pareto_file.read_bytes()


def test_a_failing_point_is_named_and_loses_no_part(small: Path, tmp_path: Path) -> None:
    sweep, folder = load_sweep(small), tmp_path / "out"
    with pytest.raises(AnalyticalError, match=r"small point 5 \(gpu gb10, .*seqlen 4096\): no such part"):
        finish(small, sweep, folder, 3, Counting(5))
    assert part_file(folder, 0, 3).is_file() and not part_file(folder, 1, 3).exists()
    kept = finish(small, sweep, folder, 3, Counting(5), keep_going=True)
    assert (kept.points, kept.failed) == (12, 1)
    assert [row["error"] for row in table(kept.points_file) if row["error"]] == ["no such part"]


def test_a_part_without_any_good_point_is_kept_too(small: Path, tmp_path: Path) -> None:
    kept = finish(small, load_sweep(small), tmp_path / "out", 3, Counting(4, 5, 6, 7), keep_going=True)
    assert (kept.points, kept.failed) == (12, 4)
    assert list(table(kept.points_file)[0])[-1] == "error"


def test_an_ideal_cache_ranks_the_example_wrong(tmp_path: Path) -> None:
    """At 64K the larger L2 wins, although its tensor cores are slower; an ideal cache prefers the other design."""
    sweep = load_sweep(EXAMPLE)
    rows = table(finish(EXAMPLE, sweep, tmp_path, sweep.part_count(), evaluate).points_file)
    best = {}
    for length in ("16384", "32768", "65536"):
        mine = [row for row in rows if row["workload.seqlen"] == length]
        best[length] = [
            min(mine, key=lambda row, column=column: float(row[column]))["name"]
            for column in ("latency_bound_us", "ideal_latency_us")
        ]
    assert best == {"16384": ["tensor", "tensor"], "32768": ["tensor", "tensor"], "65536": ["cache", "tensor"]}
    assert [row["name"] for row in table(tmp_path / "pareto.csv")] == ["tensor", "tensor", "cache"]


def test_manifests_name_the_sweep(small: Path, tmp_path: Path) -> None:
    sweep = load_sweep(small)
    finish(small, sweep, tmp_path / "out", 1, Counting())
    manifest = json.loads((tmp_path / "out/points.csv.manifest.json").read_text())
    assert manifest["sweep_digest"] == sweep.digest and manifest["points"] == 12
    assert manifest["inputs"]["sweep"]["name"] == "small.toml"


def test_the_digest_follows_the_preset(small: Path, tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    digests = set()
    for value in ("1e12", "2e12"):
        own.write_text(
            'extends = "h100-sxm"\n[memory]\n'
            f'peak_bytes_per_s = {{ value = {value}, status = "assumed", source = "test" }}\n'
        )
        small.write_text(SMALL.replace('"gb10"', f'"{own}"'))
        digests.add(load_sweep(small).digest)
    assert len(digests) == 2


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[grid]", "[grid]\nworkload.batch = 3", r"grid.workload.batch is 3; expected a list"),
        ("[grid]", "[grid]\nworkload.batch = []", r"grid.workload.batch is \[\]; expected a list"),
        ("[64, 128]", "[64, 64]", "grid.kernel.tile_m holds a value twice"),
        ("workload.heads_q = 8", "workload.heads_q = 8\nname = 'x'", "name is both fixed and varied"),
        ("[grid]", "[grid]\nname = ['x']", "name is in grid and in designs"),
        ("gpu = ", "gpus = [1]\ngpu = ", r"fixed.gpus is \[1\]; expected one number"),
        ('column = "dram_bytes"', 'column = "dram_bytes"\ngoal = "low"', "Invalid enum value 'low' - at `objectives"),
        ("points_per_part = 4", "points_per_part = 0", "Expected `int` >= 1 - at `points_per_part`"),
        ("points_per_part", "part_points", "unknown field `part_points`"),
        ("[grid]", "[grid", "not valid TOML"),
        ('"gb10"', '"gb11"', "preset 'gb11' is unknown; did you mean gb10"),
    ],
)
def test_wrong_files_are_named(small: Path, old: str, new: str, message: str) -> None:
    small.write_text(SMALL.replace(old, new, 1))
    with pytest.raises(SimfaError, match=message):
        load_sweep(small)


def test_objectives_must_be_columns(small: Path, tmp_path: Path) -> None:
    small.write_text(SMALL.replace('"dram_bytes"', '"energy"'))
    with pytest.raises(AnalyticalError, match="'energy' is no column of the results; expected point, gpu"):
        finish(small, load_sweep(small), tmp_path / "out", 1, Counting())
    small.write_text(SMALL.replace('"dram_bytes"', '"name"'))
    with pytest.raises(AnalyticalError, match="objective name is 'a'; expected a number"):
        finish(small, load_sweep(small), tmp_path / "out", 1, Counting())


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"color": "red"}, "'color' is unknown"),
        ({"workload.seqlens": 5}, r"'workload.seqlens' is unknown; did you mean seqlen\?"),
        ({"workload.seqlen": "long"}, "workload: Expected `int"),
        ({"workload.batch": 2.5}, "workload: Expected `int"),
        ({"workload.model": "llama9"}, "llama9"),
        ({"kernel.tile": 5}, r"'kernel.tile' is unknown; did you mean tile_n\?"),
        ({"kernel.tile_m": 1.5}, "kernel Expected `int`"),
        ({"kernel.schedule": "random"}, "kernel Invalid enum value 'random'"),
        ({"kernel.splits": "2"}, "kernel Expected `int`"),
        ({"hardware.l3.size": 1}, "no such value"),
        ({"hardware.gpu.sm_count": 33}, "is odd"),
        ({"gpu": "gb12"}, "gb12"),
        ({"policy": "belady"}, "'belady' is unknown"),
    ],
)
def test_wrong_points_are_named(fields: dict[str, Scalar], message: str) -> None:
    good: dict[str, Scalar] = {"workload.model": "llama3-8b", "workload.seqlen": 4096}
    with pytest.raises(SimfaError, match=message):
        evaluate(SweepPoint(0, good | fields))


def test_points_reach_every_part_of_the_model() -> None:
    fields: dict[str, Scalar] = {
        "gpu": "h100-sxm",
        "policy": "lru",
        "workload.heads_q": 16,
        "workload.heads_kv": 1,
        "workload.head_dim": 576,
        "workload.value_dim": 512,
        "workload.latent": True,
        "workload.seqlen_q": 1,
        "workload.seqlen_kv": 4096,
        "kernel.tile_m": 64,
        "kernel.tile_n": 64,
        "kernel.pack_gqa": True,
        "hardware.memory.peak_bytes_per_s": 1e12,
    }
    found = evaluate(SweepPoint(0, fields))
    assert found["kv_head_bytes"] == 4096 * 576 * 2
    assert found["bound_by"] == "tensor" and found["dram_bytes"] == found["dram_ideal_bytes"]
