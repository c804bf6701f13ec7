"""The rules `negation` and `antonym`: claim and passage must say it with the same sign."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from citespan.evaluators.judges.lexical.alignment import Aligned
from citespan.evaluators.judges.lexical.finding import Finding
from citespan.evaluators.judges.lexical.signs import (
    FUNCTION_OPPOSITES,
    OPPOSITES,
    cost_pole,
    denials,
    negation_scopes,
    negative_keys,
)
from citespan.evaluators.judges.lexical.words import Text

__all__ = ["find_negations", "find_opposites"]

_NO_KEYS: frozenset[str] = frozenset()

_MOST_DENIED = 3
"""Content words after a negator that it denies."""

_CLOSE = 3
"""Words within which one word is said of the next."""

_EARSHOT = 8
"""Words within which an opposite in the passage belongs to a word that both have."""


def find_negations(aligned: Aligned) -> Iterator[Finding]:
    """Yield the first negation that only one side has."""
    claim, passage = aligned.claim_text, aligned.passage_text
    ours = negation_scopes(claim, 0, aligned.claim.own_words)
    theirs = negation_scopes(passage, aligned.first, aligned.last)
    for negator, reached in ours.items():
        if _is_denied_there(aligned, reached, theirs):
            continue
        met = [index for index in reached if index in aligned.there]
        if met:
            said = f'The claim says "{claim.quote(negator, met[0] + 1)}"; the passage says it without the negation.'
        else:
            said = f'The claim says "{claim.shown(negator)}"; nothing in the passage denies it so.'
        yield Finding(
            "negation",
            said,
            is_clash=bool(met) and met[0] in reached[:2],
            place=aligned.there[met[0]] if met else None,
        )
        return
    for negator, reached in theirs.items():
        if not reached or reached[0] not in aligned.here:
            continue
        met = [aligned.here[index] for index in reached[:_MOST_DENIED] if index in aligned.here]
        if _is_denied_here(aligned, met, ours):
            continue
        said = passage.quote(negator, reached[0] + 1)
        yield Finding(
            "negation",
            f'The passage says "{said}"; the claim says it without the negation.',
            is_clash=True,
            place=negator,
        )
        return


def _is_denied_there(aligned: Aligned, reached: Sequence[int], theirs: dict[int, list[int]]) -> bool:
    """Return whether the passage, too, denies what a negator of the claim reaches."""
    passage = aligned.passage_text
    reached = reached[:_MOST_DENIED]
    places = [aligned.there[index] for index in reached if index in aligned.there]
    if any(place in scope for place in places for scope in theirs.values()):
        return True
    if not places and theirs:
        return True
    if any(_is_near_denial(passage, place, aligned.first, aligned.last, aligned.here) for place in places):
        return True
    contrary = {other for index in reached for other in _opposites(aligned.claim_text, index)}
    return any(passage.keys[index] in contrary for index in range(aligned.first, aligned.last))


def _is_denied_here(aligned: Aligned, places: Sequence[int], ours: dict[int, list[int]]) -> bool:
    claim = aligned.claim_text
    if any(place in scope for place in places for scope in ours.values()):
        return True
    if any(_is_near_denial(claim, place, 0, len(claim.words), aligned.there) for place in places):
        return True
    contrary = {other for place in places for other in _opposites(claim, place)}
    return any(key in contrary for key in claim.keys)


def _is_near_denial(read: Text, place: int, first: int, last: int, shared: dict[int, int]) -> bool:
    return any(index not in shared for index in denials(read, max(place - 6, first), min(place + 4, last)))


def find_opposites(aligned: Aligned) -> Iterator[Finding]:
    """Yield the first pair of opposite words that stand among the same words."""
    costs = _opposite_costs(aligned)
    if costs is not None:
        yield costs
        return
    claim, passage = aligned.claim_text, aligned.passage_text
    keys_there = {passage.keys[index]: index for index in range(aligned.first, aligned.last)}
    words_there = {passage.words[index]: index for index in range(aligned.first, aligned.last)}
    for index, key in enumerate(claim.keys[: aligned.claim.own_words]):
        if key:
            if key in keys_there:
                displaced = _displaced(aligned, index, keys_there)
                if displaced is not None:
                    yield displaced
                    return
                continue
            opposites, places, here = _opposites(claim, index), keys_there, claim.keys
        else:
            word = claim.words[index]
            if word in words_there:
                continue
            opposites, places, here = FUNCTION_OPPOSITES.get(word, frozenset()), words_there, claim.words
        rival = next((places[other] for other in opposites if other in places and other not in here), None)
        if (
            rival is None
            or not _share_neighbours(aligned, index, rival)
            or _is_converse(aligned, index, rival)
        ):
            continue
        if _is_negated(claim, index) != _is_negated(passage, rival):
            continue
        said, claimed = passage.shown(rival), claim.shown(index)
        yield Finding(
            "antonym", f'The passage says "{said}"; the claim says "{claimed}".', is_clash=True, place=rival
        )
        return


def _opposites(read: Text, index: int) -> frozenset[str]:
    """Return the stems that say the opposite of a word."""
    key = read.keys[index]
    return OPPOSITES.get(key, _NO_KEYS).union(negative_keys(read.words[index], key)) if key else _NO_KEYS


def _displaced(aligned: Aligned, index: int, keys_there: dict[str, int]) -> Finding | None:
    """Return that the passage says a word's opposite of what the claim says it of, and the word of something else.

    "Closed on Mondays" for "open on Mondays and closed on Tuesdays": what follows the word in the claim follows
    the opposite in the passage.
    """
    claim, passage, there = aligned.claim_text, aligned.passage_text, aligned.there
    opposites = OPPOSITES.get(claim.keys[index], frozenset()) & keys_there.keys() - set(claim.keys)
    following = next(
        (i for i in range(index + 1, min(index + _CLOSE + 1, len(claim.words))) if claim.keys[i]), None
    )
    if not opposites or following not in there:
        return None
    before = range(max(there[following] - _CLOSE, aligned.first), there[following])
    if any(passage.keys[place] == claim.keys[index] for place in before):
        return None
    rival = next((place for place in before if passage.keys[place] in opposites), None)
    if rival is None or _is_negated(claim, index) != _is_negated(passage, rival):
        return None
    said = passage.quote(rival, there[following] + 1)
    claimed = claim.quote(index, following + 1)
    return Finding(
        "antonym", f'The passage says "{said}"; the claim says "{claimed}".', is_clash=True, place=rival
    )


def _opposite_costs(aligned: Aligned) -> Finding | None:
    ours, theirs = cost_pole(aligned.claim_text.text), cost_pole(aligned.quote)
    if ours is None or theirs is None or ours.name == theirs.name or not aligned.there:
        return None
    return Finding(
        "antonym", f'The passage says "{theirs.said}"; the claim says "{ours.said}".', is_clash=True
    )


def _is_negated(read: Text, index: int) -> bool:
    return bool(negation_scopes(read, max(index - 4, 0), index + 1))


def _is_converse(aligned: Aligned, index: int, rival: int) -> bool:
    """Return whether the sides are exchanged as well: "A is larger than B" for "B is smaller than A"."""
    there = aligned.there
    before = [there[near] for near in range(max(index - 5, 0), index) if near in there]
    after = [there[near] for near in range(index + 1, index + 6) if near in there]
    return bool(before and after) and max(after) < rival < min(before)


def _share_neighbours(aligned: Aligned, index: int, rival: int) -> bool:
    """Return whether a word near the claim's word stands near its opposite in the passage."""
    return any(
        abs(aligned.there[near] - rival) <= _EARSHOT
        for near in range(index - 5, index + 6)
        if near in aligned.there
    )
