"""What was retrieved for an answer: the documents of retrievers, rerankers and tools, each once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from citespan.evaluators.reading.document_values import document_of, find_documents, metadata_id
from citespan.evaluators.reading.documents import Document
from citespan.evaluators.reading.locate import squeeze
from citespan.evaluators.reading.normalise import SpanView
from citespan.evaluators.reading.tree import SpanTree
from citespan.evaluators.reading.values import as_object, fields, is_hidden, is_list, is_object, items, walk

__all__ = ["Retrieval", "find_retrievals", "given_documents", "ids_by_text", "union_documents"]

_RETRIEVING = frozenset(["RETRIEVER", "RERANKER", "TOOL"])
_ATTRIBUTE_LIMIT = 128
"""How many attributes a plain OpenTelemetry SDK keeps per span; it drops the oldest."""

_CONTEXT_KEY = re.compile(
    r"(?:\w+_)?(?:contexts?|context_str|passages|documents|docs|sources|references|chunks|nodes|results)",
    re.IGNORECASE,
)
"""Keys of a step's input under which an app hands retrieved texts on: `context`, `input_documents`."""


@dataclass(frozen=True, slots=True)
class Retrieval:
    """One retrieval of a trace."""

    view: SpanView
    """Its span."""

    documents: tuple[Document, ...]
    """What it returned, in its order."""

    lost: int = 0
    """How many of its documents are known not to be recorded."""

    is_count_known: bool = True
    """Whether `lost` is the whole loss; `False` if it is only known that something was dropped."""

    hidden: int = 0
    """How many of its documents were masked."""

    replaces: tuple[Document, ...] = ()
    """A reranker's input: its output stands in for these."""


def find_retrievals(tree: SpanTree, ids: Mapping[str, str | None]) -> list[Retrieval]:
    """Return the retrievals of a trace in start order, outermost only.

    Args:
        tree: The trace.
        ids: Ids of documents by their squeezed text, for spans that leave them out.
    """
    found: dict[str, Retrieval] = {}
    for view in tree.views:
        if view.kind not in _RETRIEVING:
            continue
        retrieval = _read(view, ids)
        if retrieval.documents or view.kind == "RETRIEVER":
            found[view.id] = retrieval
    return [retrieval for retrieval in found.values() if _is_outermost(tree, retrieval, found)]


def _is_outermost(tree: SpanTree, retrieval: Retrieval, found: Mapping[str, Retrieval]) -> bool:
    """Return whether no span around it returned documents too; a tool only joins what its retriever returned."""
    view = retrieval.view
    if view.kind == "TOOL":
        return not any(other.id in found and found[other.id].documents for other in tree.under(view))
    above = [found[other.id] for other in tree.above(view) if other.id in found and other.kind != "TOOL"]
    if not retrieval.documents and any(other.id in found for other in tree.under(view)):
        return False
    return not any(other.documents or not retrieval.documents for other in above)


def _read(view: SpanView, ids: Mapping[str, str | None]) -> Retrieval:
    recorded = _recorded(view, "retrieval.documents") or _recorded(view, "reranker.output_documents")
    genai = tuple(_genai_documents(view))
    in_output = find_documents(view.output, span_id=view.id) if view.kind != "RERANKER" else ()
    documents = max((recorded, genai, in_output), key=_count_texts)
    if not documents:
        documents = recorded or genai or in_output
    own_ids = _agreed_ids(in_output)
    documents = tuple(_with_id(document, own_ids, ids) for document in documents)
    lost, is_known = _lost(view, documents)
    hidden = sum(1 for document in documents if is_hidden(document.content))
    return Retrieval(
        view=view,
        documents=tuple(replace(d, content=None) if is_hidden(d.content) else d for d in documents),
        lost=lost,
        is_count_known=is_known,
        hidden=hidden,
        replaces=_recorded(view, "reranker.input_documents"),
    )


def _count_texts(documents: Sequence[Document]) -> int:
    return sum(1 for document in documents if document.content)


def _recorded(view: SpanView, path: str) -> tuple[Document, ...]:
    """Return the documents under OpenInference's attributes, in any of the shapes that stores give back."""
    found: list[Document] = []
    for entry in items(view.at(path)):
        document = fields(fields(entry).get("document")) or fields(entry)
        content, score = document.get("content"), document.get("score")
        metadata = document.get("metadata")
        document_id = document.get("id")
        found.append(
            Document(
                id=None if document_id is None or is_hidden(document_id) else str(document_id),
                content=content if isinstance(content, str) else None,
                span_id=view.id,
                score=float(score)
                if isinstance(score, int | float) and not isinstance(score, bool)
                else None,
                metadata=fields(metadata),
            )
        )
    return tuple(found)


def _genai_documents(view: SpanView) -> Iterable[Document]:
    """Yield the documents of the OTel GenAI attribute: id and score, text only if the app adds it."""
    for entry in items(view.at("gen_ai.retrieval.documents")):
        document = document_of(entry, span_id=view.id)
        document_id = fields(entry).get("id")
        if document is not None:
            yield document
        elif isinstance(document_id, str | int):
            yield Document(str(document_id), None, view.id)


def _agreed_ids(documents: Iterable[Document]) -> dict[str, str | None]:
    """Return the ids of documents by their squeezed text; `None` where two ids claim one text."""
    ids: dict[str, str | None] = {}
    for document in documents:
        if document.id is not None:
            text = squeeze(document.content or "")
            ids[text] = document.id if ids.get(text, document.id) == document.id else None
    return ids


def _with_id(
    document: Document, own_ids: Mapping[str, str | None], ids: Mapping[str, str | None]
) -> Document:
    """Return the document with the id that its span's output, its metadata, or any other span has for it."""
    if document.id is not None:
        return document
    text = squeeze(document.content or "")
    known = own_ids.get(text) or metadata_id(document.metadata) or ids.get(text)
    return document if known is None else replace(document, id=known)


def ids_by_text(tree: SpanTree) -> dict[str, str | None]:
    """Return the id of every document that any span names, by its text; `None` where two ids claim one text.

    LangChain's retriever span has no ids, but the steps after it are given the whole documents.
    """
    return _agreed_ids(_described_documents(tree))


def _described_documents(tree: SpanTree) -> Iterator[Document]:
    for view in tree.views:
        values = () if view.kind in ("LLM", "EMBEDDING") else (view.input, view.output)
        for entry in (
            entry for value in values if is_object(value) or is_list(value) for entry in walk(value)
        ):
            if "page_content" in entry or "metadata" in entry:
                document = document_of(entry)
                if document is not None:
                    yield document


def _lost(view: SpanView, documents: Sequence[Document]) -> tuple[int, bool]:
    """Return how many documents the span lost, and whether that is the whole loss."""
    if view.kind == "TOOL" or not documents:
        return 0, True
    indices = {int(key) for key in as_object(view.at("retrieval.documents")) if key.isdigit()}
    if indices and (gaps := max(indices) + 1 - len(indices)):
        return gaps, True
    counted = as_object(view.output).get("count")
    if isinstance(counted, int) and counted > len(documents):
        return counted - len(documents), True
    dropped = view.span.dropped_attributes > 0
    at_limit = (
        view.input is None and view.output is None and len(view.span.attributes) + 1 >= _ATTRIBUTE_LIMIT
    )
    return (1, False) if indices and (dropped or at_limit) else (0, True)


def union_documents(retrievals: Sequence[Retrieval]) -> tuple[Document, ...]:
    """Return what all retrievals returned, in time order, each once: by id, else by text.

    What a reranker returned stands in for what it was given.
    """
    found: list[Document] = []
    for retrieval in retrievals:
        given = {_key(document) for document in retrieval.replaces} | {
            squeeze(document.content or "") for document in retrieval.replaces
        }
        if given:
            found = [d for d in found if _key(d) not in given and squeeze(d.content or "") not in given]
        found += retrieval.documents
    kept: dict[object, Document] = {}
    for document in found:
        kept.setdefault(_key(document), document)
    return tuple(kept.values())


def _key(document: Document) -> object:
    text = squeeze(document.content or "")
    if document.id is not None:
        return (document.id, text)
    return text or id(document)


def given_documents(tree: SpanTree, view: SpanView) -> tuple[Document, ...]:
    """Return the texts that a step was handed under a key such as `context`, where no span retrieved them.

    DSPy modules and plain functions get their passages so. The step nearest to the generation is asked first.
    """
    for other in (view, *tree.above(view)):
        entry = as_object(other.input)
        for key, value in entry.items():
            if _CONTEXT_KEY.fullmatch(key) and (found := find_documents(value, span_id=other.id)):
                return found
    before = [v for v in tree.views if v.kind in ("CHAIN", "UNKNOWN") and v.span.end_ns <= view.span.start_ns]
    for other in reversed(before):
        found = find_documents(other.output, span_id=other.id)
        if any(document.id is not None or document.metadata for document in found):
            return found
    return ()
