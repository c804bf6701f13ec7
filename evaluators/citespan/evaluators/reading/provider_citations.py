"""Citations and passages that a provider's own payload holds, as a span's output keeps it.

A payload is read wherever it stands: as the output itself, or inside what LangChain or LlamaIndex wrap round it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from citespan.evaluators.reading.messages import read_message
from citespan.evaluators.reading.normalise import SpanView
from citespan.evaluators.reading.provider_answer import (
    Found,
    PartedText,
    ProviderAnswer,
    Range,
    either,
    first_text,
    only_place,
    range_in,
    sentence_before,
    trimmed,
    url_in,
    whole_number,
)
from citespan.evaluators.reading.provider_request import ProviderRequest, read_request
from citespan.evaluators.reading.values import as_object, fields, is_object, items, text_at, walk
from citespan.tracer.passages import Passage

__all__ = ["provider_citations"]


def provider_citations(view: SpanView) -> ProviderAnswer | None:
    """Return what the payload of a model call says of passages and citations, or `None` if it says nothing.

    Documents that the request gave the model are passages whether or not the answer cites any.
    """
    if view.kind in ("RERANKER", "EMBEDDING"):
        return None
    request = read_request(view)
    nodes = [*walk(view.output), _blocks_from_metadata(view)]
    for node in nodes:
        for read in _READERS:
            answer = read(node, request)
            if answer is not None:
                return answer
    given = (*request.passages, *_server_results(view))
    return ProviderAnswer("", given, ()) if given else None


def _blocks_from_metadata(view: SpanView) -> Mapping[str, object]:
    """Return Anthropic's blocks put together again, for spans that keep only OpenInference's attributes."""
    by_block = fields(view.at("metadata.citations"))
    first = fields(next(iter(items(view.at("llm.output_messages"))), None))
    contents = items(fields(first.get("message")).get("contents"))
    blocks = [fields(fields(entry).get("message_content")) for entry in contents] if by_block else []
    return {
        "content": [
            {**block, "citations": items(by_block[str(n)])} if str(n) in by_block else block
            for n, block in enumerate(blocks)
        ]
    }


def _server_results(view: SpanView) -> tuple[Passage, ...]:
    """Return what the provider's own search found: OTel's messages keep the search and drop the citations."""
    found = Found("openai")
    for message in view.output_messages:
        for block in message.blocks:
            for result in items(fields(block.get("server_tool_call")).get("results")):
                _add_file(found, fields(result))
    return tuple(found.passages.values())


# OpenAI, Azure, Perplexity


def _openai_responses(node: Mapping[str, object], request: ProviderRequest) -> ProviderAnswer | None:
    outputs = [fields(item) for item in items(node.get("output"))]
    kinds = [str(item.get("type") or "") for item in outputs]
    if not any(kind == "message" or kind.endswith("_call") for kind in kinds):
        return None
    found = Found("openai")
    for result in (result for item in outputs for result in items(item.get("results"))):
        _add_file(found, fields(result))
    messages = [item for item in outputs if item.get("type") == "message"]
    parts = [fields(part) for message in messages for part in items(message.get("content"))]
    text, offset = "".join(text_at(part, "text") or "" for part in parts), 0
    for part in parts:
        for annotation in items(part.get("annotations")):
            _add_annotation(found, fields(annotation), text, offset)
        offset += len(text_at(part, "text") or "")
    return found.answer(text)


def _add_file(found: Found, result: Mapping[str, object]) -> None:
    """Add a file search result; the chunks of one file are one passage, since citations name the file."""
    file_id = first_text(result, "file_id", "filename")
    parts = [text_at(fields(part), "text") for part in items(result.get("content"))]
    text = text_at(result, "text") or "\n".join(part for part in parts if part) or None
    if file_id is None:
        return
    known = found.passages.get(file_id)
    if known is not None and known.text and text:
        found.passages[file_id] = replace(known, text=f"{known.text}\n\n{text}")
    else:
        found.add(Passage(file_id, text, title=text_at(result, "filename")))


def _add_annotation(found: Found, annotation: Mapping[str, object], text: str, offset: int) -> None:
    detail = as_object(annotation.get(str(annotation.get("type")))) or annotation
    target = first_text(detail, "url", "file_id", "id", "source", "title")
    if target is None or annotation.get("type") == "file_path":
        return
    start, end, index = (whole_number(detail.get(key)) for key in ("start_index", "end_index", "index"))
    if start is not None and end is not None:
        covered = range_in(text, start + offset, end + offset)
    else:
        covered = sentence_before(text, None if index is None else index + offset)
    quote = first_text(detail, "cited_text", "quote")
    title = first_text(detail, "title", "filename")
    found.add(Passage(target, quote, title=title, url=url_in(target), is_cut=quote is not None))
    found.cite(target, covered, quote)


def _openai_chat(node: Mapping[str, object], request: ProviderRequest) -> ProviderAnswer | None:
    message = fields(fields(next(iter(items(node.get("choices"))), None)).get("message"))
    text = text_at(message, "content")
    if text is None:
        return None
    found = Found("openai")
    for n, entry in enumerate(items(fields(message.get("context")).get("citations")), start=1):
        found.provider = "azure"
        _add_azure(found, n, fields(entry))
    _add_listed(found, node)
    for annotation in items(message.get("annotations")):
        _add_annotation(found, fields(annotation), text, 0)
    return found.answer(text)


def _add_azure(found: Found, n: int, entry: Mapping[str, object]) -> None:
    """Add a citation of Azure's context: `[doc1]` names the first; chunk ids repeat from file to file."""
    place = first_text(entry, "filepath", "url", "title") or f"doc{n}"
    chunk = entry.get("chunk_id")
    passage_id = f"{place}#{chunk}" if isinstance(chunk, str | int) else place
    if passage_id in found.passages:
        passage_id = f"{passage_id}#{n}"
    title, url = text_at(entry, "title"), text_at(entry, "url")
    found.add(Passage(passage_id, text_at(entry, "content"), label=f"doc{n}", title=title, url=url))


def _add_listed(found: Found, node: Mapping[str, object]) -> None:
    """Add the numbered sources that Perplexity lists beside its choices: `[1]` names the first."""
    results = [fields(entry) for entry in items(node.get("search_results"))]
    urls = [url for url in items(node.get("citations")) if isinstance(url, str)]
    urls = urls or [url for entry in results if (url := text_at(entry, "url"))]
    by_url = {text_at(entry, "url"): entry for entry in reversed(results)}
    for n, url in enumerate(urls, start=1):
        known = found.passages.get(url)
        if known is not None and known.label is None:
            found.passages[url] = replace(known, label=str(n))
            continue
        result = by_url.get(url, {})
        text, title = first_text(result, "snippet", "content"), text_at(result, "title")
        passage_id = url if known is None else f"{url}#{n}"
        found.add(Passage(passage_id, text, str(n), title, url_in(url), is_cut=text is not None))


# Gemini


def _gemini(node: Mapping[str, object], request: ProviderRequest) -> ProviderAnswer | None:
    places = (node, as_object(node.get("response_metadata")), as_object(node.get("additional_kwargs")))
    groundings = [fields(either(place, "grounding_metadata", "groundingMetadata")) for place in places]
    grounding = next((found for found in groundings if found), fields(None))
    chunks = [fields(chunk) for chunk in items(either(grounding, "grounding_chunks", "groundingChunks"))]
    supports = [fields(s) for s in items(either(grounding, "grounding_supports", "groundingSupports"))]
    if not chunks and not supports:
        return None
    parts = [text_at(fields(part), "text") or "" for part in items(fields(node.get("content")).get("parts"))]
    text = PartedText(parts or [_message_text(node)])
    found = Found("gemini")
    ids = [_add_chunk(found, n, chunk) for n, chunk in enumerate(chunks)]
    _add_listed(found, places[2])
    for support in supports:
        covered = _segment(fields(support.get("segment")), text)
        for index in items(either(support, "grounding_chunk_indices", "groundingChunkIndices")):
            found.cite(_at_index(ids, index) or f"groundingChunkIndices:{index}", covered)
    return found.answer(text.text)


def _segment(segment: Mapping[str, object], text: PartedText) -> Range | None:
    return text.range_of(
        part=whole_number(either(segment, "part_index", "partIndex")) or 0,
        start=whole_number(either(segment, "start_index", "startIndex")) or 0,
        end=whole_number(either(segment, "end_index", "endIndex")),
        quoted=text_at(segment, "text"),
    )


def _add_chunk(found: Found, n: int, chunk: Mapping[str, object]) -> str:
    inner = next((value for value in chunk.values() if is_object(value)), chunk)
    passage_id = first_text(inner, "uri", "id", "title", "document_name") or f"chunk:{n}"
    text = first_text(inner, "text", "content")
    if passage_id in found.passages and found.passages[passage_id].text != text:
        passage_id = f"{passage_id}#{n + 1}"
    url = url_in(text_at(inner, "uri"))
    return found.add(Passage(passage_id, text, title=text_at(inner, "title"), url=url))


def _at_index(ids: Sequence[str], index: object) -> str | None:
    n = whole_number(index)
    return ids[n] if n is not None and 0 <= n < len(ids) else None


# Cohere


def _cohere(node: Mapping[str, object], request: ProviderRequest) -> ProviderAnswer | None:
    message = as_object(node.get("message")) or node
    entries = [fields(entry) for entry in items(message.get("citations"))]
    if not any("sources" in entry or "document_ids" in entry for entry in entries):
        return None
    text = text_at(message, "text") or _message_text(message)
    found = Found("cohere")
    for passage in request.named:
        found.add(passage)
    for document in items(message.get("documents")):
        _add_cohere_document(found, fields(document))
    for entry in entries:
        if str(entry.get("type") or "TEXT_CONTENT").upper() == "TEXT_CONTENT":
            _cite_cohere(found, entry, text)
    return found.answer(text)


def _cite_cohere(found: Found, entry: Mapping[str, object], text: str) -> None:
    covered = range_in(text, whole_number(entry.get("start")), whole_number(entry.get("end")))
    quoted = text_at(entry, "text")
    if quoted is not None and (covered is None or text[covered.start : covered.end] != quoted.strip()):
        covered = only_place(text, quoted) or covered
    for source in (fields(source) for source in items(entry.get("sources"))):
        document = as_object(source.get("document")) or as_object(source.get("tool_output"))
        target = text_at(source, "id") or text_at(document, "id")
        if target is not None:
            _add_cohere_document(found, {**document, "id": target})
            found.cite(target, covered)
    for document_id in items(entry.get("document_ids")):
        found.cite(str(document_id), covered)


def _add_cohere_document(found: Found, document: Mapping[str, object]) -> None:
    passage_id, text = text_at(document, "id"), first_text(document, "text", "snippet", "content")
    if passage_id is not None and (text is not None or passage_id not in found.passages):
        found.add(Passage(passage_id, text, title=text_at(document, "title"), url=text_at(document, "url")))


# Bedrock RetrieveAndGenerate


def _retrieve_and_generate(node: Mapping[str, object], request: ProviderRequest) -> ProviderAnswer | None:
    entries = [fields(entry) for entry in items(node.get("citations"))]
    if not any("retrievedReferences" in entry for entry in entries):
        return None
    text = text_at(node, "output", "text") or ""
    found = Found("bedrock")
    for entry in entries:
        part = fields(fields(entry.get("generatedResponsePart")).get("textResponsePart"))
        start, last = (whole_number(fields(part.get("span")).get(key)) for key in ("start", "end"))
        # The API's end is the offset of the last character itself.
        covered = only_place(text, text_at(part, "text")) or range_in(
            text, start, None if last is None else last + 1
        )
        for reference in items(entry.get("retrievedReferences")):
            found.cite(_add_reference(found, fields(reference)), covered)
    return found.answer(text)


def _add_reference(found: Found, reference: Mapping[str, object]) -> str:
    places = [first_text(node, "uri", "url") for node in walk(reference.get("location"))]
    uri = next((place for place in places if place), None)
    chunk = text_at(fields(reference.get("metadata")), "x-amz-bedrock-kb-chunk-id")
    passage_id = chunk or uri or f"reference:{len(found.passages)}"
    return found.add(Passage(passage_id, text_at(reference, "content", "text"), url=url_in(uri)))


# Content blocks: Anthropic, Bedrock Converse, Mistral, LangChain

_BLOCK_SIGNS = frozenset(["citations", "annotations", "citationsContent", "reference_ids"])


def _content_blocks(node: Mapping[str, object], request: ProviderRequest) -> ProviderAnswer | None:
    blocks = [fields(block) for block in items(node.get("content"))]
    if not any(_BLOCK_SIGNS & set(block) for block in blocks):
        return None
    found = Found(_block_provider(blocks))
    text, previous = "", Range(0, 0)
    for block in blocks:
        written = _written(block)
        covered = trimmed(text + written, len(text), len(text) + len(written))
        if "reference_ids" in block:
            _cite_references(found, block, request, trimmed(text, previous.start, previous.end))
        if written:
            previous = Range(len(text), len(text) + len(written))
            text += written
        for citation in _block_citations(block):
            _cite_source(found, citation, request, covered)
        for annotation in items(block.get("annotations")):
            _add_annotation(found, fields(annotation), text, previous.start)
    _add_listed(found, as_object(node.get("additional_kwargs")))
    return found.answer(text)


def _block_provider(blocks: Sequence[Mapping[str, object]]) -> str:
    signs = {sign for block in blocks for sign in _BLOCK_SIGNS & set(block)}
    if "citationsContent" in signs:
        return "bedrock"
    if "reference_ids" in signs:
        return "mistral"
    return "langchain" if "annotations" in signs else "anthropic"


def _written(block: Mapping[str, object]) -> str:
    parts = items(fields(block.get("citationsContent")).get("content"))
    if parts:
        return "".join(text_at(fields(part), "text") or "" for part in parts)
    return text_at(block, "text") or "" if block.get("type") in (None, "text", "output_text") else ""


def _block_citations(block: Mapping[str, object]) -> Iterator[Mapping[str, object]]:
    for place in (block, fields(block.get("citationsContent"))):
        yield from (fields(citation) for citation in items(place.get("citations")))


def _cite_references(
    found: Found, block: Mapping[str, object], request: ProviderRequest, covered: Range | None
) -> None:
    ids = [found.add(passage) for passage in request.references]
    for index in items(block.get("reference_ids")):
        found.cite(_at_index(ids, index) or f"reference_ids:{index}", covered)


def _cite_source(
    found: Found, citation: Mapping[str, object], request: ProviderRequest, covered: Range | None
) -> None:
    """Cite what an Anthropic or Bedrock citation points at: a document by its index, or a web page."""
    for passage in (*request.documents, *request.search_results):
        found.add(passage)
    place = next((v for v in fields(citation.get("location")).values() if is_object(v)), citation)
    quotes = [text_at(fields(part), "text") for part in items(citation.get("sourceContent"))]
    quote = text_at(citation, "cited_text") or "\n".join(quote for quote in quotes if quote) or None
    title = first_text(citation, "document_title", "title")
    for name, index, given in (
        ("search_result", either(place, "search_result_index", "searchResultIndex"), request.search_results),
        ("document", either(place, "document_index", "documentIndex"), request.documents),
    ):
        n = whole_number(index)
        if n is not None:
            found.cite(_indexed(found, name, n, given, quote, title), covered, quote)
            return
    target = first_text(citation, "url", "source", "file_id", "document_id", "id") or title
    if target is not None:
        found.add(Passage(target, quote, title=title, url=url_in(target), is_cut=quote is not None))
        found.cite(target, covered, quote)


def _indexed(
    found: Found, name: str, n: int, given: Sequence[Passage], quote: str | None, title: str | None
) -> str:
    """Return the id of the n-th document given.

    Where the span does not hold the request's documents, what the provider quotes is the passage, cut; where it
    does and has no n-th, the citation dangles.
    """
    if 0 <= n < len(given):
        if given[n].text is None and quote is not None:
            found.add(replace(given[n], text=quote, is_cut=True))
        return given[n].id
    if given or n < 0:
        return f"{name}_index:{n}"
    return found.add(Passage(f"{name}:{n}", quote, title=title, is_cut=quote is not None))


def _message_text(node: Mapping[str, object]) -> str:
    content = {key: node[key] for key in ("content", "contents") if key in node}
    message = read_message({"role": "assistant", **content})
    return message.text if message is not None else ""


_READERS: tuple[Callable[[Mapping[str, object], ProviderRequest], ProviderAnswer | None], ...] = (
    _openai_responses,
    _openai_chat,
    _retrieve_and_generate,
    _gemini,
    _cohere,
    _content_blocks,
)
"""Each returns an answer, or `None` if the object is no payload of its provider."""
