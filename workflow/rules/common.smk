# Names, paths and choices that the rules share; everything else is a simfa command.
import functools
import hashlib
import importlib.metadata
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.logging import logger

from simfa.errors import SimfaError
from simfa.hardware import load_preset, overlay_table
from simfa.measure.cases import load_set
from simfa.preset_files import preset_files

# The interpreter that runs Snakemake has simfa; -P keeps the working directory off its import path.
PYTHON = f"{shlex.quote(sys.executable)} -P"
SIMFA = f"{PYTHON} -m simfa"
DATA = Path(os.path.relpath(workflow.basedir)).parent / "data"
# Another package installed, other results: its recorded file hashes are a parameter of every rule that runs it.
PACKAGE = hashlib.sha256(importlib.metadata.distribution("simfa").read_text("RECORD").encode()).hexdigest()[:12]
LOGS = list(config["logs"])
PROFILER_EXPORTS = {"nsys": ".sqlite", "ncu": ".csv"}
MODELS = config["predictions"]["models"]
SEQLENS = config["predictions"]["seqlens"]


def prediction_gpus():
    """Return the presets to predict on by the name of their folder, which has no slashes and blanks."""
    gpus = config["predictions"]["gpus"] or [config["gpu"]]
    folders = {re.sub(r"[^\w.+-]", "_", gpu): gpu for gpu in gpus}
    if len(folders) < len(set(gpus)):
        raise WorkflowError(f"config predictions: {', '.join(gpus)} would share a folder; rename one of the files")
    return folders


PREDICTION_GPUS = prediction_gpus()


def check_presets():
    """Load every configured preset and overlay; a wrong one ends the run before any job starts."""
    ablation, sensitivity = config.get("ablation", {}), config.get("sensitivity", {})
    presets = [
        config["gpu"],
        *PREDICTION_GPUS.values(),
        *ablation.get("gpus", []),
        sensitivity.get("gpu", config["gpu"]),
    ]
    try:
        for name in presets:
            load_preset(name)
        for name in ablation.get("overlays", []):
            overlay_table(name)
    except SimfaError as error:
        raise WorkflowError(f"config: {error}") from error


check_presets()


def measured_sets():
    """Return the configured sets of measured cases; an unknown name ends the run before any job starts."""
    try:
        return [load_set(name) for name in config["measured_sets"]]
    except SimfaError as error:
        raise WorkflowError(f"config measured_sets: {error}") from error


CASES = {
    case.id: max(case.shape.seqlen_q, case.shape.seqlen_kv)
    for entry in measured_sets()
    for case in entry.cases
    if max(case.shape.seqlen_q, case.shape.seqlen_kv) <= config["max_seqlen"]
}


@functools.cache
def doctor():
    """Return what `simfa doctor` finds on this machine, asked once; a text where it fails."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", "simfa", "doctor", "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        return f"`simfa doctor` fails: {done.stderr.strip() or done.stdout.strip()}"
    return json.loads(done.stdout)


def capture_problem():
    """Return why no log can be captured here, or an empty string."""
    findings = doctor()
    if isinstance(findings, str):
        return findings
    missing = list(findings["capture_missing"])
    if not config["fa3_source"] and findings["fa3_sources"] is None:
        missing.append("FlashAttention-3 sources (simfa instrument fetch, or config fa3_source)")
    return f"this machine lacks {', '.join(missing)}" if missing else ""


def captures():
    """Return whether logs are captured on a GPU here; `capture: gpu` without one is an error at parse time."""
    if config["capture"] == "bundled":
        return False
    problem = capture_problem()
    if problem and config["capture"] == "gpu":
        raise WorkflowError(
            f"config capture is 'gpu' but {problem}; use a Hopper node, or capture: bundled for the shipped logs"
        )
    return not problem


CAPTURES = captures()


def profilers():
    """Return the configured profilers that are installed where logs are captured, and say which are not."""
    if not CAPTURES:
        return []
    absent = [name for name in config["profilers"] if doctor()["tools"][name] is None]
    for name in absent:
        logger.warning(f"{name} is not on PATH: the plain kernel is not measured with it")
    return [name for name in config["profilers"] if name not in absent]


PROFILED = [f"results/profiled/{log}{PROFILER_EXPORTS[profiler]}" for profiler in profilers() for log in LOGS]


def log_file(wildcards):
    """Return a run's log: captured on this machine's GPU, or the bundled synthetic one."""
    if CAPTURES:
        return f"results/captured/{wildcards.log}.salog"
    return DATA / "logs" / f"{config['logs'][wildcards.log]['bundled']}.salog"


def stats_files(wildcards):
    """Return every simulation that the comparison joins."""
    return [
        *expand("results/runs/{log}/stats.json", log=LOGS),
        *expand("results/measured/{case}/stats.json", case=CASES),
        *expand(
            "results/predictions/{gpu}/{model}-{seqlen}/stats.json",
            gpu=list(PREDICTION_GPUS),
            model=MODELS,
            seqlen=SEQLENS,
        ),
    ]


def files_of(*presets):
    """Return the files of presets and overlays that are given by path: editing one reruns what reads it."""
    return [file for preset in presets for file in preset_files(preset)]


def flags(option, values):
    """Return one flag for each value, quoted for the shell."""
    return " ".join(f"{option} {shlex.quote(str(value))}" for value in values)


def study_folders():
    """Return the folders of figures of the configured studies, which the report shows."""
    return [f"results/studies/{name}" for name in ("ablation", "sensitivity") if name in config]


def compared_exports():
    """Return the summary of the configured exports' comparison, where a mapping says what they computed."""
    return ["results/exports/summary.json"] if config["mapping"] else []


def ingested():
    """Return the table of the configured profiler exports, and with a mapping their comparison."""
    if config["mapping"] and not config["exports"]:
        raise WorkflowError("config mapping: there are no exports to map; list them under exports")
    return ["results/ingested.csv", *compared_exports()] if config["exports"] else []
