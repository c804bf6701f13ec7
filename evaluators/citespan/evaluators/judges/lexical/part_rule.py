"""The rule `entity` for parts: a name must stand in the passage where it stands in the claim."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from citespan.evaluators.judges.lexical.alignment import Aligned
from citespan.evaluators.judges.lexical.finding import Finding
from citespan.evaluators.judges.lexical.signs import OPPOSITES
from citespan.evaluators.judges.lexical.slots import Occurrence, Scene, Slot, follows_by, read_scene
from citespan.evaluators.judges.lexical.windows import Search
from citespan.evaluators.judges.lexical.words import Text, stem_of

__all__ = ["find_parts"]

_LEAST_FIT = 0.5
"""How well another name must fit a place to be taken for what the passage says there."""

_REPLACED = 0.1
"""How much better it must fit than the claim's own name."""

_EXCHANGED = 0.25
"""How much better two names must fit each other's places than their own."""

_LISTING = frozenset(["and", "or"])
"""Words between names whose order says nothing."""

_SYMMETRIC = frozenset(
    stem_of(word) for word in ("marry", "meet", "play", "face", "border", "share", "join", "merge")
)
"""Predicates that say the same with their two names exchanged."""


def find_parts(aligned: Aligned, found: Search) -> Finding | None:
    """Return that two names of the claim have changed parts, or that another name has the part of one."""
    scene = read_scene(aligned, found)
    return _exchanged(scene) or _replaced(scene)


def _exchanged(scene: Scene) -> Finding | None:
    met = [(slot, own) for slot in scene.slots if (own := scene.having(slot))]
    for (one, places), (other, other_places) in itertools.combinations(met, 2):
        if one.mask & other.mask or _is_orderless(scene, one, other):
            continue
        pairs = [pair for pair in itertools.product(places, other_places) if pair[0] is not pair[1]]
        if not pairs:
            continue
        straight = max(_fit_both(scene, one, other, pair, pair) for pair in pairs)
        crossed = max(_fit_both(scene, one, other, pair, (pair[1], pair[0])) for pair in pairs)
        if crossed > straight + _EXCHANGED:
            shown = [scene.claim.quote(slot.name.first, slot.name.last) for slot in (one, other)]
            return Finding(
                "entity",
                f'The passage has "{shown[0]}" and "{shown[1]}" the other way round.',
                is_clash=True,
                place=min(pairs[0][0].first, pairs[0][1].first),
            )
    return None


def _is_orderless(scene: Scene, one: Slot, other: Slot) -> bool:
    """Return whether the order of two names of the claim says nothing.

    It does not in a list, nor with "married" between, nor where the passage says the opposite word ("larger" for
    "smaller"), which turns the names round.
    """
    between = range(one.name.last, other.name.first)
    words = {scene.claim.words[index] for index in between}
    keys = {scene.claim.keys[index] for index in between} - {""}
    opposites = {other for key in keys.difference(scene.passage_keys) for other in OPPOSITES.get(key, ())}
    if keys & _SYMMETRIC or not opposites.isdisjoint(scene.passage_keys):
        return True
    return not words or (bool(words & _LISTING) and not keys)


def _fit_both(
    scene: Scene,
    one: Slot,
    other: Slot,
    own: tuple[Occurrence, Occurrence],
    taken: tuple[Occurrence, Occurrence],
) -> float:
    """Return how well two slots are fitted by two occurrences, of their own names or of each other's."""
    masks = (other.mask, one.mask) if _is_turned(scene, one, other, own) else (0, 0)
    return scene.fit(one, taken[0], turned_round=masks[0]) + scene.fit(other, taken[1], turned_round=masks[1])


def _is_turned(scene: Scene, one: Slot, other: Slot, pair: tuple[Occurrence, Occurrence]) -> bool:
    """Return whether only one text says it in the passive: "bought by Acme" for "Acme bought"."""
    ours = _verbs_by(scene.claim, (one.name.first, other.name.first))
    theirs = _verbs_by(scene.passage, (pair[0].first, pair[1].first))
    if ours and not theirs:
        return not ours.isdisjoint(scene.passage_keys)
    return bool(theirs) and not ours and not theirs.isdisjoint(scene.claim.keys)


def _verbs_by(read: Text, names: Iterable[int]) -> set[str]:
    """Return the words before a "by" that stands before one of the names."""
    return {read.keys[name - 2] for name in names if name > 1 and follows_by(read, name)} - {""}


def _replaced(scene: Scene) -> Finding | None:
    rivals = [occurrence for occurrence in scene.occurrences if occurrence.is_rival]
    for slot in scene.slots:
        if not rivals or scene.best_fit(slot) <= _LEAST_FIT:
            continue
        own = max((scene.fit(slot, occurrence) for occurrence in scene.having(slot)), default=0.0)
        fit, rival = max(((scene.fit(slot, rival), rival) for rival in rivals), key=lambda pair: pair[0])
        if fit > max(_LEAST_FIT, own + _REPLACED):
            claimed = scene.claim.quote(slot.name.first, slot.name.last)
            said = scene.passage.quote(rival.first, rival.last)
            return Finding(
                "entity",
                f'The passage speaks of "{said}" here; the claim names "{claimed}".',
                is_partial=True,
                place=rival.first,
            )
    return None
