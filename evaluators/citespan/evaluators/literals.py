"""The places of an answer in which brackets are not citations: code and formulas."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from citespan.evaluators.blocks import Block, BlockKind

__all__ = ["find_literals"]

_BACKTICKS = re.compile(r"`+")
_MATH = re.compile(
    r"\$\$(?P<display>[^$]{1,2000})\$\$|(?<![\w$\\])\$(?P<inline>[^\s$](?:[^$\n]{0,300}[^\s$\\])?)\$(?!\d)"
    r"|\\\((?P<round>.{1,500}?)\\\)|\\\[(?P<square>[^\0]{1,2000}?)\\\]"
)
_MATH_SIGN = re.compile(r"[=\\^_{}<>+*/|]|^\w$")


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
    if "$" not in text and "\\" not in text:
        return
    for match in _MATH.finditer(text):
        content = match["display"] or match["inline"] or match["round"] or match["square"] or ""
        if _MATH_SIGN.search(content):
            yield match.start(), match.end()
