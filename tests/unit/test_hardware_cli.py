"""`simfa hardware`: list, show, explain."""

import json

import pytest
from click.testing import CliRunner

from simfa.cli import simfa
from simfa.errors import HardwareError
from simfa.hardware import load_preset, preset_names


def run(*arguments: str) -> str:
    """Run `simfa hardware` and return its standard output."""
    done = CliRunner().invoke(simfa, ["hardware", *arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_list_names_every_preset_and_overlay() -> None:
    text = run("list")
    for name in (*preset_names(), "no-lrc", "modulo-hash"):
        assert f"\n{name} " in text
    document = json.loads(run("list", "--json"))
    assert document["overlays"]["no-lrc"] == {"lrc.enabled": False, "lrc.multicast": False}
    assert document["presets"]["h20"]["sha256"] == load_preset("h20").spec.sha256()


def test_show_gives_every_value_with_status_and_source() -> None:
    document = json.loads(run("show", "h100-sxm", "--overlay", "modulo-hash", "--set", "l2.mshr_entries=64", "--json"))
    values = {entry["path"]: entry for entry in document["values"]}
    assert values["l2.mshr_entries"]["value"] == 64
    assert values["l2.mshr_entries"]["source"] == "command line"
    assert values["l2.hash"]["value"] == "modulo"
    assert all(entry["status"] and entry["source"] for entry in values.values())
    assert values["memory.peak_bytes_per_s"]["unit"] == "B/s"


def test_show_by_status() -> None:
    document = json.loads(run("show", "--status", "assumed", "--json"))
    assert {entry["status"] for entry in document["values"]} == {"assumed"}


def test_explain_names_source_and_other_presets() -> None:
    text = run("explain", "gpu.sm_count", "--gpu", "h20")
    assert text.startswith("gpu.sm_count = 78")
    assert "h100-sxm 132" in text
    assert "specification tables" in text


def test_explain_unknown_path_suggests() -> None:
    with pytest.raises(HardwareError, match=r"did you mean l2\.mshr_entries"):
        CliRunner().invoke(simfa, ["hardware", "explain", "l2.mshr_entry"], catch_exceptions=False)
