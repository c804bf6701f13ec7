"""Mend sentence boundaries where a general segmenter cannot know better: markers, lines, abbreviations."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise

__all__ = ["mend_ends"]

_CLOSERS = re.compile(r"(?:[\"'”’»）)\]】」』》*_~]+(?=\s|$)|[”’»）】」』》]+)")
_ENUMERATOR = re.compile(r"\W*(?:\d{1,3}|[A-Za-z]|[ivxIVX]{1,4})[.)]\W*")
_LABEL = re.compile(r"\W*[^\W\d_]+\.? \d{1,3}\.\W*")
_ABBREVIATION = re.compile(
    r"(?:^|[\s(])(?:approx|ca|circa|c|cf|no|nos|nr|art|arts|para|paras|sec|sect|fig|figs|eq|ch|vol|p|pp|ed|eds|vs|min|max"
    r"|avg|est|abs|incl|excl|resp|bzw|abb|tab|bd|art|núm|pág|págs|cap|tel)\.\s*$",
    re.IGNORECASE,
)
_TITLE = re.compile(r"(?:^|[\s(])(?:M|MM|Mme|Mlle|Mr|Mrs|Ms|Dr|Prof|St|Sr|Sra|Srta|Dra|Hr|Fr|Sig|Dott)\.\s*$")
_ORDINAL = re.compile(
    r"\b(?:der|die|das|dem|den|des|im|am|vom|zum|zur|beim|ins|jeder|jede|jedes) \d{1,3}\.\s*$", re.IGNORECASE
)
_STOP_AFTER_MARKER = re.compile(r"\s{0,3}[.!?。！？؟۔।…]+[\"'”’»）)\]】」』》*_~]*(?=\s|$|[^\W\d_])")
_QUOTATIVE = re.compile(r"(?:と|って|[他她它我你您]?们?(?:说|問|问|表示|指出|回答))")
"""What continues a sentence behind a quote that holds a stop of its own."""

_STOP_BEFORE_MARKER = re.compile(r"[.!?。！？؟۔।…][\"'”’»）)*_]{0,3}\s*$")
_SAYS = re.compile(
    r"\s(?:also )?(?:says|states|adds|notes|shows|reports|claims|describes|explains|mentions|suggests|argues|finds|confirms)\b"
)
_NEXT_LETTER = re.compile(r"\s{0,8}(\w)")
_BULLET = re.compile(r"\s*(?:[•‣▪◦●○·–—*+-]|\d{1,3}[.)]|[a-z]\))\s")
_NO_STOPS = ("th", "lo", "my", "km")
"""Languages written without a sentence stop: there a marker run ends its sentence."""

_FULL_WIDTH = 60
"""A line shorter than this, and than the block's longest, was ended on purpose if the next word would have fitted."""


def mend_ends(
    masked: str, starts: Sequence[int], runs: Sequence[tuple[int, int]], language: str
) -> list[tuple[int, int]]:
    """Return the sentences of a block, without gaps: the segmenter's, joined or cut where it could not know.

    Args:
        masked: The block's text with markers as spaces and its line breaks kept.
        starts: Where the segmenter starts a sentence.
        runs: Where in `masked` the marker runs stand.
        language: ISO 639-1 code.
    """
    cuts = {_past_closers(masked, start) for start in starts if start > 0}
    cuts -= {cut for cut in cuts if _is_abbreviation(masked, cut, language)}
    cuts = _before_subjects(masked, cuts, runs)
    cuts |= set(_line_cuts(masked, runs)) | set(_marker_cuts(masked, runs, language))
    edges = sorted({0, len(masked), *(cut for cut in cuts if 0 < cut < len(masked))})
    return _joined(masked, list(pairwise(edges)))


def _past_closers(masked: str, cut: int) -> int:
    """Return the cut behind quotes, brackets and emphasis that close the sentence before it."""
    if cut and masked[cut - 1].isspace() and not masked.startswith(tuple("”’»）】」』》"), cut):
        return cut
    match = _CLOSERS.match(masked, cut)
    return match.end() if match else cut


def _is_abbreviation(masked: str, cut: int, language: str) -> bool:
    before = masked[max(0, cut - 40) : cut]
    after = masked[cut : cut + 1]
    if _ABBREVIATION.search(before) and (after.isdigit() or after.islower()):
        return True
    if _TITLE.search(before) and after.isupper():
        return True
    if before.endswith(tuple("」』”")) and _QUOTATIVE.match(masked, cut):
        return True
    return language == "de" and _ORDINAL.search(before) is not None


def _line_cuts(masked: str, runs: Sequence[tuple[int, int]]) -> Iterator[int]:
    """Yield the line breaks that end a sentence: those made on purpose, not by a margin."""
    if "\n" not in masked:
        return
    run_ends = [end for _, end in runs]
    lines = masked.split("\n")
    width = max(_FULL_WIDTH, *(len(line.strip()) for line in lines))
    at = 0
    for line, following in pairwise(lines):
        words_end = at + len(line.rstrip())
        last_run = bisect_right(run_ends, at + len(line)) - 1
        ends_with_marker = last_run >= 0 and run_ends[last_run] > words_end
        ink_end = run_ends[last_run] if ends_with_marker else words_end
        is_hard = at + len(line) - ink_end >= 2 or line.endswith("\\")
        word = (following.split(maxsplit=1) or [""])[0]
        has_room = ink_end - at - (len(line) - len(line.lstrip())) + 1 + len(word) <= width
        at += len(line) + 1
        if is_hard or _BULLET.match(following) or (not word[:1].islower() and (has_room or ends_with_marker)):
            yield at


def _marker_cuts(masked: str, runs: Sequence[tuple[int, int]], language: str) -> Iterator[int]:
    """Yield the ends that markers make sure of: a stop right after one, whatever the next word looks like."""
    for start, end in runs:
        match = _STOP_AFTER_MARKER.match(masked, end)
        if match and masked[start:end].isspace():
            yield match.end()
        elif language in _NO_STOPS and masked[end : end + 1].isspace():
            yield end
        elif _STOP_BEFORE_MARKER.search(masked, max(0, start - 6), start):
            following = _NEXT_LETTER.match(masked, end)
            is_title = _TITLE.search(masked[max(0, start - 8) : start]) is not None
            if following and following[1].isalpha() and not following[1].islower() and not is_title:
                yield following.start(1)


def _before_subjects(masked: str, cuts: set[int], runs: Sequence[tuple[int, int]]) -> set[int]:
    """Return the cuts, those behind a marker that is a subject (`... hot. [2] adds that`) moved before it."""
    moved = set(cuts)
    for start, end in runs:
        if _SAYS.match(masked, end) and re.search(
            r"[.!?][\"'”’)*_]{0,3}\s{1,3}$", masked[max(0, start - 7) : start]
        ):
            moved -= set(range(start, end + 3))
            moved.add(start)
    return moved


def _joined(masked: str, bounds: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the sentences, enumerators (`1.`, `Step 2.`) with what follows and wordless pieces with what precedes."""
    kept: list[tuple[int, int]] = []
    lead: int | None = None
    for start, end in bounds:
        text = masked[start:end]
        begin = start if lead is None else lead
        lead = None
        if _ENUMERATOR.fullmatch(text) or _LABEL.fullmatch(text) or (not kept and not re.search(r"\w", text)):
            lead = begin
        elif not re.search(r"\w", text):
            kept[-1] = (kept[-1][0], end)
        else:
            kept.append((begin, end))
    if lead is not None:
        kept.append((lead, len(masked)))
    return kept
