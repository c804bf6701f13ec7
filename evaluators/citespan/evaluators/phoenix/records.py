"""What goes to Phoenix and comes back, as plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import cast

from citespan.tracer.text import clean_text

__all__ = ["Annotation", "Kind", "Project", "SpanPage", "StoredAnnotation", "Target"]


class Target(StrEnum):
    """What an annotation is attached to."""

    SPAN = "span"
    """One span, by its OpenTelemetry span id."""

    TRACE = "trace"
    """One trace, by its OpenTelemetry trace id."""


class Kind(StrEnum):
    """Who made an annotation, in Phoenix's words."""

    CODE = "CODE"
    """A program, the same way every time."""

    LLM = "LLM"
    """A language model."""

    HUMAN = "HUMAN"
    """A person; citespan never touches such a row."""


@dataclass(frozen=True, slots=True)
class Project:
    """A project as Phoenix knows it."""

    id: str
    """Phoenix's own id, part of its page's URLs."""

    name: str
    """The name that spans are sent under."""


@dataclass(frozen=True, slots=True)
class SpanPage:
    """One page of a list of spans."""

    spans: tuple[Mapping[str, object], ...]
    """Spans as Phoenix's JSON has them."""

    next_cursor: str | None
    """Where the next page begins; `None` on the last page."""

    size_bytes: int
    """Bytes of the decoded reply, for readers that keep their memory bounded."""


@dataclass(frozen=True, slots=True)
class Annotation:
    """One annotation to write; Phoenix keeps one row per target, name and identifier."""

    target_id: str
    """Span id or trace id."""

    name: str
    """Name shown in the page."""

    identifier: str
    """Whose row it is."""

    kind: Kind = Kind.CODE
    """Who made it."""

    label: str | None = None
    """Label, if any."""

    score: float | None = None
    """Score, if any; finite."""

    explanation: str | None = None
    """Plain text for people."""

    metadata: Mapping[str, object] = field(default_factory=dict[str, object])
    """JSON values only."""

    @property
    def key(self) -> tuple[str, str, str]:
        """What Phoenix upserts by."""
        return (self.target_id, self.name, self.identifier)

    def to_json(self, target: Target) -> dict[str, object]:
        """Return the body that Phoenix's annotation routes take."""
        return {
            f"{target}_id": self.target_id,
            "name": self.name,
            "annotator_kind": self.kind,
            "identifier": self.identifier,
            "result": {"label": self.label, "score": self.score, "explanation": _clean(self.explanation)},
            "metadata": _clean(self.metadata),
        }


def _clean(value: object) -> object:
    """Return JSON without the characters that some of Phoenix's databases refuse; judges may write any."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, Mapping):
        return {key: _clean(item) for key, item in cast("Mapping[str, object]", value).items()}
    if isinstance(value, list | tuple):
        return [_clean(item) for item in cast("Sequence[object]", value)]
    return value


@dataclass(frozen=True, slots=True)
class StoredAnnotation:
    """An annotation as Phoenix has it, with Phoenix's own id."""

    id: str
    """Phoenix's id of the row."""

    annotation: Annotation
    """What the row says."""

    @property
    def is_human(self) -> bool:
        """Whether a person made it or last changed it; notes count."""
        return self.annotation.kind is Kind.HUMAN or self.annotation.name == "note"

    @property
    def key(self) -> tuple[str, str, str]:
        """What Phoenix upserts by."""
        return self.annotation.key
