"""Tell an answer's reference list from its text: entries are neither citations nor claims."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from citespan.evaluators.layout.blocks import Block, BlockKind

__all__ = ["separate_references"]


@dataclass(frozen=True, slots=True)
class _Line:
    """One line of a block."""

    block: int
    """Number of its block."""

    at: int
    """Where it starts in the block's text."""

    text: str
    """Its text."""

    kind: BlockKind
    """What its block is."""

    is_first: bool
    """Whether it is the block's first line."""


_TITLE_WORDS = (
    r"(?:list of )?(?:references?|cited references|reference list|sources?|sources? (?:cited|used|list)|citations?"
    r"|citation list|works cited|cited works|bibliography|footnotes?|endnotes|further reading|documents? cited"
    r"|quellen(?:verzeichnis|angaben?)?|quelle|literatur(?:verzeichnis)?|belege|fußnoten|einzelnachweise"
    r"|fuentes?|referencias(?: bibliográficas)?|bibliografía|references? bibliographiques|références?|bibliographie"
    r"|fonti|riferimenti|bibliografia|fontes|referências|bronnen|źródła|källor|kilder"
    r"|источники|ссылки|литература|список литературы|المراجع|المصادر|参考文献|参考资料|参考資料|引用文献|引用|来源"
    r"|資料來源|出典|参照|出处|참고\s?문헌|참고|출처|स्रोत|संदर्भ)"
)
_DRESS = r"[\s*_#~`\-–—=]*(?:\d+[.)])?[\s*_]*(?:📚|🔗)?\s*"
_TITLE = re.compile(rf"{_DRESS}{_TITLE_WORDS}[\s*_]*[:：]?[\s*_:：]*", re.IGNORECASE)
_TITLED_LINE = re.compile(rf"{_DRESS}{_TITLE_WORDS}[\s*_]*[:：][\s*_]*(?P<rest>\S.*)", re.IGNORECASE)
_MARK = re.compile(
    r"[\s*_]*(?:-\s+)?(?P<mark>[\[【［]{1,2}[ \t]*[\^#]?[^\[\]【】［］\n]{1,40}[ \t]*[\]】］]{1,2}|[⁰¹²³⁴⁵⁶⁷⁸⁹]{1,4}"
    r"|<sup>[^<>\n]{1,20}</sup>|\(\d{1,3}\)|\^\d{1,3})[*_]*[ \t]*(?P<colon>[:：])?[ \t]*(?P<rest>.*)"
)
_FOOTNOTE = re.compile(r"[\s>]*\[\^[^\[\]\n]{1,60}\]:|[\s>]*\[[^\[\]\n]{0,30}\d[^\[\]\n]{0,30}\]:[ \t]*\S")
_ADDRESS = re.compile(
    r"https?://|www\.|\]\(|\b[\w-]+\.(?:pdf|docx?|pptx?|xlsx?|csv|txt|md|html?)\b", re.IGNORECASE
)
_PHRASES = re.compile(
    r"\s*(?:CITATION[ \t]*[【\[]|(?:START|END)_PHRASE[ \t]*:|CITATION LIST[ \t]*$|FINAL ANSWER[ \t]*:?[ \t]*$)"
)
_ENDS_WITH_MARK = re.compile(r"[\]】］⁰¹²³⁴⁵⁶⁷⁸⁹][ \t]*[.!?。！？]?[*_ \t]*$")
_ENDS_SENTENCE = re.compile(r"[.!?。！？][\s*_\"”»)]*$")
_ONLY_MARKS = re.compile(
    r"[\s,;，；、&.]*(?:(?:\[{1,2}|【|［)[^\[\]【】［］\n]{1,60}(?:\]{1,2}|】|］)[\s,;，；、&.]*)+"
)


def separate_references(blocks: Sequence[Block]) -> tuple[Block, ...]:
    """Return the blocks with titles and entries of reference lists cut out as blocks of their own.

    A list is told by its title (`References`, `Sources:`), as footnote definitions, or as the answer's last
    lines, each led by a marker, if one of those is cited above or none of the lines is a sentence.
    """
    lines = [line for number, block in enumerate(blocks) for line in _lines(number, block)]
    marked = _titled(lines) | _footnotes(lines) | _trailing(lines)
    by_block: dict[int, list[tuple[_Line, bool]]] = {lines[n].block: [] for n in marked}
    for n, line in enumerate(lines):
        if line.block in by_block:
            by_block[line.block].append((line, n in marked))
    separated: list[Block] = []
    for number, block in enumerate(blocks):
        separated += _cut(block, by_block[number]) if number in by_block else [block]
    return tuple(separated)


def _lines(number: int, block: Block) -> Iterator[_Line]:
    if block.kind is BlockKind.CODE:
        return
    at = 0
    for text in block.text.split("\n"):
        yield _Line(number, at, text, block.kind, at == 0)
        at += len(text) + 1


def _titled(lines: Sequence[_Line]) -> set[int]:
    """Return the numbers of titles and the entries that follow each."""
    marked: set[int] = set()
    title: int | None = None
    for n, line in enumerate(lines):
        if _TITLE.fullmatch(line.text) and (line.is_first or line.text.rstrip(" *_").endswith((":", "："))):
            title = n
            if n == len(lines) - 1 and n > 0:
                marked.add(n)
        elif line.is_first and _is_titled_line(line.text):
            marked.add(n)
            title = n
        elif title is not None:
            if line.kind is BlockKind.HEADING or not _is_entry(line, lines[n - 1], n - 1 in marked):
                title = None
            else:
                marked |= {title, n}
    return marked


def _is_titled_line(text: str) -> bool:
    """Return whether title and entries share the line: `Sources: [1] a.md, [2] b.md`."""
    match = _TITLED_LINE.fullmatch(text)
    if match is None:
        return False
    return bool(_ONLY_MARKS.fullmatch(match["rest"]) or _ADDRESS.search(match["rest"]))


def _is_entry(line: _Line, before: _Line, is_after_entry: bool) -> bool:
    if _MARK.match(line.text) or _ADDRESS.search(line.text):
        return True
    if not line.is_first and line.block == before.block and is_after_entry:
        return True
    is_listed = line.kind in (BlockKind.ITEM, BlockKind.ROW, BlockKind.HEADER_ROW)
    return is_listed and not _ENDS_WITH_MARK.search(line.text)


def _footnotes(lines: Sequence[_Line]) -> set[int]:
    """Return the numbers of footnote definitions with their further lines, and of quoted citation phrases."""
    marked: set[int] = set()
    is_open = False
    for n, line in enumerate(lines):
        is_open = bool(_FOOTNOTE.match(line.text)) or (is_open and not line.is_first)
        if is_open or _PHRASES.match(line.text):
            marked.add(n)
    return marked


def _trailing(lines: Sequence[_Line]) -> set[int]:
    """Return the numbers of the answer's last lines, where they are a list without a title."""
    first = len(lines)
    marks: list[re.Match[str]] = []
    while first > 0:
        match = _MARK.fullmatch(lines[first - 1].text)
        if match is None or not re.search(r"\w", match["rest"]) or lines[first - 1].kind is BlockKind.ROW:
            break
        marks.append(match)
        first -= 1
    if first == 0 or not marks:
        return set()
    above = "\n".join(line.text for line in lines[:first])
    is_cited = any(match["mark"] in above for match in marks)
    is_list = is_cited or all(_reads_as_source(match["rest"]) for match in marks)
    return set(range(first, len(lines))) if is_list else set()


def _reads_as_source(text: str) -> bool:
    return bool(_ADDRESS.search(text)) or not (_ENDS_SENTENCE.search(text) or _ENDS_WITH_MARK.search(text))


def _cut(block: Block, lines: Sequence[tuple[_Line, bool]]) -> Iterator[Block]:
    for is_reference, group in groupby(lines, key=lambda pair: pair[1]):
        part = [line for line, _ in group]
        left = part[0].at + len(part[0].text) - len(part[0].text.lstrip())
        right = part[-1].at + len(part[-1].text.rstrip())
        if right > left:
            kind = BlockKind.REFERENCE if is_reference else block.kind
            text = block.text[left:right]
            yield replace(block, kind=kind, start=block.start + left, end=block.start + right, text=text)
