"""Resolve markers to passages and attach the citations to claims."""

from __future__ import annotations

from collections.abc import Sequence

from citespan.evaluators.claims import Certainty, Claim, Marker, ResolvedCitation
from citespan.evaluators.options import CitationScope
from citespan.tracer.passages import Passage

__all__ = ["resolve"]


def resolve(
    answer: str,
    markers: Sequence[Marker],
    claims: Sequence[Claim],
    passages: Sequence[Passage],
    *,
    scope: CitationScope = CitationScope.SENTENCE,
    passages_lost: int = 0,
) -> tuple[ResolvedCitation, ...]:
    """Return every citation in order of appearance, resolved and attached."""
    by_label = {passage.label or passage.id: passage.id for passage in passages}
    by_label |= {str(n): p.id for n, p in enumerate(passages, 1) if p.label is None}
    found: list[ResolvedCitation] = []
    for marker in markers:
        before = [claim.index for claim in claims if claim.start < marker.start]
        for label in marker.labels:
            passage_id = by_label.get(label)
            found.append(
                ResolvedCitation(
                    n=len(found) + 1,
                    marker=marker.text,
                    start=marker.start,
                    end=marker.end,
                    label=label,
                    passage_id=passage_id,
                    certainty=Certainty.CERTAIN,
                    claims=tuple(before[-1:]),
                    reason=None if passage_id else "unknown_label",
                )
            )
    return tuple(found)
