"""Finding and unpacking sources: archives, checkouts, caches, and a pip that is not the real one."""

import hashlib
import io
import stat
import sys
import tarfile
import types
import zipfile
from pathlib import Path, PurePosixPath

import pytest

from simfa.errors import InstrumentError
from simfa.instrument import packages, sources
from simfa.instrument.cache import cache_dir
from simfa.instrument.packages import Pin, download
from simfa.instrument.sources import fetch_release, find_sources, tree_hash, unpack_sdist, unpack_wheel
from tests.unit import fa3_skeleton

FA3 = PurePosixPath("third_party/flash-attention")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "simfa"


def sdist_files() -> dict[str, str]:
    files = {f"{FA3}/hopper/{name}": text for name, text in fa3_skeleton.sources().items()}
    files[f"{FA3}/hopper/instantiations/kernel.cu"] = "not needed"
    files[f"{FA3}/csrc/cutlass/include/cutlass/cutlass.h"] = "#pragma once\n"
    files[f"{FA3}/csrc/cutlass/examples/example.h"] = "not needed"
    files["setup.py"] = "raise SystemExit('code of the package ran')"
    return files


def sdist(folder: Path, files: dict[str, str], name: str = "xformers-0.0.33.post2") -> Path:
    path = folder / f"{name}.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for file, text in files.items():
            member = tarfile.TarInfo(f"{name}/{file}")
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    return path


def checkout(folder: Path, *, cutlass: bool = True) -> Path:
    (folder / "hopper").mkdir(parents=True)
    for name, text in fa3_skeleton.sources().items():
        (folder / "hopper" / name).write_text(text)
    if cutlass:
        (folder / "csrc/cutlass/include/cutlass").mkdir(parents=True)
        (folder / "csrc/cutlass/include/cutlass/cutlass.h").write_text("#pragma once\n")
    return folder


def test_only_fa3_and_cutlass_headers_are_unpacked(tmp_path: Path) -> None:
    unpack_sdist(sdist(tmp_path, sdist_files()), FA3, tmp_path / "tree")
    found = sorted(
        str(path.relative_to(tmp_path / "tree")) for path in (tmp_path / "tree").rglob("*") if path.is_file()
    )
    assert found == sorted(
        [*(f"hopper/{name}" for name in fa3_skeleton.sources()), "csrc/cutlass/include/cutlass/cutlass.h"]
    )


def test_an_archive_without_fa3_is_refused(tmp_path: Path) -> None:
    files = {name: text for name, text in sdist_files().items() if "hopper" not in name}
    with pytest.raises(InstrumentError, match=r"no FA3 inside: hopper/mainloop_fwd_sm90\S+ is missing"):
        unpack_sdist(sdist(tmp_path, files), FA3, tmp_path / "tree")


@pytest.mark.parametrize("cut", [0, 100])
def test_a_damaged_archive_is_refused(tmp_path: Path, cut: int) -> None:
    path = sdist(tmp_path, sdist_files())
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(InstrumentError, match="cannot be unpacked"):
        unpack_sdist(path, FA3, tmp_path / "tree")


def test_a_wheel_gives_its_headers(tmp_path: Path) -> None:
    path = tmp_path / "cutlass.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("pkg/include/cutlass/cutlass.h", "x")
        wheel.writestr("pkg/other.py", "y")
    unpack_wheel(path, PurePosixPath("pkg/include"), tmp_path / "include")
    assert [path.name for path in (tmp_path / "include").rglob("*") if path.is_file()] == ["cutlass.h"]
    with pytest.raises(InstrumentError, match="no CUTLASS headers inside"):
        unpack_wheel(path, PurePosixPath("elsewhere"), tmp_path / "include")


def test_a_checkout_is_found_by_its_root_or_its_hopper_folder(tmp_path: Path) -> None:
    root = checkout(tmp_path / "flash-attention")
    by_root, by_hopper = find_sources(root), find_sources(root / "hopper")
    assert by_root == by_hopper
    assert by_root.cutlass == root / "csrc/cutlass/include"
    assert by_root.origin == f"checkout {tree_hash(root / 'hopper')[:12]}"
    assert by_root.headers() == fa3_skeleton.sources()


def test_a_checkout_without_its_submodule_says_what_to_do(tmp_path: Path) -> None:
    root = checkout(tmp_path / "flash-attention", cutlass=False)
    with pytest.raises(InstrumentError, match="git submodule update --init"):
        find_sources(root)


def test_cutlass_can_come_from_elsewhere(tmp_path: Path) -> None:
    root = checkout(tmp_path / "flash-attention", cutlass=False)
    other = checkout(tmp_path / "other") / "csrc/cutlass"
    assert find_sources(root, other).cutlass == other / "include"
    with pytest.raises(InstrumentError, match=r"expected include/cutlass/cutlass\.h"):
        find_sources(root, tmp_path)


def test_a_folder_without_fa3_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InstrumentError, match="no FA3 inside"):
        find_sources(tmp_path)


def test_an_empty_cache_names_the_command() -> None:
    with pytest.raises(InstrumentError, match="run `simfa instrument fetch`"):
        find_sources()


def test_unknown_release_is_refused() -> None:
    with pytest.raises(InstrumentError, match=r"release '1\.0' is unknown; expected one of 0\.0\.33\.post2"):
        fetch_release("1.0")


def test_a_filled_cache_needs_no_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_cache: Path) -> None:
    archive = sdist(tmp_path, sdist_files())
    asked = []

    def once(pin: Pin, folder: Path, *, quiet: bool) -> Path:
        asked.append(pin.version)
        return Path(archive.rename(folder / archive.name))

    monkeypatch.setattr(sources, "download", once)
    first = fetch_release("0.0.33.post2")
    assert fetch_release("0.0.33.post2") == first == find_sources()
    assert asked == ["0.0.33.post2"]
    assert first.hopper.is_relative_to(own_cache)
    assert not [path for path in (own_cache / "sources").iterdir() if path.name.startswith(".")]


def test_a_failed_unpacking_leaves_no_half_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_cache: Path
) -> None:
    archive = sdist(tmp_path, {"setup.py": ""})
    monkeypatch.setattr(sources, "download", lambda pin, folder, quiet: archive)
    with pytest.raises(InstrumentError, match="no FA3 inside"):
        fetch_release()
    assert list((own_cache / "sources").iterdir()) == []


def test_cache_follows_the_xdg_variable_unless_it_is_relative(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_dir() == tmp_path / "simfa"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache_dir() == Path.home() / ".cache" / "simfa"


class TestDownload:
    """`download` against a stand-in for the Python that runs pip."""

    CONTENT = b"archive"

    @pytest.fixture
    def pip(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        """Return a function that makes pip do as told and records its arguments."""

        def install(script: str) -> Path:
            program = tmp_path / "python"
            program.write_text(f"#!/bin/sh\nprintf '%s\\n' \"$@\" > {tmp_path}/arguments\n{script}\n")
            program.chmod(program.stat().st_mode | stat.S_IXUSR)
            monkeypatch.setattr(packages.sys, "executable", str(program))
            return tmp_path / "arguments"

        return install

    def pin(self, content: bytes = CONTENT, *, is_source: bool = True) -> Pin:
        return Pin("some-project", "1.2", hashlib.sha256(content).hexdigest(), is_source)

    SAVE = (
        'while [ "$1" != --dest ]; do shift; done; mkdir -p "$2"; printf archive > "$2/some-project-1.2.tar.gz"\n'
        'echo "path: $PYTHONPATH"'
    )

    def test_pip_gets_the_hash_and_the_file_comes_back(self, pip, tmp_path: Path) -> None:
        arguments = pip(self.SAVE)
        (tmp_path / "out").mkdir()
        found = download(self.pin(), tmp_path / "out")
        assert found.read_bytes() == self.CONTENT
        told = arguments.read_text().split("\n")
        assert {"download", "--no-deps", "--no-build-isolation", "--no-binary"} <= set(told)

    def test_a_file_with_another_hash_is_refused(self, pip, tmp_path: Path) -> None:
        pip(self.SAVE)
        with pytest.raises(InstrumentError, match="the file was refused"):
            download(self.pin(b"other"), tmp_path)
        assert not list(tmp_path.glob("*.tar.gz"))

    @pytest.mark.parametrize(
        ("said", "message"),
        [
            ("No module named pip", "ensurepip"),
            ("THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE", "whose sha256 is not"),
            ("ERROR: No matching distribution found for some-project==1.2", "does not offer this file"),
            ("(from versions: none)\\nERROR: No matching distribution found", "Check the network"),
            ("ERROR: Could not install: Connection refused", "Connection refused"),
            ("", "pip gave no reason"),
        ],
    )
    def test_failures_say_what_to_do(self, pip, tmp_path: Path, said: str, message: str) -> None:
        pip(f"printf '{said}\\n' >&2; exit 1")
        with pytest.raises(InstrumentError, match=message) as error:
            download(self.pin(), tmp_path)
        assert "some-project 1.2" in str(error.value)

    def test_the_stand_in_backend_answers_without_running_the_package(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: some-project\nVersion: 1.2\n")
        (tmp_path / "setup.py").write_text("raise SystemExit('ran')")
        module = types.ModuleType("made_up_backend")
        monkeypatch.setitem(sys.modules, module.__name__, module)
        monkeypatch.chdir(tmp_path)
        exec(packages._BUILD_BACKEND, module.__dict__)
        assert module.get_requires_for_build_wheel() == []
        name = module.prepare_metadata_for_build_wheel(str(tmp_path))
        assert name == "some-project-1.2.dist-info"
        assert (tmp_path / name / "METADATA").read_text() == (tmp_path / "PKG-INFO").read_text()


def test_a_header_that_is_no_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "hopper").mkdir()
    (tmp_path / "hopper" / "utils.h").write_bytes(b"// caf\xe9\n")
    found = sources.Fa3Sources(tmp_path / "hopper", tmp_path, "made up")
    with pytest.raises(InstrumentError, match=r"utils\.h: byte 6 is no UTF-8 text"):
        found.headers()
