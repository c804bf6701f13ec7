"""Find where a passage speaks of a claim: its index, coverage of every run of one to three sentences."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from citespan.evaluators.judges.lexical.abbreviations import (
    Abbreviation,
    Initials,
    initials_of,
    read_abbreviations,
    spelled_out,
)
from citespan.evaluators.judges.lexical.entities import Entity, read_entities
from citespan.evaluators.judges.lexical.lexicon import read_word_set
from citespan.evaluators.judges.lexical.quantities import Quantity, read_quantities
from citespan.evaluators.judges.lexical.rarity import Rarity
from citespan.evaluators.judges.lexical.synonyms import SYNONYMS
from citespan.evaluators.judges.lexical.words import Text, key_of, read_words, stem_of

__all__ = ["ClaimReading", "PassageReading", "Search", "Window", "read_claim", "read_passage", "search"]

_PREFIX = 5
"""Letters of a stem that make two words of one family likely (`configur`, `configuration`)."""

_SHORTEST_COMPOUND = 7
_SHORTEST_PART = 3
"""Letters of the shortest word that may be written as two, and of the shortest of the two."""

_LONGEST_FRAGMENT = 5
"""Content words of the longest claim that may be a fragment."""

_AUXILIARIES = read_word_set("auxiliaries")

_FRAMING = frozenset(stem_of(word) for word in read_word_set("framing"))
_FRAMING_SHARE = 0.4
"""Share of their weight that words count with which frame a statement and add little to it."""

_MOST_SINGLES = 10
"""Single sentences kept, at most."""

_LONGEST_WINDOW = 3
"""Sentences in the longest window."""


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

    initials: Initials
    """The first letters of its content words."""

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


@dataclass(frozen=True, slots=True)
class Window:
    """A run of sentences of one passage and what it covers of the claim."""

    passage: int
    """Index of the passage."""

    first: int
    """Index of its first sentence."""

    last: int
    """Index after its last sentence."""

    exact: int
    """Bit mask of the claim's keys found as they are."""

    loose: int
    """Bit mask of the keys found as they are, as a synonym, or as a word of the same family."""

    coverage: float
    """Weighted share of the claim's keys found, loose ones in part."""


@dataclass(slots=True)
class Search:
    """What a search of the passages for a claim found."""

    claim: ClaimReading
    """The claim."""

    passages: list[PassageReading]
    """The passages, read together."""

    hits: list[dict[int, int]]
    """Per passage: word index to the index of the claim's key found there; loose ones are `-1 - index`."""

    masks: list[dict[int, tuple[int, int]]]
    """Per passage: sentence to the bit masks of the keys in it, found as they are and found in any way."""

    merged: list[dict[int, int]]
    """Per passage: word that stands for several words of the claim at once to the bit mask of their keys."""

    best: list[Window | None]
    """The best window of one, two and three sentences; `None` where no word is found."""

    singles: list[Window]
    """Every sentence that holds a word of the claim, best first, ten at most."""

    exact: int = 0
    """Bit mask of the keys found anywhere as they are."""

    loose: int = 0
    """Bit mask of the keys found anywhere."""

    def coverage(self, exact: int, loose: int) -> float:
        """Return the weighted share of the claim's keys in two masks."""
        return _coverage(self.claim, exact, loose)


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
        if key[0] != "#" and len(key) >= _PREFIX:
            families.setdefault(key[:_PREFIX], []).append(key)
    sentence_of: list[int] = []
    for number, sentence in enumerate(read.sentences):
        sentence_of.extend([number] * (sentence.last - sentence.first))
    return PassageReading(
        read, quantities, index, families, sentence_of, initials_of(read), read_abbreviations(text)
    )


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


def search(claim: ClaimReading, passages: Sequence[PassageReading]) -> Search:
    """Return where `passages` speak of `claim`."""
    found = Search(claim, list(passages), [], [], [], [None] * _LONGEST_WINDOW, [])
    singles: list[Window] = []
    for number, passage in enumerate(passages):
        hits = _hits(claim, passage)
        merged = _merged(claim, passage)
        for position, mask in merged.items():
            hits.setdefault(position, -1 - (mask & -mask).bit_length() + 1)
        found.hits.append(hits)
        found.merged.append(merged)
        masks = _sentence_masks(passage, hits, merged)
        found.masks.append(masks)
        singles.extend(_windows(found, number, masks))
    singles.sort(key=lambda window: -window.coverage)
    found.singles = singles[:_MOST_SINGLES]
    return found


def _hits(claim: ClaimReading, passage: PassageReading) -> dict[int, int]:
    hits: dict[int, int] = {}
    loose: list[tuple[int, str]] = []
    for number, key in enumerate(claim.keys):
        for position in passage.index.get(key, ()):
            hits[position] = number
        loose.extend((number, other) for other in SYNONYMS.get(key, ()) if other in passage.index)
        if len(key) >= _PREFIX and key[0] != "#":
            loose.extend(
                (number, other) for other in passage.families.get(key[:_PREFIX], ()) if _is_family(key, other)
            )
    for number, other in loose:
        for position in passage.index[other]:
            hits.setdefault(position, -1 - number)
    hits.update(_equal_measures(claim, passage))
    for position, number in _spread(claim, passage):
        hits.setdefault(position, -1 - number)
    return hits


def _merged(claim: ClaimReading, passage: PassageReading) -> dict[int, int]:
    """Return words of the passage that stand for a row of the claim's words: an abbreviation, a compound."""
    merged: dict[int, int] = {}
    index, read = passage.index, claim.text
    for key, one, other in claim.compounds:
        for position in index.get(key, ()):
            merged[position] = 1 << one | 1 << other
    for short in passage.abbreviations:
        row = spelled_out(short.letters, claim.initials)
        if row:
            mask = sum({1 << claim.numbers[read.keys[word]] for word in row})
            for position in index.get(key_of(short.written), ()):
                merged[position] = mask
    return merged


def _spread(claim: ClaimReading, passage: PassageReading) -> Iterator[tuple[int, int]]:
    """Yield words of the passage that together stand for one of the claim's, with the index of its key."""
    index = passage.index
    for short in claim.abbreviations:
        key = key_of(short.written)
        if key not in index and key in claim.keys:
            number = claim.numbers[key]
            yield from ((word, number) for word in spelled_out(short.letters, passage.initials))
    for word, key in zip(claim.text.words, claim.text.keys, strict=True):
        if len(word) < _SHORTEST_COMPOUND or not key or key in index or key[0] == "#":
            continue
        for cut in range(_SHORTEST_PART, len(word) - _SHORTEST_PART + 1):
            starts = index.get(word[:cut])
            ends = index.get(key_of(word[cut:])) if starts else None
            if starts and ends:
                number = claim.numbers[key]
                yield from ((place, number) for place in starts if place + 1 in ends)


def _equal_measures(claim: ClaimReading, passage: PassageReading) -> Iterator[tuple[int, int]]:
    """Yield words of measures that equal one of the claim's in another unit: "1.5 hours" for "90 minutes"."""
    for quantity in claim.quantities:
        if quantity.factor == 1 or quantity.amount is None:
            continue
        for other in passage.quantities:
            if (
                other.kind == quantity.kind
                and other.unit != quantity.unit
                and other.amount == quantity.amount
            ):
                yield other.first, claim.numbers[claim.text.keys[quantity.first]]
                unit = claim.text.keys[quantity.last - 1]
                if unit in claim.keys:
                    yield other.last - 1, claim.numbers[unit]


def _is_family(one: str, other: str) -> bool:
    """Return whether two stems share so much of their beginning that one is derived from the other."""
    shared = _PREFIX
    shortest = min(len(one), len(other))
    while shared < shortest and one[shared] == other[shared]:
        shared += 1
    return shared >= shortest - 1 and max(len(one), len(other)) - shared <= 4


def _sentence_masks(
    passage: PassageReading, hits: Mapping[int, int], merged: Mapping[int, int]
) -> dict[int, tuple[int, int]]:
    masks: dict[int, tuple[int, int]] = {}
    sentence_of = passage.sentence_of
    for position, number in hits.items():
        sentence = sentence_of[position]
        exact, loose = masks.get(sentence, (0, 0))
        if number >= 0:
            exact |= 1 << number
            loose |= 1 << number
        else:
            loose |= 1 << (-1 - number)
        masks[sentence] = (exact, loose)
    for position, mask in merged.items():
        exact, loose = masks[sentence_of[position]]
        masks[sentence_of[position]] = exact, loose | mask
    return masks


def _windows(found: Search, number: int, masks: Mapping[int, tuple[int, int]]) -> list[Window]:
    """Return the one-sentence windows, and keep the best of each length in `found`."""
    singles: list[Window] = []
    memo: dict[tuple[int, int], float] = {}
    last_sentence = len(found.passages[number].text.sentences)
    for sentence in sorted(masks):
        found.exact |= masks[sentence][0]
        found.loose |= masks[sentence][1]
        exact = loose = 0
        for length in range(1, _LONGEST_WINDOW + 1):
            if sentence + length > last_sentence:
                break
            more = masks.get(sentence + length - 1, (0, 0))
            exact |= more[0]
            loose |= more[1]
            share = memo.get((exact, loose))
            if share is None:
                share = memo[exact, loose] = _coverage(found.claim, exact, loose)
            window = Window(number, sentence, sentence + length, exact, loose, share)
            if length == 1:
                singles.append(window)
            for longest in range(length, _LONGEST_WINDOW + 1):
                best = found.best[longest - 1]
                if best is None or share > best.coverage + 1e-9:
                    found.best[longest - 1] = window
    return singles


_LOOSE_SHARE = 0.8
"""How much a synonym or a word of the same family counts beside the word itself."""


def _coverage(claim: ClaimReading, exact: int, loose: int) -> float:
    if not claim.total:
        return 0.0
    covered = 0.0
    for number, weight in enumerate(claim.weights):
        if exact >> number & 1:
            covered += weight
        elif loose >> number & 1:
            covered += _LOOSE_SHARE * weight
    return covered / claim.total
