"""The rule `entity` for presence: every name of a claim must be in the passage, where it speaks of the same."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping

from citespan.evaluators.judges.lexical.alignment import Aligned
from citespan.evaluators.judges.lexical.entities import Entity, is_abbreviated
from citespan.evaluators.judges.lexical.finding import Finding
from citespan.evaluators.judges.lexical.windows import Search
from citespan.evaluators.judges.lexical.words import Text, stem_of

__all__ = ["find_names", "place_names"]

_ROUND = 7
"""Words to each side of a name that say what the claim says of it."""

_TOPIC = 2
"""Sentences with a name from which it is what the passage is about."""

_RARE = 4.5
"""Weight from which a lone capitalised word is a name, not a common word in a title."""

_BESIDE = 3
"""Words between a name and what is said of it, half of what counts as near."""


def find_names(aligned: Aligned, found: Search, context: Container[str] = frozenset()) -> Iterator[Finding]:
    """Yield the first name that the passage lacks, or has elsewhere.

    Args:
        aligned: The claim beside a window.
        found: The search that the window came from.
        context: Keys of the question: a name that the asker brought in need not be in the passage.
    """
    for name in aligned.names:
        finding = _judge_name(aligned, found, name, context)
        if finding is not None:
            yield finding
            return


def _judge_name(aligned: Aligned, found: Search, name: Entity, context: Container[str]) -> Finding | None:
    read = aligned.claim_text
    words = [index for index in range(name.first, name.last) if read.keys[index]]
    if not words or any(read.keys[index] in context for index in words):
        return None
    if len(words) == 1 and _is_common(aligned, name, words[0]):
        return None
    shown = read.quote(name.first, name.last)
    numbers = aligned.claim.numbers
    known = [bool(found.loose >> numbers[read.keys[index]] & 1) for index in words]
    if not known[-1] and 2 * sum(known) <= len(known):
        if is_abbreviated(read, name) or any(is_abbreviated(p.text, name, shown) for p in found.passages):
            return None
        return Finding("entity", f'The claim names "{shown}"; the passage does not.')
    if any(known) and _is_misplaced(found, name):
        return Finding("entity", f'The passage names "{shown}", but not where it speaks of this.')
    return None


def _is_common(aligned: Aligned, name: Entity, index: int) -> bool:
    """Return whether a lone capitalised word is a common word, or opens a sentence where any word is capitalised."""
    if aligned.claim.weight_of(aligned.claim_text.keys[index]) < _RARE:
        return True
    return name.opens_sentence and not _is_name_there(aligned, aligned.claim_text.words[index])


def place_names(aligned: Aligned, found: Search) -> list[str]:
    """Return where each name of the claim is: `bound` to its neighbours, `far` from them, `away` or `absent`."""
    read, there, keys_there = aligned.claim_text, aligned.there, aligned.passage_text.keys
    numbers = aligned.claim.numbers
    places: list[str] = []
    for name in aligned.names:
        words = [index for index in range(name.first, name.last) if read.keys[index]]
        if not words or (name.opens_sentence and len(words) == 1 and name.first):
            continue
        if not any(found.loose >> numbers[read.keys[index]] & 1 for index in words):
            places.append("absent")
        elif not any(index in there for index in words):
            places.append("away")
        else:
            keys = {read.keys[index] for index in words} | {keys_there[there[i]] for i in words if i in there}
            at = [index for index in range(aligned.first, aligned.last) if keys_there[index] in keys]
            round_it = range(max(name.first - _BESIDE * 2, 0), min(name.last + _BESIDE * 2, len(read.words)))
            beside = [there[i] for i in round_it if i in there and not name.first <= i < name.last]
            near = any(abs(one - other) <= 2 * _BESIDE for one in at for other in beside)
            places.append("bound" if near else "far")
    return places


def _is_misplaced(found: Search, name: Entity) -> bool:
    """Return whether the passages speak of what stands round a name, but not with that name.

    A name that opens a passage or comes up again is what the passage is about, so that its
    sentences need not repeat it.
    """
    read = found.claim.text
    numbers = found.claim.numbers
    named = _mask(read, numbers, range(name.first, name.last))
    first, last = max(name.first - _ROUND, 0), min(name.last + _ROUND, len(read.words))
    beside = _mask(read, numbers, range(first, last)) & ~named
    most = most_named = 0.0
    places: list[int] = []
    for masks in found.masks:
        for sentence, (_, loose) in masks.items():
            share = found.coverage(loose & beside, loose & beside)
            most = max(most, share)
            if loose & named:
                most_named = max(most_named, share)
                places.append(sentence)
    is_topic = bool(places) and (min(places) == 0 or len(places) >= _TOPIC)
    return bool(places) and not is_topic and most_named < most / 2


def _mask(read: Text, numbers: Mapping[str, int], indexes: Iterable[int]) -> int:
    mask = 0
    for index in indexes:
        if read.keys[index]:
            mask |= 1 << numbers[read.keys[index]]
    return mask


def _is_name_there(aligned: Aligned, word: str) -> bool:
    """Return whether the passage writes `word` with a capital inside a sentence."""
    passage = aligned.passage
    text = passage.text
    starts = {sentence.first for sentence in text.sentences}
    places = passage.index.get(stem_of(word), ())
    return any(place not in starts and text.shown(place)[0].isupper() for place in places[:20])
