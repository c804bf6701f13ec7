"""Find where passages speak of a claim: the coverage of every run of one to three sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from citespan.evaluators.judges.lexical.hits import Hits, find_hits
from citespan.evaluators.judges.lexical.readings import ClaimReading, PassageReading

__all__ = ["Search", "Window", "search"]

_MOST_SINGLES = 10
"""Single sentences kept, at most."""

_LONGEST_WINDOW = 3
"""Sentences in the longest window."""


@dataclass(frozen=True, slots=True)
class Window:
    """A run of sentences of one passage and what it covers of the claim."""

    passage: int
    """Index of the passage."""

    first: int
    """Index of its first sentence."""

    last: int
    """Index after its last sentence."""

    exact: int
    """Bit mask of the claim's keys found as they are."""

    loose: int
    """Bit mask of the keys found as they are, as a synonym, or as a word of the same family."""

    coverage: float
    """Weighted share of the claim's keys found, loose ones in part."""


@dataclass(slots=True)
class Search:
    """What a search of the passages for a claim found."""

    claim: ClaimReading
    """The claim."""

    passages: list[PassageReading]
    """The passages, read together."""

    hits: list[dict[int, int]]
    """Per passage: word index to the index of the claim's key found there; loose ones are `-1 - index`."""

    masks: list[dict[int, tuple[int, int]]]
    """Per passage: sentence to the bit masks of the keys in it, found as they are and found in any way."""

    best: list[Window | None]
    """The best window of one, two and three sentences; `None` where no word is found."""

    singles: list[Window]
    """Every sentence that holds a word of the claim, best first, ten at most."""

    exact: int = 0
    """Bit mask of the keys found anywhere as they are."""

    loose: int = 0
    """Bit mask of the keys found anywhere."""

    def coverage(self, exact: int, loose: int) -> float:
        """Return the weighted share of the claim's keys in two masks."""
        return _coverage(self.claim, exact, loose)


def search(claim: ClaimReading, passages: Sequence[PassageReading]) -> Search:
    """Return where `passages` speak of `claim`."""
    found = Search(claim, list(passages), [], [], [None] * _LONGEST_WINDOW, [])
    singles: list[Window] = []
    for number, passage in enumerate(passages):
        hits = find_hits(claim, passage)
        found.hits.append(hits.numbers)
        masks = _sentence_masks(passage, hits)
        found.masks.append(masks)
        singles.extend(_windows(found, number, masks))
    singles.sort(key=lambda window: -window.coverage)
    found.singles = singles[:_MOST_SINGLES]
    return found


def _sentence_masks(passage: PassageReading, hits: Hits) -> dict[int, tuple[int, int]]:
    masks: dict[int, tuple[int, int]] = {}
    sentence_of = passage.sentence_of
    for position, number in hits.numbers.items():
        sentence = sentence_of[position]
        exact, loose = masks.get(sentence, (0, 0))
        if number >= 0:
            exact |= 1 << number
            loose |= 1 << number
        else:
            loose |= 1 << (-1 - number)
        masks[sentence] = (exact, loose)
    for position, mask in hits.merged.items():
        exact, loose = masks[sentence_of[position]]
        masks[sentence_of[position]] = exact, loose | mask
    return masks


def _windows(found: Search, number: int, masks: Mapping[int, tuple[int, int]]) -> list[Window]:
    """Return the one-sentence windows, and keep the best of each length in `found`."""
    singles: list[Window] = []
    memo: dict[tuple[int, int], float] = {}
    last_sentence = len(found.passages[number].text.sentences)
    for sentence in sorted(masks):
        found.exact |= masks[sentence][0]
        found.loose |= masks[sentence][1]
        exact = loose = 0
        for length in range(1, _LONGEST_WINDOW + 1):
            if sentence + length > last_sentence:
                break
            more = masks.get(sentence + length - 1, (0, 0))
            exact |= more[0]
            loose |= more[1]
            share = memo.get((exact, loose))
            if share is None:
                share = memo[exact, loose] = _coverage(found.claim, exact, loose)
            window = Window(number, sentence, sentence + length, exact, loose, share)
            if length == 1:
                singles.append(window)
            for longest in range(length, _LONGEST_WINDOW + 1):
                best = found.best[longest - 1]
                if best is None or share > best.coverage + 1e-9:
                    found.best[longest - 1] = window
    return singles


_LOOSE_SHARE = 0.8
"""How much a synonym or a word of the same family counts beside the word itself."""


def _coverage(claim: ClaimReading, exact: int, loose: int) -> float:
    if not claim.total:
        return 0.0
    covered = 0.0
    for number, weight in enumerate(claim.weights):
        if exact >> number & 1:
            covered += weight
        elif loose >> number & 1:
            covered += _LOOSE_SHARE * weight
    return covered / claim.total
