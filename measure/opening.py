"""Opening an export: gzip or not, any encoding with a byte-order mark, and lines that know whether they are whole."""

import contextlib
import gzip
import io
import shutil
import tempfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

from simfa.errors import MeasureError

GZIP_MAGIC = b"\x1f\x8b"
HEAD_BYTES = 4096
# No text export has longer lines; a raw page with every counter and its instances stays under 2 MiB.
_LINE_LIMIT = 1 << 24
_LISTED_DROPS = 10
# Lines, rows or events between two words on how far the reading is.
_TOLD_ITEMS = 4096


class Line(NamedTuple):
    """One line without its end. `whole` is false for a last line that has no line end: it may have been cut short."""

    number: int
    text: str
    whole: bool


class Notes:
    """What a reader has to say besides the launches: warnings, dropped rows, lines outside the table."""

    def __init__(self, name: str, progress: Callable[[float], None] | None = None) -> None:
        """Start empty for the file called `name`; `progress` is told the share of it that is read, now and then."""
        self.name = name
        self.progress = progress
        self.skipped_lines = 0
        self._warnings: dict[str, int] = {}
        self._drops: list[str] = []
        self._dropped = 0

    def told_items(self, done: int, total: int) -> None:
        """Tell now and then that `done` of `total` items were read."""
        if self.progress is not None and done % _TOLD_ITEMS == 0:
            self.progress(done / total)

    def follow(self, items: int, handle: BinaryIO, size: int) -> None:
        """Tell now and then, by the count of items, how far into a file of `size` bytes `handle` has come.

        Of a handle that unpacks a file, the place in the packed file counts.
        """
        if self.progress is not None and size and items % _TOLD_ITEMS == 0:
            self.progress(getattr(handle, "fileobj", handle).tell() / size)

    def warn(self, text: str) -> None:
        """Remember a warning; the same text twice is one warning with a count."""
        self._warnings[text] = self._warnings.get(text, 0) + 1

    def drop(self, place: str, why: str) -> None:
        """Remember a row that was left out, where it was and why."""
        self._dropped += 1
        if len(self._drops) < _LISTED_DROPS:
            self._drops.append(f"{place} ({why})")

    def outside(self, number: int, text: str, whole: bool) -> None:
        """Count a line that belongs to no table; warn of a last one that may be what a cut left of a row."""
        self.skipped_lines += 1
        if not whole and text.strip() and not text.startswith("=="):
            self.warn(f"line {number}, the last, has no line end and is no whole row; after a cut, rows may be lost")

    def warnings(self) -> list[str]:
        """Return everything remembered, one line each, each naming the file."""
        lines = [f"{self.name}: {text}" + (f" ({n} times)" if n > 1 else "") for text, n in self._warnings.items()]
        return [*lines, f"{self.name}: {self.drops()}"] if self._dropped else lines

    def drops(self) -> str:
        """Return how many rows were dropped, the first ones with place and reason; empty where none was."""
        if not self._dropped:
            return ""
        more = self._dropped - len(self._drops)
        listed = "; ".join(self._drops) + (f"; and {more} more" if more else "")
        return f"{self._dropped} row{'s' * (self._dropped > 1)} dropped: {listed}"


def check_file(path: Path) -> None:
    """Raise `MeasureError` where `path` is no readable regular file that holds something."""
    if path.is_dir():
        raise MeasureError(
            f"{path}: is a folder; of a Parquet or Arrow folder export, export SQLite instead: "
            "nsys export --type sqlite REPORT.nsys-rep"
        )
    if not path.exists():
        raise MeasureError(f"{path}: no such file")
    if not path.is_file():
        raise MeasureError(f"{path}: is no regular file; save the export to a file first")
    try:
        with path.open("rb") as handle:
            head = handle.read(1)
    except OSError as error:
        raise MeasureError(f"{path}: cannot be read: {error.strerror or error}") from error
    if not head:
        raise MeasureError(f"{path}: is empty; the export wrote nothing")


@contextlib.contextmanager
def reading(path: Path) -> Iterator[io.BufferedReader]:
    """Yield the file's bytes, unpacked if it is gzip; damage to the packing raises `MeasureError`.

    Where gzip data ends early, `read1` gives all that was there before it raises `EOFError`.
    """
    try:
        with path.open("rb") as raw:
            packed = raw.read(2) == GZIP_MAGIC
            raw.seek(0)
            if packed:
                with gzip.open(raw) as unpacked:
                    yield cast(io.BufferedReader, unpacked)
            else:
                yield raw
    except (zlib.error, gzip.BadGzipFile) as error:
        raise MeasureError(f"{path}: its gzip data is damaged: {error}; copy or export the file again") from error
    except OSError as error:
        raise MeasureError(f"{path}: cannot be read: {error.strerror or error}") from error


def head_of(path: Path, size: int = HEAD_BYTES) -> bytes:
    """Return the first bytes, unpacked; fewer where the file is short or its packing ends early."""
    head = b""
    with reading(path) as handle, contextlib.suppress(EOFError):
        while len(head) < size and (more := handle.read1(size - len(head))):
            head += more
    return head


def encoding_of(head: bytes) -> str | None:
    """Return the text encoding that the first bytes show; `None` for bytes that are no text."""
    for mark, encoding in (
        (b"\xef\xbb\xbf", "utf-8-sig"),
        (b"\xff\xfe\x00\x00", "utf-32"),
        (b"\x00\x00\xfe\xff", "utf-32"),
        (b"\xff\xfe", "utf-16"),
        (b"\xfe\xff", "utf-16"),
    ):
        if head.startswith(mark):
            return encoding
    if b"\x00" not in head:
        return "utf-8"
    # UTF-16 of mostly ASCII text without a mark has a zero in every other byte.
    even, odd = head[0:256:2], head[1:256:2]
    if even.count(0) == 0 and odd.count(0) * 10 >= len(odd) * 9:
        return "utf-16-le"
    if odd.count(0) == 0 and even.count(0) * 10 >= len(even) * 9:
        return "utf-16-be"
    return None


def lines(path: Path, notes: Notes | None = None) -> Iterator[Line]:
    """Yield the file's lines, with any of the three line ends; a cut in gzip data ends them with a warning in `notes`.

    Bytes that are wrong in the encoding become U+FFFD, so that program output mixed in cannot stop the read.
    """
    encoding = encoding_of(head_of(path))
    if encoding is None:
        raise MeasureError(f"{path}: holds binary data that is no known export")
    size = path.stat().st_size
    with reading(path) as handle, io.TextIOWrapper(handle, encoding=encoding, errors="replace", newline=None) as text:
        number = 0
        while True:
            try:
                line = text.readline(_LINE_LIMIT)
            except EOFError:
                if notes is not None:
                    notes.warn(f"its gzip data ends early, after line {number}; what follows is lost")
                return
            if not line:
                return
            number += 1
            if notes is not None:
                notes.follow(number, handle, size)
            whole = line.endswith("\n")
            if not whole and len(line) >= _LINE_LIMIT:
                raise MeasureError(f"{path}:{number}: a line of over {_LINE_LIMIT} characters; this is no text export")
            yield Line(number, line[:-1] if whole else line, whole)


@contextlib.contextmanager
def unpacked_file(path: Path, suffix: str) -> Iterator[Path]:
    """Yield a file with the unpacked bytes: `path` itself, or a temporary copy for the time of the block."""
    with path.open("rb") as handle:
        packed = handle.read(2) == GZIP_MAGIC
    if not packed:
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / f"export{suffix}"
        with reading(path) as source, copy.open("wb") as target:
            try:
                shutil.copyfileobj(source, target, 1 << 20)
            except EOFError as error:
                raise MeasureError(f"{path}: its gzip data ends early; copy or export the file again") from error
        yield copy
