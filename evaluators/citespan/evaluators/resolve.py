"""Resolve markers to passages and attach the citations to claims."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from citespan.evaluators.attachment import Attached, attach
from citespan.evaluators.claims import Certainty, Claim, Marker, ResolvedCitation
from citespan.evaluators.options import CitationScope
from citespan.evaluators.passage_names import PassageNames, ids_occur
from citespan.evaluators.recorded_citations import name_of
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
    names = PassageNames(passages, by_position=not ids_occur(passages, markers))
    attached = attach(answer, markers, claims)
    found: list[ResolvedCitation] = []
    n = 0
    for marker in markers:
        for label in dict.fromkeys(marker.labels):
            n += 1
            candidates = _resolve_one(marker, label, names, lost=passages_lost > 0)
            found += [_placed(replace(citation, n=n), attached[marker], scope) for citation in candidates]
    return tuple(found)


def _resolve_one(
    marker: Marker, label: str, names: PassageNames, *, lost: bool
) -> Iterator[ResolvedCitation]:
    """Yield the citation, or each candidate of an ambiguous one; not yet numbered or attached."""
    match = name_of(marker, label, names)
    dangling = ResolvedCitation(
        n=0,
        marker=marker.text or label,
        start=marker.start,
        end=marker.end,
        label=label,
        passage_id=None,
        certainty=Certainty.CERTAIN,
        claims=(),
    )
    if match is None:
        yield replace(dangling, reason="passage_lost" if lost else _why_unknown(marker, label, names))
        return
    for passage_id in match.passage_ids:
        yield replace(dangling, passage_id=passage_id, certainty=match.certainty, reason=match.reason)


def _why_unknown(marker: Marker, label: str, names: PassageNames) -> str:
    is_index = _INDEX.fullmatch(label) is not None and marker.origin != "marker"
    return "out_of_range" if is_index or names.is_out_of_range(label) else "unknown_label"


def _placed(citation: ResolvedCitation, attached: Attached, scope: CitationScope) -> ResolvedCitation:
    claims = attached.claims
    if scope is CitationScope.PARAGRAPH:
        claims = tuple(sorted({*claims, *attached.paragraph_claims}))
    return replace(citation, claims=claims, paragraph_claims=attached.paragraph_claims)
