"""Passages out of whatever a retriever returns: by shape, importing none of the libraries that made it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import cast

from citespan.tracer.citations import Citation
from citespan.tracer.faults import log_fault
from citespan.tracer.passages import Passage
from citespan.tracer.text import clean_text

__all__ = ["as_citations", "as_passage", "as_passages", "number_passages"]

_TEXT_KEYS = ("text", "content", "page_content", "body", "document")
_WRAPPED_KEYS = ("node", "document")
_ID_KEYS = ("id", "_id", "node_id", "id_", "doc_id", "document_id", "chunk_id")
_SCORE_KEYS = ("score", "_score", "similarity", "relevance_score")
_METADATA_KEYS = ("metadata", "meta")
_TITLE_KEYS = ("title", "file_name", "filename", "name")
_CITATION_FIELDS = ("passage_id", "start", "end", "quote")
_URL_KEYS = ("url", "link", "uri", "source", "source_url", "href")


def as_passages(items: Iterable[object], labels: Sequence[object] | str | None = None) -> list[Passage]:
    """Return one passage per item; one that cannot be read has neither id nor text, and keeps its place.

    Args:
        items: Passages, dicts, strings, LangChain or Haystack documents, LlamaIndex nodes (with or without
            score), or `(document, score)` pairs.
        labels: The label each was shown under, in the same order, or a form such as `"P{n}"` that numbers
            them from 1; `None` keeps those the items carry.

    Raises:
        TypeError: `items` is one text or dict.
    """
    if isinstance(items, str | bytes | Mapping):
        raise TypeError("passages are one text or dict: expected a list of passages")
    passages = [item if isinstance(item, Passage) else _read(item) for item in items]
    return passages if labels is None else _labelled(passages, labels)


def number_passages(items: Iterable[object], start: int = 1, form: str = "{n}") -> list[Passage]:
    """Return the items as passages labelled `1`, `2`, `3`: the numbers the prompt shows them under.

    Args:
        items: As for `as_passages`.
        start: The first number.
        form: The label, with `{n}` for the number: `"P{n}"` gives `P1`, `P2`.

    Raises:
        TypeError: `items` is one text or dict.
    """
    return [replace(p, label=form.replace("{n}", str(n))) for n, p in enumerate(as_passages(items), start)]


def _read(item: object) -> Passage:
    try:
        return as_passage(item)
    except Exception as fault:  # an item of the host's may do anything when it is read
        log_fault("reading a passage", fault)
        return Passage(id="", text=None)


def _labelled(passages: list[Passage], labels: Sequence[object] | str) -> list[Passage]:
    if isinstance(labels, str):
        if "{n}" not in labels:
            log_fault(
                "labelling passages", ValueError(f'labels is {labels!r}: expected a form with "{{n}}" in it')
            )
            return passages
        labels = [labels.replace("{n}", str(n)) for n in range(1, len(passages) + 1)]
    if len(labels) != len(passages):
        mismatch = ValueError(f"{len(labels)} labels for {len(passages)} passages: expected one for each")
        log_fault("labelling passages", mismatch)
        return passages
    return [replace(passage, label=str(label)) for passage, label in zip(passages, labels, strict=True)]


def as_passage(item: object) -> Passage:
    """Return `item` as a passage; one without an id gets an empty id, which the run replaces.

    Raises:
        TypeError: It has none of the known shapes.
    """
    if isinstance(item, Passage):
        return item
    if isinstance(item, str):
        return Passage(id="", text=item)
    if isinstance(item, tuple):
        return _from_pair(cast("tuple[object, ...]", item))
    if isinstance(item, Mapping):
        fields = _Fields(cast("Mapping[str, object]", item))
    else:
        fields = _Fields(_Attributes(item))
    wrapped = fields.first(_WRAPPED_KEYS)
    if wrapped is not None and not isinstance(wrapped, str):
        return _with_score(as_passage(wrapped), fields.number(_SCORE_KEYS))
    if fields.text() is None and fields.first(_ID_KEYS) is None:
        raise TypeError(
            f"a passage is {fields}: expected a Passage, a dict, a string, or an object with a text"
        )
    return _from_fields(fields)


def as_citations(
    items: Iterable[Citation | Mapping[str, object] | str], answer_length: int
) -> tuple[Citation, ...]:
    """Return the items as citations of an answer of `answer_length` code points.

    One that names no passage is left out; one whose range is none keeps its passage and loses the range.
    """
    citations: list[Citation] = []
    for item in items:
        try:
            citations.append(_citation(item, answer_length))
        except Exception as fault:
            log_fault("reading a citation", fault)
    return tuple(citations)


def _citation(item: Citation | Mapping[str, object] | str, answer_length: int) -> Citation:
    if isinstance(item, str):
        return Citation(passage_id=clean_text(item))
    data = {name: getattr(item, name) for name in _CITATION_FIELDS} if isinstance(item, Citation) else item
    passage_id, start, end, quote = (data.get(name) for name in _CITATION_FIELDS)
    if not isinstance(passage_id, str | int):
        raise TypeError('a citation has no "passage_id": expected a string')
    has_range = type(start) is int and type(end) is int and 0 <= start < end <= answer_length
    if not has_range and (start, end) != (None, None):
        log_fault(
            "the range of a citation",
            ValueError(
                f"{start!r} to {end!r} is no range of the {answer_length} code points of the answer"
                f" (citation of {passage_id!r}): recorded without it"
            ),
        )
    return Citation(
        passage_id=clean_text(str(passage_id)),
        start=cast("int", start) if has_range else None,
        end=cast("int", end) if has_range else None,
        origin=item.origin if isinstance(item, Citation) else "app",
        quote=None if quote is None else clean_text(str(quote)),
    )


class _Attributes(Mapping[str, object]):
    """An object's attributes as a mapping, read by name only."""

    def __init__(self, owner: object) -> None:
        self._owner = owner

    def __getitem__(self, key: str) -> object:
        try:
            return cast("object", getattr(self._owner, key))
        except AttributeError:
            raise KeyError(key) from None

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0

    def __str__(self) -> str:
        return type(self._owner).__name__


class _Fields:
    """Reads the first field that holds something out of several names for it."""

    def __init__(self, data: Mapping[str, object]) -> None:
        self._data = data

    def __str__(self) -> str:
        return "a dict with none of its keys" if isinstance(self._data, dict) else str(self._data)

    def first(self, names: Sequence[str]) -> object:
        data = self._data
        return next((value for name in names if (value := data.get(name)) is not None), None)

    def text(self) -> str | None:
        value = self.first(_TEXT_KEYS)
        if value is None and callable(get_content := self._data.get("get_content")):
            value = get_content()
        return value if isinstance(value, str) else None

    def string(self, names: Sequence[str]) -> str | None:
        value = self.first(names)
        if value is None or isinstance(value, bool) or callable(value):
            return None
        return clean_text(str(value))

    def number(self, names: Sequence[str]) -> float | None:
        value = self.first(names)
        return _finite(value)

    def mapping(self, names: Sequence[str]) -> Mapping[str, object]:
        value = self.first(names)
        return cast("Mapping[str, object]", value) if isinstance(value, Mapping) else {}


def _from_fields(fields: _Fields) -> Passage:
    metadata = fields.mapping(_METADATA_KEYS)
    beside = _Fields(metadata)
    title = fields.string(_TITLE_KEYS) or beside.string(_TITLE_KEYS)
    url = fields.string(_URL_KEYS) or beside.string(_URL_KEYS)
    if url is not None and "://" not in url:
        title, url = title or url, None
    return Passage(
        id=fields.string(_ID_KEYS) or beside.string(_ID_KEYS) or "",
        text=fields.text(),
        label=fields.string(("label",)),
        title=title,
        url=url,
        score=fields.number(_SCORE_KEYS),
        metadata=metadata,
    )


def _from_pair(pair: tuple[object, ...]) -> Passage:
    if len(pair) != 2:
        raise TypeError(f"a passage is a tuple of {len(pair)}: expected (document, score)")
    return _with_score(as_passage(pair[0]), _finite(pair[1]))


def _with_score(passage: Passage, score: float | None) -> Passage:
    return passage if score is None else replace(passage, score=score)


def _finite(value: object) -> float | None:
    if isinstance(value, bool) or value is None:
        return None
    try:
        number = float(cast("float", value))
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None
