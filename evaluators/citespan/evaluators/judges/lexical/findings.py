"""The named rules: what in one window speaks against the claim, and the words to tell a reviewer."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from citespan.evaluators.judges.lexical.alignment import Aligned
from citespan.evaluators.judges.lexical.entities import Entity, read_entities
from citespan.evaluators.judges.lexical.quantities import Quantity
from citespan.evaluators.judges.lexical.signs import (
    FUNCTION_OPPOSITES,
    OPPOSITES,
    cost_pole,
    denies,
    negation_scopes,
    negative_forms,
)
from citespan.evaluators.judges.lexical.strength import strong_words, weak_words
from citespan.evaluators.judges.lexical.windows import Search
from citespan.evaluators.judges.lexical.words import Text, stem_of

__all__ = ["Finding", "find_all"]

_EARSHOT = 8
"""Words within which a sign in the passage may belong to a word."""

_ALWAYS_STRONG = frozenset(
    [
        "always",
        "invariably",
        "constantly",
        "never",
        "all",
        "every",
        "everyone",
        "everybody",
        "everything",
        "entire",
        "only",
        "solely",
        "exclusively",
        "sole",
        "must",
        "guaranteed",
        "guarantees",
        "definitely",
        "certainly",
        "undoubtedly",
        "completely",
        "entirely",
        "totally",
        "absolutely",
        "none",
        "everywhere",
        "universally",
        "inevitably",
    ]
)
"""Strong words that need a strong word in the passage; the others only clash with a weak one."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing in which claim and passage differ."""

    rule: str
    """`number`, `negation`, `strengthening`, `qualifier`, `antonym` or `entity`."""

    reason: str
    """One sentence for the reviewer."""

    is_clash: bool = False
    """Whether the passage says something different, rather than less."""

    is_partial: bool = False
    """Whether the passage carries a weaker or narrower version."""


def find_all(aligned: Aligned, found: Search) -> list[Finding]:
    """Return what speaks against the claim in a window, the most telling first."""
    return [
        *_opposite_costs(aligned),
        *_numbers(aligned, found),
        *_negations(aligned),
        *_antonyms(aligned),
        *_strengthenings(aligned),
        *_entities(aligned, found),
        *_swapped_roles(aligned),
    ]


# Numbers


def _numbers(aligned: Aligned, found: Search) -> Iterator[Finding]:
    read = aligned.claim_text
    everywhere = [(p.text, q) for p in found.passages for q in p.quantities]
    nearby = [q for q in aligned.passage.quantities if aligned.first <= q.first < aligned.last]
    for quantity in aligned.claim.quantities:
        if not _is_checked(quantity):
            continue
        equal = [(text, other) for text, other in everywhere if _is_equal(quantity, other)]
        if not equal:
            yield _missing_number(aligned, quantity, nearby)
            continue
        in_window = [
            (text, other)
            for text, other in equal
            if text is aligned.passage_text and aligned.first <= other.first < aligned.last
        ]
        yield from _looser_number(read, quantity, in_window or equal)


def _is_checked(quantity: Quantity) -> bool:
    if quantity.kind in ("ordinal", "fraction"):
        return False
    return quantity.value != 1 or quantity.kind != "count" or quantity.written != "one"


def _is_equal(one: Quantity, other: Quantity) -> bool:
    if one.value is None or other.value is None:
        return one.value is other.value and one.written == other.written
    plain = ("count", "year", "code", "ordinal")
    if one.kind in plain or other.kind in plain:
        return _is_near(one.value, other.value, one)
    if one.kind != other.kind:
        return False
    return _is_near(one.amount or 0.0, other.amount or 0.0, one)


def _is_near(one: float, other: float, quantity: Quantity) -> bool:
    if one == other:
        return True
    if one == 0 or other == 0 or quantity.kind == "year":
        return False
    distance = abs(one - other) / max(abs(one), abs(other))
    if quantity.bound == "~":
        return distance <= 0.05
    if quantity.bound == ">":
        return 0 <= (other - one) / max(abs(one), abs(other)) <= 0.1
    digits = len(quantity.written.replace(",", "").replace(".", "").strip("0"))
    return distance <= 1e-9 or (digits >= 2 and one >= 1e4 and distance <= 0.5 / 10 ** (digits - 1))


def _missing_number(aligned: Aligned, quantity: Quantity, nearby: list[Quantity]) -> Finding:
    claimed = shown(aligned.claim_text, quantity)
    rivals = [
        other
        for other in nearby
        if other.value is not None
        and other.kind != "ordinal"
        and (other.kind == quantity.kind if quantity.kind != "count" else other.unit == quantity.unit != "")
        and other.first not in aligned.here
    ]
    if rivals:
        said = shown(aligned.passage_text, rivals[0])
        return Finding("number", f'The passage says "{said}"; the claim says "{claimed}".', is_clash=True)
    return Finding("number", f'The passage does not give the figure "{claimed}".')


def _looser_number(read: Text, quantity: Quantity, equal: list[tuple[Text, Quantity]]) -> Iterator[Finding]:
    if all(other.qualifier != quantity.qualifier for _, other in equal if other.kind == quantity.kind):
        same_kind = [(text, other) for text, other in equal if other.kind == quantity.kind]
        if same_kind:
            text, other = same_kind[0]
            yield Finding(
                "qualifier",
                f'The passage says "{shown(text, other)}"; the claim says "{shown(read, quantity)}".',
                is_partial=True,
            )
            return
    if quantity.bound == "=" and all(other.bound in ("<=", ">=", "<", ">") for _, other in equal):
        text, other = equal[0]
        yield Finding(
            "qualifier",
            f'The passage says "{_with_bound(text, other)}"; the claim says "{shown(read, quantity)}".',
            is_partial=True,
        )


def shown(read: Text, quantity: Quantity) -> str:
    """Return a quantity as its text writes it, with its sign or unit and the noun it counts."""
    start, end = read.starts[quantity.first], read.ends[quantity.last - 1]
    if start and read.text[start - 1] in "$€£¥":
        start -= 1
    if read.text[end : end + 1] == "%":
        end += 1
    elif quantity.kind == "count" and quantity.unit and quantity.last < len(read.words):
        end = read.ends[quantity.last]
    return read.text[start:end]


def _with_bound(read: Text, quantity: Quantity) -> str:
    first = max(quantity.first - 2, 0)
    return read.text[read.starts[first] : read.ends[quantity.last - 1]]


# Negation


def _negations(aligned: Aligned) -> Iterator[Finding]:
    claim, passage = aligned.claim_text, aligned.passage_text
    ours = negation_scopes(claim, 0, len(claim.words))
    theirs = negation_scopes(passage, aligned.first, aligned.last)
    for negator, reached in ours.items():
        if _is_denied_there(aligned, reached):
            continue
        word = claim.shown(negator)
        about = claim.shown(reached[0]) if reached else word
        yield Finding(
            "negation",
            f'The claim says "{word}" of "{about}"; the passage says so without a negation.'
            if reached and any(index in aligned.there for index in reached)
            else f'The claim says "{word}"; nothing in the passage denies it so.',
            is_clash=bool(reached) and any(index in aligned.there for index in reached[:2]),
        )
        return
    for negator, reached in theirs.items():
        met = [index for index in reached[:3] if index in aligned.here]
        if not met or met[0] != reached[0]:
            continue
        if _is_denied_here(aligned, [aligned.here[index] for index in met]):
            continue
        yield Finding(
            "negation",
            f'The passage says "{passage.quote(negator, met[0] + 1)}"; the claim says it without the negation.',
            is_clash=True,
        )
        return


def _is_denied_there(aligned: Aligned, reached: list[int]) -> bool:
    """Return whether the passage, too, denies what a negator of the claim reaches."""
    passage = aligned.passage_text
    places = [aligned.there[index] for index in reached if index in aligned.there]
    for place in places:
        low, high = max(place - _EARSHOT, aligned.first), min(place + _EARSHOT, aligned.last)
        if denies(passage, low, high, shared=aligned.here):
            return True
    if not places and denies(passage, aligned.first, aligned.last, shared=aligned.here):
        return True
    opposite = {
        stem_of(form) for index in reached for form in negative_forms(aligned.claim_text.words[index])
    }
    opposite |= {other for index in reached for other in OPPOSITES.get(aligned.claim_text.keys[index], ())}
    return any(passage.keys[index] in opposite for index in range(aligned.first, aligned.last))


def _is_denied_here(aligned: Aligned, places: list[int]) -> bool:
    claim = aligned.claim_text
    if any(
        denies(claim, max(place - _EARSHOT, 0), min(place + _EARSHOT, len(claim.words)), shared=aligned.there)
        for place in places
    ):
        return True
    opposite = {stem_of(form) for place in places for form in negative_forms(claim.words[place])}
    return any(key in opposite for key in claim.keys)


# Opposites


def _opposite_costs(aligned: Aligned) -> Iterator[Finding]:
    ours, theirs = cost_pole(aligned.claim_text.text), cost_pole(aligned.quote)
    if ours is None or theirs is None or ours[0] == theirs[0] or not aligned.there:
        return
    said = aligned.quote[theirs[1].start() : theirs[1].end()]
    claimed = aligned.claim_text.text[ours[1].start() : ours[1].end()]
    yield Finding("antonym", f'The passage says "{said}"; the claim says "{claimed}".', is_clash=True)


def _antonyms(aligned: Aligned) -> Iterator[Finding]:
    claim, passage = aligned.claim_text, aligned.passage_text
    there = {passage.keys[index]: index for index in range(aligned.first, aligned.last)}
    words_there = {passage.words[index]: index for index in range(aligned.first, aligned.last)}
    keys_here = set(claim.keys)
    for index, key in enumerate(claim.keys):
        if index in aligned.there and passage.keys[aligned.there[index]] == key:
            continue
        if key:
            rival = next(
                (there[o] for o in OPPOSITES.get(key, ()) if o in there and o not in keys_here), None
            )
        else:
            word = claim.words[index]
            opposites = FUNCTION_OPPOSITES.get(word, ())
            if word in words_there:
                continue
            rival = next(
                (words_there[o] for o in opposites if o in words_there and o not in claim.words), None
            )
        if rival is None or not _share_neighbours(aligned, index, rival):
            continue
        if _is_negated_near(claim, index) != _is_negated_near(passage, rival):
            continue
        yield Finding(
            "antonym",
            f'The passage says "{passage.shown(rival)}"; the claim says "{claim.shown(index)}".',
            is_clash=True,
        )
        return


def _is_negated_near(read: Text, index: int) -> bool:
    return bool(negation_scopes(read, max(index - 4, 0), index + 1))


def _share_neighbours(aligned: Aligned, index: int, rival: int) -> bool:
    """Return whether a word near the claim's word stands near its opposite in the passage."""
    return any(
        abs(aligned.there[near] - rival) <= _EARSHOT
        for near in range(index - 5, index + 6)
        if near in aligned.there
    )


# Strength


def _strengthenings(aligned: Aligned) -> Iterator[Finding]:
    claim, passage = aligned.claim_text, aligned.passage_text
    for index, family in strong_words(claim, 0, len(claim.words)):
        strong_there = strong_words(passage, aligned.first, aligned.last)
        if any(other.name == family.name for _, other in strong_there):
            continue
        weak = weak_words(passage, aligned.first, aligned.last, family)
        word = claim.words[index]
        if not weak and word not in _ALWAYS_STRONG:
            continue
        said = (
            f'the passage only says "{passage.shown(weak[0])}"' if weak else "the passage does not go so far"
        )
        yield Finding("strengthening", f'The claim says "{claim.shown(index)}"; {said}.', is_partial=True)
        return


# Names


def _entities(aligned: Aligned, found: Search) -> Iterator[Finding]:
    read = aligned.claim_text
    for entity in read_entities(read):
        if not _is_named(entity, aligned, found):
            name = read.quote(entity.first, entity.last)
            yield Finding("entity", f'The claim names "{name}"; the passage does not.')
            return


def _is_named(entity: Entity, aligned: Aligned, found: Search) -> bool:
    read = aligned.claim_text
    numbers = {key: number for number, key in enumerate(aligned.claim.keys)}
    keys = [read.keys[index] for index in range(entity.first, entity.last) if read.keys[index]]
    if not keys or (entity.is_at_start and entity.last - entity.first == 1):
        return True
    return any(found.loose >> numbers[key] & 1 for key in keys)


_SYMMETRIC = frozenset(
    stem_of(word)
    for word in ["marry", "meet", "play", "face", "border", "share", "join", "merge", "agree", "and"]
)


def _swapped_roles(aligned: Aligned) -> Iterator[Finding]:
    """Find two names whose order round the same predicate is turned round, the voice being the same."""
    claim, passage = aligned.claim_text, aligned.passage_text
    names = [
        entity
        for entity in read_entities(claim)
        if any(i in aligned.there for i in range(entity.first, entity.last))
    ]
    for one, other in itertools.pairwise(names):
        a = _place(aligned, one)
        b = _place(aligned, other)
        if a is None or b is None:
            continue
        middle = [
            index
            for index in range(one.last, other.first)
            if index in aligned.there and b < aligned.there[index] < a and claim.keys[index] not in _SYMMETRIC
        ]
        if not middle:
            continue
        if "and" in claim.words[one.last : other.first] or _voice(claim, one.last, other.first) != _voice(
            passage, b, a
        ):
            continue
        yield Finding(
            "entity",
            f'In the claim "{claim.quote(one.first, one.last)}" comes before "{claim.shown(middle[0])}" and '
            f'"{claim.quote(other.first, other.last)}" after it; in the passage it is the other way round.',
            is_clash=True,
        )
        return


def _place(aligned: Aligned, entity: Entity) -> int | None:
    return next((aligned.there[i] for i in range(entity.first, entity.last) if i in aligned.there), None)


def _voice(read: Text, first: int, last: int) -> bool:
    """Return whether the words between two names put the doer second (`was acquired by`)."""
    return "by" in read.words[first:last]
