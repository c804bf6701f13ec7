"""The structured part of a citation case as the response that its provider would have sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from citespan.tracer import Passage
from citespan.tracer.providers import ProviderAnswer, read_answer

__all__ = ["read_structured"]

_ADDRESSES = ("uri", "url", "file_id", "filename", "source")
"""Where a document's own name stands, beside its id."""


def read_structured(case: Mapping[str, Any]) -> ProviderAnswer:
    """Return what the provider's adapter reads in the case; nothing if no provider sends this shape."""
    request = [_as_passage(document) for document in case["documents"]]
    payload = _as_response(case["structured"], case["answer"], case["documents"])
    return read_answer(payload, request) or ProviderAnswer("", case["answer"], (), ())


def _as_passage(document: Mapping[str, Any]) -> Passage:
    address = next((document[name] for name in _ADDRESSES if document.get(name)), None)
    return Passage(document["id"], document.get("text"), label=document.get("label"), url=address)


def _as_response(
    structured: Mapping[str, Any], answer: str, documents: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Tell by the keys what the case holds; its `format` is a name that each author chose."""
    supports = structured.get("supports") or structured.get("groundingSupports")
    if supports is not None:
        return _gemini(supports, answer, documents)
    if "annotations" in structured:
        return _chat({"content": answer, "annotations": structured["annotations"]})
    blocks = structured.get("content") or structured.get("blocks") or structured.get("chunks")
    if blocks is not None:
        return _of_blocks(blocks)
    citations = structured.get("citations")
    return {} if citations is None else _of_citations(citations, answer)


def _gemini(supports: Sequence[Any], answer: str, documents: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    chunks = [
        {"retrievedContext": {"uri": document.get("uri") or document["id"], "text": document.get("text")}}
        for document in documents
    ]
    grounding = {"groundingChunks": chunks, "groundingSupports": supports}
    content = {"parts": [{"text": answer}], "role": "model"}
    return {"candidates": [{"content": content, "groundingMetadata": grounding}]}


def _chat(message: Mapping[str, Any]) -> dict[str, Any]:
    return {"choices": [{"message": {"role": "assistant", **message}}]}


def _of_blocks(blocks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    if any("citationsContent" in block for block in blocks):
        return {"output": {"message": {"role": "assistant", "content": blocks}}}
    if any("reference_ids" in block for block in blocks):
        return _chat({"content": blocks})
    return {"type": "message", "role": "assistant", "content": blocks}


def _of_citations(citations: Sequence[Any], answer: str) -> dict[str, Any]:
    if all(isinstance(entry, str) for entry in citations):
        return {**_chat({"content": answer}), "citations": citations}
    if any("retrievedReferences" in entry or "generatedResponsePart" in entry for entry in citations):
        return {"output": {"text": answer}, "citations": citations}
    if any("sources" in entry or "document_ids" in entry for entry in citations):
        entries = [_with_sources(entry) for entry in citations]
        return {"message": {"content": [{"type": "text", "text": answer}], "citations": entries}}
    return _of_blocks([{"type": "text", "text": answer, "citations": citations}])


def _with_sources(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a citation of Cohere's first API as one of its second."""
    if "sources" in entry:
        return entry
    return {**entry, "sources": [{"type": "document", "id": name} for name in entry["document_ids"]]}
