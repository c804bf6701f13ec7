"""A passage: one retrieved text with an id, as the run recorded it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from citespan.tracer.text import text_hash

__all__ = ["Passage"]

_EMPTY: Mapping[str, object] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Passage:
    """One retrieved text with an id."""

    id: str
    """Identifier, unique within the run."""

    text: str | None
    """The text the model saw; `None` when the trace did not record it (hidden, lost, or never captured)."""

    label: str | None = None
    """The label the model was shown for it (`"1"`, `"P1"`, `"kb-7"`), without brackets; `None` if unknown."""

    title: str | None = None
    """Human-readable title, shown to reviewers."""

    url: str | None = None
    """Where the passage can be read in full, shown to reviewers."""

    score: float | None = None
    """Retrieval score in the retriever's own unit."""

    metadata: Mapping[str, object] = field(default_factory=lambda: _EMPTY)
    """Whatever else the retriever said; JSON values only."""

    sha256: str | None = None
    """Hash of the text as recorded by the app; computed from `text` where the app recorded none."""

    is_cut: bool = False
    """Whether `text` is known to be shorter than what the model saw (redaction, a store's limit)."""

    @property
    def text_sha256(self) -> str | None:
        """The sha256 of the passage's text, or `None` if neither text nor hash was recorded."""
        if self.sha256 is not None:
            return self.sha256
        return None if self.text is None else text_hash(self.text)
