"""A recorded citation: what the app or the provider said an answer leans on."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Citation"]


@dataclass(frozen=True, slots=True)
class Citation:
    """One citation recorded beside the answer, as opposed to a marker found in its text."""

    passage_id: str
    """Id of the passage it names; it may name none of the run's (a dangling citation)."""

    start: int | None = None
    """First code point of the answer that the citation covers; `None` when the provider gave no range."""

    end: int | None = None
    """One past the last code point that the citation covers; `None` when the provider gave no range."""

    origin: str = "app"
    """Who said so: `app`, or a provider's name such as `anthropic`."""

    quote: str | None = None
    """The text of the passage that the provider says it used, as the provider wrote it."""
