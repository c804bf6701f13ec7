"""Resolve markers to passages and attach the citations to claims."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from citespan.evaluators.claims import Certainty, Claim, Marker, ResolvedCitation
from citespan.evaluators.markers.passage_names import PassageNames, ids_occur
from citespan.evaluators.markers.recorded import RECORDED_LIST, name_of
from citespan.evaluators.options import CitationScope
from citespan.evaluators.resolve.attachment import attach
from citespan.tracer.passages import Passage

__all__ = ["resolve"]

_INDEX = re.compile(r"(?:.*:)?-?\d+")
"""A recorded target that is an index into a provider's list: `groundingChunkIndices:4`."""


def resolve(
    answer: str,
    markers: Sequence[Marker],
    claims: Sequence[Claim],
    passages: Sequence[Passage],
    *,
    scope: CitationScope = CitationScope.SENTENCE,
    passages_lost: int = 0,
) -> tuple[ResolvedCitation, ...]:
    """Return every citation in order of appearance, resolved and attached.

    Candidates of an ambiguous citation share its number. A citation that names no passage dangles with the
    reason `unknown_label` or `out_of_range`, or `passage_lost` where passages are known to be missing.

    Args:
        answer: The answer as recorded.
        markers: Its markers, from `find_markers`.
        claims: Its claims, from `decompose`.
        passages: The run's passages, in the order shown.
        scope: Whether a paragraph-final marker covers the paragraph's earlier uncited claims.
        passages_lost: How many passages the run had that were not recorded.
    """
    has_list = any(marker.origin == RECORDED_LIST for marker in markers)
    names = PassageNames(passages, by_position=not has_list and not ids_occur(passages, markers))
    found: list[ResolvedCitation] = []
    n = 0
    for marker, attached in zip(markers, attach(answer, markers, claims), strict=True):
        covers = attached.claims
        if scope is CitationScope.PARAGRAPH:
            covers = tuple(sorted({*covers, *attached.paragraph_claims}))
        for label in dict.fromkeys(marker.labels):
            n += 1
            for target in _targets(marker, label, names, lost=passages_lost > 0, has_list=has_list):
                citation = ResolvedCitation(
                    n=n,
                    marker=marker.text or label,
                    start=marker.start,
                    end=marker.end,
                    label=label,
                    passage_id=target.passage_id,
                    certainty=target.certainty,
                    claims=covers,
                    reason=target.reason,
                    paragraph_claims=attached.paragraph_claims,
                )
                found.append(citation)
    return tuple(found)


class _Target(NamedTuple):
    """What one label names, or why it names nothing."""

    passage_id: str | None
    certainty: Certainty
    reason: str | None


def _targets(marker: Marker, label: str, names: PassageNames, *, lost: bool, has_list: bool) -> list[_Target]:
    """Return the passage that a label names, each candidate of an ambiguous one, or why it dangles."""
    match = name_of(marker, label, names)
    if match is not None:
        return [_Target(passage_id, match.certainty, match.reason) for passage_id in match.passage_ids]
    is_index = (has_list or marker.origin != "marker") and _INDEX.fullmatch(label) is not None
    reason = "out_of_range" if is_index or names.is_out_of_range(label) else "unknown_label"
    return [_Target(None, Certainty.CERTAIN, "passage_lost" if lost else reason)]
