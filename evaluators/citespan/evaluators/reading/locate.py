"""Find retrieved texts again in a prompt."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

__all__ = ["Occurrence", "locate", "squeeze"]

_MIN_CUT_LENGTH = 60
"""Shortest beginning of a text, in code points, by which a text cut by the app is still recognised."""

_MIN_INLINE = 30
"""Shortest text, in code points, that counts as found inside a line: `Green` begins many a sentence."""

_ENDS_ALONE = re.compile(r"[ \t\r]{0,20}(?:$|[\n<\"'»”`|\]})])")
"""What follows a short text that is a passage."""

_TRIES = 16
"""How many places of one text in one section are looked at, where longer texts already cover some."""


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A retrieved text in a section."""

    index: int
    """Index of the text among those looked for."""

    start: int
    """First code point in the section."""

    end: int
    """One past its last code point."""

    is_cut: bool = False
    """Whether only the beginning of the text is there: the app shortened it."""


@dataclass(slots=True)
class _Claimed:
    """The ranges of a section that are already taken, by start."""

    starts: list[int] = field(default_factory=list[int])
    ends: list[int] = field(default_factory=list[int])

    def covers(self, start: int, end: int) -> bool:
        n = bisect_right(self.starts, start) - 1
        if n >= 0 and self.ends[n] > start:
            return True
        return n + 1 < len(self.starts) and self.starts[n + 1] < end

    def add(self, start: int, end: int) -> None:
        n = bisect_right(self.starts, start)
        self.starts.insert(n, start)
        self.ends.insert(n, end)


def squeeze(text: str) -> str:
    """Return `text` with every run of white space as one space, trimmed."""
    return " ".join(text.split())


def locate(texts: Sequence[str], section: str) -> list[Occurrence]:
    """Return where the texts stand in a section, in order; longer texts first claim their place.

    A text counts as found verbatim, or with other white space, or by its first 60 code points if the app cut it.
    """
    claimed = _Claimed()
    found: list[Occurrence] = []
    squeezed: _Squeezed | None = None
    for index in sorted(range(len(texts)), key=lambda n: -len(texts[n])):
        text = texts[index].strip()
        if not text:
            continue
        start = _free(section, text, claimed)
        occurrence: Occurrence | None = None
        if start is not None:
            occurrence = Occurrence(index, start, start + len(text))
        else:
            squeezed = squeezed or _Squeezed(section)
            occurrence = squeezed.find(index, text, claimed)
        if occurrence is not None:
            claimed.add(occurrence.start, occurrence.end)
            found.append(occurrence)
    return sorted(found, key=lambda occurrence: occurrence.start)


def _free(section: str, text: str, claimed: _Claimed) -> int | None:
    """Return the first place of `text` that no longer text covers, at word borders."""
    start = -1
    for _ in range(_TRIES):
        start = section.find(text, start + 1)
        if start < 0:
            return None
        if not claimed.covers(start, start + len(text)) and _stands_alone(section, start, start + len(text)):
            return start
    return None


def _stands_alone(section: str, start: int, end: int) -> bool:
    before, after = section[start - 1 : start], section[end : end + 1]
    if (before.isalnum() and section[start].isalnum()) or (after.isalnum() and section[end - 1].isalnum()):
        return False
    return end - start >= _MIN_INLINE or _ENDS_ALONE.match(section, end) is not None


class _Squeezed:
    """A section with its white space squeezed, and where each code point of it stood."""

    def __init__(self, section: str) -> None:
        parts: list[str] = []
        self._section = section
        self._places: list[int] = []
        for match in re.finditer(r"\S+", section):
            parts.append(match[0])
            self._places.extend(range(match.start(), match.end() + 1))
        self._text = " ".join(parts)

    def find(self, index: int, text: str, claimed: _Claimed) -> Occurrence | None:
        wanted = squeeze(text)
        start = self._text.find(wanted)
        length, is_cut = len(wanted), False
        if start < 0 and len(wanted) > _MIN_CUT_LENGTH:
            start = self._text.find(wanted[:_MIN_CUT_LENGTH])
            length, is_cut = self._common(wanted, start), True
        if start < 0:
            return None
        first, last = self._places[start], self._places[start + length - 1] + 1
        is_free = not claimed.covers(first, last) and _stands_alone(self._section, first, last)
        return Occurrence(index, first, last, is_cut) if is_free else None

    def _common(self, wanted: str, start: int) -> int:
        """Return how many code points of `wanted` stand at `start`, whole words only."""
        here = self._text[start : start + len(wanted)]
        length = next((n for n, (a, b) in enumerate(zip(here, wanted, strict=False)) if a != b), len(here))
        return max(1, len(wanted[:length].rstrip()))
