"""The logs of `data/logs`: made by the commands of its script, byte for byte, and labelled synthetic."""

import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from simfa.cli import simfa
from simfa.salog import open_log

FOLDER = Path(__file__).parents[2] / "data" / "logs"
COMMANDS = {
    words[-1]: words[1:-1]
    for line in (FOLDER / "make.sh").read_text().splitlines()
    if (words := shlex.split(line, comments=True))[:1] == ["simfa"]
}


def test_the_script_makes_all_logs_of_the_folder():
    assert sorted(COMMANDS) == sorted(path.name for path in FOLDER.glob("*.salog"))


@pytest.mark.parametrize("name", COMMANDS)
def test_a_log_is_what_its_command_writes(tmp_path, name):
    result = CliRunner().invoke(simfa, [*COMMANDS[name], str(tmp_path / name)])
    assert result.exit_code == 0, result.output
    assert (tmp_path / name).read_bytes() == (FOLDER / name).read_bytes(), "run data/logs/make.sh and commit"


@pytest.mark.parametrize("name", COMMANDS)
def test_a_log_is_whole_and_labelled_synthetic(name):
    log = open_log(FOLDER / name)
    assert name.startswith("synthetic-")
    assert log.metadata.source == "synthetic"
    assert log.metadata.ctas_logged is None
    for row in range(len(log.rows)):
        assert len(log.records(row)) > 0


def test_the_logs_cover_the_kernels_and_stay_small():
    metadata = [open_log(FOLDER / name).metadata for name in COMMANDS]
    covered = {(entry.shape.head_dim, entry.shape.causal, entry.level) for entry in metadata}
    assert covered >= {(head_dim, causal, 2) for head_dim in (64, 128, 256) for causal in (False, True)}
    assert (128, False, 1) in covered
    assert {entry.warps for entry in metadata} == {"one", "all"}
    sizes = [(FOLDER / name).stat().st_size for name in COMMANDS]
    assert max(sizes) < 1 << 20
    assert sum(sizes) < 3_000_000
