"""Split the blocks of an answer into sentences, with the markers that belong to each."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import cast

import sentencex  # type: ignore[import-untyped]  # a compiled module without stubs

from citespan.evaluators.claims import Marker
from citespan.evaluators.decompose.language import guess_language
from citespan.evaluators.decompose.sentence_ends import mend_ends
from citespan.evaluators.layout.blocks import Block, BlockKind
from citespan.evaluators.layout.regions import read_layout
from citespan.evaluators.markers.runs import MarkerRun, group_markers

__all__ = ["Sentence", "split_sentences"]


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence, heading or table row of an answer."""

    start: int
    """First code point in the answer."""

    end: int
    """One past the last, with the markers that belong to it."""

    masked: str
    """The answer from `start` to `end`, as long, with markers and line breaks turned into spaces."""

    kind: BlockKind
    """What kind of block it stands in."""

    block: int
    """Number of its block: sentences of one paragraph share it."""

    runs: tuple[MarkerRun, ...]
    """The marker runs that belong to it, in order."""

    header: str = ""
    """For a table row: the row that names its columns."""


_TEXT_KINDS = (BlockKind.PARAGRAPH, BlockKind.ITEM)
_KINDS = (*_TEXT_KINDS, BlockKind.HEADING)
_WINDOW = 4000
"""Code points given to the segmenter at once."""
_WORD = re.compile(r"\w")


def split_sentences(answer: str, markers: Sequence[Marker]) -> tuple[Sentence, ...]:
    """Return the sentences of `answer` in order; code, header rows and reference lists hold none.

    A marker after the stop belongs to the sentence before it. In a paragraph that opens with a marker and
    does not close with one, markers lead their sentences.
    """
    return _split(answer, tuple(markers))


@lru_cache(maxsize=4)
def _split(answer: str, markers: tuple[Marker, ...]) -> tuple[Sentence, ...]:
    # Claims and attachments are made from the same sentences, so the last answers' are kept.
    runs = group_markers(answer, markers)
    language = guess_language(answer)
    sentences: list[Sentence] = []
    header = ""
    at = 0
    for number, block in enumerate(read_layout(answer).blocks):
        while at < len(runs) and runs[at].start < block.start:
            at += 1
        first = at
        while at < len(runs) and runs[at].start < block.end:
            at += 1
        if block.kind is BlockKind.HEADER_ROW:
            header = block.text
        elif block.kind is BlockKind.ROW:
            flat = _mask(block, runs[first:at])
            sentences.append(
                Sentence(block.start, block.end, flat, block.kind, number, tuple(runs[first:at]), header)
            )
        elif block.kind in _KINDS:
            sentences.extend(_split_block(block, number, runs[first:at], language))
    return tuple(sentences)


def _split_block(block: Block, number: int, runs: Sequence[MarkerRun], language: str) -> Iterator[Sentence]:
    masked = _mask(block, runs)
    bounds = [(0, len(masked))]
    if block.kind in _TEXT_KINDS:
        places = [(run.start - block.start, run.end - block.start) for run in runs]
        bounds = mend_ends(masked, _segments(masked, language), places, language)
    flat = masked.replace("\n", " ")
    starts = [run.start - block.start for run in runs]
    for start, end in _led_by_markers(block, masked, bounds, runs):
        inside = tuple(runs[bisect_left(starts, start) : bisect_left(starts, end)])
        yield Sentence(block.start + start, block.start + end, flat[start:end], block.kind, number, inside)


def _mask(block: Block, runs: Sequence[MarkerRun]) -> str:
    """Return the block's text, as long, with all of each run but a link's words turned into spaces."""
    text = block.text
    pieces: list[str] = []
    at = 0
    for run in runs:
        kept = [marker.words for marker in run.markers if marker.words]
        for start, end in [*kept, (run.end, run.end)]:
            left, right = start - block.start, min(end - block.start, len(text))
            hidden_from = max(at, run.start - block.start)
            pieces += (text[at:hidden_from], " " * (left - hidden_from), text[left:right])
            at = right
    return "".join((*pieces, text[at:]))


def _segments(masked: str, language: str) -> list[int]:
    """Return where the segmenter starts a sentence.

    It reads a window at a time: its cost grows with the square of a text without stops.
    """
    find = cast(
        "Callable[[str, str], list[dict[str, int]]]",
        sentencex.get_sentence_boundaries,  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
    )
    flat = masked.replace("\n", " ")
    starts: list[int] = []
    at = 0
    while at < len(flat):
        found = [at + bound["start_index"] for bound in find(language, flat[at : at + _WINDOW])]
        starts += found[1:]
        if at + _WINDOW >= len(flat):
            break
        at = found[-1] if len(found) > 1 else max(flat.rfind(" ", at + 1, at + _WINDOW), at + _WINDOW // 2)
    return starts


def _led_by_markers(
    block: Block, masked: str, bounds: Sequence[tuple[int, int]], runs: Sequence[MarkerRun]
) -> list[tuple[int, int]]:
    """Return the bounds, moved so that runs lead sentences where the block's first run does."""
    if not runs or _WORD.search(masked, 0, runs[0].start - block.start) or len(bounds) < 2:
        return list(bounds)
    if not _WORD.search(masked, runs[-1].end - block.start):
        return list(bounds)
    moved: list[tuple[int, int]] = []
    start = bounds[0][0]
    for _, end in bounds[:-1]:
        stop = len(masked[:end].rstrip())
        moved.append((start, stop))
        start = stop
    return [*moved, (start, bounds[-1][1])]
