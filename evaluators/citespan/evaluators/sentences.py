"""Split the blocks of an answer into sentences, with the markers that belong to each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import cast

import sentencex  # type: ignore[import-untyped]  # a compiled module without stubs

from citespan.evaluators.blocks import Block, BlockKind, parse_blocks
from citespan.evaluators.claims import Marker
from citespan.evaluators.marker_runs import MarkerRun, group_markers

__all__ = ["Sentence", "split_sentences"]


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence, heading or table row of an answer."""

    start: int
    """First code point in the answer."""

    end: int
    """One past the last, with the markers that belong to it."""

    masked: str
    """The answer from `start` to `end`, as long, with markers and Markdown structure turned into spaces."""

    kind: BlockKind
    """What kind of block it stands in."""

    block: int
    """Number of its block: sentences of one paragraph share it."""

    runs: tuple[MarkerRun, ...]
    """The marker runs that belong to it, in order."""


_TEXT_KINDS = (BlockKind.PARAGRAPH, BlockKind.ITEM)


def split_sentences(answer: str, markers: Sequence[Marker]) -> tuple[Sentence, ...]:
    """Return the sentences of `answer` in order; a marker after the stop belongs to the sentence before it."""
    runs = group_markers(answer, markers)
    sentences: list[Sentence] = []
    at = 0
    for number, block in enumerate(parse_blocks(answer)):
        if block.kind in (BlockKind.CODE, BlockKind.HEADER_ROW):
            continue
        while at < len(runs) and runs[at].start < block.start:
            at += 1
        last = at
        while last < len(runs) and runs[last].start < block.end:
            last += 1
        sentences.extend(_split_block(block, number, runs[at:last]))
    return tuple(sentences)


def _split_block(block: Block, number: int, runs: Sequence[MarkerRun]) -> Iterator[Sentence]:
    masked = _mask(block, runs)
    for start, end in _bounds(masked) if block.kind in _TEXT_KINDS else [(0, len(masked))]:
        inside = tuple(run for run in runs if start <= run.start - block.start < end)
        yield Sentence(block.start + start, block.start + end, masked[start:end], block.kind, number, inside)


def _mask(block: Block, runs: Sequence[MarkerRun]) -> str:
    text = block.text.replace("\n", " ")
    pieces: list[str] = []
    at = 0
    for run in runs:
        start, end = run.start - block.start, min(run.end - block.start, len(text))
        pieces += (text[at:start], " " * (end - start))
        at = end
    return "".join((*pieces, text[at:]))


def _bounds(masked: str) -> list[tuple[int, int]]:
    find = cast("Callable[[str, str], list[dict[str, int]]]", sentencex.get_sentence_boundaries)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
    bounds = [(found["start_index"], found["end_index"]) for found in find("en", masked)]
    return [(start, end) for start, end in bounds if masked[start:end].strip()]
