"""Find where a passage speaks of a claim: its index, coverage of every run of one to three sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from citespan.evaluators.judges.lexical.entities import Entity, read_entities
from citespan.evaluators.judges.lexical.lexicon import read_word_set
from citespan.evaluators.judges.lexical.quantities import Quantity, read_quantities
from citespan.evaluators.judges.lexical.synonyms import SYNONYMS
from citespan.evaluators.judges.lexical.words import Text, read_words

__all__ = ["ClaimReading", "PassageReading", "Search", "Window", "read_claim", "read_passage", "search"]

_PREFIX = 5
"""Letters of a stem that make two words of one family likely (`configur`, `configuration`)."""

_LONGEST_FRAGMENT = 5
"""Content words of the longest claim that may be a fragment."""

_AUXILIARIES = read_word_set("auxiliaries")

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

    sentence_of: list[int] = field(default_factory=list[int])
    """The sentence that each word is in."""


@dataclass(slots=True)
class ClaimReading:
    """A claim read once, with the weight of each of its content words."""

    text: Text
    """Its words and sentences."""

    quantities: list[Quantity]
    """Its numbers."""

    keys: list[str]
    """Its distinct content keys in order."""

    weights: list[float]
    """How much each key counts."""

    total: float
    """Sum of the weights."""

    names: list[Entity]
    """Its names."""

    own_words: int
    """How many of its words are its own; a fragment is completed by its question's words, which follow."""

    def weight_of(self, key: str) -> float:
        """Return how much one of the claim's keys counts."""
        return self.weights[self.keys.index(key)]


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
    return PassageReading(read, quantities, index, families, sentence_of)


def read_claim(
    text: str, rarity: Mapping[str, float], *, rarest: float, question: str | None = None
) -> ClaimReading:
    """Return a claim read, each content word weighted by its rarity.

    Args:
        text: The claim.
        rarity: Weights of the common keys.
        rarest: Weight of every other key.
        question: The run's question; an answer that is only a name or a figure is read together with it.
    """
    read = read_words(text)
    own_words = len(read.words)
    if question and _is_fragment(read):
        read = read_words(f"{text}\n{question}")
    quantities = [quantity for quantity in read_quantities(read) if quantity.first < own_words]
    keys = list(dict.fromkeys(key for key in read.keys if key))
    weights = [rarity.get(key, rarest) for key in keys]
    names = read_entities(read, 0, own_words)
    return ClaimReading(read, quantities, keys, weights, sum(weights), names, own_words)


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
    found = Search(claim, list(passages), [], [], [None] * _LONGEST_WINDOW, [])
    singles: list[Window] = []
    for number, passage in enumerate(passages):
        hits = _hits(claim, passage)
        found.hits.append(hits)
        masks = _sentence_masks(passage, hits)
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
    return hits


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
                yield other.first, claim.keys.index(claim.text.keys[quantity.first])
                unit = claim.text.keys[quantity.last - 1]
                if unit in claim.keys:
                    yield other.last - 1, claim.keys.index(unit)


def _is_family(one: str, other: str) -> bool:
    """Return whether two stems share so much of their beginning that one is derived from the other."""
    shared = _PREFIX
    shortest = min(len(one), len(other))
    while shared < shortest and one[shared] == other[shared]:
        shared += 1
    return shared >= shortest - 1 and max(len(one), len(other)) - shared <= 4


def _sentence_masks(passage: PassageReading, hits: Mapping[int, int]) -> dict[int, tuple[int, int]]:
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
