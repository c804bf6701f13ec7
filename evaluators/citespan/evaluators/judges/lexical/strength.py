"""Read how strongly a text says what it says: quantifiers, frequency, exclusivity, modality, degree."""

from __future__ import annotations

from dataclasses import dataclass

from citespan.evaluators.judges.lexical.words import Text

__all__ = ["STRENGTHS", "Strong", "strong_words", "weak_words"]


@dataclass(frozen=True, slots=True)
class Strong:
    """A family of words that say how far a statement goes."""

    name: str
    """What the family grades."""

    strong: frozenset[str]
    """Words that leave no exception."""

    weak: frozenset[str]
    """Words that leave room."""


def _family(name: str, strong: str, weak: str) -> Strong:
    return Strong(name, frozenset(strong.split()), frozenset(weak.split()))


STRENGTHS = (
    _family(
        "frequency",
        "always invariably constantly perpetually forever continually",
        "usually typically generally often normally frequently commonly sometimes occasionally rarely seldom "
        "mostly periodically",
    ),
    _family("denial", "never", "not rarely seldom usually hardly no"),
    _family(
        "quantity",
        "all every each everyone everybody everything everywhere entire whole any anyone universally both none",
        "most many some several few certain majority numerous part various half various",
    ),
    _family(
        "exclusivity", "only solely exclusively sole purely", "mainly mostly primarily largely chiefly also"
    ),
    _family(
        "modality",
        "must shall guaranteed guarantees guarantee definitely certainly undoubtedly inevitably proves proven "
        "proved required mandatory requires certain will",
        "may might could can possibly perhaps probably likely suggests suggest suggested appears seems potentially "
        "reportedly allegedly optional should recommended optionally",
    ),
    _family(
        "degree",
        "completely entirely fully totally absolutely wholly perfectly",
        "partly partially largely mostly mainly almost nearly somewhat slightly",
    ),
)
"""The families; a strong word counts as carried if the passage has a strong word of the same family."""

_BY_STRONG = {word: family for family in STRENGTHS for word in family.strong}


def strong_words(read: Text, first: int, last: int) -> list[tuple[int, Strong]]:
    """Return the strong words between two word indexes with their families."""
    return [
        (index, _BY_STRONG[read.words[index]])
        for index in range(first, last)
        if read.words[index] in _BY_STRONG
    ]


def weak_words(read: Text, first: int, last: int, family: Strong) -> list[int]:
    """Return the weak words of `family` between two word indexes."""
    return [index for index in range(first, last) if read.words[index] in family.weak]
