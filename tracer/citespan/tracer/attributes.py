"""What is recorded on spans: each key's writer and reader side by side.

Passage text, question and answer stay in OpenInference's keys.
What OpenInference cannot say goes into one JSON string, `citespan.run`, on the run's span.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, cast

from citespan.tracer.citations import Citation
from citespan.tracer.errors import RecordError

__all__ = ["RUN", "RUN_SCHEMA", "RecordedPassage", "RunRecord", "write_record"]

RUN = "citespan.run"
"""Attribute of the run's span: a `RunRecord` as one JSON string, set last before the span kind."""

RUN_SCHEMA = 1
"""Version of the record written here; the reader accepts every earlier one."""

_quote = json.encoder.encode_basestring


@dataclass(frozen=True, slots=True)
class RecordedPassage:
    """What the record says of one passage; its text is on a retriever span."""

    id: str
    """Id of the passage, unique within the run."""

    label: str | None
    """The label the model was shown for it; `None` if the app did not say."""

    sha256: str | None
    """Hash of the text the model saw, before redaction; `None` if the app gave no text."""

    title: str | None = None
    """Title, for reviewers."""

    url: str | None = None
    """Where it can be read in full, for reviewers."""


@dataclass(frozen=True, slots=True)
class RunRecord:
    """What nobody else records of a run."""

    passages: tuple[RecordedPassage, ...]
    """The passages in the order shown to the model."""

    passage_count: int
    """How many passages the run had; more than `passages` if some were not recorded."""

    citations: tuple[Citation, ...] = ()
    """Citations the app or the provider gave beside the answer."""

    hidden: tuple[str, ...] = ()
    """What redaction hid: `question`, `answer`, `passages`, or `passage:<id>`."""

    cut: tuple[str, ...] = ()
    """What redaction shortened, named likewise."""

    def to_json(self) -> str:
        """Return the attribute's value."""
        return write_record(
            self.passages,
            passage_count=self.passage_count,
            citations=self.citations,
            hidden=self.hidden,
            cut=self.cut,
        )

    @classmethod
    def from_json(cls, value: object) -> RunRecord:
        """Read the attribute's value back.

        Raises:
            RecordError: It is no JSON object, or its schema is unknown; `reason` says which.
        """
        data = _object(value)
        schema = data.get("schema")
        if schema != RUN_SCHEMA:
            raise RecordError(
                f"unknown_schema:{schema}",
                f"{RUN} has schema {schema!r}: this version reads up to {RUN_SCHEMA}",
            )
        passages = tuple(_passage_from_dict(item) for item in _dicts(data, "passages"))
        count = data.get("passage_count")
        return cls(
            passages=passages,
            passage_count=count if isinstance(count, int) else len(passages),
            citations=tuple(_citation_from_dict(item) for item in _dicts(data, "citations")),
            hidden=_strings(data, "hidden"),
            cut=_strings(data, "cut"),
        )


class PassageFields(Protocol):
    """The fields of a `RecordedPassage`, whoever holds them."""

    @property
    def id(self) -> str: ...
    @property
    def label(self) -> str | None: ...
    @property
    def sha256(self) -> str | None: ...
    @property
    def title(self) -> str | None: ...
    @property
    def url(self) -> str | None: ...


def write_record(
    passages: Iterable[PassageFields],
    *,
    passage_count: int,
    citations: Sequence[Citation] = (),
    hidden: Sequence[str] = (),
    cut: Sequence[str] = (),
) -> str:
    """Return the attribute's value for the fields of a `RunRecord`.

    Written by hand because every run pays for it: `json.dumps` takes four times as long.
    """
    objects = ",".join([_passage_json(passage) for passage in passages])
    cited = _json([_citation_to_dict(citation) for citation in citations])
    return (
        f'{{"schema":{RUN_SCHEMA},"passages":[{objects}],"passage_count":{passage_count},'
        f'"citations":{cited},"hidden":{_json(hidden)},"cut":{_json(cut)}}}'
    )


def _object(value: object) -> Mapping[str, object]:
    try:
        data: object = json.loads(value) if isinstance(value, str) else value
    except ValueError as error:
        raise RecordError("invalid_json", f"{RUN} is no JSON: {error}") from error
    if not isinstance(data, Mapping):
        raise RecordError("invalid_record", f"{RUN} is {type(data).__name__}: expected a JSON object")
    return cast("Mapping[str, object]", data)


def _dicts(data: Mapping[str, object], key: str) -> list[Mapping[str, object]]:
    value: object = data.get(key) or []
    items = cast("Sequence[object]", value) if isinstance(value, list) else [None]
    if not all(isinstance(item, Mapping) for item in items):
        raise RecordError("invalid_record", f"{RUN}: {key!r} is not a list of objects")
    return [cast("Mapping[str, object]", item) for item in items]


def _strings(data: Mapping[str, object], key: str) -> tuple[str, ...]:
    value: object = data.get(key) or []
    return tuple(str(item) for item in cast("list[object]", value)) if isinstance(value, list) else ()


def _optional(data: Mapping[str, object], key: str) -> str | None:
    value = data.get(key)
    return value if isinstance(value, str) else None


def _required(data: Mapping[str, object], key: str) -> str:
    value = data.get(key)
    if not isinstance(value, str):
        raise RecordError("invalid_record", f"{RUN}: an entry has no string {key!r}")
    return value


def _json(items: Sequence[object]) -> str:
    return json.dumps(items, ensure_ascii=False, separators=(",", ":")) if items else "[]"


def _passage_json(passage: PassageFields) -> str:
    title = "" if passage.title is None else f',"title":{_quote(passage.title)}'
    url = "" if passage.url is None else f',"url":{_quote(passage.url)}'
    label = "null" if passage.label is None else _quote(passage.label)
    sha256 = "null" if passage.sha256 is None else _quote(passage.sha256)
    return f'{{"id":{_quote(passage.id)},"label":{label},"sha256":{sha256}{title}{url}}}'


def _passage_from_dict(data: Mapping[str, object]) -> RecordedPassage:
    return RecordedPassage(
        id=_required(data, "id"),
        label=_optional(data, "label"),
        sha256=_optional(data, "sha256"),
        title=_optional(data, "title"),
        url=_optional(data, "url"),
    )


def _citation_to_dict(citation: Citation) -> dict[str, object]:
    data: dict[str, object] = {"passage_id": citation.passage_id, "origin": citation.origin}
    if citation.start is not None:
        data["start"], data["end"] = citation.start, citation.end
    if citation.quote is not None:
        data["quote"] = citation.quote
    return data


def _citation_from_dict(data: Mapping[str, object]) -> Citation:
    start, end = data.get("start"), data.get("end")
    has_range = isinstance(start, int) and isinstance(end, int)
    return Citation(
        passage_id=_required(data, "passage_id"),
        start=cast("int", start) if has_range else None,
        end=cast("int", end) if has_range else None,
        origin=_optional(data, "origin") or "app",
        quote=_optional(data, "quote"),
    )
