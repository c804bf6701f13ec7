"""LangChain's messages, which keep a provider's citations in the message whatever the provider."""

from __future__ import annotations

from collections.abc import Sequence

from citespan.tracer.passages import Passage
from citespan.tracer.providers.answer import Findings, ProviderAnswer
from citespan.tracer.providers.anthropic import cite_source
from citespan.tracer.providers.gemini import ground
from citespan.tracer.providers.openai import annotate, carry_files, carry_listed
from citespan.tracer.providers.payload import Node, find, objects, text
from citespan.tracer.providers.ranges import range_in

__all__ = ["read_message"]


def read_message(node: Node, request: Sequence[Passage]) -> ProviderAnswer | None:
    """Read an AI message: content blocks with `annotations` or `citations`, or grounding in its metadata."""
    if node.get("type") not in ("ai", "AIMessageChunk"):
        return None
    node = find(node, "data") or node  # as `messages_to_dict` writes it
    content = text(node, "content")
    blocks = objects(node, "content") if content is None else [{"type": "text", "text": content}]
    texts = [text(block, "text") or "" if block.get("type") == "text" else "" for block in blocks]
    whole = "".join(texts)
    found = Findings("langchain", request)
    carry_files(found, blocks)
    offset = 0
    for block, written in zip(blocks, texts, strict=True):
        for annotation in objects(block, "annotations"):
            annotate(found, annotation, whole, offset)
        for citation in objects(block, "citations"):
            cite_source(found, citation, range_in(whole, offset, offset + len(written)))
        offset += len(written)
    for extra in (find(node, "response_metadata"), find(node, "additional_kwargs")):
        ground(found, find(extra, "grounding_metadata", "groundingMetadata"), texts)
        carry_listed(found, extra)
    return found.answer(whole)
