"""Numbers as profilers print them: exact decimals with the interval that rounding left open.

A printed number stands for everything that rounds to it. `4.74` with unit `Mbyte` is 4 740 000 bytes within half of the
last digit, 5000 bytes; an integer in a base unit is exact.
"""

import re
from decimal import Context, Decimal
from typing import NamedTuple

from simfa.measure.unit_spellings import UNITS

Number = int | float

# Wide enough that no product of two printed numbers is rounded.
_EXACT = Context(prec=120)
_ONE = Decimal(1)
_HALF = Decimal("0.5")
_LARGEST_EXPONENT = 30

_PLAIN = re.compile(r"\d+(\.\d*)?([eE][-+]?\d{1,3})?|\.\d+([eE][-+]?\d{1,3})?", re.ASCII)
# A leading `0,` or an ungrouped leading part (`1234,567`) is no thousands grouping.
_GROUPED = re.compile(r"[1-9]\d{0,2}(,\d{3})+(\.\d+)?", re.ASCII)
_COMMAS = re.compile(r"[\d.,]*,[\d.,]*", re.ASCII)
_ABSENT = re.compile(r"(\(!\)\s*)?([-+]?nan|n/a|none|null|[-+]?inf(inity)?|-|)", re.IGNORECASE)


class Reading(NamedTuple):
    """A value in the base unit of `dimension`, and the closed interval `low`..`high` it may have been rounded from."""

    value: Decimal
    low: Decimal
    high: Decimal
    dimension: str


class Absent(NamedTuple):
    """A cell that is there and holds no value; `reason` is shown to the user."""

    reason: str


class CellError(ValueError):
    """A cell that cannot be read; the message names cell text and cause, the caller adds file and line."""


class StopError(CellError):
    """A cell that could be read in two ways, or whose unit is unknown: guessing would give wrong figures, so stop."""


def read_cell(text: str, unit: str) -> Reading | Absent:
    """Return what a cell says, in base units, or why it says nothing.

    Raises `StopError` for ambiguous commas and unknown units, `CellError` for anything that is not a number. Of a value
    followed by a list of instances (`12 (1; 2; 3)`) the aggregate is taken.
    """
    text = text.strip()
    if _ABSENT.fullmatch(text):
        return Absent(f"exported as {text!r}" if text else "exported as an empty cell")
    if text.startswith("(!)"):
        return Absent(f"marked unreliable by the tool: {text!r}")
    head = re.split(r"\s*[({]", text, maxsplit=1)[0]
    number, step = parse_number(head)
    known = UNITS.get(unit.strip())
    if known is None:
        if not unit.strip():
            return Absent("exported without a unit")
        raise StopError(f"unit {unit.strip()!r} of value {text!r} is not known, so the value cannot be scaled")
    return scaled(number, step, known.exponent, known.dimension)


def scaled(number: Decimal, step: Decimal, exponent: int, dimension: str) -> Reading:
    """Return `number` times ten to `exponent`; `step` is one unit of its last printed digit."""
    if step is _ONE and exponent == 0:
        return exactly(number, dimension)
    half = Decimal(0) if step == 1 and exponent == 0 else _EXACT.multiply(step, _HALF)
    low, high = _EXACT.subtract(number, half), _EXACT.add(number, half)
    shift = Decimal(exponent)
    return Reading(
        _EXACT.scaleb(number, shift),
        _EXACT.scaleb(max(low, Decimal(0)), shift),
        _EXACT.scaleb(high, shift),
        dimension,
    )


def parse_number(text: str) -> tuple[Decimal, Decimal]:
    """Return a non-negative printed number and one unit of its last digit.

    A comma before exactly three digits groups thousands; every other comma raises `StopError`.
    """
    text = text.strip()
    if len(text) < 19 and text.isdecimal() and text.isascii():
        return Decimal(text), _ONE
    if _GROUPED.fullmatch(text):
        text = text.replace(",", "")
    elif _COMMAS.fullmatch(text) and any(letter.isdigit() for letter in text):
        raise StopError(
            f"value {text!r} is ambiguous: its comma may group thousands or be a decimal comma; export again with "
            "LC_ALL=C"
        )
    if len(text) > 60 or not _PLAIN.fullmatch(text):
        raise CellError(f"{text[:60]!r} is not a number")
    number = Decimal(text)
    return number, last_digit(number)


def printed(text: str, exponent: int) -> tuple[Number, Number, Number] | None:
    """Return a plain decimal times ten to `exponent`, and the interval it may have been rounded from.

    The same figures as `plain` of what `scaled` makes of `parse_number`, by integers alone; `None` for text that those
    must judge (grouped, signed, with an exponent, no number).
    """
    whole, dot, fraction = text.partition(".")
    digits = whole + fraction
    if not (whole and digits.isdecimal() and digits.isascii() and len(digits) < 19 and bool(dot) == bool(fraction)):
        return None
    number, shift = int(digits), exponent - len(fraction)
    if shift > 0:
        step = 10**shift
        value = number * step
        return value, max(value - step // 2, 0), value + step // 2
    if not dot and shift == 0:
        return number, number, number
    steps = 2 * 10**-shift
    return _ratio(2 * number, steps), _ratio(max(2 * number - 1, 0), steps), _ratio(2 * number + 1, steps)


def _ratio(numerator: int, denominator: int) -> Number:
    """Return a quotient as `plain` does; Python rounds the quotient of two integers correctly."""
    whole, rest = divmod(numerator, denominator)
    return numerator / denominator if rest else whole


def last_digit(number: Decimal) -> Decimal:
    """Return one unit of the last digit of `number`; raises `CellError` where no counter can be so large."""
    exponent = number.as_tuple().exponent
    if not isinstance(exponent, int) or not -_LARGEST_EXPONENT <= exponent <= _LARGEST_EXPONENT:
        raise CellError(f"{number!s:.60} is outside any counter's range")
    return Decimal(1).scaleb(exponent)


def exactly(number: Decimal, dimension: str) -> Reading:
    """Return a value that carries no rounding."""
    return Reading(number, number, number, dimension)


def total(terms: list[tuple[Decimal, Reading]], dimension: str) -> Reading:
    """Return the sum of factor x reading; the intervals add up."""
    value = low = high = Decimal(0)
    for factor, reading in terms:
        value = _EXACT.add(value, _EXACT.multiply(factor, reading.value))
        ends = _EXACT.multiply(factor, reading.low), _EXACT.multiply(factor, reading.high)
        low, high = _EXACT.add(low, min(ends)), _EXACT.add(high, max(ends))
    return Reading(value, low, high, dimension)


def product(first: Reading, second: Reading, exponent: int, dimension: str) -> Reading:
    """Return first x second x ten to `exponent`, both non-negative."""
    shift = Decimal(exponent)
    pairs = ((first.value, second.value), (first.low, second.low), (first.high, second.high))
    value, low, high = (_EXACT.scaleb(_EXACT.multiply(a, b), shift) for a, b in pairs)
    return Reading(value, low, high, dimension)


def plain(number: Decimal) -> Number:
    """Return an `int` where the number is whole, else the nearest `float`."""
    return int(number) if number == number.to_integral_value() else float(number)
