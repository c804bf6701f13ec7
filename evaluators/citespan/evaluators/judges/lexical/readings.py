"""Read a passage once for any number of claims, and a claim once for any number of passages."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from citespan.evaluators.judges.lexical.abbreviations import (
    Abbreviation,
    Initials,
    initials_of,
    read_abbreviations,
)
from citespan.evaluators.judges.lexical.entities import Entity, read_entities
from citespan.evaluators.judges.lexical.lexicon import read_word_set
from citespan.evaluators.judges.lexical.quantities import Quantity, read_quantities
from citespan.evaluators.judges.lexical.rarity import Rarity
from citespan.evaluators.judges.lexical.words import Text, key_of, read_words, stem_of

__all__ = ["PREFIX", "ClaimReading", "PassageReading", "read_claim", "read_passage"]

PREFIX = 5
"""Letters of a stem that make two words of one family likely (`configur`, `configuration`)."""

_LONGEST_FRAGMENT = 5
"""Content words of the longest claim that may be a fragment."""

_AUXILIARIES = read_word_set("auxiliaries")

_FRAMING = frozenset(stem_of(word) for word in read_word_set("framing"))
_FRAMING_SHARE = 0.4
"""Share of their weight that words count with which frame a statement and add little to it."""


@dataclass(slots=True)
class PassageReading:
    """A passage read once, for any number of claims."""

    text: Text
    """Its words and sentences."""

    quantities: list[Quantity]
    """Its numbers."""

    index: dict[str, list[int]]
    """Where each key occurs, as word indexes."""

    families: dict[str, list[str]]
    """Its keys by their first letters."""

    sentence_of: list[int]
    """The sentence that each word is in."""

    abbreviations: list[Abbreviation]
    """Its abbreviations."""


@dataclass(slots=True)
class ClaimReading:
    """A claim read once, with the weight of each of its content words."""

    text: Text
    """Its words and sentences."""

    quantities: list[Quantity]
    """Its numbers."""

    keys: list[str]
    """Its distinct content keys in order."""

    numbers: dict[str, int]
    """Index of each key in `keys`."""

    rarity: Rarity
    """How much words count."""

    weights: list[float]
    """How much each key counts."""

    total: float
    """Sum of the weights."""

    names: list[Entity]
    """Its names."""

    initials: Initials
    """The first letters of its content words."""

    abbreviations: list[Abbreviation]
    """Its abbreviations."""

    compounds: list[tuple[str, int, int]]
    """Neighbouring words written as one ("birthweight"), as a key, and the indexes of their own two keys."""

    own_words: int
    """How many of its words are its own; a fragment is completed by its question's words, which follow."""

    def weight_of(self, key: str) -> float:
        """Return how much one of the claim's keys counts."""
        return self.weights[self.numbers[key]]


def read_passage(text: str) -> PassageReading:
    """Return `text` read and indexed, in time linear in its length."""
    read = read_words(text)
    quantities = read_quantities(read)
    index: dict[str, list[int]] = {}
    for position, key in enumerate(read.keys):
        if key:
            if key in index:
                index[key].append(position)
            else:
                index[key] = [position]
    families: dict[str, list[str]] = {}
    for key in index:
        if key[0] != "#" and len(key) >= PREFIX:
            families.setdefault(key[:PREFIX], []).append(key)
    sentence_of: list[int] = []
    for number, sentence in enumerate(read.sentences):
        sentence_of.extend([number] * (sentence.last - sentence.first))
    return PassageReading(read, quantities, index, families, sentence_of, read_abbreviations(text))


def read_claim(text: str, rarity: Rarity, *, question: str | None = None) -> ClaimReading:
    """Return a claim read, each content word weighted by its rarity.

    Args:
        text: The claim.
        rarity: How much words count.
        question: The run's question; an answer that is only a name or a figure is read together with it.
    """
    read = read_words(text)
    own_words = len(read.words)
    if question and _is_fragment(read):
        read = read_words(f"{text}\n{question}")
    quantities = [quantity for quantity in read_quantities(read) if quantity.first < own_words]
    keys = list(dict.fromkeys(key for key in read.keys if key))
    weights = [rarity.of(key) * (_FRAMING_SHARE if key in _FRAMING else 1) for key in keys]
    numbers = {key: number for number, key in enumerate(keys)}
    return ClaimReading(
        read,
        quantities,
        keys,
        numbers,
        rarity,
        weights,
        sum(weights),
        read_entities(read, 0, own_words),
        initials_of(read),
        read_abbreviations(read.text),
        list(_compounds(read, numbers)),
        own_words,
    )


def _compounds(read: Text, numbers: Mapping[str, int]) -> Iterator[tuple[str, int, int]]:
    for index, (one, other) in enumerate(itertools.pairwise(read.keys)):
        if one and other and one[0] != "#" and other[0] != "#" and read.gap(index) in (" ", "-"):
            yield key_of(read.words[index] + read.words[index + 1]), numbers[one], numbers[other]


def _is_fragment(read: Text) -> bool:
    """Return whether a claim is only a name or a figure, which says nothing without its question."""
    content = [index for index, key in enumerate(read.keys) if key]
    return (
        0 < len(content) <= _LONGEST_FRAGMENT
        and _AUXILIARIES.isdisjoint(read.words)
        and all(read.keys[index][0] == "#" or read.shown(index)[0].isupper() for index in content)
    )
