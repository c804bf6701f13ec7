"""The passages that a request gives a model as documents of their own, beside its messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from citespan.evaluators.reading.normalise import SpanView
from citespan.evaluators.reading.values import as_object, fields, items, text_at, walk
from citespan.tracer.passages import Passage

__all__ = ["ProviderRequest", "read_request"]


@dataclass(frozen=True, slots=True)
class ProviderRequest:
    """The documents of a request, by the list that a provider's citations count in."""

    documents: tuple[Passage, ...]
    """Anthropic's and Bedrock Converse's document blocks, over all messages."""

    search_results: tuple[Passage, ...]
    """Their search result blocks, over all messages."""

    named: tuple[Passage, ...]
    """Cohere's documents, which have ids."""

    references: tuple[Passage, ...]
    """The numbered results of a tool, which Mistral's references count in."""

    @property
    def indexed(self) -> tuple[Passage, ...]:
        """Those that a response names by id, or by index in a list of their own."""
        return (*self.documents, *self.named, *self.references)

    @property
    def passages(self) -> tuple[Passage, ...]:
        """All of them."""
        return (*self.documents, *self.search_results, *self.named, *self.references)


def read_request(view: SpanView) -> ProviderRequest:
    """Return the documents that a model call was given: from its request, else from its messages' blocks."""
    nodes = list(walk(view.input))
    blocks = [node for message in view.input_messages for block in message.blocks for node in walk(block)]
    return ProviderRequest(
        documents=tuple(_documents(nodes)) or tuple(_documents(blocks)),
        search_results=tuple(_search_results(nodes)) or tuple(_search_results(blocks)),
        named=tuple(_named(nodes, view)),
        references=tuple(_references(nodes)) or tuple(_references(blocks)),
    )


def _documents(nodes: Iterable[Mapping[str, object]]) -> Iterator[Passage]:
    n = 0
    for node in nodes:
        is_converse = "source" in as_object(node.get("document"))
        if node.get("type") != "document" and not is_converse:
            continue
        inner = as_object(node["document"]) if is_converse else node
        source = fields(inner.get("source"))
        is_binary = source.get("type") == "base64" or "bytes" in source
        text = text_at(inner, "text") or _first_text(source, "data", "text") or _joined(source.get("content"))
        title = _first_text(inner, "title", "name")
        yield Passage(f"document:{n}", None if is_binary else text, title=title)
        n += 1


def _search_results(nodes: Iterable[Mapping[str, object]]) -> Iterator[Passage]:
    n = 0
    for node in nodes:
        inner = as_object(node.get("searchResult")) or node
        if node.get("type") != "search_result" and inner is node:
            continue
        source = text_at(inner, "source") or f"search_result:{n}"
        yield Passage(
            source, _joined(inner.get("content")), title=text_at(inner, "title"), url=_url_in(source)
        )
        n += 1


def _joined(blocks: object) -> str | None:
    texts = [text_at(fields(block), "text") for block in items(blocks)]
    return "\n".join(text for text in texts if text) or None


def _named(nodes: Sequence[Mapping[str, object]], view: SpanView) -> Iterator[Passage]:
    """Yield Cohere's request documents: each has an id, or `doc:<n>` by its place."""
    requests = [node.get("documents") for node in nodes if "messages" in node or "message" in node]
    lists = [*requests, view.at("llm.invocation_parameters.documents")]
    given = next((found for value in lists if (found := items(value))), None) or []
    for n, entry in enumerate(given):
        outer = as_object(entry)
        inner = as_object(outer.get("data")) or outer
        text = entry if isinstance(entry, str) else _first_text(inner, "text", "snippet", "content")
        if text is not None:
            passage_id = text_at(outer, "id") or f"doc:{n}"
            yield Passage(passage_id, text, title=text_at(inner, "title"), url=text_at(inner, "url"))


def _references(nodes: Iterable[Mapping[str, object]]) -> Iterator[Passage]:
    """Yield the results of a tool message such as `{"0": {"url", "title", "snippets"}}`."""
    for node in nodes:
        entries = [fields(entry) for entry in items(node)] if "0" in node else []
        if entries and all("snippets" in entry or "url" in entry for entry in entries):
            yield from (_reference(n, entry) for n, entry in enumerate(entries))
            return


def _reference(n: int, entry: Mapping[str, object]) -> Passage:
    snippets = [text for row in items(entry.get("snippets")) for text in (items(row) or [row])]
    text = "\n".join(text for text in snippets if isinstance(text, str)) or text_at(entry, "content")
    url = text_at(entry, "url")
    return Passage(url or f"reference:{n}", text, title=text_at(entry, "title"), url=url)


def _first_text(node: Mapping[str, object], *names: str) -> str | None:
    return next((text for name in names if (text := text_at(node, name))), None)


def _url_in(text: str) -> str | None:
    return text if "://" in text[:24] else None
