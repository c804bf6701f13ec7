"""Lay a claim beside one window: which word of the passage stands for which word of the claim."""

from __future__ import annotations

from dataclasses import dataclass, field

from citespan.evaluators.judges.lexical.entities import Entity
from citespan.evaluators.judges.lexical.readings import ClaimReading, PassageReading
from citespan.evaluators.judges.lexical.windows import Search, Window
from citespan.evaluators.judges.lexical.words import Text

__all__ = ["Aligned", "align"]


@dataclass(slots=True)
class Aligned:
    """A claim beside a window of a passage."""

    claim: ClaimReading
    """The claim."""

    passage: PassageReading
    """The passage that the window is in."""

    window: Window
    """The window."""

    first: int
    """Index of the window's first word."""

    last: int
    """Index after its last word."""

    there: dict[int, int]
    """Word index in the claim to the word index in the window that stands for it."""

    here: dict[int, int]
    """The same, the other way round."""

    names: list[Entity] = field(default_factory=list[Entity])
    """The names in the claim."""

    @property
    def name_words(self) -> set[int]:
        """Indexes of the claim's words that are part of a name."""
        return {index for name in self.names for index in range(name.first, name.last)}

    @property
    def claim_text(self) -> Text:
        """The claim's words."""
        return self.claim.text

    @property
    def passage_text(self) -> Text:
        """The passage's words."""
        return self.passage.text

    @property
    def quote(self) -> str:
        """The window as the passage has it."""
        sentences = self.passage.text.sentences
        start, end = sentences[self.window.first].start, sentences[self.window.last - 1].end
        return self.passage.text.text[start:end]


def align(found: Search, window: Window) -> Aligned:
    """Return the claim laid beside `window`.

    Among equal words, one in the sentence that has most of the claim is taken, and there the next one in reading
    order.
    """
    passage = found.passages[window.passage]
    sentences = passage.text.sentences
    first, last = sentences[window.first].first, sentences[window.last - 1].last
    masks = found.masks[window.passage]
    richness = {
        number: masks[number][1].bit_count() for number in range(window.first, window.last) if number in masks
    }
    places: dict[int, list[int]] = {}
    hits = found.hits[window.passage]
    for position in range(first, last):
        number = hits.get(position)
        if number is not None:
            places.setdefault(number, []).append(position)
    numbers = {key: number for number, key in enumerate(found.claim.keys)}
    there: dict[int, int] = {}
    here: dict[int, int] = {}
    reached = first
    for index, key in enumerate(found.claim.text.keys):
        if not key:
            continue
        number = numbers[key]
        candidates = [p for p in places.get(number) or places.get(-1 - number) or () if p not in here]
        if not candidates:
            continue
        most = max(richness[passage.sentence_of[place]] for place in candidates)
        best = [place for place in candidates if richness[passage.sentence_of[place]] == most]
        position = next((place for place in best if place >= reached), best[0])
        there[index] = position
        here[position] = index
        reached = position
    return Aligned(found.claim, passage, window, first, last, there, here, found.claim.names)
