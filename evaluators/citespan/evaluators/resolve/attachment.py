"""Say which claims each marker covers, by where it stands or by what was recorded."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from citespan.evaluators.claims import Claim, Marker
from citespan.evaluators.decompose.sentences import Sentence, split_sentences
from citespan.evaluators.layout.blocks import BlockKind
from citespan.evaluators.markers.runs import MarkerRun

__all__ = ["Attached", "attach"]

_WORD = re.compile(r"\w")


@dataclass(frozen=True, slots=True)
class Attached:
    """What one marker covers."""

    claims: tuple[int, ...] = ()
    """Indices of the claims it is attached to."""

    paragraph_claims: tuple[int, ...] = ()
    """Earlier uncited claims of the paragraph that it closes."""


def attach(answer: str, markers: Sequence[Marker], claims: Sequence[Claim]) -> list[Attached]:
    """Return what each marker covers, in the order of `markers`.

    A run of markers covers every part of its sentence back to the run before it or the sentence's start;
    one in a place without words belongs to the sentence before. A range covers the claims it overlaps.
    """
    sentences = split_sentences(answer, markers)
    places = _Places(sentences, claims)
    by_place = {marker.start: indices for marker, indices in places.by_runs(sentences)}
    covered = [
        {
            *places.by_range(marker),
            *(by_place.get(marker.start, ()) if marker.text and not _wraps(marker) else ()),
        }
        for marker in markers
    ]
    cited = {index for indices in covered for index in indices}
    closing = _paragraph_claims(sentences, places, cited)
    return [
        Attached(tuple(sorted(indices)), closing.get(marker.start, ()) if marker.text else ())
        for marker, indices in zip(markers, covered, strict=True)
    ]


def _wraps(marker: Marker) -> bool:
    """Return whether the marker is a tag before the words that it covers."""
    return marker.covers is not None and bool(marker.text) and marker.covers[0] >= marker.end


class _Places:
    """Where the claims of an answer stand."""

    def __init__(self, sentences: Sequence[Sentence], claims: Sequence[Claim]) -> None:
        self._claims = claims
        self._starts = [claim.start for claim in claims]
        self._ends = [claim.end for claim in claims]
        self._sentence_starts = [sentence.start for sentence in sentences]
        self.of_sentence = [self._between(sentence.start, sentence.end) for sentence in sentences]
        self._last_before: list[Sequence[Claim]] = []
        last: Sequence[Claim] = ()
        for parts in self.of_sentence:
            self._last_before.append(last[-1:])
            last = parts or last

    def _between(self, start: int, end: int) -> Sequence[Claim]:
        return self._claims[bisect_left(self._starts, start) : bisect_left(self._starts, end)]

    def by_runs(self, sentences: Sequence[Sentence]) -> Iterator[tuple[Marker, list[int]]]:
        """Yield each marker of the text with the claims that its run covers."""
        for n, sentence in enumerate(sentences):
            for run, indices in self._by_run(n, sentence):
                yield from ((marker, indices) for marker in run.markers)

    def _by_run(self, n: int, sentence: Sentence) -> Iterator[tuple[MarkerRun, list[int]]]:
        parts = self.of_sentence[n]
        if not parts and not _WORD.search(sentence.masked):
            parts = self._last_before[n]
        before = -1
        for run in sentence.runs:
            inside = [part.index for part in parts if part.start < run.start and part.end > before]
            if not inside:
                inside = [part.index for part in parts if part.start < run.start][-1:]
            if not inside:
                inside = [part.index for part in parts[:1]]
            yield run, inside
            before = run.end

    def by_range(self, marker: Marker) -> list[int]:
        """Return the claims that the marker's range overlaps; for one over no words, those of its place."""
        if marker.covers is None and marker.text:
            return []
        start, end = marker.covers or (marker.start, marker.end)
        first = bisect_right(self._ends, start)
        last = bisect_left(self._starts, end)
        if first < last:
            return list(range(first, last))
        return [] if marker.covers is not None else self._near(start)

    def _near(self, at: int) -> list[int]:
        """Return the claim before a place, of its own sentence if that has one, else the first of that sentence."""
        n = bisect_right(self._sentence_starts, at) - 1
        if n < 0:
            return []
        own = self.of_sentence[n]
        before = [claim.index for claim in own if claim.start < at] or [claim.index for claim in own[:1]]
        return before[-1:] or [claim.index for claim in self._last_before[n]]


def _paragraph_claims(
    sentences: Sequence[Sentence], places: _Places, cited: set[int]
) -> dict[int, tuple[int, ...]]:
    """Return, by the start of each marker that closes a paragraph, its earlier uncited claims."""
    closing: dict[int, tuple[int, ...]] = {}
    for _, group in groupby(enumerate(sentences), key=lambda pair: pair[1].block):
        numbered = list(group)
        last = numbered[-1][1]
        if last.kind not in (BlockKind.PARAGRAPH, BlockKind.ITEM):
            continue
        earlier = [claim.index for n, _ in numbered[:-1] for claim in places.of_sentence[n]]
        uncited = tuple(index for index in earlier if index not in cited)
        for run in last.runs if uncited else ():
            if not _WORD.search(last.masked, run.end - last.start):
                closing.update((marker.start, uncited) for marker in run.markers)
    return closing
