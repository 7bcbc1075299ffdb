"""`simfa doctor`: what this machine can run, and what is missing for the rest."""

import importlib
import importlib.metadata
import importlib.util
import re
import shutil
import subprocess
import sys

import click
import msgspec

from simfa import __version__
from simfa.errors import InstrumentError
from simfa.files import json_bytes
from simfa.tables import text_table

# Command-line tools of the CUDA toolkit and Nsight: what each is needed for.
TOOLS = {
    "nvcc": "building the probed kernel",
    "ncu": "measuring with Nsight Compute",
    "nsys": "measuring with Nsight Systems",
}
_PROBE_SECONDS = 20


class Gpu(msgspec.Struct, frozen=True):
    """One GPU as `nvidia-smi` names it."""

    name: str
    compute_capability: str
    driver: str
    memory_mib: int

    @property
    def is_hopper(self) -> bool:
        """Whether FA3's sm_90a kernels run here."""
        return self.compute_capability == "9.0"


class Findings(msgspec.Struct, frozen=True):
    """Everything `simfa doctor` looks at; a missing tool, package or core is None, never an empty version."""

    simfa: str
    python: str
    core: str | None
    core_problem: str | None
    gpus: list[Gpu]
    gpu_problem: str | None
    tools: dict[str, str | None]
    fa3_sources: str | None
    extras: dict[str, dict[str, str | None]]
    capture_missing: list[str]


def examine() -> Findings:
    """Return what is installed and visible; nothing here raises for something that is absent."""
    core, core_problem = _core()
    gpus, gpu_problem = _gpus()
    tools = {name: _nvcc_version() if name == "nvcc" else _tool_version(name) for name in TOOLS}
    missing = []
    if not any(gpu.is_hopper for gpu in gpus):
        missing.append("a Hopper GPU (compute capability 9.0)")
    if tools["nvcc"] is None:
        missing.append("nvcc")
    if not _has_gpu_library():
        missing.append("CuPy, PyCUDA or PyTorch (pip install 'simfa[gpu]')")
    return Findings(
        simfa=__version__,
        python=".".join(str(part) for part in sys.version_info[:3]),
        core=core,
        core_problem=core_problem,
        gpus=gpus,
        gpu_problem=gpu_problem,
        tools=tools,
        fa3_sources=_fa3_sources(),
        extras=_extras(),
        capture_missing=missing,
    )


def _core() -> tuple[str | None, str | None]:
    """Return the compiled engine's description, or why it cannot be loaded."""
    try:
        module = importlib.import_module("simfa.simulate._core")
    except ImportError as error:
        return None, f"{error}; reinstall with a C++20 compiler: pip install ."
    return str(module.__doc__), None


def _run(*command: str) -> str | None:
    """Return the standard output of a short command, or None when it is absent or fails."""
    if shutil.which(command[0]) is None:
        return None
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PROBE_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def parse_gpus(text: str) -> list[Gpu]:
    """Return the GPUs of `nvidia-smi --query-gpu=name,compute_cap,driver_version,memory.total --format=csv`."""
    gpus = []
    for line in text.splitlines():
        fields = [field.strip() for field in line.split(",")]
        if len(fields) == 4 and fields[3].isdigit():
            gpus.append(Gpu(fields[0], fields[1], fields[2], int(fields[3])))
    return gpus


def _gpus() -> tuple[list[Gpu], str | None]:
    """Return the visible GPUs, and why there are none."""
    if shutil.which("nvidia-smi") is None:
        return [], "nvidia-smi is not on PATH: no NVIDIA driver here"
    text = _run(
        "nvidia-smi", "--query-gpu=name,compute_cap,driver_version,memory.total", "--format=csv,noheader,nounits"
    )
    if text is None:
        return [], "nvidia-smi fails: the driver is not loaded or sees no GPU"
    gpus = parse_gpus(text)
    return gpus, None if gpus else "nvidia-smi lists no GPU"


def _tool_version(name: str) -> str | None:
    """Return the first version number a tool prints, "found" when it prints none, None when it is absent."""
    text = _run(name, "--version")
    if text is None:
        return None
    match = re.search(r"\d+\.\d+(?:\.\d+)*", text)
    return match.group() if match else "found"


def _nvcc_version() -> str | None:
    """Return the version of the nvcc that `simfa instrument build` would use, on PATH or not; None without one."""
    from simfa.instrument.toolchain import find_nvcc

    try:
        return ".".join(map(str, find_nvcc().version))
    except InstrumentError:
        return None


def _has_gpu_library() -> bool:
    """Whether one of the libraries that `simfa capture` can use is installed; none is imported."""
    from simfa.instrument.gpu import BACKENDS

    return any(importlib.util.find_spec(name) for name in BACKENDS)


def _fa3_sources() -> str | None:
    """Return which FA3 sources `simfa instrument fetch` has brought, or None when it has not."""
    from simfa.instrument.sources import find_sources

    try:
        return find_sources().origin
    except InstrumentError:
        return None


def _extras() -> dict[str, dict[str, str | None]]:
    """Return for each extra of the installed package its requirements with their installed versions."""
    extras: dict[str, dict[str, str | None]] = {}
    for requirement in importlib.metadata.requires("simfa") or []:
        name = re.match(r"[A-Za-z0-9._-]+", requirement)
        extra = re.search(r"extra == ['\"]([^'\"]+)['\"]", requirement)
        if name and extra:
            extras.setdefault(extra.group(1), {})[name.group()] = _installed(name.group())
    return extras


def _installed(distribution: str) -> str | None:
    """Return the version of an installed distribution."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def rows(findings: Findings) -> list[tuple[str, str]]:
    """Return the human table: what was looked for, and what was found or is missing."""
    table = [
        ("simfa", f"{findings.simfa}, Python {findings.python}"),
        ("engine", findings.core or f"missing: {findings.core_problem}"),
    ]
    table += [
        ("gpu", f"{gpu.name}, compute capability {gpu.compute_capability}, driver {gpu.driver}, {gpu.memory_mib} MiB")
        for gpu in findings.gpus
    ]
    if not findings.gpus:
        table.append(("gpu", f"none: {findings.gpu_problem}"))
    for name, purpose in TOOLS.items():
        table.append((name, findings.tools[name] or f"missing: needed for {purpose}"))
    for extra, packages in findings.extras.items():
        absent = [name for name, version in packages.items() if version is None]
        have = ", ".join(f"{name} {version}" for name, version in packages.items() if version is not None)
        text = have if not absent else f"{have}{'; ' if have else ''}missing {', '.join(absent)}"
        table.append((f"extra {extra}", text))
    table.append(("FA3 sources", findings.fa3_sources or "none: `simfa instrument fetch` brings them"))
    capture = (
        "possible" if not findings.capture_missing else f"not here: needs {' and '.join(findings.capture_missing)}"
    )
    table.append(("capture", capture))
    return table


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")
def doctor(as_json: bool) -> None:
    """What this machine can do: compiled engine, GPU, driver, compilers, profilers, extras.

    Exit code 1 when the compiled engine cannot be loaded; everything else is optional.
    """
    findings = examine()
    if as_json:
        click.echo(json_bytes(findings).decode(), nl=False)
    else:
        click.echo(text_table(("what", "found"), rows(findings)))
    if findings.core is None:
        sys.exit(1)
