"""Words that say how far a statement goes: quantifiers, frequency, exclusivity, modality, degree."""

from __future__ import annotations

from dataclasses import dataclass

from citespan.evaluators.judges.lexical.lexicon import read_lexicon

__all__ = ["ABSOLUTE", "STRENGTHS", "Strength"]


@dataclass(frozen=True, slots=True)
class Strength:
    """A family of words that grade one thing."""

    name: str
    """What it grades."""

    strong: frozenset[str]
    """Words that leave no exception."""

    weak: frozenset[str]
    """Words that leave room."""


def _families() -> dict[str, dict[str, set[str]]]:
    families: dict[str, dict[str, set[str]]] = {}
    for name, grade, *words in read_lexicon("strength"):
        families.setdefault(name, {}).setdefault(grade, set()).update(words)
    return families


_FAMILIES = _families()

ABSOLUTE = frozenset(word for grades in _FAMILIES.values() for word in grades["absolute"])
"""Strong words that need a strong word of their family in the passage."""

STRENGTHS = {
    word: family
    for name, grades in _FAMILIES.items()
    for family in [
        Strength(name, frozenset(grades["absolute"] | grades.get("strong", set())), frozenset(grades["weak"]))
    ]
    for word in family.strong
}
"""The family of each strong word."""
