"""Read numbers as values: digits, words, scales, units, money, percentages, ranges, ordinals, bounds."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from citespan.evaluators.judges.lexical.numerals import (
    NUMBER_WORDS,
    ORDINALS,
    SCALES,
    spelled_number,
    value_of,
)
from citespan.evaluators.judges.lexical.units import NEUTRAL, SYMBOLS, bound_of, unit_of
from citespan.evaluators.judges.lexical.words import Text, stem_of

__all__ = ["Quantity", "read_quantities"]

_PARTS = re.compile(r"(\d+(?:[.,]\d+)*)(.*)", re.DOTALL)
_NUMBER_START = NUMBER_WORDS | frozenset(ORDINALS) | {"half"}
_ORDINAL_SUFFIXES = ("st", "nd", "rd", "th")
_MONEY_SCALES = {"m": 1e6, "b": 1e9, "t": 1e12}
"""Letters that are a scale after money only; elsewhere `m` is a metre."""

_AGES = ("age", "aged")
_YEAR = 31557600.0
"""Words before a figure that make it years, and a year in seconds."""

_PLACES = 6
"""Decimal places by which two numbers are told apart."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """One number of a text with what it counts."""

    first: int
    """Index of its first word."""

    last: int
    """Index after its last word, its unit included."""

    value: float | None
    """The value; `None` for what is no plain number (a version such as `2.0.1`)."""

    written: str
    """What it is matched by when there is no value."""

    kind: str
    """`count`, `year`, `ordinal`, or the unit's dimension (`time`, `percent`, `dollar` ...)."""

    unit: str
    """The unit or counted noun as a stem; empty if none follows."""

    factor: float
    """Size of the unit in its dimension's base unit; 1 for counts."""

    qualifier: str
    """A word that changes the measure unit (`business` in "5 business days"), as a stem; else empty."""

    bound: str
    """`=`, or how the number bounds the amount: `<=`, `>=`, `<`, `>`, `~`."""

    @property
    def amount(self) -> float | None:
        """The value in the dimension's base unit."""
        return None if self.value is None else self.value * self.factor


def read_quantities(read: Text) -> list[Quantity]:
    """Return the quantities of `read` in order, and give their first words the keys `#value`."""
    found: list[Quantity] = []
    done = 0
    words = read.words
    spelled = _NUMBER_START.intersection(words)
    for first in [i for i, key in enumerate(read.keys) if (key and key[0] == "#") or words[i] in spelled]:
        quantity = None if first < done else _quantity_at(read, first)
        if quantity is not None:
            _give_key(read, quantity)
            found.append(quantity)
            done = max(quantity.last, first + 1)
    return _ranges_share_units(read, found)


def _quantity_at(read: Text, first: int) -> Quantity | None:
    word = read.words[first]
    if word[0].isdigit():
        return _from_digits(read, first)
    if word in ORDINALS:
        return Quantity(first, first + 1, float(ORDINALS[word]), word, "ordinal", "", 1.0, "", "=")
    if word == "half":
        return Quantity(first, first + 1, 0.5, word, "fraction", "", 1.0, "", "=")
    numeral = spelled_number(read.words, first)
    return (
        None if numeral is None else _with_unit(read, _plain(read, first, numeral.last, numeral.value, word))
    )


def _from_digits(read: Text, first: int) -> Quantity | None:
    parts = _PARTS.fullmatch(read.words[first])
    if parts is None:
        return None
    digits, suffix = parts[1], parts[2]
    value = value_of(digits)
    is_ordinal = suffix in _ORDINAL_SUFFIXES
    glued = unit_of(suffix, is_glued=True)
    scale = SCALES.get(suffix) or (_MONEY_SCALES.get(suffix) if _symbol_before(read, first) else None)
    if value is None or (suffix and scale is None and glued is None and not is_ordinal):
        return Quantity(first, first + 1, None, read.words[first], "code", "", 1.0, "", "=")
    if is_ordinal:
        return Quantity(first, first + 1, value, digits, "ordinal", "", 1.0, "", "=")
    if scale is not None:
        return _with_unit(read, _plain(read, first, first + 1, value * scale, digits))
    plain = _plain(read, first, first + 1, value, digits)
    if glued is not None:
        return replace(plain, kind=glued.dimension, unit=stem_of(suffix), factor=glued.factor)
    following = read.words[first + 1] if first + 1 < len(read.words) else ""
    if following in SCALES and read.gap(first).strip() in ("", "-"):
        plain = replace(plain, last=first + 2, value=value * SCALES[following])
    return _with_unit(read, plain)


def _plain(read: Text, first: int, last: int, value: float, written: str) -> Quantity:
    """Return a number that counts nothing yet."""
    is_about = first > 0 and read.text[read.starts[first] - 1] in "~≈"
    bound = "~" if is_about else bound_of(read.words[max(first - 3, 0) : first])
    return Quantity(first, last, value, written, "count", "", 1.0, "", bound)


def _with_unit(read: Text, number: Quantity) -> Quantity:
    """Return a number with what it measures or counts, read from its symbol or the words after it."""
    words, last = read.words, number.last
    symbol = _symbol_before(read, number.first)
    after = read.gap(last - 1)
    if symbol is not None:
        return replace(number, kind=symbol, unit=symbol)
    if after[:1] == "%" or (not after.strip() and words[last : last + 2] == ["per", "cent"]):
        return replace(number, kind="percent", unit="percent")
    if after.strip() not in ("", "-") or last == len(words):
        return replace(number, kind="year") if _is_year(number) else number
    measured = _measured(read, number)
    if measured is not None:
        return measured
    if number.first and words[number.first - 1] in _AGES:
        return replace(number, kind="time", unit="year", factor=_YEAR)
    noun = read.keys[last] if read.keys[last][:1] != "#" else ""
    return replace(number, kind="year" if _is_year(number) else "count", unit=noun)


def _symbol_before(read: Text, index: int) -> str | None:
    """Return the currency whose symbol stands right before a word."""
    start = read.starts[index]
    return SYMBOLS.get(read.text[max(start - 1, 0) : start])


def _measured(read: Text, number: Quantity) -> Quantity | None:
    """Return a number with the unit that follows it, at once or after one word; `None` if none does."""
    words, last = read.words, number.last
    unit = unit_of(words[last])
    if unit is not None:
        return replace(
            number, last=last + 1, kind=unit.dimension, unit=stem_of(words[last]), factor=unit.factor
        )
    if last + 1 == len(words) or read.gap(last).strip() not in ("", "-"):
        return None
    unit = unit_of(words[last + 1])
    is_neutral = words[last] in NEUTRAL
    if unit is None or not (is_neutral or (words[last].isalpha() and read.keys[last])):
        return None
    return replace(
        number,
        last=last + 2,
        kind=unit.dimension,
        unit=stem_of(words[last + 1]),
        factor=unit.factor,
        qualifier="" if is_neutral else stem_of(words[last]),
    )


def _is_year(number: Quantity) -> bool:
    value = number.value or 0.0
    is_one_word = number.last == number.first + 1 and len(number.written) == 4
    return is_one_word and value == int(value) and 1000 <= value <= 2100


def _give_key(read: Text, quantity: Quantity) -> None:
    """Give the words of a number one key, `#value` on the first."""
    if quantity.value is None or quantity.kind == "fraction":
        return
    value = f"{quantity.value:.0f}" if quantity.value >= 1e6 else f"{round(quantity.value, _PLACES):g}"
    read.keys[quantity.first] = f"#{value}"
    for index in range(quantity.first + 1, quantity.last):
        if read.words[index] in NUMBER_WORDS:
            read.keys[index] = ""


def _is_second_year(read: Text, low: Quantity, high: Quantity) -> bool:
    """Return whether `high` is the "18" of "2017-18"."""
    short = len(read.words[high.first]) == 2 and read.words[high.first].isdigit()
    return short and low.last == high.first and read.gap(low.last - 1) in ("-", "–", "/")


def _ranges_share_units(read: Text, found: list[Quantity]) -> list[Quantity]:
    """Give the first number of "3-7 days" or "3 to 7 days" the unit of the second."""
    for n in range(len(found) - 1):
        low, high = found[n], found[n + 1]
        if low.kind == "year" and _is_second_year(read, low, high):
            found[n + 1] = replace(high, last=high.first + 1, kind="year", unit="", factor=1.0, qualifier="")
            continue
        joined = low.last == high.first and read.gap(low.last - 1).strip() in ("-", "–", "—")
        spoken = low.last + 1 == high.first and read.words[low.last] in ("to", "and", "or")
        if (
            (joined or spoken)
            and low.kind in ("count", "year")
            and high.kind not in ("count", "year", "ordinal", "code")
        ):
            found[n] = replace(
                low, kind=high.kind, unit=high.unit, factor=high.factor, qualifier=high.qualifier
            )
    return found
