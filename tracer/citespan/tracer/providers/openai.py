"""OpenAI's Responses, Chat Completions and Assistants, and who speaks its Chat format: Azure, Perplexity."""

from __future__ import annotations

from collections.abc import Sequence

from citespan.tracer.passages import Passage
from citespan.tracer.providers.answer import Findings, ProviderAnswer
from citespan.tracer.providers.payload import Node, find, number, objects, strings, text
from citespan.tracer.providers.ranges import range_in, sentence_before

__all__ = ["annotate", "carry_files", "carry_listed", "read_assistant_message", "read_chat", "read_responses"]


def read_responses(node: Node, request: Sequence[Passage]) -> ProviderAnswer | None:
    """Read a Responses API response: annotations count code points of their own part of the text."""
    outputs = objects(node, "output")
    kinds = [text(item, "type") or "" for item in outputs]
    if not any(kind == "message" or kind.endswith("_call") for kind in kinds):
        return None
    found = Findings("openai", request)
    carry_files(found, outputs)
    messages = [item for item in outputs if item.get("type") == "message"]
    parts = [part for message in messages for part in objects(message, "content")]
    whole = "".join(text(part, "text") or "" for part in parts)
    offset = 0
    for part in parts:
        for annotation in objects(part, "annotations"):
            annotate(found, annotation, whole, offset)
        offset += len(text(part, "text") or "")
    return found.answer(whole)


def read_chat(node: Node, request: Sequence[Passage]) -> ProviderAnswer | None:
    """Read a chat completion, with what OpenAI, Azure and Perplexity add to it.

    Azure's `[doc1]` and Perplexity's `[1]` stand in the text: they are labels of the passages carried here, and
    no citations beside it.
    """
    message = next((find(choice, "message") for choice in objects(node, "choices")), None)
    if message is None or not isinstance(content := message.get("content"), str):
        return None
    found = Findings("openai", request)
    for n, entry in enumerate(objects(find(message, "context"), "citations"), start=1):
        found.provider = "azure"
        _carry_azure(found, n, entry)
    carry_listed(found, node)
    for annotation in objects(message, "annotations"):
        annotate(found, annotation, content, 0)
    return found.answer(content)


def read_assistant_message(node: Node, request: Sequence[Passage]) -> ProviderAnswer | None:
    """Read a message of the Assistants API: an annotation covers its own marker, such as `【4:0†source】`."""
    if node.get("object") != "thread.message":
        return None
    found = Findings("openai", request)
    whole = ""
    for part in (find(block, "text") for block in objects(node, "content")):
        offset = len(whole)
        whole += text(part, "value") or ""
        for annotation in objects(part, "annotations"):
            annotate(found, annotation, whole, offset)
    return found.answer(whole)


def annotate(found: Findings, annotation: Node, whole: str, offset: int) -> None:
    """Add what one annotation cites: a page or a file, over a range or before a point of the text."""
    kind = text(annotation, "type") or ""
    detail = {**annotation, **find(annotation, kind)}
    target = text(detail, "url", "file_id", "id", "source", "title")
    if target is None or kind == "file_path":
        return
    start, end = number(detail, "start_index"), number(detail, "end_index")
    index = number(detail, "index", "file_index")  # LangChain renames it
    if start is not None and end is not None:
        covered = range_in(whole, start + offset, end + offset) if start >= 0 else None
    else:
        covered = sentence_before(whole, None if index is None else index + offset)
    quote = text(detail, "cited_text", "quote")
    title = text(detail, "title", "filename")
    passage_id = found.named(target) or found.carry(
        Passage(target, quote, title=title, url=_url(target), is_cut=True)
    )
    found.cite(passage_id, covered, quote)


def carry_files(found: Findings, outputs: Sequence[Node]) -> None:
    """Keep what the file searches among the outputs found."""
    for result in (result for item in outputs for result in objects(item, "results")):
        _carry_file(found, result)


def _carry_file(found: Findings, result: Node) -> None:
    """Keep a file search result; the pieces of one file are one passage, since citations name the file."""
    file_id = text(result, "file_id", "filename")
    if file_id is None:
        return
    content = "\n".join(piece for part in objects(result, "content") if (piece := text(part, "text")))
    found.carry_piece(
        Passage(file_id, text(result, "text") or content or None, title=text(result, "filename"))
    )


def _carry_azure(found: Findings, n: int, entry: Node) -> None:
    """Keep a citation of Azure's context; its chunk ids repeat from file to file, so the file is named too."""
    place = text(entry, "filepath", "url", "title") or f"doc{n}"
    chunk = entry.get("chunk_id")
    found.carry(
        Passage(
            place if chunk is None else f"{place}#{chunk}",
            text(entry, "content"),
            label=f"doc{n}",
            title=text(entry, "title"),
            url=text(entry, "url"),
        )
    )


def carry_listed(found: Findings, node: Node) -> None:
    """Keep the sources that Perplexity lists: `[1]` in the text names the first."""
    results = objects(node, "search_results")
    by_url = {url: result for result in reversed(results) if (url := text(result, "url"))}
    urls = strings(node, "citations") or [url for result in results if (url := text(result, "url"))]
    for n, url in enumerate(urls, start=1):
        found.provider = "perplexity"
        result = by_url.get(url, {})
        found.carry(
            Passage(
                url,
                text(result, "snippet", "content"),
                label=str(n),
                title=text(result, "title"),
                url=url,
                is_cut=True,
            )
        )


def _url(target: str) -> str | None:
    return target if "://" in target else None
