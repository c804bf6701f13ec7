"""Find the places in an answer that cite."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from citespan.evaluators.claims import Marker
from citespan.evaluators.layout import read_layout
from citespan.evaluators.marker_filter import Candidate, select_citations
from citespan.evaluators.marker_grammar import KEYWORDS, MARKER_FORMS, MarkerForm, fold_text
from citespan.evaluators.marker_names import MarkerName, read_names
from citespan.evaluators.passage_names import PassageNames, ids_occur
from citespan.evaluators.recorded_citations import merge_recorded
from citespan.tracer.citations import Citation
from citespan.tracer.passages import Passage

__all__ = ["find_markers"]

_NO_WORDS = re.compile(rf"\d+|{KEYWORDS}|link|here|[^\s/]+\.[a-z]{{2,8}}(?:/\S*)?", re.IGNORECASE)
_APART_BEFORE = re.compile(r"(?:^|[.!?:。！？：(（\])】」”\"|])[ \t]*$")
_APART_AFTER = re.compile(r"[ \t]*(?:\Z|[\r\n)）\].,;|\[【])")


def find_markers(
    answer: str, passages: Sequence[Passage], citations: Sequence[Citation] = ()
) -> tuple[Marker, ...]:
    """Return the markers of `answer` in order, with the citations recorded beside it.

    A recorded range is a marker without text. One that names what a marker in the same place names is
    the same citation; a list without ranges says what the numbers in the text mean.

    Args:
        answer: The answer as recorded.
        passages: The run's passages, in the order shown.
        citations: Citations that the app or the provider recorded.
    """
    listed = [
        citation.passage_id for citation in citations if citation.start is None and citation.origin != "app"
    ]
    names = PassageNames(passages, by_position=False, recorded_list=listed)
    found = _find_in_text(answer, names)
    if not listed and not ids_occur(passages, found):
        names = PassageNames(passages, by_position=True)
        found = _find_in_text(answer, names)
    return merge_recorded(answer, found, citations, names)


def _find_in_text(answer: str, names: PassageNames) -> list[Marker]:
    folded = fold_text(answer)
    candidates = list(_candidates(answer, folded, names))
    markers: list[Marker] = []
    for candidate in select_citations(folded, candidates, names):
        markers += _to_markers(answer, folded, candidate, names)
    return sorted(markers, key=lambda marker: marker.start)


def _candidates(answer: str, folded: str, names: PassageNames) -> Iterator[Candidate]:
    """Yield every text outside code, formulas and reference lists that has the form of a marker."""
    is_free = read_layout(answer).is_free
    for form in MARKER_FORMS:
        for match in form.pattern.finditer(folded):
            if is_free(match.start(), match.end()):
                yield _candidate(answer, form, match, names)


def _candidate(answer: str, form: MarkerForm, match: re.Match[str], names: PassageNames) -> Candidate:
    groups = match.groupdict()
    style = f"{form.name} {(groups.get('tag') or '').casefold()}".strip()
    found = read_names(form.name, match["names"], names)
    start, end = match.span()
    start += len(match[0]) - len(match[0].lstrip())
    url = groups.get("url")
    if url and not any(name.is_known for name in found) and names.find(url):
        words = None if _stands_apart(answer, match) else match.span("names")
        return Candidate(form, start, end, (MarkerName(url, is_known=True, is_led=True),), style, words)
    return Candidate(form, start, end, found, style)


def _stands_apart(answer: str, match: re.Match[str]) -> bool:
    """Return whether a link is no part of its sentence's grammar: its text names the source."""
    if _NO_WORDS.fullmatch(match["names"].strip()):
        return True
    before = answer[max(0, match.start() - 20) : match.start()]
    return bool(_APART_BEFORE.search(before) and _APART_AFTER.match(answer, match.end()))


def _to_markers(answer: str, folded: str, candidate: Candidate, names: PassageNames) -> Iterator[Marker]:
    """Yield the candidate as a marker, and the closing tag of one that wraps words."""
    start, end = candidate.start, candidate.end
    labels = tuple(name.label for name in candidate.names)
    marker = Marker(answer[start:end], start, end, labels, words=candidate.words)
    matches = [names.find(label) for label in labels]
    if any(match is not None and match.reason == "by_recorded_list" for match in matches):
        ids = tuple(m.passage_ids[0] if m else label for m, label in zip(matches, labels, strict=True))
        marker = replace(marker, labels=ids, origin="recorded_list")
    tag = re.match(r"<([a-z][\w:-]*)[^<>]*[^/]>", folded[start:end], re.IGNORECASE)
    close = (
        _closing_tag(folded, tag[1], end) if tag and candidate.form.name in ("tag", "grounded_span") else None
    )
    if close is None:
        yield marker
    elif not folded[end : close.start()].strip():
        yield replace(marker, text=answer[start : close.end()], end=close.end())
    else:
        yield replace(marker, covers=(end, close.start()))
        yield Marker(close[0], close.start(), close.end(), ())


_WRAPPED = 4000
"""Longest text that a pair of tags is taken to wrap."""


def _closing_tag(folded: str, tag: str, start: int) -> re.Match[str] | None:
    return re.compile(rf"</{re.escape(tag)}(?:[:\s][^<>]{{0,80}})?>", re.IGNORECASE).search(
        folded, start, start + _WRAPPED
    )
