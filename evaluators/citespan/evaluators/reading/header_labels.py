"""Labels that stand in a head of lines above each passage: `Title: ..`, `URL: ..`, then the text."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from citespan.evaluators.reading.label_forms import HEADER_FORM, LabelToken, fold_label

__all__ = ["find_headers"]

_KEY = r"[-*#> \t]{0,10}(?P<key>\w[\w \t-]{0,24}?)\*{0,2}[ \t]{0,3}[:=：]\*{0,2}"
_NAMED = re.compile(rf"{_KEY}[ \t]{{1,8}}(?P<value>\S.{{0,300}}?)[ \t\r]*")
_CONTENT = re.compile(
    r"(?:page[ _]?)?(?:content|contents|text|body|passage|excerpt|snippet|summary|chunk)", re.IGNORECASE
)
_CONTENT_MARK = re.compile(rf"{_KEY}[ \t\r\n]{{0,8}}")
_LINE = re.compile(r"[^\n]+\n?")
_BREAK = re.compile(r"^[ \t]{0,8}(?:[-=*_~`]{3,}|</?[a-zA-Z][^<>\n]{0,80}>)?[ \t\r]*$", re.M)
"""A line that ends what stood before it: an empty one, a rule, a tag."""


@dataclass(frozen=True, slots=True)
class _Head:
    """The lines above one passage."""

    start: int
    """First code point."""

    end: int
    """One past its last: where the passage begins."""

    values: Mapping[str, str]
    """What it says, by folded key."""


def find_headers(text: str, cited: Collection[str]) -> list[LabelToken]:
    """Return the labels in heads of passages, all under the one key whose values the answer cites most.

    A head follows an empty line, a rule, a tag or the beginning: below a text, `Source: x` names what is above it.
    A bare number in a head is a page, a score or a count, and never a label.

    Args:
        text: A part of the prompt.
        cited: What stands in brackets in the answer, folded.
    """
    heads = list(_heads(text)) if cited else []
    key = _cited_key(heads, cited)
    if key is None:
        return []
    return [
        LabelToken(HEADER_FORM, head.values[key], head.start, head.end)
        for head in heads
        if key in head.values
    ]


def _cited_key(heads: Sequence[_Head], cited: Collection[str]) -> str | None:
    counts: dict[str, int] = {}
    for head in heads:
        for key, value in head.values.items():
            is_name = re.search(r"[^\W\d_]", value) is not None
            counts[key] = counts.get(key, 0) + (is_name and fold_label(value) in cited)
    best = max(counts, key=lambda key: counts[key], default=None)
    return best if best is not None and counts[best] else None


def _heads(text: str) -> Iterator[_Head]:
    start = 0
    for pause in _BREAK.finditer(text):
        yield from _head(text, start, pause.start())
        start = pause.end() + 1
    yield from _head(text, start, len(text))


def _head(text: str, start: int, end: int) -> Iterator[_Head]:
    """Yield the head that a paragraph begins with, if it has one; a line such as `Sources:` may stand above it."""
    values: dict[str, str] = {}
    first = position = start
    for line in _LINE.finditer(text, start, end):
        named = _NAMED.fullmatch(line[0].rstrip("\n"))
        if named is not None and _CONTENT.fullmatch(named["key"]) is None:
            values.setdefault(named["key"].casefold(), named["value"])
        elif values or line.start() > start or not line[0].rstrip().endswith((":", "：")):
            break
        else:
            first = line.end()
        position = line.end()
    if values:
        mark = _CONTENT_MARK.match(text, position)
        is_mark = mark is not None and _CONTENT.fullmatch(mark["key"]) is not None
        yield _Head(first, mark.end() if mark is not None and is_mark else position, values)
