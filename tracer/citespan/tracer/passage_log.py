"""The passages of one run: each known by one id, in the order the model was shown them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from openinference.semconv.trace import DocumentAttributes, SpanAttributes

from citespan.tracer.attributes import RecordedPassage
from citespan.tracer.passages import Passage
from citespan.tracer.redaction import Redacted, Rule, redact
from citespan.tracer.text import clean_text

__all__ = ["LoggedPassage", "PassageLog", "document_attributes", "recorded_passages"]


@dataclass(slots=True)
class LoggedPassage:
    """A passage as it will be recorded."""

    id: str
    """Unique within the run."""

    label: str | None
    """The label the model was shown for it."""

    sha256: str | None
    """Hash of the original text; `None` where there was none."""

    passage: Passage
    """What the app gave."""

    recorded: Redacted | None
    """The text after redaction; `None` where there was none."""


class PassageLog:
    """Collects what a run retrieved and what of it the model was shown."""

    __slots__ = ("_by_id", "_by_text", "_retrieved", "_rule", "_shown")

    def __init__(self, rule: Rule | None) -> None:
        """Start empty; `rule` is the redaction rule for passages."""
        self._rule = rule
        self._retrieved: list[LoggedPassage] = []
        self._shown: list[LoggedPassage] | None = None
        self._by_id: dict[str, LoggedPassage] = {}
        self._by_text: dict[tuple[str, str | None, str | None], LoggedPassage] = {}

    def retrieve(self, passages: Iterable[Passage]) -> list[LoggedPassage]:
        """Add what one retrieval returned; a passage that came before keeps its entry."""
        return [self._entry(passage) for passage in passages]

    def show(self, passages: Iterable[Passage]) -> list[LoggedPassage]:
        """Say which passages the prompt holds, in order, and return those that no retrieval recorded."""
        known = len(self._retrieved)
        self._shown = self.retrieve(passages)
        return self._retrieved[known:]

    @property
    def shown(self) -> Sequence[LoggedPassage]:
        """The passages in the order shown: as said, else as retrieved."""
        return self._retrieved if self._shown is None else self._shown

    def _entry(self, passage: Passage) -> LoggedPassage:
        text, sha256 = _hashed(passage)
        label = passage.label
        known = self._by_id.get(passage.id) if passage.id else None
        if known is not None and known.sha256 == sha256 and (label is None or known.label in (None, label)):
            known.label = label if known.label is None else known.label
            return known
        key = (passage.id, sha256, label)
        if (known := self._by_text.get(key)) is not None:
            return known
        entry = LoggedPassage(
            id=self._new_id(passage.id, sha256),
            label=None if label is None else clean_text(label),
            sha256=sha256,
            passage=passage,
            recorded=None if text is None else redact(self._rule, text),
        )
        self._by_id[entry.id] = self._by_text[key] = entry
        self._retrieved.append(entry)
        return entry

    def _new_id(self, given: str, sha256: str | None) -> str:
        """Return an id that no other passage of the run has."""
        if given:
            wanted = clean_text(given)
        elif sha256 is None or self._rule is not None:
            wanted = f"passage-{len(self._retrieved) + 1}"
        else:
            wanted = f"text-{sha256[:12]}"
        if wanted not in self._by_id:
            return wanted
        n = len(self._retrieved) + 1
        while f"{wanted}#{n}" in self._by_id:
            n += 1
        return f"{wanted}#{n}"


def recorded_passages(
    entries: Sequence[LoggedPassage],
) -> tuple[tuple[RecordedPassage, ...], list[str], list[str]]:
    """Return what the record says of the passages, and which were hidden and which cut."""
    recorded: list[RecordedPassage] = []
    hidden: list[str] = []
    cut: list[str] = []
    for entry in entries:
        text, passage = entry.recorded, entry.passage
        is_hidden = text is not None and text.is_hidden
        recorded.append(
            RecordedPassage(
                entry.id,
                entry.label,
                entry.sha256 if text is None or text.keeps_hash else None,
                None if is_hidden or passage.title is None else clean_text(passage.title),
                None if passage.url is None else clean_text(passage.url),
            )
        )
        if text is not None and (is_hidden or text.is_cut):
            (hidden if is_hidden else cut).append(f"passage:{entry.id}")
    if hidden and len(hidden) == len(entries):
        hidden = ["passages"]
    return tuple(recorded), hidden, cut


def document_attributes(entries: Sequence[LoggedPassage], rule: Rule | None) -> dict[str, str | float]:
    """Return OpenInference's document attributes for what one retrieval returned."""
    attributes: dict[str, str | float] = {}
    for (id_key, content_key, score_key, metadata_key), entry in zip(
        _keys(len(entries)), entries, strict=False
    ):
        attributes[id_key] = entry.id
        if (text := entry.recorded) is not None:
            attributes[content_key] = text.text
        passage = entry.passage
        if passage.score is not None:
            attributes[score_key] = passage.score
        if passage.metadata and not (text is not None and text.is_hidden):
            attributes[metadata_key] = _metadata_json(passage.metadata, rule)
    return attributes


def _hashed(passage: Passage) -> tuple[str | None, str | None]:
    """Return the storable text and its hash, encoding the text once: it is the largest thing recorded."""
    text = passage.text
    if text is None:
        return None, passage.sha256
    try:
        data = text.encode()
    except UnicodeEncodeError:
        text = clean_text(text)
        data = text.encode()
    if b"\0" in data:
        text = clean_text(text)
        data = text.encode()
    return text, passage.sha256 or hashlib.sha256(data).hexdigest()


def _metadata_json(metadata: Mapping[str, object], rule: Rule | None) -> str:
    if rule is not None:
        metadata = {key: _redacted_value(value, rule) for key, value in metadata.items()}
    return clean_text(json.dumps(dict(metadata), ensure_ascii=False, default=str, skipkeys=True))


def _redacted_value(value: object, rule: Rule) -> object:
    if isinstance(value, bool | int | float | None):
        return value
    return redact(rule, value if isinstance(value, str) else str(value)).text


def _make_keys(count: int) -> tuple[tuple[str, str, str, str], ...]:
    prefixes = [f"{SpanAttributes.RETRIEVAL_DOCUMENTS}.{n}." for n in range(count)]
    return tuple(
        (
            prefix + DocumentAttributes.DOCUMENT_ID,
            prefix + DocumentAttributes.DOCUMENT_CONTENT,
            prefix + DocumentAttributes.DOCUMENT_SCORE,
            prefix + DocumentAttributes.DOCUMENT_METADATA,
        )
        for prefix in prefixes
    )


_FIRST_KEYS = _make_keys(64)


def _keys(count: int) -> tuple[tuple[str, str, str, str], ...]:
    """Return the attribute keys of the first `count` documents; the usual number is made once per process."""
    return _FIRST_KEYS if count <= len(_FIRST_KEYS) else _make_keys(count)
