"""The committed CUDA headers agree with the Python side: event numbers, record, row header, C structures."""

import re

import numpy as np
import pytest

from simfa import salog
from simfa.events import RECORD_DTYPE, Event
from simfa.instrument.build import CUDA_DIR
from simfa.instrument.event_header import event_header
from simfa.instrument.launcher import MAX_WARPS


@pytest.fixture(scope="module")
def probe() -> str:
    return (CUDA_DIR / "simfa_probe.cuh").read_text(encoding="utf-8")


def test_committed_event_header_is_the_generated_one() -> None:
    assert (CUDA_DIR / "simfa_events.cuh").read_text(encoding="utf-8") == event_header()


def test_event_header_names_every_event_with_its_number() -> None:
    found = {name: int(number) for name, number in re.findall(r"^    (\w+) = (\d+),$", event_header(), re.MULTILINE)}
    assert found == {event.name: event.value for event in Event}


def test_row_magic_and_version_are_the_log_s(probe: str) -> None:
    assert int(re.search(r"ROW_MAGIC = (0x\w+)", probe)[1], 16) == salog.ROW_MAGIC
    assert int(re.search(r"ROW_VERSION = (\d+)", probe)[1]) == salog.ROW_VERSION
    assert int(re.search(r"MAX_WARPS = (\d+)", probe)[1]) == MAX_WARPS


def header_words(probe: str) -> dict[int, list[str]]:
    """Return the arguments of the probe's header stores by 16-byte unit of the row."""
    stores = re.findall(r"store_record\(first(?: \+ (\d))?, ([^;]*)\);", probe)
    return {int(unit or 0): [part.strip() for part in words.split(",")] for unit, words in stores}


def test_row_header_is_stored_field_by_field(probe: str) -> None:
    words = header_words(probe)
    fields = salog.ROW_HEADER_DTYPE.fields
    assert fields is not None
    offsets = {name: fields[name][1] for name in salog.ROW_HEADER_DTYPE.names or ()}
    assert sorted(words) == [0, 1, 2, 3]
    # Unit 0: magic, then version with role above it, SM, block.
    assert [offsets[name] for name in ("magic", "version", "role", "smid", "block")] == [0, 4, 6, 8, 12]
    assert words[0][0] == "ROW_MAGIC"
    assert words[0][1].startswith("ROW_VERSION | ") and words[0][1].endswith("<< 16")
    assert words[0][2:] == ["sm", "blockIdx.x"]
    # Unit 1: warp, records, dropped, zero.
    assert [offsets[name] for name in ("warp", "records", "dropped", "zero")] == [16, 20, 24, 28]
    assert words[1][0] == "threadIdx.x / 32" and words[1][3] == "0"
    # Units 2 and 3: the clock pairs, global timer first.
    assert [offsets[name] for name in ("globaltimer_begin", "clock_begin")] == [32, 40]
    assert words[2] == ["begin.globaltimer_ns", "begin.clock"]
    assert [offsets[name] for name in ("globaltimer_end", "clock_end")] == [48, 56]
    assert words[3] == ["end.globaltimer_ns", "end.clock"]


def test_record_is_one_store_of_sixteen_bytes(probe: str) -> None:
    assert RECORD_DTYPE.itemsize == 16
    assert len(re.findall(r"st\.global\.\S+", probe)) == 1
    assert "st.global.v4.b32" in probe
    assert [RECORD_DTYPE.fields[name][1] for name in RECORD_DTYPE.names] == [0, 8, 10, 12, 14]


def test_probe_uses_no_atomics_fences_or_shared_memory(probe: str) -> None:
    code = re.sub(r"//[^\n]*", "", probe)
    assert not re.search(r"atomic|atom\.|red\.|fence|membar|__threadfence|__shared__", code)


def test_trace_config_of_python_has_the_layout_of_c(probe: str) -> None:
    from simfa.instrument.launcher import _TraceConfig

    body = re.search(r"struct TraceConfig \{(.*?)\n\};", probe, re.DOTALL)[1]
    names = re.findall(r"std::u?int\d+_t (\w+)(?:\[\w+\])?;", body)
    assert names == [field[0] for field in _TraceConfig._fields_]
    sizes = [int(bits) // 8 for bits in re.findall(r"std::u?int(\d+)_t", body)]
    expected = np.cumsum([0, *sizes[:-1]]).tolist()
    assert [getattr(_TraceConfig, name).offset for name in names] == expected


def test_call_of_python_has_the_fields_of_c() -> None:
    from simfa.instrument.launcher import _Call

    text = (CUDA_DIR / "simfa_launcher.cu").read_text(encoding="utf-8")
    body = re.search(r"struct simfa_call \{(.*?)\n\};", text, re.DOTALL)[1]
    assert re.findall(r"\b(\w+);", body) == [field[0] for field in _Call._fields_]
