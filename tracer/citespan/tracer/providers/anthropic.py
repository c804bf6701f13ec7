"""Anthropic's Messages: each text block carries the citations of its own text."""

from __future__ import annotations

from collections.abc import Sequence

from citespan.tracer.passages import Passage
from citespan.tracer.providers.answer import Findings, ProviderAnswer
from citespan.tracer.providers.payload import Node, number, objects, text
from citespan.tracer.providers.ranges import Range, range_in

__all__ = ["cite_source", "read_messages"]


def read_messages(node: Node, request: Sequence[Passage]) -> ProviderAnswer | None:
    """Read a message.

    `document_index` counts the documents of the request, `search_result_index` its search results.
    """
    if node.get("role") != "assistant" or node.get("type") != "message":
        return None
    found = Findings("anthropic", request)
    whole = ""
    for block in objects(node, "content"):
        for result in objects(block, "content") if block.get("type") == "web_search_tool_result" else ():
            _carry_page(found, result)
        written = text(block, "text") or "" if block.get("type") == "text" else ""
        covered = range_in(whole + written, len(whole), len(whole) + len(written))
        whole += written
        for citation in objects(block, "citations"):
            cite_source(found, citation, covered)
    return found.answer(whole)


def cite_source(found: Findings, citation: Node, covered: Range | None) -> None:
    """Add one citation: by characters, pages or blocks of a document, of a search result, or of a web page."""
    quote = text(citation, "cited_text")
    title = text(citation, "document_title", "title")
    source = text(citation, "source", "url")
    if source is not None and (known := found.named(source)) is not None:
        passage_id = known
    elif "document_index" in citation:
        passage_id = found.given(
            number(citation, "document_index"), "document_index", quote=quote, title=title
        )
    elif "search_result_index" in citation and found.has_request:
        index = number(citation, "search_result_index")
        passage_id = found.given(index, "search_result_index", quote=quote, title=title)
    elif source is not None:
        passage_id = found.carry(Passage(source, quote, title=title, url=_url(source), is_cut=True))
    else:
        return
    found.cite(passage_id, covered, quote)


def _carry_page(found: Findings, result: Node) -> None:
    if (url := text(result, "url")) is not None:
        found.carry(Passage(url, None, title=text(result, "title"), url=url))


def _url(source: str) -> str | None:
    return source if "://" in source else None
