"""Writing files: whole or not at all, the same bytes for the same value, manifests that do not depend on places."""

import hashlib
import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from simfa.errors import SimfaError
from simfa.files import atomic_write, json_bytes, sha256_of, write_json, write_manifest


def test_file_appears_whole_at_the_end(tmp_path: Path) -> None:
    target = tmp_path / "out.txt"
    with atomic_write(target) as handle:
        handle.write("half")
        assert not target.exists()
    assert target.read_text() == "half"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_nothing_is_left_when_the_block_fails(tmp_path: Path, error) -> None:
    target = tmp_path / "out.txt"
    target.write_text("before")
    with pytest.raises(error), atomic_write(target) as handle:
        handle.write("after")
        raise error
    assert target.read_text() == "before"
    assert list(tmp_path.iterdir()) == [target]


def test_missing_folder_is_named(tmp_path: Path) -> None:
    target = tmp_path / "none" / "out.txt"
    with (
        pytest.raises(SimfaError, match=r"out\.txt: cannot be written: No such file or directory"),
        atomic_write(target),
    ):
        pass


def test_what_a_link_points_to_is_written(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    target, link = tmp_path / "folder" / "real.txt", tmp_path / "link.txt"
    link.symlink_to(target)
    for text in ("first", "second"):
        with atomic_write(link) as handle:
            handle.write(text)
        assert (link.is_symlink(), target.read_text()) == (True, text)
    assert list(target.parent.iterdir()) == [target]


def test_pipes_and_devices_are_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    link = tmp_path / "link"
    link.symlink_to(os.devnull)
    for target in (pipe, link):
        with (
            pytest.raises(SimfaError, match="is a device or a pipe; expected the name of a file"),
            atomic_write(target),
        ):
            pass
    assert pipe.is_fifo() and link.is_symlink()


def limit_file_size() -> None:
    """Let every write beyond 1 KiB fail, as on a full disk."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))


def test_full_disk_leaves_no_half_file(tmp_path: Path) -> None:
    script = "from simfa.cli import main; main()"
    command = [sys.executable, "-P", "-c", script, "predict", "--model", "llama3-8b", "--seqlen", "128"]
    done = subprocess.run(
        [*command, "--quiet", "-o", str(tmp_path / "run")],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=limit_file_size,
    )
    assert done.returncode == 1
    assert "stats.json: cannot be written: File too large; nothing was left behind" in done.stderr
    assert "Traceback" not in done.stderr
    assert list((tmp_path / "run").iterdir()) == []


def test_json_is_the_same_for_the_same_value(tmp_path: Path) -> None:
    assert json_bytes({"b": 1, "a": [1.5, None]}) == json_bytes({"a": [1.5, None], "b": 1})
    write_json(tmp_path / "x.json", {"b": 1, "a": 2})
    assert (tmp_path / "x.json").read_text() == '{\n  "a": 2,\n  "b": 1\n}\n'


def test_manifest_holds_digests_and_no_folders(tmp_path: Path) -> None:
    source, output = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_text("x")
    output.write_text("y")
    write_manifest(output, "test", {"table": source}, answer=42)
    text = (tmp_path / "out.csv.manifest.json").read_text()
    manifest = json.loads(text)
    assert manifest["inputs"]["table"] == {"name": "in.csv", "sha256": hashlib.sha256(b"x").hexdigest()}
    assert manifest["output"] == {"name": "out.csv", "sha256": sha256_of(output)}
    assert manifest["answer"] == 42
    assert str(tmp_path) not in text
