"""Ranges of an answer: bytes, points and quotes as code points."""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["Range", "byte_range", "only_place", "range_in", "sentence_before"]

_STOPS = " \t\r\n\f\v.,;:!?。，；：！？、"
_SENTENCE_END = re.compile(r"[.!?。！？]['\"”’)\]]*\s+|\n+")


class Range(NamedTuple):
    """A range of code points."""

    start: int
    """First code point."""

    end: int
    """One past the last."""


def range_in(text: str, start: int | None, end: int | None) -> Range | None:
    """Return the range without white space at its ends, or `None` if it is no range of `text`.

    The stop of what comes before is left out too: a part that begins with `. ` would touch that sentence.
    """
    if start is None or end is None or not 0 <= start < end <= len(text):
        return None
    covered = text[start:end]
    start += len(covered) - len(covered.lstrip(_STOPS))
    end -= len(covered) - len(covered.rstrip())
    return Range(start, end) if start < end else None


def byte_range(text: str, start: int, end: int | None) -> Range | None:
    """Return the range that two offsets into the UTF-8 bytes of `text` stand for.

    An offset inside a character counts as the one before it.
    """
    data = text.encode("utf-8", "surrogatepass")
    if end is None or not 0 <= start < end <= len(data):
        return None
    return range_in(text, len(data[:start].decode(errors="ignore")), len(data[:end].decode(errors="ignore")))


def only_place(text: str, quoted: str | None) -> Range | None:
    """Return where `quoted` stands in `text`, or `None` if it stands nowhere or in several places."""
    if not quoted or text.count(quoted) != 1:
        return None
    start = text.index(quoted)
    return range_in(text, start, start + len(quoted))


def sentence_before(text: str, index: int | None) -> Range | None:
    """Return the sentence that ends at `index`: some citations are a point behind what they back."""
    if index is None or not 0 < index <= len(text):
        return None
    # The stop at the very end is the sentence's own.
    starts = [match.end() for match in _SENTENCE_END.finditer(text, 0, max(0, index - 1))]
    return range_in(text, starts[-1] if starts else 0, index)
