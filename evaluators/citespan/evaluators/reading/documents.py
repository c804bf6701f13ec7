"""The documents that a span carries, in OpenInference's words, whatever became of them on the way."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from citespan.evaluators.sources.source import Span

__all__ = ["Document", "documents_of", "metadata_of"]

_KEY = re.compile(
    r"(?P<list>retrieval\.documents|reranker\.(?:input|output)_documents)\.(?P<n>\d+)\.document\.(?P<field>.+)"
)


@dataclass(frozen=True, slots=True)
class Document:
    """One document of a retriever's or reranker's span."""

    id: str | None
    """Its id, if the span says it."""

    content: str | None
    """Its text, if the span has it."""

    span_id: str | None = None
    """The span that carries it."""

    score: float | None = None
    """Retrieval score."""

    metadata: Mapping[str, object] = field(default_factory=dict[str, object])
    """Its metadata as an object, be it recorded as JSON, as an object or under dotted keys."""


def documents_of(span: Span) -> tuple[Document, ...]:
    """Return the documents of `span`: what a retriever returned, else a reranker's output, else its input."""
    lists: dict[str, dict[int, dict[str, object]]] = {}
    for key, value in span.attributes.items():
        if (match := _KEY.fullmatch(key)) is not None:
            lists.setdefault(match["list"], {}).setdefault(int(match["n"]), {})[match["field"]] = value
    for name in ("retrieval.documents", "reranker.output_documents", "reranker.input_documents"):
        if name in lists:
            return tuple(_document(fields, span) for _, fields in sorted(lists[name].items()))
    return ()


def _document(fields: Mapping[str, object], span: Span) -> Document:
    document_id, content, score = fields.get("id"), fields.get("content"), fields.get("score")
    return Document(
        id=None if document_id is None else str(document_id),
        content=content if isinstance(content, str) else None,
        span_id=span.span_id,
        score=float(score) if isinstance(score, int | float) and not isinstance(score, bool) else None,
        metadata=metadata_of(fields),
    )


def metadata_of(fields: Mapping[str, object]) -> Mapping[str, object]:
    """Return what stands under `metadata`, or under keys that begin with `metadata.`.

    Phoenix parses the JSON and flattens it, so that a dot in a key can no longer be told from a level.
    """
    value = fields.get("metadata")
    if isinstance(value, str):
        try:
            value = cast("object", json.loads(value))
        except ValueError:
            return {"metadata": value}
    if isinstance(value, Mapping):
        return cast("Mapping[str, object]", value)
    prefix = "metadata."
    return {key.removeprefix(prefix): item for key, item in fields.items() if key.startswith(prefix)}
