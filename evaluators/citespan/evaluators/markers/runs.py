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
_SOURCE_WORDS = r"(?:sources?|refs?\.?|references?|citations?|quellen?|fuentes?|来源|出典|參考|参考)"
_SAID = r"(?:described|shown|noted|stated|reported|mentioned|discussed|explained|seen|outlined|detailed|specified|listed)"
_BEFORE = re.compile(
    rf"(?P<bracket>[(（][ \t]*(?:(?:see|cf\.?|per|via|from|according to|as in|cited in|siehe|vgl\.?|véase|voir|参见"
    rf"|{_SOURCE_WORDS})[ \t]*[:：]?[ \t]*(?:also[ \t]+)?)?)$"
    rf"|(?P<phrase>(?:[,，][ \t]*)?\b(?:according to|as per|per|as {_SAID} (?:in|by|at)|(?<!\w )based on|(?:^|(?<=[.!?] ))(?:in|as))[ \t]+)$"
    rf"|(?P<line>(?:^|(?<=[\n.!?]))[ \t]*[*_]{{0,2}}{_SOURCE_WORDS}[*_]{{0,2}}[ \t]*[:：][*_]{{0,2}}[ \t]*)$",
    re.IGNORECASE,
)
_CLOSE = re.compile(r"[ \t]*[)）]")
_PHRASE_END = re.compile(
    r"[ \t]*(?:(?:says|states|notes|shows|reports|explains|puts it|describes)[ \t]*)?(?:(?P<comma>[,，][ \t]*)|(?=[.!?。]|\s*$))"
)
_LINE_END = re.compile(r"[ \t]*[.]?[ \t]*(?=\n|$)")
_TAG = re.compile(r"<(a|sup|b|i|em|strong|span|small|mark)(?:\s[^<>]*)?>$")
_EMPHASIS = re.compile(r"[*_]{1,3}$")
_LOOK_BACK = 40
"""Longest text before a run that is read for what belongs to it."""


def group_markers(answer: str, markers: Sequence[Marker]) -> tuple[MarkerRun, ...]:
    """Return the runs of the markers found in the text, in order; recorded ranges are left out."""
    groups: list[list[Marker]] = []
    for marker in sorted((m for m in markers if m.text), key=lambda m: m.start):
        if (
            groups
            and not _is_tag(groups[-1][-1])
            and not _is_tag(marker)
            and _BETWEEN.fullmatch(answer, groups[-1][-1].end, marker.start)
        ):
            groups[-1].append(marker)
        else:
            groups.append([marker])
    runs: list[MarkerRun] = []
    for group in groups:
        start, end = _with_frame(answer, group[0].start, group[-1].end, runs[-1].end if runs else 0)
        runs.append(MarkerRun(start, end, tuple(group)))
    return tuple(runs)


def _is_tag(marker: Marker) -> bool:
    """Return whether it opens or closes a stretch of words: such a marker stands for itself."""
    return not marker.labels or (marker.covers is not None and marker.covers[0] == marker.end)


def _with_frame(answer: str, start: int, end: int, floor: int) -> tuple[int, int]:
    """Return the run with what only frames it: emphasis, `(see ...)`, `According to ...,`, `Source: ...`."""
    emphasis = _EMPHASIS.search(answer, max(floor, start - 3), start)
    if emphasis and answer.startswith(emphasis[0][::-1], end):
        start, end = emphasis.start(), end + len(emphasis[0])
    tag = _TAG.search(answer, max(floor, start - _LOOK_BACK), start)
    if tag and answer.startswith(f"</{tag[1]}>", end):
        start, end = tag.start(), end + len(f"</{tag[1]}>")
    first = max(floor, start - _LOOK_BACK)
    lead = _BEFORE.search(answer[first:start])
    if lead is None:
        return start, end
    ends = {"bracket": _CLOSE, "phrase": _PHRASE_END, "line": _LINE_END}
    close = ends[lead.lastgroup or "bracket"].match(answer, end)
    return (first + lead.start(), close.end()) if close else (start, end)
