"""A claim's words as plain text, and where they stand in the answer."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator

from citespan.evaluators.decompose.sentences import Sentence
from citespan.evaluators.layout.blocks import BlockKind

__all__ = ["own_range", "plain_text", "row_in_columns", "text_of"]

_CLOSING = ".,;:!?)]}。，、；：！？）】」』”’»…؟۔।،؛%"
_STOPS = ".!?。！？؟۔।…"
_LINK = re.compile(
    r"!?\[(?P<text>[^\[\]\n]{0,300})\]\(<?[^\s()<>]*(?:\([^\s()<>]*\)[^\s()<>]*)?>?(?:\s+\"[^\"\n]{0,200}\")?\)"
)
_BREAK = re.compile(r"</?(?:br|p|div|li|ul|ol)\s*/?>", re.IGNORECASE)
_TAG = re.compile(r"</?(?:a|b|i|u|em|strong|span|mark|sub|small)(?:\s[^<>]{0,200})?>", re.IGNORECASE)
_CODE = re.compile(r"(?<!`)(`{1,3})(?!`)(.{1,500}?)(?<!`)\1(?!`)")
_DELIMITERS = re.compile(r"\*{1,3}|_{1,3}|~~")
_ESCAPE = re.compile(r"\\([*_`~#\[\]|>])")
_BULLET = re.compile(r"^\s*(?:[•‣▪◦●○·–—+-]|\[[ xX]\]|☐|☑|✅|✔)\s+")
_CLOSING_EMPHASIS = re.compile(r"[*_~]{1,3}(?:[\s.,;:!?)\]。，；：！？]|$)")
_PRIVATE_USE = re.compile(r"[\ue200-\ue206]|\\ue20[0-6]")
_SPACES = re.compile(r"\s+")
_STRAY = re.compile(r"^[.,;:!?。，；：]+\s+")
"""Stops left over at the start: of a marker's sentence, of a clause."""

_MARKED_UP = re.compile(r"[*_`~\[\\<(（•‣▪◦●○·–—+☐☑✅✔-]")
_EMPTY_BRACKETS = re.compile(r"\s{0,3}[(（\[]\s*[,;，；]*\s*[)）\]]")
_LEFT_EDGE = re.compile(r"(?:[.,;:!?。，；：]+\s)?(?:[\s|*_~#>`•‣▪◦●○·☐☑✅✔]|[–—+-](?=\s)|\[[ xX]\]\s)*")
_RIGHT_EDGE = frozenset(" \t\n\r\u00a0\u2009\u202f\u3000|*_~`#\\")


def text_of(sentence: Sentence, start: int, end: int) -> str:
    """Return the words of `sentence` from `start` to `end` (offsets into it) as plain text.

    Markers are gone with the space before them, Markdown marks too; a table row's cells are joined by ` | `.
    """
    text = ""
    for piece, is_after_marker in _pieces(sentence, start, end):
        text = _join(text, piece) if is_after_marker else text + piece
    text = plain_text(text)
    if sentence.kind is BlockKind.ROW:
        return " | ".join(cell.strip() for cell in text.split("|") if cell.strip())
    return text


def row_in_columns(row: Sentence) -> str:
    """Return a table row's cells, each led by its column's name: `Tea: Green | Heat: 80 C`."""
    names, cells = _cells(row.header), _cells(row.masked)
    names += [""] * (len(cells) - len(names))
    pairs = [(name, cell) for name, cell in zip(names, cells, strict=False) if re.search(r"\w", cell)]
    return " | ".join(f"{name}: {cell}" if name else cell for name, cell in pairs)


def _cells(row: str) -> list[str]:
    return [plain_text(cell) for cell in row.strip().removeprefix("|").removesuffix("|").split("|")]


def plain_text(text: str) -> str:
    """Return Markdown as a reader sees it: no emphasis, link addresses, code ticks or bullets."""
    text = _PRIVATE_USE.sub("", text)
    text = _STRAY.sub("", _SPACES.sub(" ", text).strip())
    if not _MARKED_UP.search(text):
        return text
    text = _LINK.sub(lambda match: "" if match[0].startswith("!") else match["text"], text)
    text = _CODE.sub(r"\2", _TAG.sub("", _BREAK.sub(" ", text)))
    text = _BULLET.sub("", _without_emphasis(text))
    text = _EMPTY_BRACKETS.sub("", _ESCAPE.sub(r"\1", text))
    return _SPACES.sub(" ", text).strip().removesuffix("\\")


def own_range(sentence: Sentence, start: int, end: int) -> tuple[int, int]:
    """Return where the words from `start` to `end` stand in the answer, without markers at either edge."""
    masked = sentence.masked
    lead = _LEFT_EDGE.match(masked, start, end)
    start = lead.end() if lead else start
    run_ends = [run.end - sentence.start for run in sentence.runs]
    while True:
        while end > start and masked[end - 1] in _RIGHT_EDGE:
            end -= 1
        stop = end
        while stop > start and masked[stop - 1] in _CLOSING:
            stop -= 1
        last = bisect_right(run_ends, stop) - 1
        is_after_marker = stop < end and last >= 0 and not masked[run_ends[last] : stop].strip()
        if not is_after_marker or run_ends[last] <= start:
            return sentence.start + start, sentence.start + end
        end = stop


def _pieces(sentence: Sentence, start: int, end: int) -> Iterator[tuple[str, bool]]:
    """Yield the text between markers; the flag says that a marker without words of its own stood before it."""
    at = start
    is_after = False
    for run in sentence.runs:
        left, right = run.start - sentence.start, run.end - sentence.start
        if right <= at or left >= end:
            continue
        yield sentence.masked[at : max(at, left)], is_after
        kept = sentence.masked[max(at, left) : min(right, end)].strip()
        if kept:
            yield kept, False
        is_after = not kept
        at = min(right, end)
    yield sentence.masked[at:end], is_after


def _join(left: str, right: str) -> str:
    """Return two stretches of text with the marker between them taken out."""
    had_space = left[-1:].isspace() or right[:1].isspace()
    before, after = left.rstrip(), right.lstrip()
    if before[-1:] in _STOPS and before and after[:1] == before[-1:]:
        after = after[1:].lstrip()
    if not before or not after or after[0] in _CLOSING or _CLOSING_EMPHASIS.match(after):
        return before + after
    is_wide = ord(before[-1]) > 0x2E80 or ord(after[0]) > 0x2E80
    would_fuse = before[-1].isalnum() and after[0].isalnum() and not is_wide
    is_open = before[-1] in "([{（【「『“‘«"
    return f"{before} {after}" if not is_open and (had_space or would_fuse) else before + after


def _without_emphasis(text: str) -> str:
    """Return `text` without paired `*`, `_` and `~~` that open before a word and close after one."""
    if not any(sign in text for sign in "*_~"):
        return text
    open_runs: dict[str, list[re.Match[str]]] = {}
    dropped: list[re.Match[str]] = []
    for run in _DELIMITERS.finditer(text):
        before, after = text[run.start() - 1 : run.start()], text[run.end() : run.end() + 1]
        if run[0][0] == "_" and before.isalnum() and after.isalnum():
            continue
        stack = open_runs.setdefault(run[0], [])
        if stack and before and not before.isspace():
            dropped += (stack.pop(), run)
        elif after and not after.isspace():
            stack.append(run)
    pieces: list[str] = []
    at = 0
    for run in sorted(dropped, key=lambda match: match.start()):
        pieces.append(text[at : run.start()])
        at = run.end()
    return "".join((*pieces, text[at:]))
