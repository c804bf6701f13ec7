"""The blocks of an answer: paragraphs, list items, headings, table rows and code, with their place in it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from markdown_it import MarkdownIt
from markdown_it.token import Token

__all__ = ["Block", "BlockKind", "parse_blocks"]


class BlockKind(StrEnum):
    """What a block of Markdown is."""

    PARAGRAPH = "paragraph"
    """A paragraph, also one inside a quote or a list item."""

    ITEM = "item"
    """The text of a list item."""

    HEADING = "heading"
    """A heading, led by `#` or underlined."""

    HEADER_ROW = "header_row"
    """The first row of a table: it names columns and asserts nothing."""

    ROW = "row"
    """A row of a table's body."""

    CODE = "code"
    """Fenced or indented code: neither claims nor citations."""

    REFERENCE = "reference"
    """Title or entry of a reference list: neither claims nor citations."""


@dataclass(frozen=True, slots=True)
class Block:
    """One block of an answer."""

    kind: BlockKind
    """What it is."""

    start: int
    """First code point of its text in the answer, after list bullets and the like."""

    end: int
    """One past its last code point."""

    text: str
    """The answer from `start` to `end`, as long: marks between its lines (`>`) are spaces, line breaks all LF."""

    level: int = 0
    """Depth of a heading, 1 to 6; 0 for anything else."""


_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_CODE_LINE = re.compile(
    r"[;{}=]|\w\(|^\s*(?:def|class|import|from|return|for|while|if|SELECT)\b", re.MULTILINE
)
_PREFIX = re.compile(r"[\s>]*(?:[-*+]\s+|\d{1,9}[.)]\s+)?")
_NOT_SPACE = re.compile(r"[^\s]|\r(?=\n)")
_SENTENCE_LIKE = re.compile(r"[.!?。！？\]】)][*_\s]*$")
_RULE_ROW = re.compile(r"\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?")


def _parser() -> MarkdownIt:
    # Inline rules are off: what is inside a line is read with offsets, elsewhere.
    # Link definitions are off: `[1]: https://...` is an entry of a reference list, not to be swallowed.
    # Tables are read from their paragraph's lines: the parser makes three tokens a cell and drops surplus cells.
    return MarkdownIt("commonmark", {"html": False}).disable(
        ["inline", "text_join", "reference", "html_block"]
    )


_PARSER = _parser()


def parse_blocks(answer: str) -> tuple[Block, ...]:
    """Return the blocks of `answer` in order; every line with a word is in one of them."""
    lines = [(match.start(), match.end()) for match in _LINE.finditer(answer)]
    covered = [False] * len(lines)
    blocks: list[Block] = []
    for kind, token, level in _leaves(_PARSER.parse(answer)):
        first, last = token.map or (0, 0)
        covered[first:last] = [True] * (last - first)
        if kind is BlockKind.CODE:
            blocks.extend(_block(answer, kind, [_trimmed(answer, lines[first][0], lines[last - 1][1])]))
        elif kind is not None:
            blocks.extend(_text_blocks(answer, kind, _content_spans(answer, lines[first:last], token), level))
    for line, is_covered in zip(lines, covered, strict=True):
        if not is_covered and re.search(r"\w", answer[slice(*line)]):  # nested too deep for the parser
            blocks.extend(_block(answer, BlockKind.PARAGRAPH, [_without_prefix(answer, *line)]))
    return tuple(sorted(blocks, key=lambda block: block.start))


def _leaves(tokens: Sequence[Token]) -> Iterator[tuple[BlockKind | None, Token, int]]:
    """Yield the tokens that hold text with what they are and a heading's depth; `None` for lines without text."""
    in_item = level = 0
    is_underlined = False
    for token in tokens:
        match token.type:
            case "list_item_open" | "list_item_close":
                in_item += token.nesting
            case "heading_open":
                level = int(token.tag[1:])
                is_underlined = token.markup in ("-", "=")
                yield None, token, 0
            case "heading_close":
                level = 0
            case "hr":
                yield None, token, 0
            case "fence" | "code_block":
                is_prose = token.type == "code_block" and not _CODE_LINE.search(token.content)
                yield (BlockKind.PARAGRAPH if is_prose else BlockKind.CODE), token, 0
            case "inline":
                if level and not (is_underlined and _SENTENCE_LIKE.search(token.content)):
                    yield BlockKind.HEADING, token, level
                else:
                    yield (BlockKind.ITEM if in_item else BlockKind.PARAGRAPH), token, 0
            case _:
                pass


def _content_spans(answer: str, lines: Sequence[tuple[int, int]], token: Token) -> list[tuple[int, int]]:
    """Return where the block's own text stands on each of its lines."""
    spans: list[tuple[int, int]] = []
    for (start, end), content in zip(lines, token.content.split("\n"), strict=False):
        text = content.strip()
        at = answer.rfind(text, start, end)
        spans.append((at, at + len(text)) if at >= 0 else _without_prefix(answer, start, end))
    return spans


def _without_prefix(answer: str, start: int, end: int) -> tuple[int, int]:
    prefix = _PREFIX.match(answer, start, end)
    return _trimmed(answer, prefix.end() if prefix else start, end)


def _trimmed(answer: str, start: int, end: int) -> tuple[int, int]:
    text = answer[start:end]
    left = len(text) - len(text.lstrip())
    return start + left, start + max(left, len(text.rstrip()))


def _text_blocks(
    answer: str, kind: BlockKind, spans: Sequence[tuple[int, int]], level: int
) -> Iterator[Block]:
    """Yield the block, or a table's rows where its lines hold one."""
    rule = next((n for n in range(1, len(spans)) if _is_table_rule(answer, spans[n - 1], spans[n])), None)
    if rule is None:
        yield from _block(answer, kind, spans, level)
        return
    yield from _block(answer, kind, spans[: rule - 1])
    yield from _block(answer, BlockKind.HEADER_ROW, [spans[rule - 1]])
    for span in spans[rule + 1 :]:
        yield from _block(answer, BlockKind.ROW, [span])


def _is_table_rule(answer: str, header: tuple[int, int], line: tuple[int, int]) -> bool:
    """Return whether `line` is the row of dashes under a table's header row."""
    has_pipes = answer.find("|", *header) >= 0 and answer.find("-", *line) >= 0
    return has_pipes and _RULE_ROW.fullmatch(answer, *line) is not None


def _block(answer: str, kind: BlockKind, spans: Sequence[tuple[int, int]], level: int = 0) -> Iterator[Block]:
    spans = [span for span in spans if span[1] > span[0]]
    if not spans:
        return
    pieces: list[str] = []
    at = spans[0][0]
    for start, end in spans:
        pieces.append(_NOT_SPACE.sub(" ", answer[at:start]))
        pieces.append(answer[start:end])
        at = end
    yield Block(kind, spans[0][0], at, "".join(pieces).replace("\r", "\n"), level)
