"""Building with a compiler that is not the real one: cache, manifest, errors; and the commands around it."""

import stat
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

import simfa.instrument.build as build_module
from simfa.errors import InstrumentError
from simfa.instrument.build import LIBRARY_NAME, Build, build_library, copy_build, read_manifest
from simfa.instrument.commands import instrument
from simfa.instrument.instantiation import parse_kernel
from simfa.instrument.launcher import Launcher
from simfa.instrument.pair import pair_paths
from simfa.instrument.sources import Fa3Sources
from simfa.instrument.toolchain import Nvcc
from tests.unit import fa3_skeleton
from tests.unit.test_instrument_ptxas import CLEAN

KERNELS = [parse_kernel("hdim128-fp16-full-cluster2")]


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fa3Sources:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    root = tmp_path / "flash-attention"
    (root / "hopper").mkdir(parents=True)
    for name, text in fa3_skeleton.sources().items():
        (root / "hopper" / name).write_text(text)
    (root / "csrc/cutlass/include/cutlass").mkdir(parents=True)
    (root / "csrc/cutlass/include/cutlass/cutlass.h").write_text("#pragma once\n")
    return Fa3Sources(root / "hopper", root / "csrc/cutlass/include", "made up")


@pytest.fixture
def compiler(tmp_path: Path):
    """Return a function that makes an nvcc which says `output`, keeps what it was given, and ends with `code`."""

    def make(output: str = CLEAN, code: int = 0, build: str = "13.0.88") -> Nvcc:
        program = tmp_path / "nvcc"
        (tmp_path / "said").write_text(output)
        program.write_text(
            f"""#!/bin/sh
echo run >> {tmp_path}/runs
for part; do
  case "$part" in
    -I*/sources) cp -r "${{part#-I}}" {tmp_path}/given;;
    -DSIMFA_LEVEL=*) level="$part";;
  esac
  last="$part"
done
cat {tmp_path}/said >&2
[ {code} -eq 0 ] && echo "library $level" > "$last"
exit {code}
"""
        )
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        return Nvcc(program, (13, 0), build, tmp_path)

    return make


def runs(tmp_path: Path) -> int:
    return len((tmp_path / "runs").read_text().splitlines())


def test_a_build_is_cached_and_its_manifest_complete(tree: Fa3Sources, compiler, tmp_path: Path) -> None:
    nvcc = compiler()
    first, second = build_library(tree, 2, KERNELS, nvcc), build_library(tree, 2, KERNELS, nvcc)
    assert (first.cached, second.cached, runs(tmp_path)) == (False, True, 1)
    assert first.library == second.library
    manifest = first.manifest
    assert manifest["kernels"] == ["hdim128-fp16-full-cluster2"]
    assert manifest["kernels_ptxas"][0]["registers"] == 168
    assert manifest["nvcc"] == "13.0.88"
    assert {hit["rule"] for hit in manifest["rules"]} >= {"TMA_K_ISSUE", "WAIT_WG_1", "TILE"}
    assert all(sums["before"] != sums["after"] for sums in manifest["files"].values())
    assert manifest["cost"]["peak_memory_bytes"] > 0


def test_earlier_builds_tell_how_long_the_next_one_takes(
    tree: Fa3Sources, compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = []
    real = build_module.watched_run

    def spy(command, what, *, expected_seconds, quiet):
        expected.append(expected_seconds)
        return real(command, what, expected_seconds=expected_seconds, quiet=quiet)

    monkeypatch.setattr(build_module, "watched_run", spy)
    for level, seconds in ((0, 60.0), (1, 100.0)):
        library = build_library(tree, level, KERNELS, compiler(), quiet=True).library
        manifest = library.with_name(f"{LIBRARY_NAME}.manifest.json")
        facts = msgspec.json.decode(manifest.read_bytes())
        facts["cost"]["wall_seconds"] = seconds
        manifest.write_bytes(msgspec.json.encode(facts))
    build_library(tree, 2, [*KERNELS, parse_kernel("hdim64-fp16-full-cluster1")], compiler(), quiet=True)
    # Nothing is known at first; then one kernel took 60 s, and then 80 s on average, of which two are to be built.
    assert expected == [0.0, 60.0, 160.0]


@pytest.mark.parametrize("lost", [[LIBRARY_NAME], [f"{LIBRARY_NAME}.manifest.json"], []])
def test_a_damaged_build_in_the_cache_is_built_again(
    tree: Fa3Sources, compiler, tmp_path: Path, lost: list[str]
) -> None:
    nvcc = compiler()
    first = build_library(tree, 1, KERNELS, nvcc)
    whole = first.library.read_bytes()
    first.library.write_bytes(whole[:3])
    for name in lost:
        (first.library.parent / name).unlink()
    second = build_library(tree, 1, KERNELS, nvcc)
    assert (second.cached, second.library.read_bytes(), runs(tmp_path)) == (False, whole, 2)
    assert build_library(tree, 1, KERNELS, nvcc).cached


def test_the_compiler_sees_the_patched_copy_and_the_kernel_list(tree: Fa3Sources, compiler, tmp_path: Path) -> None:
    build_library(tree, 1, KERNELS, compiler())
    given = tmp_path / "given"
    assert "simfa_probe" in (given / "hopper/mainloop_fwd_sm90_tma_gmma_ws.hpp").read_text()
    assert (given / "simfa_kernels.inc").read_text() == "SIMFA_KERNEL(128, cutlass::half_t, false, 2)\n"
    originals = {path.name: path.read_text() for path in tree.hopper.iterdir()}
    assert originals == fa3_skeleton.sources()


def test_level_0_is_the_unpatched_kernel(tree: Fa3Sources, compiler, tmp_path: Path) -> None:
    build = build_library(tree, 0, KERNELS, compiler())
    assert build.level == 0
    assert "simfa_probe" not in (tmp_path / "given/hopper/mainloop_fwd_sm90_tma_gmma_ws.hpp").read_text()


def test_anything_that_goes_in_changes_the_build(tree: Fa3Sources, compiler, tmp_path: Path) -> None:
    builds = [
        build_library(tree, 1, KERNELS, compiler()),
        build_library(tree, 2, KERNELS, compiler()),
        build_library(tree, 1, KERNELS, compiler(build="13.0.99")),
        build_library(tree, 1, [*KERNELS, parse_kernel("hdim64-fp16-full-cluster1")], compiler()),
    ]
    (tree.cutlass / "cutlass/cutlass.h").write_text("#pragma once\n// newer\n")
    builds.append(build_library(tree, 1, KERNELS, compiler()))
    assert len({build.library for build in builds}) == len(builds)


def test_order_of_kernels_does_not_matter(tree: Fa3Sources, compiler, tmp_path: Path) -> None:
    kernels = [*KERNELS, parse_kernel("hdim64-fp16-full-cluster1")]
    assert (
        build_library(tree, 1, kernels, compiler()).library == build_library(tree, 1, kernels[::-1], compiler()).library
    )
    assert runs(tmp_path) == 1


@pytest.mark.parametrize(
    ("output", "code", "message"),
    [
        ("x.h(3): error: no such thing\nnote\n", 1, r"nvcc failed with code 1:\nx\.h\(3\): error: no such thing$"),
        ("ptxas info    : (C7510) Potential Performance Loss: serialized\n", 0, r"could not keep WGMMAs asynchronous"),
        ("nothing about kernels\n", 0, "ptxas reported no kernel"),
    ],
)
def test_a_bad_build_leaves_nothing_in_the_cache(
    tree: Fa3Sources, compiler, tmp_path: Path, output: str, code: int, message: str
) -> None:
    with pytest.raises(InstrumentError, match=message):
        build_library(tree, 1, KERNELS, compiler(output, code))
    assert list((tmp_path / "cache/simfa/builds").iterdir()) == []


def test_a_changed_library_does_not_fit_its_manifest(tree: Fa3Sources, compiler, tmp_path: Path) -> None:
    copied = copy_build(build_library(tree, 1, KERNELS, compiler()), tmp_path / "out" / LIBRARY_NAME)
    assert read_manifest(copied.library)["level"] == 1
    copied.library.write_text("something else")
    with pytest.raises(InstrumentError, match="its sha256 is not the manifest's"):
        read_manifest(copied.library)


def test_a_folder_must_hold_one_plain_and_one_probed_library(tree: Fa3Sources, compiler, tmp_path: Path) -> None:
    def put(level: int, name: str) -> Build:
        return copy_build(build_library(tree, level, KERNELS, compiler()), tmp_path / "pair" / name / LIBRARY_NAME)

    put(0, "plain")
    with pytest.raises(InstrumentError, match="cannot be read"):
        pair_paths(tmp_path / "pair")
    put(2, "probed")
    assert pair_paths(tmp_path / "pair")[2] == 2
    put(1, "plain")
    with pytest.raises(InstrumentError, match="expected a library without probes and one with"):
        pair_paths(tmp_path / "pair")


def test_a_file_that_is_no_library_is_refused(tmp_path: Path) -> None:
    path = tmp_path / LIBRARY_NAME
    path.write_text("text")
    with pytest.raises(InstrumentError, match="cannot be loaded"):
        Launcher(path)


def test_patch_command_writes_a_copy_and_prints_the_diff(tree: Fa3Sources, tmp_path: Path) -> None:
    root = str(tree.hopper.parent)
    done = CliRunner().invoke(
        instrument, ["patch", "--source", root, "--level", "1", "--diff", "-o", str(tmp_path / "out")]
    )
    assert done.exit_code == 0, done.output
    assert "+++ b/hopper/mainloop_fwd_sm90_tma_gmma_ws.hpp" in done.output
    assert "simfa_probe" in (tmp_path / "out/hopper/mainloop_fwd_sm90_tma_gmma_ws.hpp").read_text()
    assert "simfa_probe" not in (tree.hopper / "mainloop_fwd_sm90_tma_gmma_ws.hpp").read_text()


def test_patch_command_does_not_overwrite_its_source(tree: Fa3Sources) -> None:
    root = str(tree.hopper.parent)
    done = CliRunner().invoke(instrument, ["patch", "--source", root, "-o", root])
    assert isinstance(done.exception, InstrumentError)
    assert "write the patched copy elsewhere" in str(done.exception)


def test_patch_command_does_not_overwrite_its_source_through_a_link(tree: Fa3Sources, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "hopper").symlink_to(tree.hopper)
    result = CliRunner().invoke(instrument, ["patch", "--source", str(tree.hopper.parent), "-o", str(elsewhere)])
    assert isinstance(result.exception, InstrumentError)
    assert {path.name: path.read_text() for path in tree.hopper.iterdir()} == fa3_skeleton.sources()


def test_fetch_command_shows_a_checkout(tree: Fa3Sources) -> None:
    done = CliRunner().invoke(instrument, ["fetch", "--source", str(tree.hopper.parent), "--json"])
    assert done.exit_code == 0, done.output
    facts = msgspec.json.decode(done.output)
    assert facts["hopper"] == str(tree.hopper)
    assert facts["origin"].startswith("checkout ")


def test_build_command_refuses_a_kernel_that_is_none(tree: Fa3Sources) -> None:
    done = CliRunner().invoke(instrument, ["build", "--kernel", "hdim96-fp16-full-cluster1"])
    assert done.exit_code == 2
    assert "no kernel for head_dim 96" in done.output
