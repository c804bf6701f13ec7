"""Citations of a structured answer: `{"answer": .., "citations": [..]}` in an output or a tool call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from citespan.evaluators.reading.answer_text import structured_answer_in
from citespan.evaluators.reading.label_forms import fold_label
from citespan.evaluators.reading.locate import squeeze
from citespan.evaluators.reading.normalise import SpanView
from citespan.evaluators.reading.source_names import CitedSources
from citespan.evaluators.reading.values import is_list, is_object, items, merged, walk
from citespan.tracer.citations import Citation
from citespan.tracer.passages import Passage

__all__ = ["StructuredCitations", "structured_citations"]

_LIST_KEYS = ("citations", "cited_sources", "source_ids", "cited_ids", "citation_ids")
"""Keys of the list of targets."""

_TEXT_KEYS = ("sources",)
"""Keys that hold targets as one text, `tea.md, white.pdf`; a list under them is what was retrieved, cited or not."""

_MAX_NAME = 200
"""Longest name of a target, in code points."""

_TARGET_KEYS = (
    "source_id",
    "passage_id",
    "document_id",
    "doc_id",
    "chunk_id",
    "id",
    "citation_id",
    "index",
    "source",
)
_QUOTE_KEYS = ("quote", "cited_text", "text", "excerpt", "evidence")


@dataclass(frozen=True, slots=True)
class StructuredCitations:
    """The citations beside a structured answer."""

    citations: tuple[Citation, ...]
    """Those that name one passage, or none of the run's."""

    reasons: tuple[str, ...] = ()
    """Which could not be told apart."""


def structured_citations(
    views: Sequence[SpanView], answer: str, passages: Sequence[Passage]
) -> StructuredCitations:
    """Return the citations that the first of the spans keeps beside exactly this answer.

    A target is a label the model was shown, else an id. A quote that stands in one passage alone names it too.
    """
    for view in views:
        values = [view.output, *(call.arguments for m in view.output_messages for call in m.tool_calls)]
        for value in values:
            for node in _objects(value):
                if structured_answer_in(node) == answer and (targets := list(_targets(node))):
                    return _resolved(targets, passages)
    return StructuredCitations(())


def _objects(value: object) -> Iterator[Mapping[str, object]]:
    for node in walk(value):
        yield node
        yield from (inner for child in node.values() if is_list(child) and is_object(inner := merged(child)))


@dataclass(frozen=True, slots=True)
class _Target:
    name: str
    quote: str | None


def _targets(node: Mapping[str, object]) -> Iterator[_Target]:
    for key in (*_LIST_KEYS, *_TEXT_KEYS):
        value = node.get(key)
        if isinstance(value, str):
            entries: list[object] = [part.strip() for part in value.split(",")]
        else:
            entries = items(value) if key in _LIST_KEYS else []
        for entry in entries:
            if _is_name(entry):
                yield _Target(str(entry), None)
            elif is_object(entry):
                yield from _from_object(_unwrapped(entry))
        if entries:
            return


def _unwrapped(entry: Mapping[str, object]) -> Mapping[str, object]:
    """Return what an entry such as `{"citation": [{"source_id": ..}, {"quote": ..}]}` holds."""
    (inner, *others) = entry.values() or [None]
    parts = [part for part in items(inner) if is_object(part)] if not others else []
    return {key: value for part in parts for key, value in part.items()} or entry


def _is_name(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, str | int):
        return False
    return 0 < len(str(value).strip()) <= _MAX_NAME and "(" not in str(value)[:40]


def _from_object(entry: Mapping[str, object]) -> Iterator[_Target]:
    quote = next(
        (text for key in _QUOTE_KEYS if isinstance(text := entry.get(key), str) and text.strip()), None
    )
    for key in _TARGET_KEYS:
        name = entry.get(key)
        if _is_name(name):
            yield _Target(str(name), quote)
            return
    if quote is not None:
        yield _Target("", quote)


def _resolved(targets: Sequence[_Target], passages: Sequence[Passage]) -> StructuredCitations:
    found: list[Citation] = []
    reasons: list[str] = []
    for target in targets:
        ids = _named(target.name, passages) or _quoted(target.quote, passages)
        if len(ids) > 1:
            reasons.append(f"ambiguous_recorded_citation:{target.name}")
            continue
        passage_id = ids[0] if ids else target.name
        if passage_id:
            found.append(Citation(passage_id, origin="structured_output", quote=target.quote))
    return StructuredCitations(tuple(dict.fromkeys(found)), tuple(dict.fromkeys(reasons)))


def _named(name: str, passages: Sequence[Passage]) -> list[str]:
    folded = fold_label(name)
    by_label = [p.id for p in passages if p.label is not None and fold_label(p.label) == folded]
    by_id = [p.id for p in passages if fold_label(p.id) == folded]
    sources = CitedSources([folded])
    by_name = [p.id for p in passages if sources.find(p) is not None]
    return (by_label or by_id or by_name) if folded else []


def _quoted(quote: str | None, passages: Sequence[Passage]) -> list[str]:
    wanted = squeeze(quote or "")
    return [p.id for p in passages if len(wanted) >= 8 and p.text is not None and wanted in squeeze(p.text)]
