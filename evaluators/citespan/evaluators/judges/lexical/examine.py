"""Examine one claim against its passages: search, align, apply the rules, describe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from citespan.evaluators.judges.lexical.alignment import Aligned, align
from citespan.evaluators.judges.lexical.features import describe
from citespan.evaluators.judges.lexical.finding import Finding
from citespan.evaluators.judges.lexical.findings import find_all
from citespan.evaluators.judges.lexical.rarity import Rarity
from citespan.evaluators.judges.lexical.readings import PassageReading, read_claim
from citespan.evaluators.judges.lexical.windows import Search, Window, search
from citespan.evaluators.judges.lexical.words import key_of, read_words

__all__ = ["Examination", "examine"]

_CLOSE = 0.85
"""Share of the best sentence's coverage from which another sentence is examined too."""

_WIDER = 0.1
"""Coverage that several sentences must add before they are read as one."""

_MOST_SENTENCES = 4
"""Single sentences examined, at most."""


@dataclass(frozen=True, slots=True)
class Examination:
    """What was found of one claim in its passages."""

    found: Search
    """The search."""

    aligned: Aligned
    """The claim beside the window that speaks least against it."""

    findings: tuple[Finding, ...]
    """What there speaks against it, the most telling first."""

    features: Mapping[str, float]
    """What the model weighs."""


def examine(
    claim: str, passages: Sequence[PassageReading], question: str | None, rarity: Rarity
) -> Examination | None:
    """Return what the passages, read together, say of `claim`; `None` if they share no word with it."""
    read = read_claim(claim, rarity, question=question)
    found = search(read, passages)
    context = frozenset(key for word in read_words(question or "").words if (key := key_of(word)))
    weighed = [
        (aligned, find_all(aligned, found, context))
        for aligned in (align(found, window) for window in _candidates(found))
    ]
    if not weighed:
        return None
    aligned, findings = min(weighed, key=lambda pair: (len(pair[1]), -pair[0].window.coverage))
    return Examination(found, aligned, tuple(findings), describe(found, aligned, findings, context))


def _candidates(found: Search) -> list[Window]:
    """Return the windows worth a closer look: the best sentences, or the best run where one is not enough."""
    if not found.singles:
        return []
    best = found.singles[0].coverage
    widest = found.best[2]
    if widest is not None and widest.coverage > best + _WIDER:
        return [widest]
    return [window for window in found.singles[:_MOST_SENTENCES] if window.coverage >= _CLOSE * best]
