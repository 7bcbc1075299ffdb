"""Printed numbers and units: exact scaling, rounding as an interval, refusals that name the cell."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simfa.measure.quantity import (
    Absent,
    CellError,
    Reading,
    StopError,
    parse_number,
    plain,
    printed,
    product,
    read_cell,
    scaled,
    total,
)


@pytest.mark.parametrize(
    ("text", "unit", "value", "low", "high"),
    [
        ("4.74", "Mbyte", 4_740_000, 4_735_000, 4_745_000),
        ("10.34", "us", 10_340, 10_335, 10_345),
        ("10.34", "usecond", 10_340, 10_335, 10_345),
        ("1.53", "Ghz", 1_530_000_000, 1_525_000_000, 1_535_000_000),
        ("1.21", "cycle/nsecond", 1_210_000_000, 1_205_000_000, 1_215_000_000),
        ("1.5", "cycle/usecond", 1_500_000, 1_450_000, 1_550_000),
        ("2.61", "Tbyte/s", 2_610_000_000_000, 2_605_000_000_000, 2_615_000_000_000),
        ("2.61", "Gbyte/second", 2_610_000_000, 2_605_000_000, 2_615_000_000),
        ("12,319,469", "byte", 12_319_469, 12_319_469, 12_319_469),
        ("2553348", "sector", 2_553_348, 2_553_348, 2_553_348),
        ("1,234.5", "ns", 1234.5, 1234.45, 1234.55),
        ("12", "ms", 12_000_000, 11_500_000, 12_500_000),
        ("0.00", "Kbyte", 0, 0, 5),
        ("90.7", "%", 90.7, 90.65, 90.75),
        ("1.5e3", "byte", 1500, 1450, 1550),
        ("264 (66; 66; 66; 66)", "cycle", 264, 264, 264),
        ("3.05", "\u00b5s", 3050, 3045, 3055),
    ],
)
def test_value_and_interval_in_base_units(text: str, unit: str, value: float, low: float, high: float) -> None:
    reading = read_cell(text, unit)
    assert isinstance(reading, Reading)
    assert (plain(reading.value), plain(reading.low), plain(reading.high)) == (value, low, high)


@pytest.mark.parametrize("text", ["", "n/a", "nan", "(!) nan", "(!) n/a", "NaN", "inf", "-", "(!) 12.5"])
def test_cell_without_value_is_absent_with_a_reason(text: str) -> None:
    reading = read_cell(text, "byte")
    assert isinstance(reading, Absent)
    assert reading.reason


def test_missing_unit_is_absent_not_base() -> None:
    assert read_cell("12", "") == Absent("exported without a unit")


@pytest.mark.parametrize("text", ["1,23", "1.234,5", "1234,567", "0,123", "12,3456", "1,234,56", ",5"])
def test_ambiguous_comma_stops_and_names_the_cell(text: str) -> None:
    with pytest.raises(StopError, match="ambiguous") as caught:
        read_cell(text, "byte")
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize("unit", ["Kibyte", "furlong", "kbyte", "MBYTE"])
def test_unknown_unit_stops(unit: str) -> None:
    with pytest.raises(StopError, match=unit):
        read_cell("12", unit)


@pytest.mark.parametrize("text", ["12x4", "CachePreferNone", "-5", "1..2", "1e9999", "1 234", "0x10", "\u0661\u0662"])
def test_no_number_is_a_cell_error(text: str) -> None:
    with pytest.raises(CellError):
        read_cell(text, "byte")


@given(st.integers(0, 10**18), st.sampled_from([("byte", 0), ("Kbyte", 3), ("Mbyte", 6), ("Gbyte", 9), ("Tbyte", 12)]))
def test_rounding_to_two_digits_stays_inside_the_interval(amount: int, unit: tuple[str, int]) -> None:
    shown = Decimal(amount).scaleb(-unit[1]).quantize(Decimal("0.01"))
    reading = read_cell(f"{shown:,}" if shown >= 1000 else str(shown), unit[0])
    assert isinstance(reading, Reading)
    assert reading.low <= amount <= reading.high
    assert reading.high - reading.low <= Decimal("0.01").scaleb(unit[1])


@given(st.integers(0, 10**18))
def test_integers_in_base_units_are_exact_grouped_or_not(amount: int) -> None:
    plainly, grouped = read_cell(str(amount), "byte"), read_cell(f"{amount:,}", "byte")
    assert plainly == grouped == Reading(Decimal(amount), Decimal(amount), Decimal(amount), "bytes")


def test_sums_and_products_carry_their_intervals() -> None:
    first, second = read_cell("4.74", "Mbyte"), read_cell("1.00", "Kbyte")
    assert isinstance(first, Reading)
    assert isinstance(second, Reading)
    both = total([(Decimal(1), first), (Decimal(-2), second)], "bytes")
    assert (both.value, both.low, both.high) == (4_738_000, 4_735_000 - 2 * 1005, 4_745_000 - 2 * 995)
    rate, time = read_cell("2.00", "Gbyte/s"), read_cell("10.00", "us")
    assert isinstance(rate, Reading)
    assert isinstance(time, Reading)
    moved = product(rate, time, -9, "bytes")
    assert moved.value == 20_000
    assert moved.low == Decimal("1.995") * Decimal("9.995") * 1000
    assert moved.high == Decimal("2.005") * Decimal("10.005") * 1000


def test_one_unit_of_the_last_digit() -> None:
    assert parse_number("4.740")[1] == Decimal("0.001")
    assert parse_number("474")[1] == 1


@given(
    st.from_regex(r"\A[0-9]{1,12}(\.[0-9]{1,12})?\Z"),
    st.sampled_from([0, 3, 6, 9]),
)
def test_integers_give_what_decimals_give(text: str, exponent: int) -> None:
    found = printed(text, exponent)
    reading = scaled(*parse_number(text), exponent, "time")
    wanted = plain(reading.value), plain(reading.low), plain(reading.high)
    if len(text.replace(".", "")) < 19:
        assert found == wanted
        assert [type(number) for number in found] == [type(number) for number in wanted]
    else:
        assert found is None


@pytest.mark.parametrize("text", ["", "1,234", "1,23", "1.", ".5", "1e3", "-1", "+1", "1 2", "nan", "\u0661", "1.2.3"])
def test_what_integers_cannot_judge_is_left_to_the_rules(text: str) -> None:
    assert printed(text, 3) is None
