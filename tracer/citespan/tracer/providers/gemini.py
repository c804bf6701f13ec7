"""Gemini's grounding: segments by UTF-8 bytes, chunks by their index."""

from __future__ import annotations

from collections.abc import Sequence

from citespan.tracer.passages import Passage
from citespan.tracer.providers.answer import Findings, ProviderAnswer
from citespan.tracer.providers.payload import Node, find, number, objects, text, values, whole
from citespan.tracer.providers.ranges import Range, byte_range, only_place

__all__ = ["ground", "read_generate_content"]


def read_generate_content(node: Node, request: Sequence[Passage]) -> ProviderAnswer | None:
    """Read a response of GenerateContent; the model's thoughts are no part of the answer."""
    candidate = next(iter(objects(node, "candidates")), None)
    if candidate is None:
        return None
    parts = objects(find(candidate, "content"), "parts")
    texts = ["" if part.get("thought") is True else text(part, "text") or "" for part in parts]
    found = Findings("gemini", request)
    ground(found, find(candidate, "grounding_metadata", "groundingMetadata"), texts)
    return found.answer("".join(texts))


def ground(found: Findings, grounding: Node, parts: Sequence[str]) -> None:
    """Add the chunks that grounding metadata carries, and what its supports cite."""
    ids = [
        _carry_chunk(found, n, chunk)
        for n, chunk in enumerate(objects(grounding, "grounding_chunks", "groundingChunks"))
    ]
    for support in objects(grounding, "grounding_supports", "groundingSupports"):
        covered = _segment(find(support, "segment"), parts)
        for index in values(support, "grounding_chunk_indices", "groundingChunkIndices"):
            n = whole(index)
            is_known = n is not None and 0 <= n < len(ids)
            found.cite(ids[n] if n is not None and is_known else f"groundingChunkIndices:{index}", covered)


def _carry_chunk(found: Findings, n: int, chunk: Node) -> str:
    inner = find(chunk, "web", "retrieved_context", "retrievedContext", "maps")
    uri = text(inner, "uri")
    passage_id = uri or text(inner, "document_name", "documentName", "title") or f"chunk:{n}"
    if (known := found.named(passage_id)) is not None:
        return known
    url = uri if uri is not None and "://" in uri else None
    return found.carry(Passage(passage_id, text(inner, "text"), title=text(inner, "title"), url=url))


def _segment(segment: Node, parts: Sequence[str]) -> Range | None:
    """Return a segment as code points of the answer.

    Its bytes count from the start of its part. Absent fields are 0, as in every protobuf message. Where its own
    text stands in one other place, the offsets are wrong and that place counts.
    """
    part = number(segment, "part_index", "partIndex") or 0
    start = number(segment, "start_index", "startIndex") or 0
    end = number(segment, "end_index", "endIndex")
    quoted = text(segment, "text")
    answer = "".join(parts)
    covered = byte_range(parts[part], start, end) if 0 <= part < len(parts) else None
    if covered is not None:
        base = sum(len(before) for before in parts[:part])
        covered = Range(covered.start + base, covered.end + base)
    if quoted is None or (covered is not None and answer[covered.start : covered.end] == quoted.strip()):
        return covered
    return only_place(answer, quoted) or covered
