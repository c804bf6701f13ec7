"""The rule `strengthening`: a claim may not go further than its passage."""

from __future__ import annotations

from collections.abc import Iterator

from citespan.evaluators.judges.lexical.alignment import Aligned
from citespan.evaluators.judges.lexical.finding import Finding
from citespan.evaluators.judges.lexical.strength import ABSOLUTE, STRENGTHS, Strength
from citespan.evaluators.judges.lexical.words import Text

__all__ = ["find_strengthenings"]


_IDIOMS = frozenset(
    [
        ("all", "over"),
        ("all", "the"),
        ("all", "around"),
        ("at", "all"),
        ("after", "all"),
        ("and", "everything"),
        ("all", "i"),
        ("all", "we"),
    ]
)
"""Pairs in which a strong word says nothing of how far a statement goes."""

_BEFORE = 3
"""Words before a verb in which its "may" or "often" stands."""


def find_strengthenings(aligned: Aligned) -> Iterator[Finding]:
    """Yield the first word by which the claim goes further than the window.

    An absolute word (`always`, `never`, `all` ...) needs one of its family in the passage. Any other strong word
    (`will`) clashes only with a weak one (`may`) right before the same verb.
    """
    claim, passage = aligned.claim_text, aligned.passage_text
    for index, word in enumerate(claim.words[: aligned.claim.own_words]):
        family = STRENGTHS.get(word)
        if family is None or _is_softened(claim, index):
            continue
        if any(passage.words[other] in family.strong for other in range(aligned.first, aligned.last)):
            continue
        weak = _weak_word(aligned, index, family)
        if weak is None and word not in ABSOLUTE:
            continue
        said = "does not go so far" if weak is None else f'only says "{passage.shown(weak)}"'
        reason = f'The claim says "{claim.shown(index)}"; the passage {said}.'
        yield Finding("strengthening", reason, is_partial=True, place=weak)
        return


def _weak_word(aligned: Aligned, index: int, family: Strength) -> int | None:
    """Return the weak word of the family that the passage has before what the claim's word stands before."""
    claim, passage = aligned.claim_text, aligned.passage_text
    spoken_of = next(
        (i for i in range(index + 1, min(index + 1 + _BEFORE, len(claim.words))) if claim.keys[i]), None
    )
    place = aligned.there.get(spoken_of) if spoken_of is not None else None
    if place is None:
        return None
    before = range(max(place - _BEFORE, aligned.first), place)
    return next((other for other in before if passage.words[other] in family.weak), None)


def _is_softened(read: Text, index: int) -> bool:
    """Return whether a negator takes the strength away, as in "not always", or the word counts ("only 5")."""
    before = read.words[max(index - 2, 0) : index]
    if read.words[index] != "never" and any(
        word in ("not", "no") or word.endswith(("n't", "n’t")) for word in before
    ):
        return True
    pair = tuple(read.words[max(index - 1, 0) : index + 2])
    if not _IDIOMS.isdisjoint([pair[:2], pair[-2:]]):
        return True
    return read.words[index] == "only" and index + 1 < len(read.words) and read.keys[index + 1][:1] == "#"
