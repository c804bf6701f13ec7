"""The rule `qualifier` for conditions: what holds only under a condition must be claimed with it."""

from __future__ import annotations

from collections.abc import Iterator

from citespan.evaluators.judges.lexical.alignment import Aligned
from citespan.evaluators.judges.lexical.finding import Finding
from citespan.evaluators.judges.lexical.words import Text

__all__ = ["find_conditions"]

_CONDITIONS = (
    ("unless",),
    ("except",),
    ("excluding",),
    ("only", "if"),
    ("only", "when"),
    ("provided", "that"),
)
_FIRST_WORDS = frozenset(words[0] for words in _CONDITIONS)

_MARKERS = frozenset(
    ["if", "unless", "except", "excluding", "when", "provided", "without", "only", "not", "but"]
)
"""Words by which a claim may state the condition in its own way."""

_REACH = 8
"""Words of a condition that are looked at."""


def find_conditions(aligned: Aligned) -> Iterator[Finding]:
    """Yield the first condition of the evidence that the claim leaves out altogether."""
    claim, passage = aligned.claim_text, aligned.passage_text
    if not _MARKERS.isdisjoint(claim.words):
        return
    for index in range(aligned.first, aligned.last):
        if passage.words[index] not in _FIRST_WORDS:
            continue
        words = next((words for words in _CONDITIONS if _is_at(passage, index, words)), None)
        if words is None:
            continue
        start = index + len(words)
        end = min(start + _REACH, aligned.last)
        before = range(max(index - _REACH, aligned.first), index)
        if any(place in aligned.here for place in range(start, end)):
            continue
        if sum(place in aligned.here for place in before) < 2:
            continue
        said = passage.quote(index, min(start + 4, aligned.last))
        yield Finding(
            "qualifier",
            f'The passage says it with a condition, "{said} …"; the claim leaves it out.',
            is_partial=True,
            place=index,
        )
        return


def _is_at(read: Text, index: int, words: tuple[str, ...]) -> bool:
    return tuple(read.words[index : index + len(words)]) == words
