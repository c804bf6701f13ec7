"""Put the events of a stream together into the response that would have come in one piece.

Markers and citations may be split anywhere between events, so nothing is read before all of it is there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

from citespan.tracer.providers.payload import EMPTY, Node, find, number, objects, plain, text, values

__all__ = ["join_stream"]


def join_stream(events: Sequence[object]) -> Node | None:
    """Return the whole response, or `None` if the events have no known shape."""
    nodes = [_unwrapped(cast("Node", event)) for event in map(plain, events) if isinstance(event, Mapping)]
    return next((whole for join in _JOINERS if (whole := join(nodes)) is not None), None)


def _unwrapped(event: Node) -> Node:
    """Return the chunk inside Mistral's events."""
    data = find(event, "data")
    return data if "choices" in data else event


def _join_responses(events: Sequence[Node]) -> Node | None:
    """OpenAI Responses: the last event holds the whole, unless the stream broke off."""
    whole = [find(event, "response") for event in events if event.get("type") in _RESPONSE_ENDS]
    if whole:
        return whole[-1]
    done = [find(event, "item") for event in events if event.get("type") == "response.output_item.done"]
    return {"output": done} if done else None


def _join_chat(events: Sequence[Node]) -> Node | None:
    """OpenAI's chat chunks, and those of who speaks the format: deltas of one message."""
    deltas = [find(choice, "delta") for event in events for choice in objects(event, "choices")]
    if not deltas:
        return None
    chunks = [chunk for delta in deltas for chunk in _content_chunks(delta)]
    is_text = all(chunk.get("type") == "text" for chunk in chunks)
    message = {
        "content": "".join(text(chunk, "text") or "" for chunk in chunks) if is_text else _merged(chunks),
        "annotations": [annotation for delta in deltas for annotation in objects(delta, "annotations")],
        "context": next((found for delta in reversed(deltas) if (found := find(delta, "context"))), EMPTY),
    }
    whole: dict[str, object] = {"choices": [{"message": message}]}
    for key in ("citations", "search_results"):
        whole[key] = next((listed for event in reversed(events) if (listed := values(event, key))), ())
    return whole


def _content_chunks(delta: Node) -> Sequence[Node]:
    content = text(delta, "content")
    return objects(delta, "content") if content is None else [{"type": "text", "text": content}]


def _merged(chunks: Sequence[Node]) -> list[Node]:
    """Join the texts that follow one another: a reference backs the whole text before it."""
    merged: list[Node] = []
    for chunk in chunks:
        if chunk.get("type") == "text" and merged and merged[-1].get("type") == "text":
            merged[-1] = {**chunk, "text": (text(merged[-1], "text") or "") + (text(chunk, "text") or "")}
        else:
            merged.append(chunk)
    return merged


def _join_messages(events: Sequence[Node]) -> Node | None:
    """Anthropic: blocks that start, grow by text and by citations, and end."""
    blocks: dict[int, dict[str, object]] = {}
    for event in events:
        index = number(event, "index")
        if index is None:
            continue
        if event.get("type") == "content_block_start":
            blocks[index] = dict(find(event, "content_block"))
        elif event.get("type") == "content_block_delta" and index in blocks:
            block, delta = blocks[index], find(event, "delta")
            if (written := text(delta, "text")) is not None:
                block["text"] = (text(block, "text") or "") + written
            if citation := find(delta, "citation"):
                block["citations"] = [*objects(block, "citations"), citation]
    if not blocks:
        return None
    return {"type": "message", "role": "assistant", "content": [blocks[n] for n in sorted(blocks)]}


def _join_cohere(events: Sequence[Node]) -> Node | None:
    """Cohere v2: deltas of content, and citations as they start."""
    texts: dict[int, str] = {}
    citations: list[Node] = []
    for event in events:
        message = find(find(event, "delta"), "message")
        if event.get("type") == "content-delta":
            index = number(event, "index") or 0
            texts[index] = texts.get(index, "") + (text(find(message, "content"), "text") or "")
        elif event.get("type") == "citation-start":
            citations.append(find(message, "citations"))
    if not texts:
        return None
    content = [{"type": "text", "text": texts.get(n, "")} for n in range(max(texts) + 1)]
    return {"message": {"role": "assistant", "content": content, "citations": citations}}


def _join_gemini(events: Sequence[Node]) -> Node | None:
    """Gemini: parts of one text; its bytes are counted from the start of the whole."""
    candidates = [candidate for event in events for candidate in objects(event, "candidates")[:1]]
    if not candidates:
        return None
    parts = [part for candidate in candidates for part in objects(find(candidate, "content"), "parts")]
    grounding: dict[str, object] = {}
    for candidate in candidates:
        latest = find(candidate, "grounding_metadata", "groundingMetadata")
        grounding |= {key: value for key, value in latest.items() if value}
    whole = "".join(text(part, "text") or "" for part in parts if part.get("thought") is not True)
    return {"candidates": [{"content": {"parts": [{"text": whole}]}, "grounding_metadata": grounding}]}


def _join_converse(events: Sequence[Node]) -> Node | None:
    """Bedrock Converse: deltas of blocks, by text and by citation."""
    texts: dict[int, str] = {}
    citations: dict[int, list[Node]] = {}
    for event in (find(event, "contentBlockDelta") for event in events):
        index, delta = number(event, "contentBlockIndex") or 0, find(event, "delta")
        if (written := text(delta, "text")) is not None:
            texts[index] = texts.get(index, "") + written
        if citation := find(delta, "citation"):
            citations.setdefault(index, []).append(citation)
    if not texts:
        return None
    content: list[Node] = [
        {"citationsContent": {"content": [{"text": texts[n]}], "citations": citations[n]}}
        if n in citations
        else {"text": texts[n]}
        for n in sorted(texts)
    ]
    return {"output": {"message": {"role": "assistant", "content": content}}}


def _join_retrieve_and_generate(events: Sequence[Node]) -> Node | None:
    """Bedrock RetrieveAndGenerateStream: pieces of the text, and citations between them."""
    texts = [written for event in events if (written := text(find(event, "output"), "text")) is not None]
    if not texts:
        return None
    entries = [find(event, "citation") for event in events if find(event, "citation")]
    return {
        "output": {"text": "".join(texts)},
        "citations": [find(entry, "citation") or entry for entry in entries],
    }


_RESPONSE_ENDS = frozenset({"response.completed", "response.incomplete", "response.failed"})

_JOINERS: tuple[Callable[[Sequence[Node]], Node | None], ...] = (
    _join_responses,
    _join_chat,
    _join_messages,
    _join_cohere,
    _join_gemini,
    _join_converse,
    _join_retrieve_and_generate,
)
