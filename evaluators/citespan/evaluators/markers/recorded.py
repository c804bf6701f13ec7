"""Bring the citations recorded beside an answer together with the markers in its text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from citespan.evaluators.claims import Certainty, Marker
from citespan.evaluators.markers.grammar import MARKER_FORMS, fold_text
from citespan.evaluators.markers.passage_names import NameMatch, PassageNames
from citespan.evaluators.markers.runs import group_markers
from citespan.tracer.citations import Citation

__all__ = ["RECORDED_LIST", "merge_recorded", "name_of"]

RECORDED_LIST = "recorded_list"
"""Origin of a marker in the text whose number is a place in a list that the provider recorded."""

_ADJOINING = re.compile(r"[\s.,;:!?。，！？；：)\]）】\"”*_]{0,8}")
_PROSE_FORMS = ("round", "braces", "ref_word", "excerpt", "tag", "grounded_span")
"""Forms whose text is not plainly a marker where only a record says so."""

_PROVIDER_FORMS = ("dagger", "private_use", "turn", "special_token")
"""Forms that a provider writes and explains in its record."""

_MARGIN = " \t\r\n.,;:!?。，"


def merge_recorded(
    answer: str, markers: Sequence[Marker], citations: Sequence[Citation], names: PassageNames
) -> tuple[Marker, ...]:
    """Return the markers with the recorded citations added, in order.

    A recorded range beside or over a marker that names the same passage is the same citation: the marker
    learns what it covers. One that covers only a marker acts as that marker. Citations without a range back
    the markers of the text; they stand for themselves, attached to no claim, only where the text has none.
    """
    found = list(markers)
    for citation in dict.fromkeys(replace(citation, quote=None) for citation in citations):
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
    place = _marker_place(answer, start, end) or _foreign_marker(answer, found, start, end, names)
    if place is None:
        found.append(Marker("", start, end, (citation.passage_id,), citation.origin))
        return
    left, right = place
    inside = [n for n, other in enumerate(found) if other.text and other.start < right and left < other.end]
    if any(_is_certain(found[n], names) for n in inside):
        found.append(Marker("", start, end, (citation.passage_id,), citation.origin))
        return
    labels = [label for n in inside if found[n].origin == citation.origin for label in found[n].labels]
    for n in reversed(inside):
        del found[n]
    covers = None if (start, end) == place or _marker_place(answer, start, end) else (start, end)
    marker = Marker(
        answer[left:right], left, right, (*labels, citation.passage_id), citation.origin, covers=covers
    )
    found.append(marker)


def _marker_place(answer: str, start: int, end: int) -> tuple[int, int] | None:
    """Return where the marker stands if the range covers a marker and nothing else but stops and spaces."""
    text = answer[start:end]
    left = start + len(text) - len(text.lstrip(_MARGIN))
    right = start + len(text.rstrip(_MARGIN))
    return (left, right) if left < right and _is_marker(answer[left:right]) else None


def _foreign_marker(
    answer: str, found: Sequence[Marker], start: int, end: int, names: PassageNames
) -> tuple[int, int] | None:
    """Return where a provider's own marker stands in the range, if it is the only one and its label says nothing."""
    inside = [marker for marker in found if marker.text and marker.start < end and start < marker.end]
    if len(inside) != 1 or _is_certain(inside[0], names):
        return None
    text = fold_text(inside[0].text)
    is_provider = any(form.pattern.fullmatch(text) for form in MARKER_FORMS if form.name in _PROVIDER_FORMS)
    return (inside[0].start, inside[0].end) if is_provider else None


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
