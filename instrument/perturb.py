"""Faults put into synthetic logs on purpose, seeded, to try what a reader makes of them."""

import os
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import msgspec
import numpy as np
import numpy.typing as npt

from simfa.errors import LogError
from simfa.instrument.event_order import Records
from simfa.instrument.seeded import draw
from simfa.salog import WARPS_PER_WARPGROUP, LogMetadata, LogSource, RowHeaders, capacity_of, file_bytes, row_bytes_for

Kind = Literal["skew", "drop", "overflow", "disagree", "truncate"]
MEANING: dict[Kind, str] = {
    "skew": "skew=CYCLES: each warp's timestamps are late by up to CYCLES",
    "drop": "drop=COUNT: one row loses COUNT records and says so",
    "overflow": "overflow=RECORDS: rows hold about RECORDS records and drop the newest beyond",
    "disagree": "disagree: one warp swaps two events against the others of its warpgroup",
    "truncate": "truncate=BYTES: the file loses its last BYTES bytes",
}


class Perturbation(NamedTuple):
    """One fault and its size."""

    kind: Kind
    size: int = 0

    def __str__(self) -> str:
        """Return the text that `parse_perturbation` reads."""
        return self.kind if self.kind == "disagree" else f"{self.kind}={self.size}"


MOST = 1 << 24  # cycles, records or bytes of a fault; rows of so many records have 256 MiB


def parse_perturbation(text: str) -> Perturbation:
    """Return the fault that `kind=size` names; raises `ValueError` with what was expected."""
    name, separator, size = text.partition("=")
    for kind in get_args(Kind):
        if name != kind:
            continue
        if kind == "disagree":
            if separator:
                break
            return Perturbation(kind)
        if not size.isdecimal() or int(size) == 0:
            break
        if int(size) > MOST:
            raise ValueError(f"{text!r}: expected at most {MOST}")
        return Perturbation(kind, int(size))
    raise ValueError(f"{text!r} is not one of: {'; '.join(MEANING.values())}")


class PerturbedLog:
    """A `LogSource` that passes on another one with one fault; `truncate` is left to `truncate_file`."""

    def __init__(self, log: LogSource, fault: Perturbation, seed: int) -> None:
        """Choose the victims from the seed; raises `LogError` when the log has none."""
        self._log = log
        self._fault = fault
        self._seed = seed
        self.metadata: LogMetadata = _with_note(log.metadata, fault)
        self.ctas = log.ctas
        self.row_bytes = row_bytes_for(fault.size) if fault.kind == "overflow" else log.row_bytes
        self.rows: RowHeaders = log.rows.copy()
        self._victim = -1
        if fault.kind == "skew":
            self.rows["clock_end"] += np.array([self._skew(row) for row in range(len(self.rows))], np.uint64)
        elif fault.kind == "drop":
            self._victim = self._choose(self.rows["records"] > fault.size, f"a row of more than {fault.size} records")
            self.rows["records"][self._victim] -= fault.size
            self.rows["dropped"][self._victim] += fault.size
        elif fault.kind == "overflow":
            kept = np.minimum(self.rows["records"], capacity_of(self.row_bytes))
            self.rows["dropped"] += self.rows["records"] - kept
            self.rows["records"] = kept
        elif fault.kind == "disagree":
            extra = self.rows["role"] > 0
            extra &= self.rows["warp"] % WARPS_PER_WARPGROUP != WARPS_PER_WARPGROUP - 1
            self._victim = self._choose(extra, "a warpgroup of which several warps log; leave out --one-warp")
        elif fault.size >= file_bytes(self):
            raise LogError(f"perturbation {fault}: the whole file has {file_bytes(self)} bytes; expected fewer")

    def records(self, row: int) -> Records:
        """Return the records of one row with the fault in them."""
        records = self._log.records(row).copy()
        if self._fault.kind == "skew":
            records["timestamp"] += np.uint64(self._skew(row))
        elif self._fault.kind == "overflow":
            records = records[: self.rows["records"][row]]
        elif self._fault.kind == "drop" and row == self._victim:
            order = sorted(range(len(records)), key=lambda index: draw(1 << 62, self._seed, "dropped record", index))
            records = np.delete(records, order[: self._fault.size])
        elif self._fault.kind == "disagree" and row == self._victim:
            different = np.flatnonzero(np.diff(records["event"].astype(np.int64)))
            first = int(different[draw(len(different), self._seed, "swapped record")])
            for field in ("event", "stage", "payload", "aux"):
                records[field][[first, first + 1]] = records[field][[first + 1, first]]
        return records

    def _choose(self, allowed: npt.NDArray[np.bool_], wanted: str) -> int:
        """Return one of the allowed rows."""
        rows = np.flatnonzero(allowed)
        if len(rows) == 0:
            raise LogError(f"perturbation {self._fault}: the log has no row to put it in; expected {wanted}")
        return int(rows[draw(len(rows), self._seed, "victim")])

    def _skew(self, row: int) -> int:
        """Return by how many cycles a row is late."""
        return draw(self._fault.size + 1, self._seed, "perturbed skew", row)


def _with_note(metadata: LogMetadata, fault: Perturbation) -> LogMetadata:
    """Return the metadata with the fault noted."""
    return msgspec.structs.replace(metadata, perturbations=(*metadata.perturbations, str(fault)))


def truncate_file(path: str | os.PathLike[str], size: int) -> None:
    """Cut `size` bytes off the end of a file."""
    os.truncate(path, Path(path).stat().st_size - size)
