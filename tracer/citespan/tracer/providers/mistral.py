"""Mistral's chat: reference chunks that follow the text they back."""

from __future__ import annotations

from collections.abc import Sequence

from citespan.tracer.passages import Passage
from citespan.tracer.providers.answer import Findings, ProviderAnswer
from citespan.tracer.providers.payload import Node, find, objects, text, values
from citespan.tracer.providers.ranges import Range, range_in

__all__ = ["read_chat", "read_conversation"]


def read_chat(node: Node, request: Sequence[Passage]) -> ProviderAnswer | None:
    """Read a chat completion whose content is a list of chunks."""
    message = next((find(choice, "message", "messages") for choice in objects(node, "choices")), None)
    if message is None or not isinstance(message.get("content"), list):
        return None
    found = Findings("mistral", request)
    return found.answer(_read_chunks(found, objects(message, "content")))


def read_conversation(node: Node, request: Sequence[Passage]) -> ProviderAnswer | None:
    """Read a response of the conversations API, whose tools carry pages."""
    outputs = [entry for entry in objects(node, "outputs") if entry.get("type") == "message.output"]
    if not outputs:
        return None
    found = Findings("mistral", request)
    chunks: list[Node] = []
    for entry in outputs:
        content = text(entry, "content")
        chunks += objects(entry, "content") if content is None else [{"type": "text", "text": content}]
    return found.answer(_read_chunks(found, chunks))


def _read_chunks(found: Findings, chunks: Sequence[Node]) -> str:
    whole = ""
    covered: Range | None = None
    for chunk in chunks:
        kind = chunk.get("type")
        if kind == "text":
            start, whole = len(whole), whole + (text(chunk, "text") or "")
            covered = range_in(whole, start, len(whole))
        elif kind == "reference":
            for index in values(chunk, "reference_ids"):
                found.cite(_reference(found, index), covered)
        elif kind == "tool_reference" and (url := text(chunk, "url", "title")) is not None:
            link = url if "://" in url else None
            found.cite(found.carry(Passage(url, None, title=text(chunk, "title"), url=link)), covered)
    return whole


def _reference(found: Findings, index: object) -> str:
    """Return the id of what a reference means: a name the app gave its passages, else their position from 0."""
    known = found.named(str(index))
    return known or found.given(index if type(index) is int else None, "reference_ids")
