"""Which format a file has, by its content; names that can be recognised and not read are refused with the way out."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from simfa.errors import MeasureError
from simfa.measure import benchmark_attn, ncu_csv, ncu_text, nsys_stats, nvbench
from simfa.measure.launch import Launch, Stated
from simfa.measure.ncu_log import Log
from simfa.measure.opening import Notes, encoding_of, head_of, lines

Reader = Callable[[Path, Notes, Stated], Iterator[Launch]]

# Format names as --format takes them, with what they are; detection gives the same names.
FORMATS = {
    "ncu-csv": "Nsight Compute CSV: details, raw or summary page",
    "ncu-text": "Nsight Compute text output",
    "ncu-rep": "Nsight Compute report (needs simfa[ncu])",
    "nsys-sqlite": "Nsight Systems SQLite export",
    "nsys-stats": "nsys stats kernel trace or summary, CSV or console",
    "kineto": "PyTorch profiler or Chrome trace JSON",
    "benchmark-attn": "output of flash-attention's benchmark_attn.py",
    "nvbench": "nvbench Markdown or CSV table",
}

_NSYS_EXPORT = "export it first: nsys export --type sqlite REPORT.nsys-rep"
_MAGIC: tuple[tuple[bytes, str], ...] = ((b"SQLite format 3\x00", "nsys-sqlite"), (b"NVR\x00", "ncu-rep"))
_REFUSED_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"\x89HDF\r\n\x1a\n", f"is an HDF5 export, which is not read; {_NSYS_EXPORT}"),
    (b"PAR1", f"is a Parquet export, which is not read; {_NSYS_EXPORT}"),
    (b"ARROW1", f"is an Arrow export, which is not read; {_NSYS_EXPORT}"),
    (b"PK\x03\x04", "is a zip archive; unpack it first"),
)
_REFUSED_SUFFIX = {
    ".nsys-rep": f"is an Nsight Systems report, which only nsys can open; {_NSYS_EXPORT}",
    ".qdrep": f"is an Nsight Systems report, which only nsys can open; {_NSYS_EXPORT}",
}
# Signs up to this rank need no second look; a benchmark's output may stand before a profiler's table.
_TELLING = 2
_CATALOGUE = re.compile(r"Metric Name.*Metric Description")


class Seen(NamedTuple):
    """What one line shows: the format it is a sign of, lower ranks first (a benchmark may run inside a profile)."""

    rank: int
    name: str


def detect(path: Path) -> str:
    """Return the format's name, one of `FORMATS`; raises `MeasureError` naming what the file is or may lack."""
    head = head_of(path)
    if not head:
        raise MeasureError(f"{path}: holds nothing once unpacked; the export wrote nothing or the copy was cut")
    for magic, name in _MAGIC:
        if head.startswith(magic):
            return name
    for magic, refusal in _REFUSED_MAGIC:
        if head.startswith(magic):
            raise MeasureError(f"{path}: {refusal}")
    if path.suffix in _REFUSED_SUFFIX:
        raise MeasureError(f"{path}: {_REFUSED_SUFFIX[path.suffix]}")
    encoding = encoding_of(head)
    if encoding is None:
        raise MeasureError(f"{path}: holds binary data that is no known export; {_choices()}")
    return "kineto" if _is_document(head.decode(encoding, "replace").lstrip("\ufeff \t\r\n")) else _text_format(path)


def _is_document(text: str) -> bool:
    """Return whether `text` starts one JSON document, not a log with a JSON object a line or a list of a program's."""
    if not re.match(r'\{\s*("|\}|$)|\[\s*(\{|\]|$)', text):
        return False
    first, _, rest = text.partition("\n")
    try:
        return "traceEvents" in json.loads(first) or not rest.strip() or first.startswith("[")
    except (ValueError, RecursionError):
        return True


def _text_format(path: Path) -> str:
    """Return the format of a text file from the first line that is a sign of the most telling one."""
    log = Log()
    best: Seen | None = None
    refusal: str | None = None
    previous = ""
    for line in lines(path):
        seen = _sign(line.text, previous)
        if seen is not None and (best is None or seen.rank < best.rank):
            best = seen
            if seen.rank <= _TELLING:
                return seen.name
        if seen is None:
            log.feed(line.number, line.text)
            what = _unreadable(line.text)
            refusal = refusal or (what and f"line {line.number} starts {what}")
        previous = line.text
    if best is not None:
        return best.name
    if refusal:
        raise MeasureError(f"{path}: {refusal}")
    raise log.failure(path) or MeasureError(f"{path}: is no known export; {_choices()}")


def _unreadable(text: str) -> str | None:
    """Return what table starts with this line, where it is one that holds no launches."""
    if _CATALOGUE.search(text):
        return "the catalogue of `ncu --query-metrics`: names, no measurements"
    if ncu_csv.is_source_page(text):
        return "ncu's source page: instructions, no launches; export --page raw"
    return None


def _sign(text: str, previous: str) -> Seen | None:
    if ncu_csv.header_of(text) is not None:
        return Seen(0, "ncu-csv")
    if ncu_text.HEADING.match(text):
        return Seen(1, "ncu-text")
    if nsys_stats.header_of(text) is not None or nsys_stats.console_header(previous, text) is not None:
        return Seen(2, "nsys-stats")
    if "SKIPPED:" in text and "does not contain" in text:
        return Seen(3, "nsys-stats")
    if "GPU Time" in text and nvbench.header_of(text) is not None:
        return Seen(4, "nvbench")
    if benchmark_attn.RESULT.match(text) or benchmark_attn.RATE_ONLY.match(text):
        return Seen(5, "benchmark-attn")
    return None


def _choices() -> str:
    return "known are " + "; ".join(f"{name} ({what})" for name, what in FORMATS.items()) + "; --format forces one"
