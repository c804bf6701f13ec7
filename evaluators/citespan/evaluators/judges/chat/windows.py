"""Cut passages that are too long for one call into windows that are not, at the ends of sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from citespan.evaluators.judges.chat.prompt import text_tokens
from citespan.tracer.passages import Passage

__all__ = ["cut_windows"]

_OVERLAP_SHARE = 8
"""Neighbouring windows share up to an eighth of their size, so that a thought that spans two sentences is whole in one."""

_END = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+|(?<=[。！？])[」』）]*|\n\s*\n\s*")
"""Where a sentence or a paragraph ends, white space included."""

_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class _Piece:
    """A sentence, or a part of one that is very long."""

    passage: int
    start: int
    end: int
    tokens: int


def cut_windows(passages: Sequence[Passage], size: int) -> list[tuple[Passage, ...]]:
    """Return the windows of passages read one after the other, each of at most `size` tokens by estimate.

    A window holds the parts of the passages that it covers, under their own ids, and begins with the last sentences of
    the window before.
    Every character is in some window.
    """
    overlap = size // _OVERLAP_SHARE
    pieces = [
        _Piece(n, start, end, text_tokens(text[start:end]))
        for n, text in enumerate(passage.text or "" for passage in passages)
        for start, end in _sentences(text, overlap)
    ]
    windows: list[tuple[Passage, ...]] = []
    start = 0
    while start < len(pieces):
        end = _fill(pieces, start, size)
        windows.append(_parts(passages, pieces[start:end]))
        if end == len(pieces):
            break
        start = _step_back(pieces, end, overlap)
    return windows


def _fill(pieces: Sequence[_Piece], start: int, size: int) -> int:
    """Return where the window that begins at `start` ends; it holds one piece at least."""
    end, tokens = start + 1, pieces[start].tokens
    while end < len(pieces) and tokens + pieces[end].tokens <= size:
        tokens += pieces[end].tokens
        end += 1
    return end


def _step_back(pieces: Sequence[_Piece], end: int, overlap: int) -> int:
    """Return where the window after the one that ends at `end` begins."""
    start, tokens = end, 0
    while tokens + pieces[start - 1].tokens <= overlap:
        start -= 1
        tokens += pieces[start].tokens
    return start


def _parts(passages: Sequence[Passage], pieces: Sequence[_Piece]) -> tuple[Passage, ...]:
    found: dict[int, tuple[int, int]] = {}
    for piece in pieces:
        start, _ = found.get(piece.passage, (piece.start, 0))
        found[piece.passage] = start, piece.end
    return tuple(
        replace(passages[n], text=(passages[n].text or "")[start:end]) for n, (start, end) in found.items()
    )


def _sentences(text: str, size: int) -> Iterator[tuple[int, int]]:
    """Yield ranges that cover `text`, a sentence each; one of over `size` tokens comes in parts."""
    start = 0
    for end in (*(found.end() for found in _END.finditer(text)), len(text)):
        if end > start:
            yield from _halves(text, start, end, size)
            start = end


def _halves(text: str, start: int, end: int, size: int) -> Iterator[tuple[int, int]]:
    if end - start == 1 or text_tokens(text[start:end]) <= size:
        yield start, end
        return
    middle = (start + end) // 2
    space = _SPACE.search(text, middle, end - 1)
    cut = space.end() if space is not None and space.end() < end else middle
    yield from _halves(text, start, cut, size)
    yield from _halves(text, cut, end, size)
