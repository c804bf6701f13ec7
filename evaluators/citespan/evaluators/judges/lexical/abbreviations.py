"""Read abbreviations: "FGF21" and the words it stands for, in one text or across two."""

from __future__ import annotations

import re
from dataclasses import dataclass

from citespan.evaluators.judges.lexical.words import Text

__all__ = ["Abbreviation", "Initials", "initials_of", "read_abbreviations", "spelled_out"]

_SHORT = re.compile(r"(?<![\w-])[A-Za-z]?[A-Z][A-Za-z]{0,3}[A-Z]s?\d{0,3}(?![\w])")
"""Three to seven signs, at least two of them capitals."""

_FEWEST_LETTERS = 3
"""Letters from which an abbreviation is told by its letters alone; two stand for too much."""

_MOST_BETWEEN = 1
"""Words of grammar between the words of a spelled-out abbreviation, at most."""


@dataclass(frozen=True, slots=True)
class Abbreviation:
    """An abbreviation as it stands in a text."""

    letters: str
    """Its letters in lower case, without plural `s` and figures."""

    written: str
    """The word it is, in lower case."""


@dataclass(frozen=True, slots=True)
class Initials:
    """The first letters of a text's content words."""

    letters: str
    """The letters in a row."""

    indexes: list[int]
    """The word that each letter is of."""


def read_abbreviations(text: str) -> list[Abbreviation]:
    """Return the abbreviations of `text`, each once."""
    found: dict[str, Abbreviation] = {}
    for match in _SHORT.finditer(text):
        letters = match[0].rstrip("0123456789").removesuffix("s").lower()
        if len(letters) >= _FEWEST_LETTERS:
            found.setdefault(match[0], Abbreviation(letters, match[0].lower()))
    return list(found.values())


def initials_of(read: Text) -> Initials:
    """Return the first letters of a text's content words."""
    indexes = [index for index, key in enumerate(read.keys) if key and key[0] != "#"]
    return Initials("".join([read.words[index][0] for index in indexes]), indexes)


def spelled_out(letters: str, initials: Initials) -> list[int]:
    """Return the words that begin with the letters of an abbreviation, in a row; none where there is no such row."""
    at = initials.letters.find(letters)
    if at < 0:
        return []
    row = initials.indexes[at : at + len(letters)]
    return row if row[-1] - row[0] <= len(letters) + _MOST_BETWEEN else []
