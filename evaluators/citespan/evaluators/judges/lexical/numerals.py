"""Read how a number is written: digits with their separators, or words."""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["NUMBER_WORDS", "ORDINALS", "SCALES", "Numeral", "spelled_number", "value_of"]

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
ORDINALS = {
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
SCALES = {
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

NUMBER_WORDS = frozenset([*_SMALL, *_TENS, *SCALES])
"""Words that a spelled-out number is made of."""


@dataclass(frozen=True, slots=True)
class Numeral:
    """A number as it stands in a list of words."""

    value: float
    """Its value."""

    last: int
    """Index after its last word."""


def spelled_number(words: list[str], first: int) -> Numeral | None:
    """Return the number that the words from `first` on spell out, "two hundred and five"; `None` if none starts there."""
    total, current, index = 0.0, _NOTHING, first
    while index < len(words):
        word = words[index]
        added = _spelled(current, word, after_article=words[max(index - 1, 0)] in ("a", "an"))
        if added is not None:
            current = added
        elif not (word == "and" and index > first and _continues(words, index)):
            break
        if word in SCALES and SCALES[word] > 100:
            total, current = total + current, 0.0
        index += 1
    return None if current == _NOTHING else Numeral(total + current, index)


_NOTHING = -1.0


def _spelled(current: float, word: str, *, after_article: bool) -> float | None:
    """Return `current` with one more number word read, or `None` if `word` does not continue it."""
    if word in _SMALL:
        small = _SMALL[word]
        fits = current <= 0 or current % 100 == 0 or (current % 10 == 0 and small < 10)
        return max(current, 0.0) + small if fits else None
    if word in _TENS:
        return max(current, 0.0) + _TENS[word] if current <= 0 or current % 100 == 0 else None
    if word in SCALES and len(word) > 2 and (current > 0 or after_article):
        return max(current, 1.0) * SCALES[word]
    return None


def _continues(words: list[str], index: int) -> bool:
    """Return whether the "and" at `index` stands inside a number, as in "two hundred and five"."""
    after = words[index + 1] if index + 1 < len(words) else ""
    return words[index - 1] in SCALES and (after in _SMALL or after in _TENS)


def value_of(digits: str) -> float | None:
    """Return the value of digits with separators; `None` for what is no plain number, such as `2.0.1`."""
    groups = digits.split(",")
    if len(groups) > 1 and all(len(group.split(".")[0]) == 3 for group in groups[1:]):
        digits = digits.replace(",", "")
    elif len(groups) == 2 and "." not in digits:
        digits = digits.replace(",", ".")
    if digits.count(".") > 1 or "," in digits:
        return None
    value = float(digits)
    return value if math.isfinite(value) else None
