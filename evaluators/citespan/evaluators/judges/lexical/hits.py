"""Find the words of a passage that stand for words of a claim."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from citespan.evaluators.judges.lexical.abbreviations import initials_of, spelled_out
from citespan.evaluators.judges.lexical.readings import PREFIX, ClaimReading, PassageReading
from citespan.evaluators.judges.lexical.synonyms import SYNONYMS
from citespan.evaluators.judges.lexical.words import key_of

__all__ = ["Hits", "find_hits"]

_SHORTEST_COMPOUND = 7
_SHORTEST_PART = 3
"""Letters of the shortest word that may be written as two, and of the shortest of the two."""


@dataclass(frozen=True, slots=True)
class Hits:
    """The words of one passage that stand for words of a claim."""

    numbers: dict[int, int]
    """Word index to the index of the claim's key found there; those found in another form are `-1 - index`."""

    merged: dict[int, int]
    """Word that stands for several words of the claim at once to the bit mask of their keys."""


def find_hits(claim: ClaimReading, passage: PassageReading) -> Hits:
    """Return the words of `passage` that stand for words of `claim`: the same, a synonym, another form."""
    numbers = _numbers(claim, passage)
    merged = _merged(claim, passage)
    for position, mask in merged.items():
        lowest = (mask & -mask).bit_length() - 1
        numbers.setdefault(position, -1 - lowest)
    return Hits(numbers, merged)


def _numbers(claim: ClaimReading, passage: PassageReading) -> dict[int, int]:
    hits: dict[int, int] = {}
    loose: list[tuple[int, str]] = []
    for number, key in enumerate(claim.keys):
        for position in passage.index.get(key, ()):
            hits[position] = number
        loose.extend((number, other) for other in SYNONYMS.get(key, ()) if other in passage.index)
        if len(key) >= PREFIX and key[0] != "#":
            loose.extend(
                (number, other) for other in passage.families.get(key[:PREFIX], ()) if _is_family(key, other)
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
        if key not in index and key in claim.numbers:
            number = claim.numbers[key]
            yield from ((word, number) for word in spelled_out(short.letters, initials_of(passage.text)))
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
                if unit in claim.numbers:
                    yield other.last - 1, claim.numbers[unit]


def _is_family(one: str, other: str) -> bool:
    """Return whether two stems share so much of their beginning that one is derived from the other."""
    shared = PREFIX
    shortest = min(len(one), len(other))
    while shared < shortest and one[shared] == other[shared]:
        shared += 1
    return shared >= shortest - 1 and max(len(one), len(other)) - shared <= 4
