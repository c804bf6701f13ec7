"""Resolve markers to passages and attach the citations to claims."""

from __future__ import annotations

from collections.abc import Sequence

from citespan.evaluators.claims import Certainty, Claim, Marker, ResolvedCitation
from citespan.evaluators.options import CitationScope
from citespan.evaluators.passage_names import PassageNames, occur_as_names
from citespan.evaluators.sentences import split_sentences
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
    names = PassageNames(
        passages, by_position=not occur_as_names(passages, (label for m in markers for label in m.labels))
    )
    claims_of: dict[int, tuple[int, ...]] = {}
    for sentence in split_sentences(answer, markers):
        inside = tuple(c.index for c in claims if sentence.start <= c.start < sentence.end)
        claims_of |= {marker.start: inside for run in sentence.runs for marker in run.markers}
    found: list[ResolvedCitation] = []
    n = 0
    for marker in markers:
        for label in marker.labels:
            n += 1
            match = names.find(label)
            found += [
                ResolvedCitation(
                    n=n,
                    marker=marker.text,
                    start=marker.start,
                    end=marker.end,
                    label=label,
                    passage_id=passage_id,
                    certainty=match.certainty if match else Certainty.CERTAIN,
                    claims=claims_of.get(marker.start, ()),
                    reason=match.reason if match else "unknown_label",
                )
                for passage_id in (match.passage_ids if match else (None,))
            ]
    return tuple(found)
