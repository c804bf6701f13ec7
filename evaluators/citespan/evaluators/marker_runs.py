"""Markers that stand together: `[1][2]`, `[1], [2]`, `(see [1])`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from citespan.evaluators.claims import Marker

__all__ = ["MarkerRun", "group_markers"]


@dataclass(frozen=True, slots=True)
class MarkerRun:
    """Markers of the text with nothing but separators between them; they cover the same words."""

    start: int
    """First code point in the answer, with the parenthesis that holds nothing but the run."""

    end: int
    """One past its last code point."""

    markers: tuple[Marker, ...]
    """Its markers, in order."""


_BETWEEN = re.compile(r"[ \t]*(?:[,;，；、/&·|-]|and|und|y|et)?[ \t]*", re.IGNORECASE)
_LEAD = re.compile(
    r"[(（][ \t]*(?:(?:see|cf\.?|per|via|from|according to|as in|sources?|refs?\.?|references?|citations?|cited in"
    r"|siehe|vgl\.?|quellen?|véase|fuentes?|voir|参见|来源|出典)[ \t]*[:：]?[ \t]*(?:also[ \t]+)?)?$",
    re.IGNORECASE,
)
_LEAD_LENGTH = 24
"""Longest text between an opening parenthesis and the run that it holds."""


def group_markers(answer: str, markers: Sequence[Marker]) -> tuple[MarkerRun, ...]:
    """Return the runs of the markers found in the text, in order; recorded ranges are left out."""
    groups: list[list[Marker]] = []
    for marker in sorted((m for m in markers if m.text), key=lambda m: m.start):
        if groups and _BETWEEN.fullmatch(answer, groups[-1][-1].end, marker.start):
            groups[-1].append(marker)
        else:
            groups.append([marker])
    return tuple(_run(answer, group) for group in groups)


def _run(answer: str, group: Sequence[Marker]) -> MarkerRun:
    start, end = group[0].start, group[-1].end
    lead = _LEAD.search(answer, max(0, start - _LEAD_LENGTH), start)
    close = re.compile(r"[ \t]*[)）]").match(answer, end)
    if lead and close:
        start, end = lead.start(), close.end()
    return MarkerRun(start, end, tuple(group))
