"""Choose, by shared words alone, the passages that are worth a judge's time."""

from __future__ import annotations

import re
from collections.abc import Sequence

from citespan.tracer.passages import Passage

__all__ = ["shortlist", "terms"]

_WORD = re.compile(r"\w+")

_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
"""Scripts that do not put spaces between words: Thai, Lao, Khmer, kana and Han."""


def shortlist(claim: str, passages: Sequence[Passage], limit: int) -> list[Passage]:
    """Return at most `limit` passages, those that share most of the claim's rare words, in their given order.

    A word counts one over the number of passages that hold it, so that what they all say decides nothing.
    Among equals the earlier passage wins: retrieval put it first.
    """
    if len(passages) <= limit:
        return list(passages)
    wanted = terms(claim)
    held = [wanted & terms(passage.text or "") for passage in passages]
    spread = {term: sum(term in shared for shared in held) for term in wanted}
    weights = [sum(1 / spread[term] for term in sorted(shared)) for shared in held]
    best = sorted(range(len(passages)), key=lambda n: (-weights[n], n))[:limit]
    return [passages[n] for n in sorted(best)]


def terms(text: str) -> set[str]:
    """Return the words of `text` in lower case; pairs of neighbours where a script has no spaces."""
    found: set[str] = set()
    for word in _WORD.findall(text.casefold()):
        if _UNSPACED.search(word):
            found.update(word[n : n + 2] for n in range(max(len(word) - 1, 1)))
        else:
            found.add(word)
    return found
