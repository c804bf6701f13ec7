"""How an answer is laid out: its blocks, its reference list, its code."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from citespan.evaluators.layout.blocks import Block, BlockKind, parse_blocks
from citespan.evaluators.layout.literals import find_literals
from citespan.evaluators.layout.reference_list import separate_references

__all__ = ["Layout", "read_layout"]


@dataclass(frozen=True, slots=True)
class Layout:
    """The blocks of an answer and where no marker is looked for."""

    blocks: tuple[Block, ...]
    """Its blocks, in order; entries of a reference list are blocks of their own."""

    closed: tuple[tuple[int, int], ...]
    """Code, formulas and reference lists: ranges of the answer, in order, none overlapping."""

    def is_free(self, start: int, end: int) -> bool:
        """Return whether the range touches no closed one."""
        at = bisect_right(self.closed, (start, len(self.blocks) and self.blocks[-1].end))
        is_inside = at > 0 and self.closed[at - 1][1] > start
        return not is_inside and not (at < len(self.closed) and self.closed[at][0] < end)


@lru_cache(maxsize=8)
def read_layout(answer: str) -> Layout:
    """Return the layout of `answer`.

    Markers, claims and attachments are all found from the same layout, so the last answers' are kept.
    """
    blocks = separate_references(parse_blocks(answer))
    references = [(block.start, block.end) for block in blocks if block.kind is BlockKind.REFERENCE]
    others = [block for block in blocks if block.kind is not BlockKind.REFERENCE]
    return Layout(blocks, _merged([*references, *find_literals(others)]))


def _merged(ranges: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return tuple(merged)
