"""Units of measure, and the words that bound an amount."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["NEUTRAL", "SYMBOLS", "Unit", "bound_of", "unit_of"]


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit of measure."""

    dimension: str
    """What it measures: `time`, `length`, `percent`, `dollar` ..."""

    factor: float
    """Its size in the dimension's base unit."""


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
_UNITS = {
    form: Unit(dimension, factor)
    for dimension, units in _DIMENSIONS.items()
    for factor, forms in units.items()
    for form in forms.split()
}
"""Measure units by dimension and factor; a word between a number and one of these changes the unit."""

_IRREGULAR = {"centuries": Unit("time", 3155760000.0)}

SYMBOLS = {"$": "dollar", "€": "euro", "£": "sterling", "¥": "yen"}
NEUTRAL = frozenset(
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


def unit_of(word: str, *, is_glued: bool = False) -> Unit | None:
    """Return the unit that a word names, in the singular or plural; a lone letter only where glued to a number."""
    if len(word) == 1 and not is_glued:
        return None
    return _UNITS.get(word) or (_UNITS.get(word[:-1]) if word.endswith("s") else None) or _IRREGULAR.get(word)


def bound_of(before: list[str]) -> str:
    """Return the bound that the words before a number state, `=` if none; the longest wording counts.

    Args:
        before: The last three words before the number, fewer at the start of a text.
    """
    pairs = [tuple(before[-2:])]
    if len(before) == 3 and before[-1] == "than":
        pairs.insert(0, tuple(before[:2]))
    for pair in pairs:
        if len(pair) == 2 and (bound := _TWO_WORD_BOUNDS.get((pair[0], pair[1]))):
            return bound
    return _BOUNDS.get(before[-1], "=") if before else "="
