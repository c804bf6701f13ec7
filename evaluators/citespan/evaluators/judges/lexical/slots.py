"""Measure how well a name of the passage fits the place that a name has in the claim.

A claim's name stands among other words, its context. A name of the passage fits its place if the same words stand
round it, close by and on the same side.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from citespan.evaluators.judges.lexical.alignment import Aligned
from citespan.evaluators.judges.lexical.entities import Entity, read_entities
from citespan.evaluators.judges.lexical.lexicon import read_lexicon
from citespan.evaluators.judges.lexical.windows import Search
from citespan.evaluators.judges.lexical.words import Text, stem_of

__all__ = ["Occurrence", "Scene", "Slot", "follows_by", "read_scene"]

_REACH = 6
"""Words to each side of a claim's name that are its context."""

_NEAR_HERE = 3.0
_NEAR_THERE = 2.0
"""Words after which a context word counts half, in the claim and in the passage."""

_OTHER_SIDE = 0.25
"""How much a context word counts that stands on the other side of the name."""

_BEFORE = 0.3
_AFTER = 0.2
"""What the same word right before the name, or right after it, adds to the fit, words of grammar included."""

_RARE = 4.5
"""Weight from which a lone capitalised word is a name, not a common word in a title."""

_MOST_SLOTS = 16
_MOST_PLACES = 8
"""Names of a claim, and places of one name in a window, that are looked at: pairs of them are compared."""

_OF_A_PLACE = frozenset(stem_of(word) for words in read_lexicon("places") for word in words[1:])
"""Words such as "French", which seldom are what a statement is about."""


@dataclass(frozen=True, slots=True)
class Slot:
    """The place of one name in the claim."""

    name: Entity
    """The name."""

    mask: int
    """Bit mask of the keys of its words."""

    context: tuple[tuple[int, bool, float], ...]
    """The words round it: index of the key, whether it stands before, and its share of the whole."""


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A name in the window."""

    first: int
    """Index of its first word."""

    last: int
    """Index after its last word."""

    mask: int
    """Bit mask of the keys of the claim's names that it has."""

    is_rival: bool
    """Whether it is a name that the claim does not have."""


@dataclass(frozen=True, slots=True)
class Scene:
    """The names of a claim beside the names of a window."""

    claim: Text
    """The claim."""

    passage: Text
    """The passage."""

    passage_keys: list[str]
    """The keys of the window's words."""

    slots: tuple[Slot, ...]
    """The claim's names that say something of their own."""

    occurrences: tuple[Occurrence, ...]
    """The window's names."""

    places: dict[int, list[int]]
    """Where the window has each of the claim's keys."""

    fits: dict[tuple[int, int, int], float] = field(default_factory=dict[tuple[int, int, int], float])
    """Fits measured so far."""

    def having(self, slot: Slot) -> list[Occurrence]:
        """Return where the window has a slot's own name, the first places."""
        own = (occurrence for occurrence in self.occurrences if occurrence.mask & slot.mask)
        return list(itertools.islice(own, _MOST_PLACES))

    def best_fit(self, slot: Slot) -> float:
        """Return the most that any occurrence can fit a slot."""
        shares = sum(share for number, _, share in slot.context if number in self.places)
        return shares * _NEAR_THERE / (_NEAR_THERE + 1) + _BEFORE + _AFTER

    def fit(self, slot: Slot, occurrence: Occurrence, *, turned_round: int = 0) -> float:
        """Return how well an occurrence fits a slot: 0 not at all, 1 and more as if copied.

        Args:
            slot: The place in the claim.
            occurrence: A name of the window.
            turned_round: Bit mask of the other name's keys, where the passage has both names the other way round;
                sides are then exchanged, and the other name says nothing.
        """
        key = slot.name.first, occurrence.first, turned_round
        fit = self.fits.get(key)
        if fit is None:
            fit = self.fits[key] = self._measure(slot, occurrence, turned_round)
        return fit

    def _measure(self, slot: Slot, occurrence: Occurrence, turned_round: int) -> float:
        first, last = occurrence.first, occurrence.last
        same_side, other_side = (_OTHER_SIDE, 1.0) if turned_round else (1.0, _OTHER_SIDE)
        if self._is_doer_of_one_text(slot, occurrence):
            same_side = other_side = 1.0
        fit = whole = 0.0
        for number, is_before, share in slot.context:
            if turned_round >> number & 1:
                continue
            whole += share
            best = 0.0
            for place in self.places.get(number, ()):
                if first <= place < last:
                    continue
                distance = first - place if place < first else place - last + 1
                side = same_side if (place < first) == is_before else other_side
                best = max(best, side * _NEAR_THERE / (_NEAR_THERE + distance))
            fit += share * best
        fit = fit / whole if whole else 0.0
        return fit if turned_round else fit + self._touching(slot.name, first, last)

    def _is_doer_of_one_text(self, slot: Slot, occurrence: Occurrence) -> bool:
        """Return whether a slot or its occurrence is the doer in a passive that the other text does not use."""
        if follows_by(self.claim, slot.name.first):
            return not any(follows_by(self.passage, other.first) for other in self.occurrences)
        if follows_by(self.passage, occurrence.first):
            return not any(follows_by(self.claim, other.name.first) for other in self.slots)
        return False

    def _touching(self, name: Entity, first: int, last: int) -> float:
        ours, theirs = self.claim.words, self.passage.words
        before = name.first and first and ours[name.first - 1] == theirs[first - 1]
        after = name.last < len(ours) and last < len(theirs) and ours[name.last] == theirs[last]
        return (_BEFORE if before else 0.0) + (_AFTER if after else 0.0)


def follows_by(read: Text, index: int) -> bool:
    """Return whether a word stands after "by", as the doer does in the passive."""
    return index > 0 and read.words[index - 1] == "by"


def read_scene(aligned: Aligned, found: Search) -> Scene:
    """Return the names of the claim beside those of the window.

    A fragment has no slots: the words round its name are its question's.
    """
    claim = aligned.claim
    places: dict[int, list[int]] = {}
    hits = found.hits[aligned.window.passage]
    for place in range(aligned.first, aligned.last):
        number = hits.get(place)
        if number is not None:
            places.setdefault(number if number >= 0 else -1 - number, []).append(place)
    masks = [_mask(aligned, range(name.first, name.last)) for name in aligned.names]
    named = 0
    for mask in masks:
        named |= mask
    slots = (
        tuple(itertools.islice(_slots(aligned, masks), _MOST_SLOTS))
        if claim.own_words == len(claim.text.words)
        else ()
    )
    return Scene(
        claim.text,
        aligned.passage_text,
        aligned.passage_text.keys[aligned.first : aligned.last],
        slots,
        tuple(_occurrences(aligned, places, named)) if slots else (),
        places,
    )


def _mask(aligned: Aligned, indexes: Iterable[int]) -> int:
    mask = 0
    for index in indexes:
        if aligned.claim_text.keys[index]:
            mask |= 1 << aligned.claim.numbers[aligned.claim_text.keys[index]]
    return mask


def _slots(aligned: Aligned, masks: Iterable[int]) -> Iterator[Slot]:
    read, claim = aligned.claim_text, aligned.claim
    for name, mask in zip(aligned.names, masks, strict=True):
        if (
            name.opens_sentence
            and name.last - name.first == 1
            and claim.rarity.of(read.keys[name.first]) < _RARE
        ):
            continue
        context: list[tuple[int, bool, float]] = []
        for index in range(max(name.first - _REACH, 0), min(name.last + _REACH, len(read.words))):
            if name.first <= index < name.last or not read.keys[index]:
                continue
            number = claim.numbers[read.keys[index]]
            distance = name.first - index if index < name.first else index - name.last + 1
            weight = claim.weights[number] * _NEAR_HERE / (_NEAR_HERE + distance)
            context.append((number, index < name.first, weight))
        whole = sum(weight for _, _, weight in context)
        if whole:
            yield Slot(name, mask, tuple((number, side, weight / whole) for number, side, weight in context))


def _occurrences(aligned: Aligned, places: dict[int, list[int]], named: int) -> Iterator[Occurrence]:
    number_at = {place: number for number, where in places.items() for place in where}
    seen: set[int] = set()
    for name in read_entities(aligned.passage_text, aligned.first, aligned.last):
        mask = 0
        for place in range(name.first, name.last):
            if place in number_at:
                mask |= 1 << number_at[place]
        seen.update(range(name.first, name.last))
        yield Occurrence(name.first, name.last, mask & named, not mask & named and _is_telling(aligned, name))
    for number, where in places.items():
        if named >> number & 1:
            yield from (
                Occurrence(place, place + 1, 1 << number, False) for place in where if place not in seen
            )


def _is_telling(aligned: Aligned, name: Entity) -> bool:
    """Return whether a name of the passage may be what a statement is about."""
    read = aligned.passage_text
    keys = [read.keys[index] for index in range(name.first, name.last) if read.keys[index]]
    if all(key in _OF_A_PLACE for key in keys):
        return False
    if len(keys) > 1:
        return True
    weight = aligned.claim.rarity.of(keys[0])
    is_opening = name.opens_sentence and name.last - name.first == 1
    return weight >= (aligned.claim.rarity.rarest if is_opening else _RARE)
