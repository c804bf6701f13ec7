"""Read numbers as values: digits, words, scales, units, money, percentages, ranges, ordinals, bounds."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace

from citespan.evaluators.judges.lexical.words import Text, stem_of

__all__ = ["Quantity", "read_quantities"]

_SMALL = {
    word: value
    for value, word in enumerate(
        [
            "zero",
            "one",
            "two",
            "three",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
            "eleven",
            "twelve",
            "thirteen",
            "fourteen",
            "fifteen",
            "sixteen",
            "seventeen",
            "eighteen",
            "nineteen",
        ]
    )
} | {"dozen": 12, "twice": 2, "thrice": 3}
_TENS = {
    word: 10 * value
    for value, word in enumerate(
        ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"], start=2
    )
}
_ORDINALS = {
    word: value
    for value, word in enumerate(
        [
            "first",
            "second",
            "third",
            "fourth",
            "fifth",
            "sixth",
            "seventh",
            "eighth",
            "ninth",
            "tenth",
            "eleventh",
            "twelfth",
        ],
        start=1,
    )
}
_SCALES = {
    "hundred": 1e2,
    "thousand": 1e3,
    "k": 1e3,
    "million": 1e6,
    "mn": 1e6,
    "billion": 1e9,
    "bn": 1e9,
    "trillion": 1e12,
    "tn": 1e12,
}
_FRACTIONS = {"half": 0.5, "quarter": 0.25, "third": 1 / 3}
_DIMENSIONS: dict[str, dict[float, str]] = {
    "time": {
        1: "second sec secs s",
        60: "minute min mins",
        3600: "hour hr hrs h",
        86400: "day",
        604800: "week wk",
        2629800: "month",
        7889400: "quarter",
        31557600: "year yr yrs",
        315576000: "decade",
        3155760000: "century",
    },
    "length": {
        0.001: "millimeter millimetre mm",
        0.01: "centimeter centimetre cm",
        0.0254: "inch inches",
        0.3048: "foot feet ft",
        0.9144: "yard yd",
        1: "meter metre m",
        1000: "kilometer kilometre km",
        1609.344: "mile mi",
    },
    "weight": {
        0.000001: "milligram mg",
        0.001: "gram g",
        0.0283495: "ounce oz",
        0.453592: "pound lb lbs",
        1: "kilogram kg kilo",
        1000: "ton tonne",
    },
    "data": {1e3: "kb kilobyte", 1e6: "mb megabyte", 1e9: "gb gigabyte", 1e12: "tb terabyte"},
    "volume": {0.001: "milliliter millilitre ml", 1: "liter litre l", 3.78541: "gallon"},
    "percent": {1: "percent pct percentage"},
    "dollar": {1: "dollar usd", 0.01: "cent"},
    "euro": {1: "euro eur"},
    "sterling": {1: "gbp"},
    "degree": {1: "degree celsius fahrenheit"},
}
_UNITS: dict[str, tuple[str, float]] = {
    form: (dimension, factor)
    for dimension, units in _DIMENSIONS.items()
    for factor, forms in units.items()
    for form in forms.split()
}
"""Measure units by dimension and factor; a word between a number and one of these changes the unit."""

_SYMBOLS = {"$": "dollar", "€": "euro", "£": "sterling", "¥": "yen"}
_NEUTRAL = frozenset(
    [
        "full",
        "whole",
        "consecutive",
        "straight",
        "entire",
        "complete",
        "successive",
        "different",
        "separate",
        "us",
        "american",
        "short",
        "long",
        "calendar",
        "or",
        "more",
        "of",
        "to",
        "about",
        "and",
        "solid",
        "different",
        "long-term",
        "total",
    ]
)
"""Words between number and unit that leave the measure what it is."""

_BOUNDS = {
    "over": ">",
    "exceeding": ">",
    "above": ">",
    "under": "<",
    "below": "<",
    "about": "~",
    "around": "~",
    "approximately": "~",
    "roughly": "~",
    "nearly": "~",
    "almost": "~",
    "some": "~",
    "estimated": "~",
    "circa": "~",
    "maximum": "<=",
    "minimum": ">=",
}
_TWO_WORD_BOUNDS = {
    ("up", "to"): "<=",
    ("at", "most"): "<=",
    ("no", "more"): "<=",
    ("not", "more"): "<=",
    ("at", "least"): ">=",
    ("no", "less"): ">=",
    ("no", "fewer"): ">=",
    ("more", "than"): ">",
    ("greater", "than"): ">",
    ("less", "than"): "<",
    ("fewer", "than"): "<",
}
_PARTS = re.compile(r"(\d+(?:[.,]\d+)*)(.*)", re.DOTALL)
_NUMBER_START = frozenset(_SMALL) | frozenset(_TENS) | frozenset(_ORDINALS) | frozenset(_SCALES) | {"half"}
_PLACES = 6


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
    index = 0
    words = read.words
    candidates = [i for i, key in enumerate(read.keys) if key[:1] == "#" or words[i] in _NUMBER_START]
    for candidate in candidates:
        if candidate < index:
            continue
        quantity = _quantity_at(read, candidate)
        if quantity is None:
            continue
        found.append(quantity)
        index = max(_number_end(quantity), candidate + 1)
    return _ranges_share_units(read, found)


def _number_end(quantity: Quantity) -> int:
    return quantity.last


def _quantity_at(read: Text, first: int) -> Quantity | None:
    word = read.words[first]
    if word[0].isdigit():
        return _from_digits(read, first)
    return _from_words(read, first)


def _from_digits(read: Text, first: int) -> Quantity | None:
    parts = _PARTS.fullmatch(read.words[first])
    if parts is None:
        return None
    digits, suffix = parts[1], parts[2]
    value = _value_of(digits)
    if value is None or (
        suffix and suffix not in _SCALES and suffix not in _UNITS and not _is_ordinal(suffix)
    ):
        return Quantity(first, first + 1, None, read.words[first], "code", "", 1.0, "", "=")
    if _is_ordinal(suffix):
        return _keyed(read, Quantity(first, first + 1, value, digits, "ordinal", "", 1.0, "", "="))
    last = first + 1
    if suffix in _SCALES:
        value, suffix = value * _SCALES[suffix], ""
    elif (
        not suffix
        and last < len(read.words)
        and read.words[last] in _SCALES
        and read.gap(first).strip() in ("", "-")
    ):
        value *= _SCALES[read.words[last]]
        last += 1
    return _with_unit(read, first, last, value, digits, glued=suffix)


def _from_words(read: Text, first: int) -> Quantity | None:
    word = read.words[first]
    if word in _ORDINALS:
        value = float(_ORDINALS[word])
        return _keyed(read, Quantity(first, first + 1, value, word, "ordinal", "", 1.0, "", "="))
    if word == "half":
        return Quantity(first, first + 1, 0.5, word, "fraction", "", 1.0, "", "=")
    words = read.words
    total, current, index = 0.0, _NOTHING, first
    while index < len(words):
        word = words[index]
        added = _spelled(current, word, after_article=words[max(index - 1, 0)] in ("a", "an"))
        if added is not None:
            current = added
        elif not (word == "and" and index > first and _continues(words, index)):
            break
        if word in _SCALES and _SCALES[word] > 100:
            total, current = total + current, 0.0
        index += 1
    if current == _NOTHING:
        return None
    return _with_unit(read, first, index, total + current, read.words[first], glued="")


_NOTHING = -1.0


def _spelled(current: float, word: str, *, after_article: bool) -> float | None:
    """Return `current` with one more number word read, or `None` if `word` does not continue it."""
    if word in _SMALL:
        small = _SMALL[word]
        fits = current <= 0 or current % 100 == 0 or (current % 10 == 0 and small < 10)
        return max(current, 0.0) + small if fits else None
    if word in _TENS:
        return max(current, 0.0) + _TENS[word] if current <= 0 or current % 100 == 0 else None
    if word in _SCALES and len(word) > 2 and (current > 0 or after_article):
        return max(current, 1.0) * _SCALES[word]
    return None


def _continues(words: list[str], index: int) -> bool:
    """Return whether the "and" at `index` stands inside a number, as in "two hundred and five"."""
    after = words[index + 1] if index + 1 < len(words) else ""
    return words[index - 1] in _SCALES and (after in _SMALL or after in _TENS)


def _value_of(digits: str) -> float | None:
    groups = digits.split(",")
    if len(groups) > 1 and all(len(group.split(".")[0]) == 3 for group in groups[1:]):
        digits = digits.replace(",", "")
    elif len(groups) == 2 and "." not in digits:
        digits = digits.replace(",", ".")
    if digits.count(".") > 1 or "," in digits:
        return None
    value = float(digits)
    return value if math.isfinite(value) else None


def _is_ordinal(suffix: str) -> bool:
    return suffix in ("st", "nd", "rd", "th")


def _with_unit(read: Text, first: int, last: int, value: float, written: str, *, glued: str) -> Quantity:
    words = read.words
    bound = _bound_before(read, first)
    before = read.text[max(read.starts[first] - 1, 0) : read.starts[first]]
    after = read.gap(last - 1)
    if before in _SYMBOLS:
        return _keyed(
            read, Quantity(first, last, value, written, _SYMBOLS[before], _SYMBOLS[before], 1.0, "", bound)
        )
    if after[:1] == "%" or (after.strip() == "" and words[last : last + 2] == ["per", "cent"]):
        return _keyed(read, Quantity(first, last, value, written, "percent", "percent", 1.0, "", bound))
    if glued:
        dimension, factor = _UNITS[glued]
        return _keyed(
            read, Quantity(first, last, value, written, dimension, stem_of(glued), factor, "", bound)
        )
    qualifier = ""
    if after.strip() in ("", "-") and last < len(words):
        known = _unit(words[last])
        if known is None and last + 1 < len(words) and read.gap(last).strip() in ("", "-"):
            known = _unit(words[last + 1])
            if (
                known is not None
                and words[last] not in _NEUTRAL
                and words[last].isalpha()
                and read.keys[last]
            ):
                qualifier = stem_of(words[last])
            known = known if qualifier or words[last] in _NEUTRAL else None
            if known is not None:
                return _keyed(
                    read,
                    Quantity(
                        first,
                        last + 2,
                        value,
                        written,
                        known[0],
                        stem_of(words[last + 1]),
                        known[1],
                        qualifier,
                        bound,
                    ),
                )
        if known is not None:
            return _keyed(
                read,
                Quantity(
                    first, last + 1, value, written, known[0], stem_of(words[last]), known[1], "", bound
                ),
            )
        noun = read.keys[last] if read.keys[last][:1] != "#" else ""
    else:
        noun = ""
    is_year = value == int(value) and 1000 <= value <= 2100 and len(written) == 4 and last == first + 1
    return _keyed(
        read, Quantity(first, last, value, written, "year" if is_year else "count", noun, 1.0, "", bound)
    )


def _unit(word: str) -> tuple[str, float] | None:
    if len(word) == 1:
        return None
    return (
        _UNITS.get(word)
        or (_UNITS.get(word[:-1]) if word.endswith("s") else None)
        or (("time", 3155760000.0) if word == "centuries" else None)
    )


def _bound_before(read: Text, first: int) -> str:
    """Return the bound that the words before a number state, the longest wording first ("no more than")."""
    words = read.words
    if first and read.text[read.starts[first] - 1] in "~≈":
        return "~"
    pairs = [(first - 2, first - 1)]
    if first >= 3 and words[first - 1] == "than":
        pairs.insert(0, (first - 3, first - 2))
    for one, other in pairs:
        bound = _TWO_WORD_BOUNDS.get((words[one], words[other])) if one >= 0 else None
        if bound:
            return bound
    return _BOUNDS.get(words[first - 1], "=") if first else "="


def _keyed(read: Text, quantity: Quantity) -> Quantity:
    """Return `quantity` after giving its number words one key, `#value` on the first."""
    if quantity.value is not None:
        read.keys[quantity.first] = (
            f"#{round(quantity.value, _PLACES):g}" if quantity.value < 1e6 else f"#{quantity.value:.0f}"
        )
        for index in range(quantity.first + 1, quantity.last):
            if read.words[index] in _SCALES or read.words[index] in _SMALL or read.words[index] in _TENS:
                read.keys[index] = ""
    return quantity


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
