"""The passages that a prompt holds: its labelled blocks, and its JSON lists of documents."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

from citespan.evaluators.reading.document_values import find_documents
from citespan.evaluators.reading.documents import Document
from citespan.evaluators.reading.label_forms import LabelToken, fold_label

__all__ = [
    "Block",
    "JsonDocument",
    "Section",
    "find_json_documents",
    "rising_runs",
    "split_blocks",
    "without_examples",
]


@dataclass(frozen=True, slots=True)
class Section:
    """One part of a prompt: a message, or the value of a template's variable."""

    text: str
    """Its text."""

    role: str = "user"
    """Who wrote it: `system`, `user`, `tool`, or `variable` for the value of a template's variable."""

    @property
    def is_exact(self) -> bool:
        """Whether the last passage in it ends where it ends: a variable holds the passages and nothing else."""
        return self.role == "variable"


@dataclass(frozen=True, slots=True)
class Block:
    """One labelled block of a section."""

    token: LabelToken
    """Its label."""

    start: int
    """First code point of what the label is for."""

    end: int
    """One past its last code point."""

    text: str
    """The text itself, without the marks around it."""


@dataclass(frozen=True, slots=True)
class JsonDocument:
    """One document of a JSON list in a prompt."""

    document: Document
    """The document."""

    start: int
    """Where its list begins, plus its place in the list: good for order, not for slicing."""

    end: int
    """One past the list's last code point."""


_SEPARATOR = re.compile(
    r"\n[ \t]{0,8}(?:-{3,}|={3,}|\*{3,}|_{3,}|~{3,}|`{3}|</?[a-zA-Z][\w-]{0,40}>|\[\[ ## )"
)
_CUE = re.compile(
    r"\n[ \t]{0,8}[*#> ]{0,6}(?:question|query|q|user|human|assistant|answer|a|instructions?|task|frage|pregunta|"
    r"domanda|pergunta|问题|问|質問|يسأل|chat history|conversation|remember|note|respond\w*|output)\b[^\n:：]{0,40}[:：]",
    re.IGNORECASE,
)
_EXAMPLE = re.compile(r"\b(?:examples?|e\.g\.|beispiele?|exemples?|ejemplos?|esempio)\b|例", re.IGNORECASE)
_EXAMPLE_REACH = 80
"""How far, in code points, before an example the word stands that says so."""

_RULE_AT_END = re.compile(r"\n[ \t]{0,8}(?:-{3,40}|={3,40}|\*{3,40}|_{3,40})\s{0,40}\Z")
_INNER = re.compile(
    r"<(document_content|content|contents|text|body|page_content)>(.*?)</\1>", re.IGNORECASE | re.DOTALL
)
_JSON_START = re.compile(r"\[\s{0,8}[{\"]|\{\s{0,8}\"")
_JSON_TRIES = 64
"""How many places of one section are tried as JSON: each costs a parse."""


def rising_runs(tokens: Sequence[LabelToken]) -> list[list[LabelToken]]:
    """Return the tokens of one form split wherever numbers stop rising or a name comes again."""
    runs: list[list[LabelToken]] = []
    seen: set[str] = set()
    for token in tokens:
        previous = runs[-1][-1] if runs else None
        is_next = previous is not None and (
            token.number > previous.number
            if token.number is not None and previous.number is not None
            else fold_label(token.label) not in seen
        )
        if not is_next:
            runs.append([])
            seen = set()
        runs[-1].append(token)
        seen.add(fold_label(token.label))
    return runs


def without_examples(text: str, runs: Sequence[list[LabelToken]]) -> list[list[LabelToken]]:
    """Return the runs without those that an example gives; what comes last is no example."""
    starts = [run[0].start for run in runs]
    before = [text[max(start - _EXAMPLE_REACH, 0) : start] for start in starts]
    return [run for n, run in enumerate(runs) if n == len(runs) - 1 or _EXAMPLE.search(before[n]) is None]


def split_blocks(section: Section, run: Sequence[LabelToken], limit: int) -> list[Block]:
    """Return the blocks that the labels of one run begin.

    Args:
        section: Where they stand.
        run: The labels, in order.
        limit: Where the section, or the next run, ends the last block at the latest.
    """
    blocks: list[Block] = []
    for n, token in enumerate(run):
        latest = run[n + 1].start if n + 1 < len(run) else limit
        closing = token.closing.search(section.text, token.end, latest) if token.closing is not None else None
        if closing is not None:
            end = closing.start()
        elif n + 1 < len(run) or section.is_exact:
            end = latest
        else:
            end = _natural_end(section.text, token.end, latest, blocks)
        blocks.append(_block(section.text, token, end))
    return blocks


def _block(text: str, token: LabelToken, end: int) -> Block:
    content = _RULE_AT_END.sub("", text[token.end : end])
    inner = _INNER.search(content)
    block = Block(token, token.end, end, (inner[2] if inner is not None else content).strip())
    if block.text.startswith("«") and block.text.endswith("»"):
        block = replace(block, text=block.text[1:-1])
    return block


def _natural_end(text: str, start: int, limit: int, earlier: Sequence[Block]) -> int:
    """Return where the last block ends: at a rule, at a cue such as `Question:`, or where its siblings would."""
    ends = [limit]
    for pattern in (_SEPARATOR, _CUE):
        match = pattern.search(text, start, limit)
        if match is not None:
            ends.append(match.start())
    siblings = [block.text for block in earlier]
    first = start + len(text[start:limit]) - len(text[start:limit].lstrip())
    if not any("\n\n" in sibling for sibling in siblings):
        ends.append(_find(text, "\n\n", first, limit))
    if siblings and not any("\n" in sibling for sibling in siblings):
        ends.append(_find(text, "\n", first, limit))
    return min(ends)


def _find(text: str, what: str, start: int, limit: int) -> int:
    found = text.find(what, start, limit)
    return limit if found < 0 else found


def find_json_documents(text: str) -> list[JsonDocument]:
    """Return the documents of the JSON lists in a prompt, in order."""
    decoder = json.JSONDecoder()
    found: list[JsonDocument] = []
    position = 0
    for _ in range(_JSON_TRIES):
        match = _JSON_START.search(text, position)
        if match is None:
            break
        try:
            value, end = cast("tuple[object, int]", decoder.raw_decode(text, match.start()))
        except (ValueError, RecursionError):
            position = match.start() + 1
            continue
        documents = find_documents(value)
        found += [JsonDocument(document, match.start() + n, end) for n, document in enumerate(documents)]
        position = end
    return found
