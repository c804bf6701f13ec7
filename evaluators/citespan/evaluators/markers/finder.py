"""Find the places in an answer that cite."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache, partial

from citespan.evaluators.claims import Marker
from citespan.evaluators.layout.regions import read_layout
from citespan.evaluators.markers.filter import select_citations
from citespan.evaluators.markers.grammar import KEYWORDS, MARKER_FORMS, MarkerForm, fold_text
from citespan.evaluators.markers.names import MarkerName, read_names
from citespan.evaluators.markers.passage_names import PassageNames, ids_occur
from citespan.evaluators.markers.places import Candidate
from citespan.evaluators.markers.recorded import RECORDED_LIST, merge_recorded
from citespan.tracer.citations import Citation
from citespan.tracer.passages import Passage

__all__ = ["find_markers"]

_NO_WORDS = re.compile(rf"\d+|{KEYWORDS}|link|here|[^\s/]+\.[a-z]{{2,8}}(?:/\S*)?", re.IGNORECASE)
_OPENING_TAG = re.compile(r"<([a-z][\w:-]*)[^<>]*(?<!/)>", re.IGNORECASE)
_APART_BEFORE = re.compile(r"(?:^|[.!?:。！？：(（\])】」”\"|])[ \t]*$")
_GOVERNS = re.compile(
    r"\b(?:an?|the|this|that|our|your|its|in|on|at|to|from|by|per|with|of|and|or|see|read|visit|der|die|das|dem|den|im|in|siehe"
    r"|el|la|los|las|en|de|del|ver|le|les|du|des|dans|voir)[ \t]+$",
    re.IGNORECASE,
)
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
    texts = _Texts(answer)
    names = PassageNames(passages, by_position=False, recorded_list=listed)
    found = texts.select(names)
    if not listed and any(passage.label is None for passage in passages) and not ids_occur(passages, found):
        names = PassageNames(passages, by_position=True)
        found = texts.select(names)
    return merge_recorded(answer, found, citations, names)


class _Texts:
    """The texts of an answer, outside code, formulas and reference lists, that have the form of a marker."""

    def __init__(self, answer: str) -> None:
        self._answer = answer
        self._folded = fold_text(answer)
        is_free = read_layout(answer).is_free
        self._matches = [
            (form, match)
            for form in MARKER_FORMS
            for match in form.pattern.finditer(self._folded)
            if is_free(match.start(), match.end())
        ]

    def select(self, names: PassageNames) -> list[Marker]:
        """Return those that cite, given what the passages are called."""
        read = lru_cache(maxsize=None)(partial(read_names, names=names))
        candidates = [
            _candidate(self._answer, form, match, read(form.name, match["names"]), names)
            for form, match in self._matches
        ]
        markers: list[Marker] = []
        closed: set[int] = set()
        for candidate in reversed(select_citations(self._folded, candidates, names)):
            close = _closing_tag(self._folded, candidate, closed)
            if close is not None:
                closed.add(close.start())
            markers += _to_markers(self._answer, candidate, close, names)
        return sorted(markers, key=lambda marker: marker.start)


def _candidate(
    answer: str, form: MarkerForm, match: re.Match[str], found: tuple[MarkerName, ...], names: PassageNames
) -> Candidate:
    groups = match.groupdict()
    style = f"{form.name} {groups['tag'].casefold()}" if groups.get("tag") else form.name
    start, end = match.span()
    start += len(match[0]) - len(match[0].lstrip())
    if form.name == "link" and answer[start - 1 : start] == "!":
        return Candidate(form, start, end, (), style)
    url = groups.get("url")
    if not url or any(_is_label(name.label, names) for name in found):
        return Candidate(form, start, end, found, style)
    if not any(name.is_known for name in found):
        if not names.find(url):
            return Candidate(form, start, end, found, style)
        found = (MarkerName(url, is_known=True, is_led=True),)
    words = None if _stands_apart(answer, match, names) else match.span("names")
    return Candidate(form, start, end, found, style, words)


def _is_label(label: str, names: PassageNames) -> bool:
    """Return whether a name is short for its passage (a label, an id, a number), not a title or address."""
    match = names.find(label)
    return match is not None and match.reason != "by_other_name"


def _stands_apart(answer: str, match: re.Match[str], names: PassageNames) -> bool:
    """Return whether a link is no part of its sentence's grammar: its text only names the source."""
    text = match["names"].strip()
    if _NO_WORDS.fullmatch(text):
        return True
    before = answer[max(0, match.start() - 20) : match.start()]
    if _APART_AFTER.match(answer, match.end()) is None:
        return False
    return bool(_APART_BEFORE.search(before)) or (
        names.find(text) is not None and not _GOVERNS.search(before)
    )


def _to_markers(
    answer: str, candidate: Candidate, close: re.Match[str] | None, names: PassageNames
) -> Iterator[Marker]:
    """Yield the candidate as a marker, and the closing tag of one that wraps words."""
    start, end = candidate.start, candidate.end
    labels = tuple(name.label for name in candidate.names)
    marker = Marker(answer[start:end], start, end, labels, words=candidate.words)
    matches = [names.find(label) for label in labels]
    if any(match is not None and match.reason == "by_recorded_list" for match in matches):
        ids = tuple(m.passage_ids[0] if m else label for m, label in zip(matches, labels, strict=True))
        marker = replace(marker, labels=ids, origin=RECORDED_LIST)
    if close is None:
        yield marker
    elif not answer[end : close.start()].strip():
        yield replace(marker, text=answer[start : close.end()], end=close.end())
    else:
        yield replace(marker, covers=(end, close.start()))
        yield Marker(answer[close.start() : close.end()], close.start(), close.end(), ())


_WRAPPED = 4000
"""Longest text that a pair of tags is taken to wrap."""


def _closing_tag(folded: str, candidate: Candidate, closed: set[int]) -> re.Match[str] | None:
    """Return the tag that closes the candidate, the first that closes no other; `None` if it closes itself."""
    if candidate.form.name not in ("tag", "grounded_span"):
        return None
    tag = _OPENING_TAG.fullmatch(folded, candidate.start, candidate.end)
    if tag is None:
        return None
    close = re.compile(rf"</{re.escape(tag[1])}(?:[:\s][^<>]{{0,80}})?>", re.IGNORECASE)
    found = close.finditer(folded, candidate.end, candidate.end + _WRAPPED)
    return next((match for match in found if match.start() not in closed), None)
