"""The places of an answer in which brackets are not citations: code and formulas."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from citespan.evaluators.layout.blocks import Block, BlockKind

__all__ = ["find_literals"]

_BACKTICKS = re.compile(r"`+")
_MATH_MARK = re.compile(r"\\[\[\]()]|\$\$?")
_MATH_SIGN = re.compile(r"[=\\^_{}<>+*/|]|^\w$")
_CLOSERS = {"\\[": "\\]", "\\(": "\\)", "$$": "$$", "$": "$"}
_LONGEST = {"\\[": 2000, "\\(": 500, "$$": 2000, "$": 300}
"""Most code points that each kind of formula runs over."""


def find_literals(blocks: Sequence[Block]) -> tuple[tuple[int, int], ...]:
    """Return the ranges of the answer that are code or formulas, in order."""
    found: list[tuple[int, int]] = []
    for block in blocks:
        if block.kind is BlockKind.CODE:
            found.append((block.start, block.end))
            continue
        code = list(_inline_code(block.text))
        text = _blanked(block.text, code)
        found += [(block.start + start, block.start + end) for start, end in (*code, *_math(text))]
    return tuple(sorted(found))


def _inline_code(text: str) -> Iterator[tuple[int, int]]:
    """Yield the code between backtick runs of equal length, left to right, in linear time."""
    runs = [(match.start(), match.end()) for match in _BACKTICKS.finditer(text)]
    later: dict[int, list[int]] = {}
    for n, (start, end) in reversed(list(enumerate(runs))):
        later.setdefault(end - start, []).append(n)
    at = 0
    while at < len(runs):
        start, end = runs[at]
        same = later[end - start]
        while same and same[-1] <= at:
            same.pop()
        if same:
            yield start, runs[same[-1]][1]
            at = same[-1]
        at += 1


def _blanked(text: str, ranges: Sequence[tuple[int, int]]) -> str:
    pieces: list[str] = []
    at = 0
    for start, end in ranges:
        pieces += (text[at:start], " " * (end - start))
        at = end
    return "".join((*pieces, text[at:]))


def _math(text: str) -> Iterator[tuple[int, int]]:
    """Yield formulas; two prices in a sentence (`$5 ... $10`) are none."""
    opener: re.Match[str] | None = None
    for mark in _MATH_MARK.finditer(text):
        if opener is not None and mark[0] == _CLOSERS[opener[0]] and _closes(text, opener, mark):
            if _MATH_SIGN.search(text, opener.end(), mark.start()):
                yield opener.start(), mark.end()
            opener = None
        elif mark[0] in _CLOSERS and _opens(text, mark):
            opener = mark


def _opens(text: str, mark: re.Match[str]) -> bool:
    before, after = text[mark.start() - 1 : mark.start()], text[mark.end() : mark.end() + 1]
    return mark[0] != "$" or not (before.isalnum() or before == "\\" or after.isspace())


def _closes(text: str, opener: re.Match[str], mark: re.Match[str]) -> bool:
    before, after = text[mark.start() - 1 : mark.start()], text[mark.end() : mark.end() + 1]
    is_near = 0 < mark.start() - opener.end() <= _LONGEST[opener[0]]
    return is_near and (mark[0] != "$" or not (before.isspace() or before == "\\" or after.isdigit()))
