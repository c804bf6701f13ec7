"""From markers to passages, and from citations to the claims they are attached to."""

from __future__ import annotations

from citespan.evaluators.resolve.resolver import resolve

__all__ = ["resolve"]
