"""The passages of one run: each known by one id, in the order the model was shown them."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from openinference.semconv.trace import DocumentAttributes, SpanAttributes

from citespan.tracer.passages import Passage
from citespan.tracer.redaction import Rule, redact
from citespan.tracer.text import clean_text

__all__ = ["LoggedPassage", "PassageLog", "document_attributes", "redacted_passages"]


@dataclass(slots=True)
class LoggedPassage:
    """A passage as it will be recorded."""

    id: str
    """Unique within the run."""

    label: str | None
    """The label the model was shown for it."""

    sha256: str | None
    """Hash of the original text; `None` where there was none, or redaction keeps it out."""

    title: str | None
    """Title; `None` also where the text is hidden."""

    url: str | None
    """Where it can be read in full."""

    text: str | None
    """What is recorded of the text; `None` where there was none."""

    score: float | None
    """Retrieval score in the retriever's own unit."""

    metadata: Mapping[str, object] | None
    """What else the retriever said; `None` also where the text is hidden."""

    identity: str | None
    """Hash of the original text, to know the passage again; never recorded."""

    is_hidden: bool = False
    """Whether nothing of the text can be read."""

    is_cut: bool = False
    """Whether it can be read, but not as it was."""


class PassageLog:
    """Collects what a run retrieved and what of it the model was shown."""

    __slots__ = ("_by_id", "_lock", "_renamed", "_retrieved", "_rule", "_shown", "_unnamed")

    def __init__(self, rule: Rule | None) -> None:
        """Start empty; `rule` is the redaction rule for passages."""
        self._rule = rule
        self._lock = threading.Lock()
        self._retrieved: list[LoggedPassage] = []
        self._shown: list[LoggedPassage] | None = None
        self._by_id: dict[str, LoggedPassage] = {}
        self._renamed: dict[tuple[str, str | None, str | None], LoggedPassage] = {}
        self._unnamed: dict[str, str] = {}

    def retrieve(self, passages: Iterable[Passage]) -> list[LoggedPassage]:
        """Add what one retrieval returned; a passage that came before keeps its entry."""
        entries = [_logged(passage, self._rule) for passage in passages]
        with self._lock:
            return [self._place(entry) for entry in entries]

    def show(self, passages: Iterable[Passage]) -> list[LoggedPassage]:
        """Say which passages the prompt holds, in order, and return those that no retrieval recorded."""
        known = len(self._retrieved)
        self._shown = self.retrieve(passages)
        return self._retrieved[known:]

    def carry(self, passages: Iterable[Passage]) -> tuple[dict[str, str], list[LoggedPassage]]:
        """Add what a provider's response carries to what the model was shown.

        Returns:
            The id that each passage has in this run, and the passages that are new.
        """
        passages = list(passages)
        known = len(self._retrieved)
        entries = self.retrieve(passages)
        new = self._retrieved[known:]
        if self._shown is not None:
            self._shown = [*self._shown, *new]
        return {p.id: entry.id for p, entry in zip(passages, entries, strict=True)}, new

    @property
    def shown(self) -> Sequence[LoggedPassage]:
        """The passages in the order shown: as said, else as retrieved."""
        return self._retrieved if self._shown is None else self._shown

    def _place(self, entry: LoggedPassage) -> LoggedPassage:
        """Return the entry that the passage has in this run: a new one, or the one it already had."""
        entry.id = entry.id or self._id_for(entry)
        known = self._by_id.get(entry.id)
        if known is None:
            return self._add(entry)
        if known.identity == entry.identity:
            known.label = entry.label if known.label is None else known.label
            if entry.label in (None, known.label):
                return known
        key = (entry.id, entry.identity, entry.label)
        if (again := self._renamed.get(key)) is not None:
            return again
        entry.id = self._free_id(entry.id)
        self._renamed[key] = entry
        return self._add(entry)

    def _add(self, entry: LoggedPassage) -> LoggedPassage:
        self._by_id[entry.id] = entry
        self._retrieved.append(entry)
        return entry

    def _id_for(self, entry: LoggedPassage) -> str:
        """Return an id for a passage that has none: from its text, unless that says something of a hidden one."""
        if entry.sha256 is not None:
            return f"text-{entry.sha256[:12]}"
        if entry.identity is None:
            return self._free_id("passage")
        return self._unnamed.setdefault(entry.identity, f"passage-{len(self._unnamed) + 1}")

    def _free_id(self, wanted: str) -> str:
        """Return an id like `wanted` that no passage of the run has."""
        n = len(self._retrieved) + 1
        while f"{wanted}#{n}" in self._by_id:
            n += 1
        return f"{wanted}#{n}"


def _logged(passage: Passage, rule: Rule | None) -> LoggedPassage:
    """Return the passage as it will be recorded; its text is encoded once, being the largest thing here."""
    text, digest = passage.text, passage.sha256
    if text is not None:
        try:
            data = text.encode()
        except UnicodeEncodeError:
            data = b"\0"
        if b"\0" in data:
            text = clean_text(text)
            data = text.encode()
        digest = digest or sha256(data).hexdigest()
    label, title, url = passage.label, passage.title, passage.url
    entry = LoggedPassage(
        clean_text(passage.id),
        label if label is None else clean_text(label),
        digest,
        title if title is None else clean_text(title),
        url if url is None else clean_text(url),
        text,
        passage.score,
        passage.metadata or None,
        digest,
    )
    if passage.is_cut:
        entry.is_cut = True
        entry.sha256 = passage.sha256  # the hash of a part is not that of what the model saw
    if text is not None and rule is not None:
        _redact_entry(entry, text, rule)
    return entry


def redacted_passages(entries: Sequence[LoggedPassage]) -> tuple[list[str], list[str]]:
    """Return what the record says redaction hid of the passages, and what it cut."""
    hidden = [f"passage:{entry.id}" for entry in entries if entry.is_hidden]
    cut = [f"passage:{entry.id}" for entry in entries if entry.is_cut]
    return (["passages"] if hidden and len(hidden) == len(entries) else hidden), cut


def document_attributes(entries: Sequence[LoggedPassage], rule: Rule | None) -> dict[str, str | float]:
    """Return OpenInference's document attributes for what one retrieval returned."""
    attributes: dict[str, str | float] = {}
    for (id_key, content_key, score_key, metadata_key), entry in zip(
        _keys(len(entries)), entries, strict=False
    ):
        attributes[id_key] = entry.id
        if entry.text is not None:
            attributes[content_key] = entry.text
        if entry.score is not None:
            attributes[score_key] = entry.score
        if entry.metadata is not None:
            attributes[metadata_key] = _metadata_json(entry.metadata, rule)
    return attributes


def _redact_entry(entry: LoggedPassage, text: str, rule: Rule) -> None:
    made = redact(rule, text)
    entry.text = made.text
    entry.is_hidden = made.is_hidden
    entry.is_cut = made.is_cut or (entry.is_cut and not made.is_hidden)
    if not made.keeps_hash:
        entry.sha256 = None
    if made.is_hidden:
        entry.title = entry.metadata = None
    elif entry.title is not None:
        entry.title = redact(rule, entry.title).text


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
