"""DRAM standards: scaling with the data rate, organisations, mappings, and what is refused."""

from fractions import Fraction

import pytest

from simfa import dram
from simfa.errors import HardwareError
from simfa.hardware import load_preset, preset_names

# Clocks of Ramulator 2.1's HBM3_6400Mbps (CK 625 ps), whose ns the standard keeps.
CLOCKS_6400 = {
    "burst": 2,
    "read_latency": 20,
    "write_latency": 10,
    "activate_to_read": 31,
    "activate_to_write": 15,
    "precharge_to_activate": 26,
    "activate_to_precharge": 45,
    "activate_to_activate": 72,
    "write_recovery": 33,
    "read_to_precharge": 9,
    "column_short": 2,
    "column_long": 4,
    "column_sid": 3,
    "activate_short": 4,
    "activate_long": 5,
    "four_activates": 24,
    "write_to_read_short": 7,
    "write_to_read_long": 10,
    "read_to_write": 20,
    "precharge_to_precharge": 2,
    "refresh_all": 560,
    "refresh_bank": 320,
    "refresh_to_activate": 8,
    "refresh_interval": 6240,
    "refresh_bank_interval": 195,
}
# The same ns, rounded up to clocks of 4 / 5.2 GHz = 769 ps; values in clocks stay.
CLOCKS_5200 = {
    **CLOCKS_6400,
    "read_latency": 17,
    "write_latency": 9,
    "activate_to_read": 26,
    "activate_to_write": 13,
    "precharge_to_activate": 22,
    "activate_to_precharge": 37,
    "activate_to_activate": 59,
    "write_recovery": 27,
    "read_to_precharge": 8,
    "four_activates": 20,
    "write_to_read_short": 6,
    "write_to_read_long": 9,
    "read_to_write": 17,
    "refresh_all": 455,
    "refresh_bank": 260,
    "refresh_to_activate": 7,
    "refresh_interval": 5070,
    "refresh_bank_interval": 158,
}


@pytest.mark.parametrize(("rate", "clocks"), [(6.4e9, CLOCKS_6400), (5.2e9, CLOCKS_5200)])
def test_times_are_kept_in_ns_and_rounded_up_to_clocks(rate: float, clocks: dict[str, int]) -> None:
    device = dram.load_device("hbm3", "16Gb-8high", rate)
    assert {name: device.timing[name] for name in clocks} == clocks
    assert device.half_clock_hz == Fraction(rate) / 2


def test_the_h100_stack() -> None:
    device = dram.load_device("hbm3", "16Gb-8high", 5.2e9)
    assert device.organisation.channel_bytes == 1 << 30
    assert device.organisation.bank_count == 32
    assert 80 * device.peak_bytes_per_s == pytest.approx(3.328e12)
    assert dram.data_rate_of("hbm3", 3.328e12, 80) == pytest.approx(5.2e9)


def test_density_sets_rows_and_refresh_time() -> None:
    large, small = (dram.load_device("hbm3", name, 5.2e9) for name in ("32Gb-8high", "8Gb-8high"))
    assert (large.organisation.rows, large.timing["refresh_all"]) == (32768, 585)
    assert (small.organisation.rows, small.timing["refresh_all"]) == (8192, 338)


def test_hbm2e_is_one_pseudo_channel_of_64_pins() -> None:
    device = dram.load_device("hbm2e", "16Gb-8high", 3.2e9)
    assert device.organisation.pseudo_channels == 1
    assert device.organisation.channel_bytes == 1 << 30
    assert device.timing["burst"] == 2
    assert device.peak_bytes_per_s == pytest.approx(25.6e9)
    # A burst of 32 bytes every two clocks of 1.6 GHz is the peak.
    assert 32 * float(device.half_clock_hz) / 2 / device.timing["burst"] == pytest.approx(device.peak_bytes_per_s)
    assert dram.organisation_names("hbm2e") == ["16Gb-8high"]


@pytest.mark.parametrize("standard", dram.standard_names())
def test_every_standard_loads_with_every_density_and_mapping(standard: str) -> None:
    for organisation in dram.organisation_names(standard):
        device = dram.load_device(standard, organisation, 5e9)
        for mapping in dram.mapping_names():
            bits = sum(count for _, count in dram.load_mapping(mapping, device.organisation).segments)
            assert 32 << bits == device.organisation.channel_bytes


@pytest.mark.parametrize("preset", preset_names())
def test_every_preset_names_a_known_standard(preset: str) -> None:
    memory = load_preset(preset).spec.memory
    device = dram.load_device(memory.dram.standard, memory.dram.organisation, 5.2e9)
    assert dram.load_mapping(memory.dram.mapping, device.organisation).segments


def test_g64x_address_bits() -> None:
    mapping = dram.load_mapping("g64x", dram.load_device("hbm3", "16Gb-8high", 5.2e9).organisation)
    assert mapping.segments == (
        *(("column", 1), ("bank_group", 2), ("pseudo_channel", 1), ("column", 4)),
        *(("bank", 2), ("sid", 1), ("row", 14)),
    )


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: dram.load_device("hbm33", "16Gb-8high", 5.2e9), "'hbm33' is unknown; did you mean hbm3?"),
        (lambda: dram.load_device("ddr", "16Gb-8high", 5.2e9), "expected one of hbm2e, hbm3, hbm3e"),
        (lambda: dram.load_device("mappings", "x", 5.2e9), "'mappings' is unknown"),
        (lambda: dram.load_device("hbm3", "64Gb", 5.2e9), "no organisation '64Gb'; expected one of 16Gb-8high"),
        (lambda: dram.load_device("hbm3", "16Gb-8high", 0.0), "data rate 0.0 bit/s is not above zero"),
    ],
)
def test_unknown_names_are_refused_with_what_exists(call, words: str) -> None:
    with pytest.raises(HardwareError, match=words.replace("?", r"\?")):
        call()


def test_unknown_mapping_is_refused_with_what_exists() -> None:
    organisation = dram.load_device("hbm3", "16Gb-8high", 5.2e9).organisation
    with pytest.raises(HardwareError, match="address mapping 'linear' is unknown; expected one of g64x"):
        dram.load_mapping("linear", organisation)
