"""Citations and passages that a provider's own payload holds, as a span's output keeps it.

A payload is read wherever it stands: as the output itself, or inside what LangChain or LlamaIndex wrap round it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from citespan.evaluators.reading.normalise import SpanView
from citespan.evaluators.reading.provider_request import ProviderRequest, read_request
from citespan.evaluators.reading.values import MAX_DEPTH, fields, is_list, is_object, items, walk
from citespan.tracer.providers import ProviderAnswer, read_answer

__all__ = ["provider_citations"]

_SEARCH_INDICES = ("search_result_index", "searchResultIndex")


def provider_citations(view: SpanView) -> ProviderAnswer | None:
    """Return what the payload of a model call says of passages and citations, or `None` if it says nothing.

    Documents that the request gave the model are passages whether or not the answer cites any.
    """
    if view.kind in ("RERANKER", "EMBEDDING"):
        return None
    request = read_request(view)
    for node in _payloads(view):
        answer = read_answer(_with_named_results(node, request), request.indexed)
        if answer is not None and (answer.citations or answer.passages):
            passages = {passage.id: passage for passage in answer.passages}
            passages |= {passage.id: passage for passage in request.passages if passage.text is not None}
            given = {passage.id: passages.get(passage.id, passage) for passage in request.passages}
            return replace(answer, passages=tuple({**given, **passages}.values()))
    return ProviderAnswer("", "", (), request.passages) if request.passages else None


def _payloads(view: SpanView) -> Iterator[Mapping[str, object]]:
    """Yield what may be a provider's payload, outer before inner."""
    yield from walk(view.output)
    yield {"role": "assistant", "type": "message", "content": _blocks_from_metadata(view)}
    yield {"output": list(_server_searches(view))}


def _blocks_from_metadata(view: SpanView) -> Sequence[object]:
    """Return Anthropic's blocks put together again, for spans that keep only OpenInference's attributes."""
    by_block = fields(view.at("metadata.citations"))
    first = fields(next(iter(items(view.at("llm.output_messages"))), None))
    contents = items(fields(first.get("message")).get("contents")) if by_block else []
    return [
        {**fields(fields(entry).get("message_content")), "citations": items(by_block.get(str(n)))}
        for n, entry in enumerate(contents)
    ]


def _server_searches(view: SpanView) -> Iterator[Mapping[str, object]]:
    """Yield the provider's own file searches: OTel's messages keep them and drop the citations."""
    for message in view.output_messages:
        for block in message.blocks:
            results = items(fields(block.get("server_tool_call")).get("results"))
            if results:
                yield {"type": "file_search_call", "results": [fields(result) for result in results]}


def _with_named_results(node: Mapping[str, object], request: ProviderRequest) -> Mapping[str, object]:
    """Return a payload whose citations of search results name their source instead of counting them.

    Anthropic and Bedrock count a request's documents and its search results apart, each from 0, and give the
    source of a search result beside its number.
    """
    if not request.search_results or not any(key in inner for inner in walk(node) for key in _SEARCH_INDICES):
        return node
    named = _without_search_indices(node, 0)
    return named if is_object(named) else node


def _without_search_indices(value: object, depth: int) -> object:
    if depth >= MAX_DEPTH:
        return value
    if is_object(value):
        kept = {key: item for key, item in value.items() if key not in _SEARCH_INDICES}
        return {key: _without_search_indices(item, depth + 1) for key, item in kept.items()}
    if is_list(value):
        return [_without_search_indices(item, depth + 1) for item in value]
    return value
