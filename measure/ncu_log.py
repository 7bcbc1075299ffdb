"""What Nsight Compute says around its tables: banners, failures with their remedy, the options of the capture."""

import re
from collections import Counter
from pathlib import Path, PurePath

from simfa.errors import MeasureError

_PROFILING = re.compile(r'==PROF== Profiling "(?P<name>.*?)"')
_REPORT = re.compile(r"==PROF== Report: (?P<path>.+)")
_OPTION = {
    "clock_control": re.compile(r"--clock-control[ =\"',]+(base|none|boost|reset|lock)"),
    "cache_control": re.compile(r"--cache-control[ =\"',]+(all|none)"),
}
_GPU = re.compile(r'(?:device__attribute_)?\bdisplay_name"?[\s,:]+"?(?P<name>[A-Za-z][^",]*?)"?\s*$')

PERMISSION_REMEDY = (
    "give the user access to the GPU's performance counters (https://developer.nvidia.com/ERR_NVGPUCTRPERM: run as "
    "root, or load the driver with NVreg_RestrictProfilingToAdminUsers=0, or start the container with "
    "--cap-add=SYS_ADMIN). Where that cannot be had, as on rented GPUs, take latency from nsys or the PyTorch "
    "profiler; traffic needs counters"
)
NO_KERNEL_REMEDY = (
    "if a launcher starts the program, add --target-processes all; check --kernel-name, --launch-skip and "
    "--launch-count against the kernels that ran"
)


def replayed(path: Path, number: int) -> MeasureError:
    """Return the refusal of a benchmark's times that were printed under ncu, as the banner in line `number` shows."""
    return MeasureError(
        f"{path}:{number}: this benchmark ran under Nsight Compute (==PROF== line), whose replay passes lie inside its "
        "timed region: its times are not the kernel's. Run the benchmark alone, or ingest ncu's own table"
    )


class Log:
    """The lines outside the tables of one export, as far as they matter."""

    def __init__(self) -> None:
        """Start with nothing seen."""
        self.profiled: Counter[str] = Counter()
        self.report: str | None = None
        self.permission: str | None = None
        self.no_kernels: str | None = None
        self.errors: list[str] = []
        self.options: dict[str, str] = {}
        self.gpu: str | None = None

    def feed(self, number: int, text: str) -> bool:
        """Take one line; return whether it is a banner or failure of the profiler's own."""
        if "ERR_NVGPUCTRPERM" in text:
            self.permission = self.permission or f"line {number}: {text.strip()}"
            return True
        if "No kernels were profiled" in text:
            self.no_kernels = self.no_kernels or f"line {number}: {text.strip()}"
            return True
        if "--" in text:
            for option, pattern in _OPTION.items():
                if found := pattern.search(text):
                    self.options.setdefault(option, found[1])
        if "display_name" in text and (name := _GPU.search(text)):
            self.gpu = self.gpu or name["name"].strip()
        if not text.startswith("=="):
            return False
        if profiling := _PROFILING.match(text):
            self.profiled[profiling["name"]] += 1
        elif report := _REPORT.match(text):
            self.report = PurePath(report["path"].strip().replace("\\", "/")).name
        elif text.startswith("==ERROR=="):
            self.errors.append(f"line {number}: {text.strip()}")
        return True

    def failure(self, path: Path) -> MeasureError | None:
        """Return why this log holds no measurement, with the remedy; `None` where it shows no failure."""
        if self.permission:
            return MeasureError(
                f"{path}: Nsight Compute was refused the counters: {self.permission}; {PERMISSION_REMEDY}"
            )
        if self.no_kernels:
            return MeasureError(f"{path}: Nsight Compute profiled nothing: {self.no_kernels}; {NO_KERNEL_REMEDY}")
        if self.errors:
            return MeasureError(f"{path}: Nsight Compute failed: {self.errors[0]}")
        if self.profiled:
            names = ", ".join(f"{name} ({count})" for name, count in sorted(self.profiled.items())[:10])
            where = f"the report {self.report}" if self.report else "the report of that run"
            return MeasureError(
                f"{path}: holds only the banner lines of Nsight Compute, which profiled {names}; the values are in "
                f"{where}: read that, or its export `ncu --import REPORT --page raw --csv --print-units base "
                "--log-file raw.csv`"
            )
        return None
