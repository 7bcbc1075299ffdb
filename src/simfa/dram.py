"""DRAM standards and address mappings: tables of `presets/dram/*.toml`, turned into clocks at a data rate.

A standard gives times in ns (`_ns`, kept when the data rate changes and rounded up to command clocks), in command
clocks (`_clocks`) or in half clocks (`_half_clocks`), each with status and source.
"""

import functools
import math
import tomllib
from collections.abc import Mapping
from fractions import Fraction
from importlib import resources
from typing import Any, Literal

import msgspec

from simfa.errors import HardwareError, did_you_mean
from simfa.spec_types import Count, Group, Nanoseconds, Status, Whole
from simfa.spec_types import Fraction as Share

FIELDS = ("column", "bank", "bank_group", "sid", "pseudo_channel", "row")
_TIMES = (
    *("burst", "read_latency", "write_latency", "activate_to_read", "activate_to_write", "precharge_to_activate"),
    *("activate_to_precharge", "activate_to_activate", "write_recovery", "read_to_precharge", "column_short"),
    *("column_long", "column_sid", "activate_short", "activate_long", "four_activates", "write_to_read_short"),
    *("write_to_read_long", "read_to_write", "precharge_to_precharge", "refresh_bank", "refresh_to_activate"),
    "refresh_interval",
)
_BUSES = ("activate_bus", "column_bus", "precharge_bus", "controller")


class Dram(Group, frozen=True):
    """Bank-level channels of `memory.model = hbm3`: standard, controller, and the path to it.

    Queues count bursts of 32 bytes and are shared by the pseudo channels of a channel. The data rate follows from
    `memory.peak_bytes_per_s`; `memory.latency_ns`, `efficiency` and `write_cost` are not used.
    """

    standard: str
    organisation: str
    mapping: str
    read_queue_entries: Count
    write_queue_entries: Count
    opened_entries: Whole
    drain_above: Share
    drain_below: Share
    row_policy: Literal["open", "closed"]
    row_hit_cap: Whole
    refresh: Literal["none", "all-bank", "per-bank"]
    ecc_overhead: Share
    path_latency_ns: Nanoseconds


class Quantity(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One value of a standard with where it comes from."""

    value: float
    status: Status
    source: str


class Organisation(msgspec.Struct, frozen=True):
    """What one controller sees; `rows` and `columns` (in bursts) of a bank, counts of one level in the next."""

    pseudo_channels: int
    sids: int
    bank_groups: int
    banks: int
    rows: int
    columns: int
    burst_bytes: int

    @property
    def bank_count(self) -> int:
        """Banks of a pseudo channel."""
        return self.sids * self.bank_groups * self.banks

    @property
    def channel_bytes(self) -> int:
        """Capacity of a channel."""
        return self.pseudo_channels * self.bank_count * self.rows * self.columns * self.burst_bytes


class Device(msgspec.Struct, frozen=True):
    """A standard at one density and data rate: integers for the engine.

    `timing` holds command clocks, but half clocks for the names that end in `_ticks`; `half_clock_hz` is the rate of
    half clocks, the engine's time inside a channel.
    """

    organisation: Organisation
    timing: dict[str, int]
    half_clock_hz: Fraction
    peak_bytes_per_s: float


class AddressMapping(msgspec.Struct, frozen=True):
    """Fields of the address from low to high with their bits, and XORs (target, source, shift) over them."""

    segments: tuple[tuple[str, int], ...]
    xor: tuple[tuple[str, str, int], ...]


def standard_names() -> list[str]:
    """Return the names of the shipped DRAM standards, sorted."""
    folder = resources.files("simfa") / "presets" / "dram"
    names = sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml"))
    return [name for name in names if name != "mappings"]


def mapping_names() -> list[str]:
    """Return the names of the shipped address mappings, in file order."""
    return list(_read("mappings"))


def organisation_names(standard: str) -> list[str]:
    """Return the densities a standard knows; raises `HardwareError` for an unknown standard."""
    return list(_standard(standard)["organisation"])


def load_device(standard: str, organisation: str, data_rate_bits_per_s: float) -> Device:
    """Return `standard` (e.g. `hbm3`) with dies of `organisation` (e.g. `16Gb-8high`) at a data rate in bit/s and pin.

    Raises `HardwareError` for an unknown name, and for a table that lacks a value or gives it twice.
    """
    table = _standard(standard)
    dies = table["organisation"]
    if organisation not in dies:
        raise HardwareError(
            f"DRAM standard {standard} has no organisation {organisation!r}; expected one of {', '.join(dies)}"
        )
    if not data_rate_bits_per_s > 0:
        raise HardwareError(f"DRAM data rate {data_rate_bits_per_s} bit/s is not above zero")
    channel = {name: _whole(standard, f"channel.{name}", quantity) for name, quantity in table["channel"].items()}
    pins, bits_per_clock = channel.pop("pins"), channel.pop("bits_per_pin_and_clock")
    rate = Fraction(data_rate_bits_per_s).limit_denominator(1)
    clock_hz = rate / bits_per_clock
    dies_of = dies[organisation]
    shape = Organisation(
        **channel,
        sids=_whole(standard, f"organisation.{organisation}.sids", dies_of["sids"]),
        rows=_whole(standard, f"organisation.{organisation}.rows", dies_of["rows"]),
    )
    values = {**table["timing"], "refresh_all_ns": dies_of["refresh_all_ns"]}
    timing = {name: _clocks(standard, name, values, clock_hz) for name in (*_TIMES, "refresh_all")}
    interval = Fraction(str(values["refresh_interval_ns"].value)) / shape.bank_count
    timing["refresh_bank_interval"] = math.floor(interval * clock_hz / 10**9)
    for name in _BUSES:
        key = f"{name}_half_clocks"
        if key not in values:
            raise HardwareError(f"DRAM standard {standard}: timing.{key} is missing")
        timing[f"{name}_ticks"] = _whole(standard, f"timing.{key}", values[key])
    return Device(shape, timing, half_clock_hz=2 * clock_hz, peak_bytes_per_s=float(rate * pins / 8))


def load_mapping(name: str, organisation: Organisation) -> AddressMapping:
    """Return the shipped address mapping `name` for an organisation; raises `HardwareError` for an unknown name."""
    tables = _read("mappings")
    if name not in tables:
        raise HardwareError(f"address mapping {name!r} is unknown; expected one of {', '.join(tables)}")
    table = tables[name]
    left = {field: _bits(field, getattr(organisation, f"{field}s")) for field in FIELDS}
    segments = []
    for text in table["low_to_high"]:
        field, _, count = text.partition(":")
        if field not in left:
            raise HardwareError(f"address mapping {name}: no field is called {field!r}; expected {', '.join(FIELDS)}")
        bits = int(count) if count else left[field]
        left[field] -= bits
        segments.append((field, bits))
    return AddressMapping(tuple(segments), tuple((x["target"], x["source"], x["shift"]) for x in table["xor"]))


def data_rate_of(standard: str, peak_bytes_per_s: float, channels: int) -> float:
    """Return the data rate in bit/s and pin at which `channels` channels of a standard reach a peak."""
    pins = _whole(standard, "channel.pins", _standard(standard)["channel"]["pins"])
    return peak_bytes_per_s * 8 / (channels * pins)


def _bits(field: str, count: int) -> int:
    if count < 1 or count & (count - 1):
        raise HardwareError(f"DRAM organisation: {field} count {count} is not a power of two")
    return count.bit_length() - 1


def _clocks(standard: str, name: str, values: Mapping[str, Quantity], clock_hz: Fraction) -> int:
    """Return a time in command clocks; ns are rounded up, but for the refresh interval, which must not grow."""
    nanoseconds, clocks = values.get(f"{name}_ns"), values.get(f"{name}_clocks")
    if (nanoseconds is None) == (clocks is None):
        raise HardwareError(
            f"DRAM standard {standard}: expected timing.{name}_ns or timing.{name}_clocks, and one only"
        )
    if clocks is not None:
        return _whole(standard, f"timing.{name}_clocks", clocks)
    assert nanoseconds is not None
    exact = Fraction(str(nanoseconds.value)) * clock_hz / 10**9
    return math.floor(exact) if name == "refresh_interval" else math.ceil(exact)


def _whole(standard: str, path: str, quantity: Quantity) -> int:
    if not float(quantity.value).is_integer():
        raise HardwareError(f"DRAM standard {standard}: {path} = {quantity.value}; expected a whole number")
    return int(quantity.value)


@functools.cache
def _read(name: str) -> dict[str, Any]:
    text = (resources.files("simfa") / "presets" / "dram" / f"{name}.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


@functools.cache
def _standard(name: str) -> dict[str, Any]:
    """Return a standard's tables over those of the standard it extends (densities are not inherited)."""
    if name not in standard_names():
        hint = did_you_mean(name, standard_names(), f"expected one of {', '.join(standard_names())}")
        raise HardwareError(f"DRAM standard {name!r} is unknown; {hint}")
    table = dict(_read(name))
    parent = table.pop("extends", None)
    table.pop("about", None)
    merged = dict(_standard(parent)) if parent else {}
    if "organisation" in table:
        merged.pop("organisation", None)
    return _over(merged, table, name, "")


def _over(below: Mapping[str, Any], above: Mapping[str, Any], name: str, prefix: str) -> dict[str, Any]:
    result = dict(below)
    for key, entry in above.items():
        if "value" not in entry:
            result[key] = _over(below.get(key, {}), entry, name, f"{prefix}{key}.")
            continue
        try:
            result[key] = msgspec.convert(entry, Quantity)
        except msgspec.ValidationError as error:
            raise HardwareError(f"DRAM standard {name}: {prefix}{key}: {error}") from error
    return result
