"""Cohere's Chat v2: citations by code points, documents by the ids of the request."""

from __future__ import annotations

from collections.abc import Sequence

from citespan.tracer.passages import Passage
from citespan.tracer.providers.answer import Findings, ProviderAnswer
from citespan.tracer.providers.payload import Node, find, number, objects, text
from citespan.tracer.providers.ranges import Range, only_place, range_in

__all__ = ["read_chat"]


def read_chat(node: Node, request: Sequence[Passage]) -> ProviderAnswer | None:
    """Read a chat response; citations of the model's thoughts and plans are not the answer's."""
    message = find(node, "message")
    entries = objects(message, "citations")
    if not any("sources" in entry for entry in entries):
        return None
    blocks = [text(b, "text") or "" if b.get("type") == "text" else "" for b in objects(message, "content")]
    whole = "".join(blocks)
    found = Findings("cohere", request)
    for entry in entries:
        if (text(entry, "type") or "TEXT_CONTENT") != "TEXT_CONTENT":
            continue
        covered = _covered(entry, blocks, whole)
        for source in objects(entry, "sources"):
            found.cite(_source(found, source), covered)
    return found.answer(whole)


def _covered(entry: Node, blocks: Sequence[str], whole: str) -> Range | None:
    """Return the range, counted from the start of its block; where its text stands elsewhere, that counts."""
    quoted = text(entry, "text")
    block = number(entry, "content_index") or 0
    base = sum(len(written) for written in blocks[:block]) if 0 <= block < len(blocks) else 0
    start, end = number(entry, "start"), number(entry, "end")
    if start is None or end is None or start < 0:
        return only_place(whole, quoted)
    covered = range_in(whole, base + start, base + end)
    if quoted is None or (covered is not None and whole[covered.start : covered.end] == quoted.strip()):
        return covered
    return only_place(whole, quoted) or covered


def _source(found: Findings, source: Node) -> str:
    document = find(source, "document", "tool_output")
    source_id = text(source, "id") or text(document, "id") or "unnamed"
    if (known := found.named(source_id)) is not None:
        return known
    return found.carry(
        Passage(
            source_id,
            text(document, "text", "snippet", "content"),
            title=text(document, "title"),
            url=text(document, "url"),
        )
    )
