"""Bring the citations recorded beside an answer together with the markers in its text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from citespan.evaluators.claims import Certainty, Marker
from citespan.evaluators.marker_grammar import MARKER_FORMS, fold_text
from citespan.evaluators.marker_runs import group_markers
from citespan.evaluators.passage_names import NameMatch, PassageNames
from citespan.tracer.citations import Citation

__all__ = ["merge_recorded", "name_of"]

_ADJOINING = re.compile(r"[\s.,;:!?。，！？；：)\]）】\"”*_]{0,8}")
_PROSE_FORMS = ("round", "braces", "ref_word", "excerpt", "tag", "grounded_span")
"""Forms whose text is not plainly a marker where only a record says so."""


def merge_recorded(
    answer: str, markers: Sequence[Marker], citations: Sequence[Citation], names: PassageNames
) -> tuple[Marker, ...]:
    """Return the markers with the recorded citations added, in order.

    A recorded range beside or over a marker that names the same passage is the same citation: the marker
    learns what it covers. One that covers only a marker acts as that marker. Citations without a range back
    the markers of the text; they stand for themselves, attached to no claim, only where the text has none.
    """
    found = list(markers)
    for citation in citations:
        if citation.start is not None and citation.end is not None:
            start, end = max(0, citation.start), min(len(answer), citation.end)
            _merge_one(answer, found, replace(citation, start=start, end=max(start, end)), names)
    if not markers:
        found += [
            Marker("", 0, 0, (citation.passage_id,), citation.origin, covers=(0, 0))
            for citation in citations
            if citation.start is None
        ]
    return tuple(sorted(found, key=lambda marker: (marker.start, marker.end)))


def name_of(marker: Marker, label: str, names: PassageNames) -> NameMatch | None:
    """Return the passages that one label of a marker names; a record names ids, text names labels."""
    return names.find(label) if marker.origin == "marker" else names.find_id(label)


def _merge_one(answer: str, found: list[Marker], citation: Citation, names: PassageNames) -> None:
    start, end = citation.start or 0, citation.end or 0
    same = next(_same_place(answer, found, citation, names), None)
    if same is not None:
        found[same] = _confirmed(found[same], citation, names)
        return
    text = answer[start:end]
    if not _is_marker(text):
        found.append(Marker("", start, end, (citation.passage_id,), citation.origin))
        return
    left = len(text) - len(text.lstrip())
    marker = Marker(
        text.strip(), start + left, start + len(text.rstrip()), (citation.passage_id,), citation.origin
    )
    inside = [n for n, other in enumerate(found) if other.text and other.start < end and start < other.end]
    if any(_is_certain(found[n], names) for n in inside):
        found.append(replace(marker, text=""))
        return
    for n in reversed(inside):
        other = found.pop(n)
        if other.origin == citation.origin:
            marker = replace(marker, labels=(*other.labels, *marker.labels))
    found.append(marker)


def _same_place(
    answer: str, found: Sequence[Marker], citation: Citation, names: PassageNames
) -> Iterator[int]:
    """Yield the numbers of the text's markers over or right behind the range that name its passage."""
    start, end = citation.start or 0, citation.end or 0
    near = [marker for marker in found if marker.text and marker.end >= start and marker.start <= end + 200]
    run_start = {marker: run.start for run in group_markers(answer, near) for marker in run.markers}
    for n, marker in enumerate(found):
        if marker in run_start and _names(marker, citation.passage_id, names):
            is_over = marker.start < end and start < marker.end
            if is_over or (run_start[marker] >= end and _ADJOINING.fullmatch(answer, end, run_start[marker])):
                yield n


def _names(marker: Marker, passage_id: str, names: PassageNames) -> bool:
    matches = [name_of(marker, label, names) for label in marker.labels]
    return any(match is not None and passage_id in match.passage_ids for match in matches)


def _confirmed(marker: Marker, citation: Citation, names: PassageNames) -> Marker:
    """Return the marker with what the record adds: the words it covers, and which of several passages is meant."""
    start, end = citation.start or 0, citation.end or 0
    if start < marker.start or end > marker.end:
        covers = marker.covers or (start, end)
        marker = replace(marker, covers=(min(start, covers[0]), max(end, covers[1])))
    if len(marker.labels) == 1 and not _is_certain(marker, names):
        marker = replace(marker, labels=(citation.passage_id,), origin=citation.origin)
    return marker


def _is_certain(marker: Marker, names: PassageNames) -> bool:
    matches = [name_of(marker, label, names) for label in marker.labels]
    return bool(matches) and all(m is not None and m.certainty is Certainty.CERTAIN for m in matches)


def _is_marker(text: str) -> bool:
    """Return whether text that a record covers is a marker and nothing else."""
    folded = fold_text(text).strip()
    if folded.startswith("(") and folded.endswith(")"):
        folded = folded[1:-1].strip()
    return any(
        form.pattern.fullmatch(folded) is not None for form in MARKER_FORMS if form.name not in _PROSE_FORMS
    )
