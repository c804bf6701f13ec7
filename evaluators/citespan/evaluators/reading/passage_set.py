"""The passages of a run: what was retrieved, what the prompt shows, and what the provider says, as one list."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from citespan.evaluators.reading.documents import Document
from citespan.evaluators.reading.generation import Prompt
from citespan.evaluators.reading.label_forms import cited_names, fold_label
from citespan.evaluators.reading.locate import squeeze
from citespan.evaluators.reading.prompt_blocks import Section
from citespan.evaluators.reading.shown import ShownText, find_shown
from citespan.evaluators.reading.source_names import CitedSources
from citespan.evaluators.reading.values import is_hidden
from citespan.tracer.citations import Citation
from citespan.tracer.passages import Passage
from citespan.tracer.providers import ProviderAnswer
from citespan.tracer.text import clean_text

__all__ = ["RULE_LABEL", "Evidence", "PassageSet", "make_passages"]

RULE_LABEL = "citespan.label"
"""Key of a document's metadata under which reading rules keep the label that the app recorded."""

_TITLE_KEYS = ("title", "name", "file_name", "filename", "document_title")
_URL_KEYS = ("url", "uri", "link", "href", "source_url", "source")
_SYNTHETIC = re.compile(r"(?:prompt|document):\d+")
"""Ids made here, for passages whose own are not recorded."""


@dataclass(frozen=True, slots=True)
class PassageSet:
    """The passages of a run, and how they came about."""

    passages: tuple[Passage, ...]
    """The passages in the order shown to the model."""

    citations: tuple[Citation, ...] = ()
    """The provider's citations, by the ids of these passages."""

    span_ids: Mapping[str, str] = field(default_factory=dict[str, str])
    """By passage id, the span that holds its text."""

    reasons: tuple[str, ...] = ()
    """How they were found."""

    restored: int = 0
    """How many that no retriever's span holds were found in the prompt."""

    cut_off: int = 0
    """How many of those retrieved came after the place where the recorded prompt breaks off."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a trace says of the passages of its answer."""

    documents: Sequence[Document]
    """What was retrieved, or handed to the step that wrote the answer."""

    prompts: Sequence[Prompt]
    """The prompts of the model calls that the answer rests on, in order; none if no call is known."""

    provider: ProviderAnswer | None
    """What the provider's payload says."""

    ids: Mapping[str, str | None]
    """Ids of documents by their squeezed text."""

    are_retrieved: bool = True
    """Whether spans of a retrieval hold the documents; if not, they exist only in the prompt."""


def make_passages(evidence: Evidence, answer: str) -> PassageSet:
    """Return the passages of a run; its answer's markers tell which names they go by."""
    shown = _shown(evidence, answer)
    reasons: list[str] = []
    if shown:
        found = _from_prompt(shown, evidence)
        reasons += _prompt_reasons(shown, evidence)
    elif evidence.are_retrieved or not _has_prompt(evidence):
        found = _from_documents(evidence)
        reasons += ["passages_not_found_in_prompt"] if evidence.documents and _has_prompt(evidence) else []
    else:
        found = PassageSet(())
    if evidence.provider is not None:
        found = _with_provider(found, evidence.provider, answer, is_shown=bool(shown))
        reasons.append("passages_from_provider" if evidence.provider.passages else "citations_from_provider")
    passages, named = _under_names(found.passages, answer)
    return replace(found, passages=passages, reasons=(*reasons, *found.reasons, *named))


def _has_prompt(evidence: Evidence) -> bool:
    return any(prompt.messages or prompt.variables for prompt in evidence.prompts)


def _shown(evidence: Evidence, answer: str) -> list[ShownText]:
    sections: list[Section] = []
    for prompt in evidence.prompts:
        exact = [*prompt.variables, *(section for section in prompt.messages if section.role == "tool")]
        is_exact = prompt.variables and find_shown(exact, evidence.documents, answer)
        sections += exact if is_exact else prompt.messages
    return find_shown(sections, evidence.documents, answer)


def _prompt_reasons(shown: Sequence[ShownText], evidence: Evidence) -> Iterable[str]:
    if any(one.label is not None for one in shown):
        yield "labels_from_prompt"
    else:
        yield "order_from_prompt"
    if not evidence.are_retrieved or all(one.document_index is None for one in shown):
        yield "passages_from_prompt"
    if (unseen := _unseen(shown, evidence)) > 0:
        yield f"retrieved_but_not_in_prompt:{unseen}"


def _from_prompt(shown: Sequence[ShownText], evidence: Evidence) -> PassageSet:
    ids = _distinct([_shown_id(n, one, evidence) for n, one in enumerate(shown, start=1)])
    passages: list[Passage] = []
    span_ids: dict[str, str] = {}
    for one, passage_id in zip(shown, ids, strict=True):
        document = _document(one, evidence)
        passages.append(_passage(passage_id, one.text, one.label, document))
        if document is not None and document.span_id is not None:
            span_ids[passage_id] = document.span_id
    restored = sum(1 for one in shown if one.document_index is None) if evidence.documents else 0
    cut_off = _unseen(shown, evidence) if any(one.is_at_cut for one in shown) else 0
    return PassageSet(tuple(passages), span_ids=span_ids, restored=restored, cut_off=cut_off)


def _unseen(shown: Sequence[ShownText], evidence: Evidence) -> int:
    """Return how many of the documents with text the prompt does not show."""
    readable = {n for n, document in enumerate(evidence.documents) if document.content}
    return len(readable - {one.document_index for one in shown if one.document_index is not None})


def _document(one: ShownText, evidence: Evidence) -> Document | None:
    return one.document if one.document_index is None else evidence.documents[one.document_index]


def _shown_id(n: int, one: ShownText, evidence: Evidence) -> str:
    """Return the id of the n-th passage shown: recorded, else its place among those retrieved or shown."""
    document = _document(one, evidence)
    recorded = document.id if document is not None else evidence.ids.get(squeeze(one.text))
    if recorded is not None:
        return recorded
    is_retrieved = evidence.are_retrieved and one.document_index is not None
    return f"document:{(one.document_index or 0) + 1}" if is_retrieved else f"prompt:{n}"


def _from_documents(evidence: Evidence) -> PassageSet:
    documents = evidence.documents
    prefix = "document" if evidence.are_retrieved else "prompt"
    ids = _distinct([document.id or f"{prefix}:{n}" for n, document in enumerate(documents, start=1)])
    passages = [
        _passage(passage_id, document.content, None, document)
        for passage_id, document in zip(ids, documents, strict=True)
    ]
    span_ids = {i: d.span_id for i, d in zip(ids, documents, strict=True) if d.span_id is not None}
    return PassageSet(tuple(passages), span_ids=span_ids)


def _distinct(wanted: Sequence[str]) -> list[str]:
    """Return ids that differ: the second passage under one id becomes `kb-7#2`."""
    taken = set(wanted)
    counts: dict[str, int] = {}
    ids: list[str] = []
    for passage_id in wanted:
        counts[passage_id] = n = counts.get(passage_id, 0) + 1
        made = passage_id
        while n > 1 and made in taken:
            made = f"{passage_id}#{n}"
            n += 1
        taken.add(made)
        ids.append(made)
    return ids


def _passage(passage_id: str, text: str | None, label: str | None, document: Document | None) -> Passage:
    metadata: Mapping[str, object] = document.metadata if document is not None else {}
    is_masked = is_hidden(text)
    return Passage(
        id=clean_text(passage_id),
        text=None if text is None or is_masked else clean_text(text),
        label=clean_text(label) if label is not None else _first(metadata, (RULE_LABEL,)),
        title=_first(metadata, _TITLE_KEYS),
        url=next((url for key in _URL_KEYS if (url := _first(metadata, (key,))) and "://" in url[:24]), None),
        score=None if document is None else document.score,
        metadata=metadata,
    )


def _first(metadata: Mapping[str, object], keys: Iterable[str]) -> str | None:
    return next(
        (clean_text(v) for key in keys if isinstance(v := metadata.get(key), str) and v.strip()), None
    )


def _with_provider(found: PassageSet, provider: ProviderAnswer, answer: str, *, is_shown: bool) -> PassageSet:
    """Return the passages with those of the provider: the same text or address is the same passage."""
    cited = cited_names(answer)
    passages = list(found.passages)
    by_id = {passage.id: n for n, passage in enumerate(passages)}
    by_text = {squeeze(passage.text): n for n, passage in enumerate(passages) if passage.text}
    by_url = {url: n for n, passage in enumerate(passages) for url in _addresses(passage)}
    renamed: dict[str, str] = {}
    matched: set[int] = set()
    added: list[Passage] = []
    for passage in provider.passages:
        n = by_id.get(passage.id)
        n = by_text.get(squeeze(passage.text)) if n is None and passage.text else n
        n = by_url.get(passage.url) if n is None and passage.url else n
        if n is None:
            added.append(_cleaned(passage))
            continue
        matched.add(n)
        if _SYNTHETIC.fullmatch(passages[n].id) and passage.id not in by_id:
            passages[n] = replace(
                passages[n], id=clean_text(passage.id), title=passages[n].title or passage.title
            )
        renamed[passage.id] = passages[n].id
        if passage.label is not None and (
            passages[n].label is None or fold_label(passages[n].label or "") not in cited
        ):
            passages[n] = replace(passages[n], label=passage.label)
    if not is_shown and matched:
        passages = [passage for n, passage in enumerate(passages) if n in matched]
    citations = tuple(
        replace(citation, passage_id=clean_text(renamed.get(citation.passage_id, citation.passage_id)))
        for citation in _aligned(provider, answer)
    )
    return replace(found, passages=(*passages, *added), citations=citations)


def _addresses(passage: Passage) -> Iterable[str]:
    values = (passage.url, *(passage.metadata.get(key) for key in _URL_KEYS))
    return (value for value in values if isinstance(value, str) and "://" in value[:24])


def _cleaned(passage: Passage) -> Passage:
    text = None if passage.text is None or is_hidden(passage.text) else clean_text(passage.text)
    return replace(passage, id=clean_text(passage.id), text=text)


def _aligned(provider: ProviderAnswer, answer: str) -> Iterable[Citation]:
    """Yield the provider's citations with ranges of the answer as the user got it."""
    if provider.text == answer:
        yield from provider.citations
        return
    shift = answer.find(provider.text) if provider.text else -1
    for citation in provider.citations:
        if citation.start is None or citation.end is None:
            yield citation
            continue
        covered = provider.text[citation.start : citation.end]
        start = citation.start + shift if shift >= 0 else answer.find(covered)
        is_clear = shift >= 0 or (start >= 0 and answer.count(covered) == 1)
        end = start + len(covered)
        yield replace(citation, start=start, end=end) if is_clear else replace(citation, start=None, end=None)


def _under_names(passages: Sequence[Passage], answer: str) -> tuple[tuple[Passage, ...], tuple[str, ...]]:
    """Return the passages under their file names, titles or addresses if those are what the answer cites.

    Names count only where no label and no id is cited: `[tea.md]` for two pages of one file is ambiguous.
    """
    cited = cited_names(answer)
    used = {fold_label(name) for p in passages for name in (p.id, p.label) if name is not None}
    if not cited or cited & used:
        return tuple(passages), ()
    sources = CitedSources(cited)
    named = [(passage, sources.find(passage)) for passage in passages]
    if all(name is None for _, name in named):
        return tuple(passages), ()
    return tuple(p if name is None else replace(p, label=name) for p, name in named), ("labels_from_names",)
