"""A finding: one thing in which a claim and a passage differ, named by the rule that saw it."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Finding"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing in which claim and passage differ."""

    rule: str
    """`number`, `negation`, `strengthening`, `qualifier`, `antonym` or `entity`."""

    reason: str
    """One sentence for the reviewer."""

    is_clash: bool = False
    """Whether the passage says something different, rather than less."""

    is_partial: bool = False
    """Whether the passage carries a weaker or narrower version."""

    place: int | None = None
    """Index of the passage's word that shows it; `None` for what the passage lacks."""
