"""The workflow from bundled logs to the report, on its smallest configuration."""

import base64
import csv
import json
import re

import pytest

from simfa.measure.cases import load_set
from tests.unit import trace_reader
from tests.workflow.test_plan import planned

pytestmark = pytest.mark.slow


def test_ci_run_makes_the_report_and_reruns_only_what_changed(snakemake, tmp_path, root_folder) -> None:
    done = snakemake()
    assert done.returncode == 0, done.stdout
    results = tmp_path / "results"
    summary = json.loads((results / "summary.json").read_text())
    (entry,) = summary["sets"]
    short = {case.id: case for case in load_set("ncu-1500").cases if case.shape.seqlen_kv <= 512}
    assert {case["id"] for case in entry["cases"]} == set(short)
    for case in entry["cases"]:
        assert case["measured_us"] == short[case["id"]].latency_us
        assert case["sm_clock_mhz"] == 1500
        assert case["error"] == pytest.approx(case["simulated_us"] / case["measured_us"] - 1)
    assert entry["accuracy"]["mape"] == pytest.approx(sum(abs(case["error"]) for case in entry["cases"]) / 4)
    # The model is only useful well below the spread between laboratories.
    assert entry["accuracy"]["mape"] < 0.05
    (log,) = summary["logs"]
    assert (log["name"], log["source"]) == ("llama3-8b-512", "synthetic")
    rows = list(csv.DictReader((results / "summary.csv").read_text().splitlines()))
    assert len(rows) == 12
    assert "synthetic" in (results / "report.html").read_text()
    indexes = [json.loads((results / folder / "figures.json").read_text()) for folder in ("figures", "memory/figures")]
    drawn = [len(index["figures"]) for index in indexes]
    assert drawn[0] == 3
    assert drawn[1] >= 2
    assert (results / "report.html").read_text().count("data:image/svg+xml;base64,") == sum(drawn)
    assert (results / "gantt.png").read_bytes().startswith(b"\x89PNG")
    slices, samples = trace_reader.read((results / "run.pftrace").read_bytes())
    assert {"SM 0", "chip"} == {found.rows[0] for found in (*slices, *samples)}
    assert max(found.end_ns for found in slices) == pytest.approx(
        1000 * json.loads((results / "timeline/stats.json").read_text())["latency_us"], abs=1
    )
    trace = (results / "runs/llama3-8b-512/run.satrace").read_bytes()
    stats = json.loads((results / "runs/llama3-8b-512/stats.json").read_text())
    assert stats["manifest"]["log_source"] == "synthetic"

    again = snakemake()
    assert again.returncode == 0, again.stdout
    assert "Nothing to be done" in again.stdout

    embedded = snakemake("--report", str(tmp_path / "all.html"))
    assert embedded.returncode == 0, embedded.stdout
    page = (tmp_path / "all.html").read_text(encoding="utf-8")
    found = re.search(r"data:text/html;[^,]*filename=report\.html;base64,([A-Za-z0-9+/=]+)", page)
    assert found is not None
    assert base64.b64decode(found[1]) == (results / "report.html").read_bytes()

    (tmp_path / "own.yaml").write_text("gpu: my part.toml\npredictions: {models: [llama3-8b], seqlens: [128]}\n")
    own = ("--configfile", str(root_folder / "config/ci.yaml"), "own.yaml")
    base, part = tmp_path / "base.toml", tmp_path / "my part.toml"
    base.write_text('extends = "h100-sxm"\n')
    part.write_text('extends = "base.toml"\n')
    done = snakemake(*own)
    assert done.returncode == 0, done.stdout
    reading = {"simulate": 1, "record_timeline": 1, "perfetto_trace": 1, "predict": 1}
    assert planned(snakemake("--dry-run", *own).stdout) == {}
    for edited in (part, base):
        text = edited.read_text()
        edited.write_text(f"{text}# Snakemake compares contents, not times alone\n")
        assert planned(snakemake("--dry-run", *own).stdout) == {"all": 1, **reading, "validate": 1, "report": 1}
        edited.write_text(text)

    other = snakemake("--dry-run", "--config", "gpu=h200-sxm")
    assert planned(other.stdout) == {
        "all": 1, "simulate": 1, "record_timeline": 1, "perfetto_trace": 1, "validate": 1, "report": 1,
    }  # fmt: skip
    assert (results / "runs/llama3-8b-512/run.satrace").read_bytes() == trace
