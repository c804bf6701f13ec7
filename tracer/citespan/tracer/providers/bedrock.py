"""Bedrock's RetrieveAndGenerate and Converse."""

from __future__ import annotations

from collections.abc import Sequence

from citespan.tracer.passages import Passage
from citespan.tracer.providers.answer import Findings, ProviderAnswer
from citespan.tracer.providers.payload import Node, find, number, objects, text
from citespan.tracer.providers.ranges import Range, only_place, range_in

__all__ = ["read_converse", "read_retrieve_and_generate"]


def read_retrieve_and_generate(node: Node, request: Sequence[Passage]) -> ProviderAnswer | None:
    """Read a RetrieveAndGenerate response: which part of the text leans on which references."""
    whole = text(find(node, "output"), "text")
    if whole is None or "citations" not in node:
        return None
    found = Findings("bedrock", request)
    for entry in objects(node, "citations"):
        covered = _part(find(find(entry, "generatedResponsePart"), "textResponsePart"), whole)
        for reference in objects(entry, "retrievedReferences"):
            found.cite(_carry_reference(found, reference), covered)
    return found.answer(whole)


def read_converse(node: Node, request: Sequence[Passage]) -> ProviderAnswer | None:
    """Read a Converse response: blocks of cited text between blocks of plain text."""
    message = find(find(node, "output"), "message")
    if not message and any("citationsContent" in block for block in objects(node, "content")):
        message = node
    if not message:
        return None
    found = Findings("bedrock", request)
    whole = ""
    for block in objects(message, "content"):
        cited = find(block, "citationsContent")
        pieces = objects(cited, "content") if cited else [block]
        written = "".join(text(piece, "text") or "" for piece in pieces)
        covered = range_in(whole + written, len(whole), len(whole) + len(written))
        whole += written
        for citation in objects(cited, "citations"):
            _cite(found, citation, covered)
    return found.answer(whole)


def _part(part: Node, whole: str) -> Range | None:
    """Return the part's range: by its text, else by its span, whose end is its last character's own offset."""
    by_text = only_place(whole, text(part, "text"))
    start, last = number(find(part, "span"), "start"), number(find(part, "span"), "end")
    return by_text or range_in(whole, start, None if last is None else last + 1)


def _carry_reference(found: Findings, reference: Node) -> str:
    location = find(reference, "location")
    places = (text(find(location, name), "uri", "url", "id") for name in location)
    uri = next((place for place in places if place is not None), None)
    chunk = text(find(reference, "metadata"), "x-amz-bedrock-kb-chunk-id")
    passage_id = chunk or uri or "reference"
    if (known := found.named(passage_id)) is not None:
        return known
    url = uri if uri is not None and "://" in uri else None
    return found.carry(Passage(passage_id, text(find(reference, "content"), "text"), url=url))


def _cite(found: Findings, citation: Node, covered: Range | None) -> None:
    location = find(citation, "location")
    place = next((find(location, name) for name in location), location)
    quotes = [quote for part in objects(citation, "sourceContent") if (quote := text(part, "text"))]
    quote, title = "\n".join(quotes) or None, text(citation, "title")
    source = text(citation, "source") or text(place, "url")
    if source is not None and (known := found.named(source)) is not None:
        passage_id = known
    elif "documentIndex" in place:
        passage_id = found.given(number(place, "documentIndex"), "documentIndex", quote=quote, title=title)
    elif "searchResultIndex" in place:
        index = number(place, "searchResultIndex")
        passage_id = found.given(index, "searchResultIndex", quote=quote, title=title)
    elif source is not None:
        url = source if "://" in source else None
        passage_id = found.carry(Passage(source, quote, title=title, url=url, is_cut=True))
    else:
        return
    found.cite(passage_id, covered, quote)
