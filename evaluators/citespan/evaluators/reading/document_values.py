"""Documents inside a span's input or output: whatever shape a retriever, a tool or a store gave them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from citespan.evaluators.reading.documents import Document
from citespan.evaluators.reading.messages import read_message
from citespan.evaluators.reading.values import (
    MAX_DEPTH,
    as_object,
    fields,
    is_list,
    is_object,
    items,
    parse_json,
)

__all__ = ["document_of", "find_documents", "metadata_id", "read_documents"]

_TEXT_KEYS = (
    "page_content",
    "content",
    "text",
    "chunk_text",
    "chunk",
    "passage",
    "body",
    "snippet",
    "excerpt",
    "quote",
)
"""Keys that hold a document's text, the likeliest first."""

_ID_KEYS = (
    "id",
    "id_",
    "_id",
    "doc_id",
    "document_id",
    "docid",
    "node_id",
    "chunk_id",
    "passage_id",
    "file_id",
    "uuid",
)
"""Keys that hold a document's id, the likeliest first."""

_METADATA_ID_KEYS = (
    "id",
    "doc_id",
    "document_id",
    "chunk_id",
    "node_id",
    "x-amz-bedrock-kb-chunk-id",
    "_id",
    "uuid",
)
_SIGNS = frozenset(
    [
        *_ID_KEYS,
        "page_content",
        "metadata",
        "meta",
        "meta_data",
        "score",
        "similarity",
        "distance",
        "relevance_score",
        "rank",
        "title",
        "url",
        "uri",
        "source",
        "filename",
        "file_name",
        "filepath",
        "name",
        "location",
        "page",
        "snippet",
        "excerpt",
        "passage",
        "chunk_text",
    ]
)
"""Keys that make an object with text a document rather than a block of a message."""

_WRAPPERS = (
    "kwargs",
    "node",
    "document",
    "data",
    "payload",
    "_source",
    "fields",
    "entity",
    "properties",
    "item",
)
"""Keys under which stores put the document beside its score."""

_LIST_KEYS = (
    "documents",
    "docs",
    "results",
    "hits",
    "matches",
    "passages",
    "chunks",
    "nodes",
    "source_documents",
    "source_nodes",
    "retrieved_documents",
    "retrieved_contexts",
    "retrievalResults",
    "contexts",
    "context",
    "sources",
    "references",
    "search_results",
    "artifact",
    "points",
    "items",
    "result",
    "data",
    "output",
    "response",
    "content",
    "value",
    "update",
)
"""Keys under which a tool or a store keeps its list of documents."""

_ROLES = frozenset(["user", "assistant", "system", "tool", "function", "developer", "model"])
_SENTENCE = re.compile(r"\S+(?:\s+\S+){3}")
"""Four words: shorter strings in a list are names or labels rather than passages."""

_REPR = re.compile(r"<|\w+\(\w+=")
"""How the repr of an object begins: Haystack and LlamaIndex write lists of them."""


def read_documents(value: object, *, span_id: str | None = None) -> tuple[Document, ...]:
    """Return the documents that a list is, or nothing if it is no list of documents.

    Args:
        value: A list of objects or texts, an object of them by number, or either as JSON.
        span_id: The span that carries them.
    """
    value = parse_json(value)
    entries = items(value)
    if not entries:
        return ()
    if all(isinstance(entry, str) for entry in entries):
        texts = [str(entry) for entry in entries]
        are_passages = all(_SENTENCE.match(text.strip()) and not _REPR.match(text.strip()) for text in texts)
        return tuple(Document(None, text, span_id) for text in texts) if are_passages else ()
    found = [document_of(entry, span_id=span_id) for entry in entries]
    if any(document is None for document in found):
        return ()
    documents = tuple(document for document in found if document is not None)
    return documents if any(document.content for document in documents) else ()


def find_documents(value: object, *, span_id: str | None = None, depth: int = 0) -> tuple[Document, ...]:
    """Return the documents that a value is or keeps under a usual key such as `results`; else nothing."""
    if depth >= MAX_DEPTH:
        return ()
    value = parse_json(value)
    if is_list(value) or items(value):
        found = read_documents(value, span_id=span_id)
        if found:
            return found
        lists = [inner for inner in items(value) if is_object(inner) or is_list(inner)]
        return find_documents(lists[0], span_id=span_id, depth=depth + 1) if len(lists) == 1 else ()
    if not is_object(value):
        return ()
    entry = value
    columns = _columns(entry, span_id)
    if columns:
        return columns
    message = read_message(entry)
    if message is not None:
        return _in_message(entry, span_id, depth)
    for key in _LIST_KEYS:
        if entry.get(key) is not None:
            found = find_documents(entry[key], span_id=span_id, depth=depth + 1)
            if found:
                return found
    document = document_of(entry, span_id=span_id)
    return () if document is None or document.id is None else (document,)


def _in_message(entry: Mapping[str, object], span_id: str | None, depth: int) -> tuple[Document, ...]:
    """Return the documents of a tool's message: LangChain keeps them as its artifact, else JSON in its text."""
    for key in ("data", "kwargs"):
        inner = fields(entry.get(key))
        if inner:
            return _in_message(inner, span_id, depth)
    for key in ("artifact", "content"):
        found = find_documents(entry.get(key), span_id=span_id, depth=depth + 1)
        if found:
            return found
    return ()


def _columns(entry: Mapping[str, object], span_id: str | None) -> tuple[Document, ...]:
    """Return the documents of parallel lists, as Chroma answers: `{"ids": [[..]], "documents": [[..]]}`."""
    texts, ids = _first_row(entry.get("documents")), _first_row(entry.get("ids"))
    if not texts or len(texts) != len(ids) or not all(isinstance(text, str) for text in texts):
        return ()
    metadatas = _first_row(entry.get("metadatas"))
    return tuple(
        Document(str(ids[n]), str(text), span_id, None, fields(metadatas[n]) if n < len(metadatas) else {})
        for n, text in enumerate(texts)
    )


def _first_row(value: object) -> Sequence[object]:
    rows = items(value)
    return items(rows[0]) if rows and is_list(rows[0]) else rows


def document_of(value: object, *, span_id: str | None = None, depth: int = 0) -> Document | None:
    """Return the document that an object is, or `None`: it needs text and a sign that it was retrieved."""
    entry = as_object(value)
    if not entry or depth >= MAX_DEPTH or str(entry.get("role") or "").lower() in _ROLES:
        return None
    if read_message(entry) is not None:
        return None
    for wrapper in _WRAPPERS:
        inner = entry.get(wrapper)
        if is_object(inner) and (
            document := document_of(_with_outer(entry, wrapper), span_id=span_id, depth=depth + 1)
        ):
            return document
    text = _text(entry)
    if text is None or not _SIGNS & set(entry):
        return None
    metadata = next((fields(entry[key]) for key in ("metadata", "meta", "meta_data") if entry.get(key)), None)
    return Document(
        id=_id(entry),
        content=text,
        span_id=span_id,
        score=_number(entry, ("score", "relevance_score", "similarity")),
        metadata=metadata if metadata is not None else _rest(entry),
    )


def _with_outer(entry: Mapping[str, object], wrapper: str) -> dict[str, object]:
    inner = fields(entry[wrapper])
    outer = {key: item for key, item in entry.items() if key != wrapper and key not in inner}
    outer = {key: item for key, item in outer.items() if key not in ("type", "lc")}
    if wrapper == "kwargs":
        outer.pop("id", None)  # LangChain's serialised id is a class path
    return {**outer, **inner}


def _text(entry: Mapping[str, object]) -> str | None:
    for key in _TEXT_KEYS:
        value = entry.get(key)
        if isinstance(value, str) and value.strip():
            return value
        if is_object(value) and isinstance(inner := fields(value).get("text"), str):
            return inner
    snippets = [text for row in items(entry.get("snippets")) for text in (items(row) or [row])]
    if snippets and all(isinstance(text, str) for text in snippets):
        return "\n".join(str(text) for text in snippets)
    inner_text = fields(entry.get("metadata")).get("text")
    return inner_text if isinstance(inner_text, str) and inner_text.strip() else None


def _id(entry: Mapping[str, object]) -> str | None:
    for key in _ID_KEYS:
        value = entry.get(key)
        if isinstance(value, str | int) and not isinstance(value, bool) and str(value):
            return str(value)
    return metadata_id(fields(entry.get("metadata") or entry.get("meta")))


def metadata_id(metadata: Mapping[str, object]) -> str | None:
    """Return the document id that its metadata names, or `None`."""
    for place in (metadata, fields(metadata.get("metadata"))):
        for key in _METADATA_ID_KEYS:
            value = place.get(key)
            if isinstance(value, str | int) and not isinstance(value, bool) and str(value):
                return str(value)
    return None


def _number(entry: Mapping[str, object], keys: Sequence[str]) -> float | None:
    for key in keys:
        value = entry.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
    return None


def _rest(entry: Mapping[str, object]) -> dict[str, object]:
    """Return the plain values beside the text: a document without metadata often keeps its source there."""
    return {
        key: value
        for key, value in entry.items()
        if key not in _TEXT_KEYS and isinstance(value, str | int | float | bool)
    }
