"""Cut what is too long for a model into overlapping windows, and find the sentence that a window leans on."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from citespan.evaluators.shortlist import terms
from citespan.tracer.passages import Passage

__all__ = ["Joined", "cut_windows"]

Range = tuple[int, int]
"""First code point and one past the last."""

_SENTENCE = re.compile(r"\S.*?(?:[.!?…]+[\"'”’)\]]*(?=\s|$)|[。！？]+[」』]?|(?=\n\s*\n)|$)", re.DOTALL)


def cut_windows(offsets: Sequence[Range], size: int, overlap: int) -> list[Range]:
    """Return the ranges of text that windows of `size` tokens cover, each sharing `overlap` tokens with the next.

    Args:
        offsets: Where each token of the text begins and ends.
        size: Tokens in a window at most; more than `overlap`.
        overlap: Tokens that neighbours share.
    """
    count = len(offsets)
    starts = [0, *range(size - overlap, max(count - overlap, 1), size - overlap)] if count > size else [0]
    windows = [(offsets[start][0], offsets[min(start + size, count) - 1][1]) for start in starts if count]
    return windows or [(0, 0)]


@dataclass(frozen=True, slots=True)
class Joined:
    """Several passages read as one text, in order."""

    passages: tuple[Passage, ...]
    """The passages."""

    gap: str = "\n\n"
    """What stands between two of them."""

    @property
    def text(self) -> str:
        """The one text."""
        return self.gap.join(passage.text or "" for passage in self.passages)

    def evidence(self, window: Range, claim: str) -> tuple[str, str] | None:
        """Return the id of a passage and its sentence in `window` that shares most words with `claim`.

        Among equals the first; `None` if no sentence shares any.
        """
        wanted = terms(claim)
        best: tuple[int, str, str] | None = None
        start = 0
        for passage in self.passages:
            text = passage.text or ""
            for sentence in _SENTENCE.finditer(text):
                if start + sentence.start() >= window[1] or start + sentence.end() <= window[0]:
                    continue
                shared = len(wanted & terms(sentence[0]))
                if shared > (best[0] if best else 0):
                    best = (shared, passage.id, sentence[0].rstrip())
            start += len(text) + len(self.gap)
        return None if best is None else best[1:]
