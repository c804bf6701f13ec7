"""Split an answer into claims."""

from __future__ import annotations

import re
from collections.abc import Sequence

from citespan.evaluators.blocks import BlockKind
from citespan.evaluators.claims import Claim, Marker
from citespan.evaluators.options import Splitting
from citespan.evaluators.sentences import Sentence, split_sentences

__all__ = ["decompose"]


def decompose(
    answer: str,
    markers: Sequence[Marker],
    *,
    question: str | None = None,
    splitting: Splitting = Splitting.ATOMIC,
) -> tuple[Claim, ...]:
    """Return the claims of `answer` in order; their ranges do not overlap."""
    claims: list[Claim] = []
    for sentence in split_sentences(answer, markers):
        text = _text(sentence)
        if not re.search(r"\w", text):
            continue
        reason = "heading" if sentence.kind is BlockKind.HEADING else None
        start, end = _own_words(sentence)
        claims.append(Claim(len(claims), text, start, end, text, reason is None, reason))
    return tuple(claims)


def _text(sentence: Sentence) -> str:
    text = re.sub(r"\s+([.,;:!?。！？؟۔])", r"\1", re.sub(r"\s+", " ", sentence.masked)).strip()
    if sentence.kind is BlockKind.ROW:
        return " | ".join(cell.strip() for cell in text.split("|") if cell.strip())
    return text


def _own_words(sentence: Sentence) -> tuple[int, int]:
    words = list(re.finditer(r"\S+", sentence.masked))
    return sentence.start + words[0].start(), sentence.start + words[-1].end()
